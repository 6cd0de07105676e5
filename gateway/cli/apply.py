# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate apply``, which writes a file's objects and grants into a catalog, and ``lakegate export``.

``export`` writes the objects and grants of a catalog into a file. Both commands send the token of the logged-in user,
so that the gateway decides about every change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gateway.cli.catalog_client import client_of, exit_on_errors
from gateway.cli.exit_codes import ExitCode
from gateway.cli.management import at_a_gateway, printable

if TYPE_CHECKING:
    from gateway.apply.planner import Plan
    from gateway.apply.state import State

Wrapped = TypeVar("Wrapped", bound=Callable[..., Any])

_CHANGES = 2


class _Command(click.Command):
    """A command whose usage errors exit with 1, because 2 means that the plan has changes."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            error.exit_code = ExitCode.FAILED  # type: ignore[misc]  # click reads the attribute of the error
            raise


@click.command(cls=_Command)
@click.option(
    "-f",
    "--file",
    "paths",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="File, or directory of files that end with .yaml or .yml. Can be given several times.",
)
@click.option("--plan", "plan_only", is_flag=True, help="Only print the changes. Exit with 2 if there are any.")
@click.option("--prune", is_flag=True, help="Remove what is missing in the lists of the file.")
@click.option("--prune-containers", is_flag=True, help="With --prune, also remove empty warehouses and namespaces.")
@click.option("--rotate-secrets", is_flag=True, help="Store the credentials of the file again; they are not compared.")
@click.option(
    "--secrets-dir",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Directory of the files that `{file: …}` in a credential may name. No other file is read.",
)
@click.option("--yes", is_flag=True, help="Make the changes without a question.")
@at_a_gateway
def apply(
    paths: tuple[Path, ...],
    plan_only: bool,
    prune: bool,
    prune_containers: bool,
    rotate_secrets: bool,
    secrets_dir: Path | None,
    yes: bool,
    gateway: str | None,
    token: str | None,
) -> None:
    """Create and change the objects and grants of a file. A second run changes nothing.

    Exit with 0 if the catalog agrees with the file afterwards, with 1 after an error, and with 2 if --plan has changes.
    """
    from gateway.apply.kinds import Executor, read_state
    from gateway.apply.planner import plan, plan_lines
    from gateway.settings import variable

    if prune_containers and not prune:
        raise click.ClickException("--prune-containers needs --prune")
    with exit_on_errors(ExitCode.FAILED):
        desired = _desired(paths, rotate=rotate_secrets)
        with client_of(gateway, token) as api:

            def compare() -> tuple[Plan, Executor]:
                present, located = read_state(api, desired, containers=prune_containers)
                found = plan(desired, present, prune=prune, prune_containers=prune_containers)
                return found, Executor(api, present, located, secrets=secrets_dir, variables=variable)

            planned, executor = compare()
            click.echo("\n".join(plan_lines(planned, prune=prune)))
            if plan_only:
                sys.exit(_CHANGES if planned.changes else 0)
            if not planned.changes:
                return
            executor.prepare(planned.changes)
            if not yes:
                _confirm()
                again, executor = compare()
                if again.changes != planned.changes:
                    raise click.ClickException("the state has changed since the plan; run the command again")
                executor.prepare(again.changes)
            run_changes(executor, planned)


@click.command(cls=_Command)
@click.option("--project", help="Id or name of a project. Default: the server and all projects that you see.")
@click.option("--with-mappings", is_flag=True, help="Include the entries of mapping tables, which are personal data.")
@at_a_gateway
def export(project: str | None, with_mappings: bool, gateway: str | None, token: str | None) -> None:
    """Print the current objects and grants as a file for `lakegate apply`. It contains no secrets."""
    import yaml

    from gateway.apply.export import export as exported

    notes: list[str] = []
    with exit_on_errors(ExitCode.FAILED), client_of(gateway, token) as api:
        content = exported(api, project, notes, mappings=with_mappings)
    click.echo("\n".join(f"note: {printable(each)}" for each in notes), err=True, nl=bool(notes))
    click.echo(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120), nl=False)


@click.command("apply-schema", hidden=True)
def apply_schema() -> None:
    """Print the JSON Schema of files for `lakegate apply`, the text of docs/apply.schema.json."""
    from gateway.apply.document import schema

    click.echo(json.dumps(schema(), indent=2))


def _desired(paths: Sequence[Path], *, rotate: bool) -> State:
    """Return the state that the files declare. Raises InvalidSource."""
    from gateway.apply.kinds import desired_state, read_all

    files = [file for path in paths for file in (_files_in(path) if path.is_dir() else [path])]
    texts = {}
    for file in files:
        try:
            texts[str(file)] = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise click.ClickException(f"the file {file} cannot be read: {error}") from None
    return desired_state(read_all(texts), now=datetime.now(UTC), rotate=rotate)


def _files_in(directory: Path) -> list[Path]:
    return sorted(each for each in directory.iterdir() if each.suffix in (".yaml", ".yml"))


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise click.ClickException("there is no terminal for the question; give --yes to make the changes")
    if not click.confirm("Make these changes?"):
        raise click.ClickException("nothing was changed")


def run_changes(executor: Any, planned: Plan) -> None:
    """Make the changes, and print each one. An error ends the command, with the number of changes that were made."""
    from gateway.apply.planner import change_line

    done = 0
    try:
        for change in executor.run(planned.changes):
            done += 1
            click.echo(f"done: {change_line(change)}")
            for note in executor.notes():
                click.echo(f"warning: {note}", err=True)
    except Exception:
        click.echo(
            f"{done} of {len(planned.changes)} changes were made. The next one failed: "
            f"{change_line(planned.changes[done])}. Run the command again after the remedy: it continues there.",
            err=True,
        )
        raise
    click.echo(f"{done} changes were made.")
