# SPDX-License-Identifier: Apache-2.0
"""Commands that repair relationships, manage secrets and tokens of the gateway, and allow the bootstrap once more."""

from __future__ import annotations

import sys
from typing import Literal
from uuid import UUID

import click

from gateway.cli.common import DIFFERS, ends_on, quiet_settings, run_on_services


@click.group()
def authz() -> None:
    """Compare and repair relationships: the tuples of OpenFGA and the rows of the database."""


@authz.command()
@click.option("--dry-run", is_flag=True, help="List the differences without changing anything.")
@click.option(
    "--restored",
    type=click.Choice(["revoke", "give-back"]),
    help="After a restore of PostgreSQL: treatment of grants that OpenFGA does not contain (revoked since the backup).",
)
def reconcile(dry_run: bool, restored: Literal["revoke", "give-back"] | None) -> None:
    """Compare all tuples in OpenFGA with the rows of the database, and repair the differences.

    Gateways may serve at the same time. A restored database is the exception: gateways refuse it until `--restored`
    decides about its grants. Exit code 0: no difference is left. Exit code 3: differences are left, after a dry run or
    because a grant is only reported. Exit code 1: the comparison failed.
    """
    from gateway import app
    from gateway.features.tuples.drift_findings import Finding

    def report(finding: Finding) -> None:
        click.echo(f"{finding.kind:<16} {finding.text}")

    settings = quiet_settings()
    compared = run_on_services(settings, app.reconcile(settings, repair=not dry_run, report=report, restored=restored))
    click.echo(compared.summary())
    if compared.drift and (dry_run or compared.left):
        sys.exit(DIFFERS)


@click.group()
def secrets() -> None:
    """Manage the encryption of stored credentials, and the tokens that the gateway issues."""


@secrets.command("rotate")
@click.option("--dry-run", is_flag=True, help="Change nothing; count the credentials.")
def rotate_secrets(dry_run: bool) -> None:
    """Encrypt every stored credential with PG_ENCRYPTION_KEY. PG_ENCRYPTION_KEY_OTHER decrypts those it encrypted.

    Gateways with both keys may serve at the same time, and an interrupted run can be repeated. Exit code 0: the first
    key decrypts everything; remove the other one. Exit code 3: not yet, after a dry run or because a credential was
    stored during the run. Exit code 1: the run failed; the message gives the cause.
    """
    from gateway import app
    from gateway.features.credentials.encryption_keys import NotAllReadable

    settings = quiet_settings("require_encryption_key")
    try:
        changed = run_on_services(settings, app.change_keys(settings, seal=not dry_run))
    except NotAllReadable as error:
        raise click.ClickException(str(error)) from None
    except ValueError as unfit:
        raise click.ClickException(f"PG_ENCRYPTION_KEY is invalid: {unfit}") from None
    click.echo(changed.summary())
    if not changed.complete:
        sys.exit(DIFFERS)


@secrets.command("move")
@click.option("--dry-run", is_flag=True, help="Change nothing; count the credentials.")
def move_secrets(dry_run: bool) -> None:
    """Move the storage credentials of all warehouses into the store of the setting SECRET_BACKEND.

    Gateways may serve at the same time if they can read both stores. An interrupted run can be repeated. Exit code 0:
    all credentials lie in that store. Exit code 3: not yet, after a dry run, because a credential is unreadable or was
    stored elsewhere during the run. Exit code 1: the run failed; the message gives the cause.
    """
    from gateway import app
    from gateway.assembly.secret_stores import NoSuchSecretStore
    from gateway.db.credentials.secrets import SecretUnreadable
    from gateway.secret_stores.port import SecretStoreRefused

    settings = quiet_settings("require_secret_stores")
    try:
        moved = run_on_services(settings, app.move_secrets(settings, move=not dry_run))
    except SecretStoreRefused as refused:
        raise click.ClickException(f"a secret store refuses the gateway: {refused.reason}") from None
    except (NoSuchSecretStore, SecretUnreadable) as error:
        raise click.ClickException(str(error)) from None
    click.echo(moved.summary())
    if not moved.complete:
        sys.exit(DIFFERS)


@secrets.command("withdraw-signing-keys")
@click.option(
    "--yes", is_flag=True, help="Confirm: engines that act for users must exchange their users' tokens again."
)
def withdraw_signing_keys(yes: bool) -> None:
    """Revoke the signing keys of the tokens that the gateway issued to engines. These tokens end within a second."""
    from gateway import app

    if not yes:
        raise click.UsageError(
            "this revokes every token that this server issued to engines for their users; confirm with --yes"
        )
    settings = quiet_settings()
    ended = run_on_services(settings, app.revoke_own_signing_keys(settings))
    click.echo(f"revoked signing keys: {ended}")


@click.command("reopen-bootstrap")
@click.option(
    "--for",
    "user_id",
    help="Id `<provider>~<subject>` of the only user that may bootstrap the server. Default: any user.",
)
@click.option(
    "--yes", is_flag=True, help="Confirm: the next user that bootstraps the server becomes its administrator."
)
def reopen_bootstrap(user_id: str | None, yes: bool) -> None:
    """Allow another bootstrap of a server that has lost its last administrator. Existing grants stay."""
    from gateway import app

    if user_id is not None:
        _require_user(user_id)
    if not yes:
        claimant = "whoever bootstraps next" if user_id is None else user_id
        raise click.UsageError(f"this lets {claimant} become an administrator of the server; confirm with --yes")
    settings = quiet_settings()
    managed = run_on_services(settings, app.reopen_bootstrap(settings, user_id=user_id))
    if managed:
        click.echo("note: this server still has an administrator")
    by = "" if user_id is None else f" by {user_id}"
    click.echo(f"the server can be bootstrapped again{by}: POST /management/v1/bootstrap")


def _require_user(user_id: str) -> None:
    """Raise click.UsageError if this is not a user id. With another text, no user could bootstrap the server."""
    import msgspec

    from gateway.access.tuples import require_valid_in_tuples
    from gateway.iceberg.errors import CatalogError

    provider, tilde, subject = user_id.partition("~")
    try:
        require_valid_in_tuples(user_id)
    except (CatalogError, msgspec.ValidationError) as unfit:
        raise click.UsageError(str(unfit)) from None
    if not (provider and tilde and subject):
        raise click.UsageError(f"{user_id!r} is not a full user id; give it in the form <provider>~<subject>")


_DAYS = 180
_MOST_DAYS = 730


@secrets.group("scim-token")
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
