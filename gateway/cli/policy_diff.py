# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate policy diff``: replay recorded decisions with two sets of policies, for CI."""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from gateway.cli.common import DIFFERS, ends_on, settings_for

if TYPE_CHECKING:
    from gateway.opa.decider import WireAnswer
    from gateway.opa.replay import Group, Recorded
    from gateway.opa.syntax import Module
    from gateway.settings import Settings

    Compared = tuple[Recorded, WireAnswer | None, WireAnswer | None]

PACKAGED = "packaged"

FILE = click.Path(dir_okay=False, exists=True, path_type=Path)


class _Duration(click.ParamType[timedelta]):
    """A number with the unit `s`, `m`, `h` or `d`."""

    name = "duration"

    def convert(self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the duration. Another form ends the command with a message."""
        if isinstance(value, timedelta):
            return value
        units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
        if value[-1:] not in units or not value[:-1].isdigit():
            self.fail(f"{value} is not a number with the unit s, m, h or d, such as 24h", param, ctx)
        return timedelta(**{units[value[-1]]: int(value[:-1])})


@click.command("diff")
@click.argument("old")
@click.argument("new")
@click.option("--replay", type=FILE, help="File with audit records or inputs of OPA, one JSON object a line.")
@click.option("--database", is_flag=True, help="Replay the audit records of the database in the settings.")
@click.option("--since", type=_Duration(), default="24h", show_default=True, help="Age of the oldest record to replay.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--acknowledged", type=FILE, help="File with the lines that may widen access.")
def policy_diff(
    old: str, new: str, replay: Path | None, database: bool, since: timedelta, form: str, acknowledged: Path | None
) -> None:
    """Print which recorded decisions two sets of policies answer differently, with their number and an example.

    OLD and NEW are directories as for `lakegate policy check`, bundles (`.tar.gz`), or `packaged` for the policies of
    this version. Both are evaluated by the OPA of `lakegate setup`. An audit record lacks some fields of the input.
    Those that a guardrail reads are listed.

    `allow` lines and `weaker` obligations widen access. Exit code 3 if access widens without a line in the file of
    acknowledgements, or if such a line is stale.
    """
    from gateway.opa.replay import InvalidRecord
    from gateway.opa.syntax import InvalidPolicies
    from lakegate.local.errors import StackError

    if database == (replay is not None):
        raise click.UsageError("Name one source of decisions: --replay FILE or --database.")
    with ends_on(InvalidPolicies, InvalidRecord, StackError, OSError, UnicodeDecodeError, tarfile.TarError):
        settings = settings_for()
        with _lines(replay, since) as lines:
            groups, decisions, evaluated, missing = _replayed(settings, old, new, lines)
        stated = [] if acknowledged is None else acknowledged.read_text(encoding="utf-8").splitlines()
    lines_stated = {each.strip() for each in stated if each.strip() and not each.lstrip().startswith("#")}
    widening = {str(each.difference) for each in groups if each.difference.widens}
    unacknowledged, stale = sorted(widening - lines_stated), sorted(lines_stated - widening)
    if form == "json":
        _print_json(groups, decisions, evaluated, missing, unacknowledged, stale)
    else:
        for group in groups:
            click.echo(f"{group.difference}: {group.count}, for example {group.example}")
        click.echo(f"{decisions} decisions, {evaluated} different questions: {len(groups)} kinds of differences")
        if missing:
            click.echo(f"not recorded, so a decision can depend on: {', '.join(missing)}")
    for line in stale:
        click.echo(f"stale acknowledgement: {line}", err=True)
    for line in unacknowledged:
        click.echo(f"widens access without an acknowledgement: {line}", err=True)
    sys.exit(DIFFERS if unacknowledged or stale else 0)


def _replayed(settings: Settings, old: str, new: str, lines: BinaryIO) -> tuple[list[Group], int, int, list[str]]:
    """Return (differences, number of decisions, number of different questions, missing fields that guardrails read)."""
    from gateway.opa.replay import difference, distinct, grouped, read_inputs, time_is_only_parsed, unrecorded_inputs
    from gateway.opa.replay_run import deployed, evaluate, has_shipped_entry, write_policies
    from gateway.opa.syntax import parse
    from lakegate.local.toolchain import locate_opa

    opa = locate_opa(settings)
    with tempfile.TemporaryDirectory(prefix="lakegate-replay-") as created:
        modules: list[Module] = []
        directories = Path(created) / "old", Path(created) / "new"
        for name, directory in zip((old, new), directories, strict=True):
            files = deployed(_files(settings, name))
            if not has_shipped_entry(files):
                raise click.ClickException(f"{name} replaces gateway/main.rego, so its decisions cannot be replayed.")
            write_policies(files, directory)
            modules += parse(opa, {each: text for each, text in files.items() if each.endswith(".rego")})

        def answered(recorded: Sequence[Recorded], *, exact: bool) -> list[Compared]:
            with click.progressbar(length=2 * len(recorded), label="replaying", file=sys.stderr) as bar:
                sides = [evaluate(opa, each, recorded, exact=exact, done=bar.update) for each in directories]
                return list(zip(recorded, *sides, strict=True))

        read, timeless = read_inputs(modules), time_is_only_parsed(modules)
        compared = answered(distinct(lines, read - {"time"} if timeless else read), exact=not timeless)
        # Without its time, a question fails exactly if its answer depends on the time. Ask those again with it.
        failed = {each.key for each, *answers in compared if None in answers} if timeless else set()
        if failed:
            lines.seek(0)
            compared = [each for each in compared if each[0].key not in failed]
            compared += answered(distinct(lines, read, failed), exact=True)
    found = [(each, difference(each.operation, before, after)) for each, before, after in compared]
    groups = grouped((each, differs) for each, differs in found if differs is not None)
    return groups, sum(each.count for each, *_ in compared), len(compared), unrecorded_inputs(modules)


def _files(settings: Settings, name: str) -> dict[str, bytes]:
    """Return the files of a set of policies by their path."""
    from gateway.opa.policy_files import policy_files
    from lakegate.local.policies import policy_source

    if name.endswith(".tar.gz"):
        with tarfile.open(name) as bundle:
            members = [each for each in bundle if each.isfile() and each.name.endswith((".rego", "data.json"))]
            return {each.name.lstrip("/"): _content(bundle, each) for each in members}
    return policy_files(policy_source(settings, None if name == PACKAGED else Path(name).resolve()))


def _content(bundle: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = bundle.extractfile(member)
    return b"" if file is None else file.read()


@contextmanager
def _lines(replay: Path | None, since: timedelta) -> Iterator[BinaryIO]:
    """Context manager. Open the file, or else read the records of the database into a temporary file first."""
    if replay is not None:
        with replay.open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as spooled:
        from gateway.cli.models import about_models

        async def run(settings: Settings) -> None:
            from gateway.cli.models import opened_database
            from gateway.db.audit.audit_log import records_since

            async with opened_database(settings) as database, database.transaction() as connection:
                async for record in records_since(connection, since):
                    spooled.write(record + b"\n")

        about_models(run)
        spooled.seek(0)
        yield spooled


def _print_json(
    groups: list[Group], decisions: int, evaluated: int, missing: list[str], unacknowledged: list[str], stale: list[str]
) -> None:
    import msgspec

    differences = [
        {**msgspec.structs.asdict(each.difference), "line": str(each.difference), "widens": each.difference.widens}
        | {"count": each.count, "example": each.example}
        for each in groups
    ]
    fields = {"decisions": decisions, "questions": evaluated, "differences": differences, "depends_on": missing}
    fields |= {"unacknowledged": unacknowledged, "stale": stale}
    click.echo(msgspec.json.format(msgspec.json.encode(fields), indent=2).decode())
