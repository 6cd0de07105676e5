# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate contracts``, and the check of verifiers before `lakegate serve` starts worker processes."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.common import ends_on

if TYPE_CHECKING:
    from gateway.settings import Settings


@click.group()
def contracts() -> None:
    """Commands on data contracts."""


@contracts.command("check")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
def check(directory: Path) -> None:
    """Check the data contracts in a directory, and list their tables and owners.

    Exit with 1 if a file is invalid. A gateway with these files would not start.
    """
    from gateway.verification.contracts import ContractInvalid, load_contracts

    with ends_on(ContractInvalid, OSError):
        found = load_contracts(directory)
    for contract in found.contracts:
        table = contract.table
        name = table.id or ".".join((table.warehouse or "", *table.namespace, table.name or ""))
        click.echo(f"{contract.name}: {name} ({', '.join(contract.owners)})")
    click.echo(f"valid contracts: {len(found.contracts)}")


async def require_verifiers(settings: Settings) -> None:
    """End the command if a verifier of the settings cannot be opened. Each worker process would fail."""
    if not settings.verifiers:
        return
    from gateway.assembly.extensions import NoSuchExtension
    from gateway.assembly.verifiers import open_verifiers
    from gateway.cli.common import trust
    from gateway.settings import SettingsError
    from gateway.telemetry.health import HealthMonitor

    try:
        async with AsyncExitStack() as stack:
            open_verifiers(settings, trust(), None, HealthMonitor(), stack)
    except (NoSuchExtension, SettingsError) as refused:
        raise click.ClickException(f"cannot serve: {refused}") from None
