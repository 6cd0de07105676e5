# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate status``: the state of a running stack, its addresses, users and configuration."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gateway.cli.common import ends_on, settings_for

DATA = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".lakegate"),
    show_default=True,
    help="Directory for the data of the stack.",
)


@click.command()
@DATA
def status(data: Path) -> None:
    """Print everything about the stack that `lakegate up` runs: parts, addresses, users, configuration of engines.

    Exit code 1: no stack runs with this directory, or a part of it has ended.
    """
    import msgspec
    from rich.console import Console

    from gateway.embedded import engines, guide, ready, toolchain
    from gateway.embedded.errors import StackError

    directory = data.resolve()
    try:
        described = ready.read(directory / ready.FILE)
    except (OSError, msgspec.MsgspecError):
        raise click.ClickException(
            f"no stack is ready with the data in {directory}; start one with `lakegate up`, or name its directory with "
            "--data"
        ) from None
    with ends_on(StackError):
        files = engines.engine_files(described, directory / "engines", toolchain.locate(settings_for()))
    guide.show_all(Console(), described, directory, files)
    ended = sorted(name for name, processes in described.pids.items() if not _runs(processes[0]))
    if ended:
        click.echo(f"not running: {', '.join(ended)}; the logs are in {directory / 'logs'}", err=True)
        sys.exit(1)
    click.echo(f"running: {', '.join(described.pids)}")


def _runs(process: int) -> bool:
    import psutil

    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
