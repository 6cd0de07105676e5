# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate audit``: verify that audit records were not changed or removed, and export them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gateway.cli.common import command_fault, ends_on, quiet_settings, run_on_services, settings_for

if TYPE_CHECKING:
    from gateway.access.audit.audit_chain import Anchor, Fault

_FAULT = 3


@click.group()
def audit() -> None:
    """Commands on the audit log."""


@audit.command()
@click.option("--anchor", help="`<block>:<digest>` from an earlier run or a log line `audit.sealed`.")
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help="Verify an exported file instead, without the database.",
)
def verify(anchor: str | None, file: Path | None) -> None:
    """Verify the chain over all sealed audit records. Exit with 3 if a record or block was changed or
    removed, or if nothing is sealed.

    The last line of the output is the anchor of the newest block. Keep it outside of the database: a later run with
    `--anchor` also finds a chain that was cut or rewritten.
    """
    from gateway.assembly import audit as audit_log
    from gateway.settings import Settings
    from gateway.telemetry.logs import configure_logging

    configure_logging(level="WARNING", stream=sys.stderr.buffer)
    expected = None if anchor is None else _anchor(anchor)
    if file is not None:
        _verify_file(file, expected)
        return
    settings = settings_for(Settings.write_url)
    found = run_on_services(settings, audit_log.verify_audit(settings, expected))
    click.echo(f"verified blocks: {found.blocks}, records: {found.records}, not sealed yet: {found.unsealed}")
    if found.removed_until is not None:
        click.echo(f"retention removed the records before {found.removed_until:%Y-%m-%d}, blocks: {found.removed}")
    if found.strays:
        click.echo(f"{found.strays} records are marked as sealed in a block that does not exist", err=True)
        sys.exit(_FAULT)
    _conclude(found.fault, found.last)


@audit.command()
@click.option(
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the records. It must not exist.",
)
@click.option("--after", type=click.IntRange(min=0), default=0, help="Export only blocks with a higher number.")
def export(output: Path, after: int) -> None:
    """Export sealed audit records with their blocks as JSON lines, which `lakegate audit verify --file` verifies.

    The last line of the output is the number of the last block, for `--after` of the next export.
    """
    from gateway.assembly import audit as audit_log
    from gateway.features.audit.audit_chain import RecordsGone

    settings = quiet_settings()
    try:
        done = run_on_services(settings, audit_log.export_audit(settings, output, after))
    except Exception as error:
        fault = str(error) if isinstance(error, RecordsGone) else command_fault(error)
        if fault is None:
            raise
        raise click.ClickException(f"{output} is not complete: {fault}") from None
    click.echo(f"exported records: {done.records}")
    # Without new records after `--after`, the export is complete and not an error.
    if not done.last:
        _nothing_sealed("Nothing is sealed, so the file contains no record.")
    click.echo(str(done.last))


def _verify_file(file: Path, anchor: Anchor | None) -> None:
    from gateway.features.audit.audit_chain import verify_file

    with ends_on(OSError):
        found = verify_file(file, key=settings_for().audit.key(), anchor=anchor)
    click.echo(f"verified blocks: {found.blocks}, records: {found.records}")
    if found.first is not None and found.first.number > 1:
        click.echo(f"the file begins with block {found.first.number}; earlier blocks are not verified", err=True)
    _conclude(found.fault, found.last)


def _conclude(fault: Fault | None, last: Anchor | None) -> None:
    """Print the anchor of the last block. If there is a fault, print it and end with exit code 3."""
    if fault is not None:
        click.echo(f"block {fault.number}: {fault.reason}", err=True)
        sys.exit(_FAULT)
    if last is None:
        _nothing_sealed("Nothing is sealed, so nothing was verified.")
    else:
        click.echo(f"{last.number}:{last.digest.hex()}")


def _nothing_sealed(fact: str) -> NoReturn:
    """Print the fact and the remedy, and end with exit code 3, so that no job takes the result for a verified log."""
    click.echo(
        f"{fact} Gateways seal records while they run, if LAKEGATE__AUDIT__SEAL_INTERVAL is set, for example to 10 "
        "seconds: set it and start them, or correct the database in the settings.",
        err=True,
    )
    sys.exit(_FAULT)


def _anchor(text: str) -> Anchor:
    """Return the anchor in `<block>:<digest>`. An invalid text ends the command with a message."""
    from gateway.access.audit.audit_chain import Anchor

    number, _, digest = text.partition(":")
    try:
        return Anchor(int(number), bytes.fromhex(digest))
    except ValueError:
        raise click.ClickException(f"--anchor must be <block>:<digest> in hexadecimal digits, not {text!r}") from None
