# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate secrets scim-token …``: tokens for identity providers that write users and groups (SCIM)."""

from __future__ import annotations

from uuid import UUID

import click

from gateway.cli.common import ends_on, quiet_settings
from gateway.cli.services import run_on_services

_DAYS = 180
_MOST_DAYS = 730


@click.group("scim-token")
def scim_token() -> None:
    """Issue, list and revoke tokens for provisioning (SCIM). They are valid for /scim/v2 only."""


@scim_token.command()
@click.option("--provider", required=True, help="Id of the identity provider that will use the token.")
@click.option("--project", required=True, help="Id of the project in which the provider's groups become roles.")
@click.option(
    "--days", type=click.IntRange(1, _MOST_DAYS), default=_DAYS, show_default=True, help="Days until the token expires."
)
def issue(provider: str, project: str, days: int) -> None:
    """Issue a token and print it. It is not stored and cannot be printed again. Only the token is on standard output.

    Earlier tokens stay valid, so that you can configure the new one before you revoke the old one. The token's user
    needs the privilege `provisioner` on the server.
    """
    from gateway import app
    from gateway.features.principals.scim_tokens import NoSuchProject
    from gateway.identity.provisioning import made

    settings = quiet_settings()
    found = settings.identity_providers().get(provider)
    if found is None or found.scim_subject is None:
        raise click.ClickException(
            f"the provider {provider!r} is unknown or has no SCIM_SUBJECT; set SCIM_SUBJECT of this provider first"
        )
    with ends_on(NoSuchProject):
        text, issued = run_on_services(settings, app.issue_scim_token(settings, made, provider, project, days))
    click.echo(f"token {issued.id} of {issued.user_id}, valid until {issued.expires_at.isoformat()}:", err=True)
    click.echo(text)


@scim_token.command("list")
def list_tokens() -> None:
    """List the issued tokens by id, without the tokens themselves."""
    from gateway import app

    settings = quiet_settings()
    found = run_on_services(settings, app.scim_tokens(settings))
    for each in found:
        click.echo(f"{each.id}  {each.state:<8} {each.expires_at.isoformat()}  {each.provider_id} -> {each.project_id}")


@scim_token.command()
@click.argument("id", type=click.UUID)
def revoke(id: UUID) -> None:
    """Revoke a token. Every process rejects the next request with it."""
    from gateway import app

    settings = quiet_settings()
    ended = run_on_services(settings, app.revoke_scim_token(settings, id))
    if not ended:
        raise click.ClickException(
            "no valid token has this id; list the tokens with `lakegate secrets scim-token list`"
        )
    click.echo(f"revoked: {id}")
