# SPDX-License-Identifier: Apache-2.0
"""``lakegate authz``, ``secrets`` and ``reopen-bootstrap``: what mends an installation. They pass the door like
everybody.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Literal

import click

from gateway.cli.common import DIFFERS, settings_for, start_failures
from gateway.cli.provisioning import scim_token

if TYPE_CHECKING:
    pass


@click.group()
def authz() -> None:
    """Relationships: what OpenFGA holds and what the rows want."""


@authz.command()
@click.option("--dry-run", is_flag=True, help="Change nothing, only tell.")
@click.option(
    "--restored",
    type=click.Choice(["revoke", "give-back"]),
    help="PostgreSQL was restored: grants that OpenFGA does not have (revoked since the backup) end, or hold again.",
)
def reconcile(dry_run: bool, restored: Literal["revoke", "give-back"] | None) -> None:
    """Compare all relationships in OpenFGA with all that the rows want, and make both agree.

    Gateways may serve meanwhile, but for a restored database: it is refused until `--restored` says what holds. Exit
    code 0: both agree, or do now; 3: they differ, in a dry run or because a grant is only to be reported; 1: it could
    not be found out.
    """
    from gateway import app
    from gateway.settings import Settings
    from gateway.tasks.drift_findings import Finding
    from gateway.telemetry.logs import configure_logging

    configure_logging(level="WARNING", stream=sys.stderr.buffer)

    def tell(finding: Finding) -> None:
        click.echo(f"{finding.kind:<16} {finding.text}")

    try:
        compared = asyncio.run(
            app.reconcile(settings_for(Settings.write_url), repair=not dry_run, tell=tell, restored=restored)
        )
    except start_failures() as error:
        raise click.ClickException(str(error)) from None
    click.echo(compared.summary())
    if compared.drift and (dry_run or compared.left):
        sys.exit(DIFFERS)


@click.group()
def secrets() -> None:
    """Storage credentials at rest, and tokens that the gateway issues."""


@secrets.command("rotate")
@click.option("--dry-run", is_flag=True, help="Change nothing, only count.")
def rotate_secrets(dry_run: bool) -> None:
    """Seal every stored credential with PG_ENCRYPTION_KEY; what PG_ENCRYPTION_KEY_OTHER sealed is opened with that.

    Gateways that know both keys may serve meanwhile, and it can be cut short and begun anew. Exit code 0: the first key
    opens everything, the other one may go; 3: not yet, in a dry run or because something was stored meanwhile; 1: it
    could not be done, and the message says why.
    """
    from gateway import app
    from gateway.settings import Settings
    from gateway.tasks.encryption_key_rotation import NotAllReadable
    from gateway.telemetry.logs import configure_logging

    configure_logging(level="WARNING", stream=sys.stderr.buffer)
    settings = settings_for(Settings.require_encryption_key)
    failures: tuple[type[Exception], ...] = (NotAllReadable, *start_failures())
    try:
        changed = asyncio.run(app.change_keys(settings, seal=not dry_run))
    except failures as error:
        raise click.ClickException(str(error)) from None
    except ValueError as unfit:
        raise click.ClickException(f"PG_ENCRYPTION_KEY cannot be used: {unfit}") from None
    click.echo(changed.summary())
    if not changed.complete:
        sys.exit(DIFFERS)


@secrets.command("withdraw-signing-keys")
@click.option("--yes", is_flag=True, help="Do it: engines that act for users have to exchange their tokens again.")
def withdraw_signing_keys(yes: bool) -> None:
    """End the keys of the tokens that the gateway issued to engines, and so those tokens, within a second."""
    from gateway import app
    from gateway.settings import Settings
    from gateway.telemetry.logs import configure_logging

    if not yes:
        raise click.UsageError("every token that engines hold for their users ends; say --yes to let it be so")
    configure_logging(level="WARNING", stream=sys.stderr.buffer)
    try:
        ended = asyncio.run(app.withdraw_signing_keys(settings_for(Settings.write_url)))
    except start_failures() as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"signing keys that ended: {ended}")


secrets.add_command(scim_token)


@click.command("reopen-bootstrap")
@click.option("--for", "user_id", help="The only user who may bootstrap then, by the full id: `<provider>~<subject>`.")
@click.option("--yes", is_flag=True, help="Do it: whoever bootstraps next administers the server.")
def reopen_bootstrap(user_id: str | None, yes: bool) -> None:
    """Let the server be bootstrapped once more, when nobody can manage it any more. What people hold stays."""
    from gateway import app
    from gateway.settings import Settings
    from gateway.telemetry.logs import configure_logging

    if user_id is not None:
        _require_user(user_id)
    if not yes:
        who = "whoever bootstraps next" if user_id is None else user_id
        raise click.UsageError(f"{who} administers the server then; say --yes to let it be so")
    configure_logging(level="WARNING", stream=sys.stderr.buffer)
    try:
        managed = asyncio.run(app.reopen_bootstrap(settings_for(Settings.write_url), user_id=user_id))
    except start_failures() as error:
        raise click.ClickException(str(error)) from None
    if managed:
        click.echo("note: somebody can manage this server now")
    by = "" if user_id is None else f" by {user_id}"
    click.echo(f"the server can be bootstrapped again{by}: POST /management/v1/bootstrap")


def _require_user(user_id: str) -> None:
    """Raise the error of the command line for what is no id of a user: nobody could bootstrap then."""
    import msgspec

    from gateway.access.principal_ids import require_fitting
    from gateway.iceberg.errors import CatalogError

    provider, tilde, subject = user_id.partition("~")
    try:
        require_fitting(user_id)
    except (CatalogError, msgspec.ValidationError) as unfit:
        raise click.UsageError(str(unfit)) from None
    if not (provider and tilde and subject):
        raise click.UsageError(f"{user_id!r} is no user: say the full id, <provider>~<subject>")
