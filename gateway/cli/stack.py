# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate up``, ``demo``, ``setup`` and ``status``, which run the whole stack on one machine, and
``pipeline``.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Coroutine, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from gateway.cli.common import ends_on, settings_for
from gateway.cli.exit_codes import ExitCode, Failure

DATA = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".lakegate"),
    show_default=True,
    help="Directory for the data of the stack.",
)


def _redirect_uris(context: click.Context, parameter: click.Parameter, uris: tuple[str, ...]) -> tuple[str, ...]:
    """Return the redirect addresses. Raises BadParameter for an address to which no browser could return (RFC 6749
    section 3.1.2).
    """
    for uri in uris:
        parts = urlsplit(uri)
        if parts.scheme not in ("http", "https") or not parts.hostname or "#" in uri:
            raise click.BadParameter(f"{uri} is no address such as http://localhost:3001/ui/callback.")
    return uris


@click.command()
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for addresses and keys, written when the stack is ready.",
)
@DATA
@click.option("--empty", is_flag=True, help="Do not bootstrap the server.")
@click.option(
    "--policies",
    type=click.Path(file_okay=False, path_type=Path, resolve_path=True),
    help="Policy repository whose policies are added. Restart after a change.",
)
@click.option(
    "--redirect-uri",
    "redirect_uris",
    multiple=True,
    callback=_redirect_uris,
    help="Page of another program, such as a console, in which users may sign in. May be repeated.",
)
def up(ready_file: Path | None, data: Path, empty: bool, policies: Path | None, redirect_uris: tuple[str, ...]) -> None:
    """Run the gateway and all services that it needs on this machine, until Ctrl-C.

    The first start installs the missing programs, as `lakegate setup` does.
    """
    _install()
    from lakegate.local import up as embedded

    _embedded(
        embedded.run(
            settings_for(),
            data=data.resolve(),
            ready_file=ready_file,
            empty=empty,
            policies=policies,
            redirect_uris=redirect_uris,
        )
    )


@click.command()
def demo() -> None:
    """Run the example pipeline on real data, then show requests that Lakegate allows and denies."""
    from lakegate.local import demo as embedded

    sys.exit(_embedded(embedded.run(settings_for())))


@click.command()
@click.option("--with-spark", is_flag=True, help="Also download the archives that Spark needs (120 MB).")
def setup(with_spark: bool) -> None:
    """Install the programs that `lakegate up` needs, before its first start.

    Only missing programs are downloaded or built.
    """
    _install(with_spark=with_spark)


@click.command()
@DATA
def status(data: Path) -> None:
    """Print everything about the stack that `lakegate up` runs: parts, addresses, users, configuration of engines.

    Exit code 1: no stack runs with this directory, or a part of it has ended.
    """
    import msgspec
    from rich.console import Console

    from lakegate.local import engines, guide, ready, toolchain
    from lakegate.local.errors import StackError

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


def _install(*, with_spark: bool = False) -> None:
    """Install the missing programs of the stack. If that fails, the command ends with the remedy."""
    from rich.console import Console

    from lakegate.local.errors import StackError
    from lakegate.local.install import install

    try:
        install(settings_for(), Console(stderr=True), with_spark=with_spark)
    except StackError as error:
        raise click.ClickException(f"setup failed: {error}") from None


def _embedded(work: Coroutine[Any, Any, int | None]) -> int:
    from lakegate.local.errors import StackError

    with ends_on(StackError):
        return asyncio.run(work) or 0


_HELP_OPTIONS = {"-h", "--help"}
_ARGUMENTS = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


@click.command(context_settings=_ARGUMENTS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="run|copy|statements ...")
def pipeline(arguments: tuple[str, ...]) -> None:
    """Run the Spark pipeline: the medallion tables, a governed copy of a table, or SQL statements.

    The exit codes are those of `python -m lakegate.spark`.

    Example: lakegate pipeline run --config pipeline.json
    """
    sys.exit(_run(arguments or ("--help",)))


def _run(arguments: Sequence[str]) -> int:
    """Run the pipeline, and return its exit code. A missing PySpark or Java ends the command with the remedy."""
    from gateway.settings import java_home, search_path, tool_environment
    from lakegate.local import jdk
    from lakegate.local.errors import StackError

    if find_spec("pyspark") is None:
        raise Failure("the pipeline needs PySpark: pip install 'pyspark==4.1.4'", ExitCode.FAILED)
    changes = {}
    if not _HELP_OPTIONS & set(arguments):
        with ends_on(StackError):
            changes["JAVA_HOME"] = str(jdk.find(java_home(), search_path()))
    # A process of its own, as for a scheduler: Spark reads JAVA_HOME from the environment.
    command = [sys.executable, "-m", "lakegate.spark", *arguments]
    return subprocess.run(command, env=tool_environment(**changes), check=False).returncode
