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
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import click

from gateway.cli.changed_access import recorded_world
from gateway.cli.common import DIFFERS, ends_on, settings_for
from gateway.cli.model_diff import ACTIVE, named_model
from gateway.cli.models import about_models
from gateway.cli.replayed_data_policies import DataPolicies

if TYPE_CHECKING:
    from gateway.fga.relationship_replay import Related, RelationshipReplay
    from gateway.opa.caller_equivalence import CallerEquivalence
    from gateway.opa.decider import WireAnswer
    from gateway.opa.replay import Difference, Group
    from gateway.opa.replay_records import Asked, Recorded
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
@click.option(
    "--models",
    nargs=2,
    default=None,
    metavar="OLD NEW",
    help="Also decide by two relationship models, on the grants in the database of the settings.",
)
@click.option(
    "--data-policies",
    type=FILE,
    help="File of `lakegate apply` with new definitions of the data policies in the database of the settings.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--acknowledged", type=FILE, help="File with the lines that may widen access.")
def policy_diff(
    old: str,
    new: str,
    replay: Path | None,
    database: bool,
    since: timedelta,
    models: tuple[str, str] | None,
    data_policies: Path | None,
    form: str,
    acknowledged: Path | None,
) -> None:
    """Print which recorded decisions two sets of policies answer differently, with their number and an example.

    OLD and NEW are directories as for `lakegate policy check`, bundles (`.tar.gz`), or `packaged` for the policies of
    this version. Both are evaluated by the OPA of `lakegate setup`. The models of `--models` are named as for
    `lakegate model diff`. A decision then changes only if models and policies together change it. With
    `--data-policies`, reads of tables are also compared by the rows and columns that the caller may read.

    `allow` lines and `weaker` obligations widen access. Exit code 3 if access widens without a line in the file of
    acknowledgements, or if such a line is stale. Decisions whose record lacks inputs are counted and not replayed.
    """
    from gateway.apply import ApplyError
    from gateway.fga.evaluation import UnknownRule
    from gateway.fga.world_diff import Incomplete
    from gateway.opa.replay_records import InvalidRecord
    from gateway.opa.syntax import InvalidPolicies
    from lakegate.local.errors import StackError

    if database == (replay is not None):
        raise click.UsageError("Name one source of decisions: --replay FILE or --database.")
    faults = (InvalidPolicies, InvalidRecord, StackError, OSError, UnicodeDecodeError, tarfile.TarError)
    with ends_on(*faults, ApplyError, Incomplete, UnknownRule):
        settings = settings_for()
        relationships = None if models is None else _relationships(*models)
        with _lines(replay, since) as lines:
            compared, not_replayable = _replayed(settings, old, new, lines)
        tables = None
        if data_policies is not None:
            known = relationships or _relationships(ACTIVE, ACTIVE)
            tables = DataPolicies(data_policies, known, [each for each, *_ in compared])
        found = _found(compared, not_replayable, relationships, tables)
        stated = [] if acknowledged is None else acknowledged.read_text(encoding="utf-8").splitlines()
    lines_stated = {each.strip() for each in stated if each.strip() and not each.lstrip().startswith("#")}
    widening = {str(each.difference) for each in found.groups if each.difference.widens}
    unacknowledged, stale = sorted(widening - lines_stated), sorted(lines_stated - widening)
    if form == "json":
        _print_json(found, unacknowledged, stale)
    else:
        _print_text(found)
    for line in stale:
        click.echo(f"stale acknowledgement: {line}", err=True)
    for line in unacknowledged:
        click.echo(f"widens access without an acknowledgement: {line}", err=True)
    sys.exit(DIFFERS if unacknowledged or stale else 0)


class _Found(NamedTuple):
    """The differences, and the numbers of decisions, of different questions, and of what could not be decided.

    `decided_otherwise` is the number of decisions whose relations in the record differ from those of now.
    """

    groups: list[Group]
    decisions: int
    questions: int
    not_replayable: int
    by_policies_only: int
    decided_otherwise: int


def _relationships(old: str, new: str) -> RelationshipReplay:
    from gateway.fga.relationship_replay import RelationshipReplay

    return RelationshipReplay(named_model(old), named_model(new), about_models(recorded_world))


def _found(
    compared: Sequence[Compared],
    not_replayable: int,
    relationships: RelationshipReplay | None,
    tables: DataPolicies | None,
) -> _Found:
    """Return what differs. Without relationships, only policies decide."""
    from gateway.fga.relationship_replay import recorded_relations
    from gateway.opa.replay import Difference, combined, difference, grouped

    differences: list[tuple[Recorded, Difference]] = []
    by_policies_only = decided_otherwise = 0
    for recorded, before, after in compared:
        asked, operation = recorded.asked, recorded.operation
        related = None if relationships is None or asked is None else relationships.related(*asked)
        if related is None:
            by_policies_only += recorded.count
            differs = difference(operation, before, after)
        else:
            differs = combined(operation, (before, after), (related.old, related.new), related.differing)
        if related is not None and asked is not None:
            decided_otherwise += recorded.count * (recorded_relations(asked.decision) is (not related.old))
        if differs is not None:
            differences.append((recorded, differs))
        if tables is not None and asked is not None and _allowed(asked, before, after, related):
            changed = tables.change(asked)
            if changed is not None:
                detail = (*(f"data-policy={each}" for each in changed.policies), *changed.parts)
                differences.append((recorded, Difference("weaker" if changed.wider else "stricter", operation, detail)))
    decisions = sum(each.count for each, *_ in compared)
    return _Found(grouped(differences), decisions, len(compared), not_replayable, by_policies_only, decided_otherwise)


def _allowed(asked: Asked, old: WireAnswer | None, new: WireAnswer | None, related: Related | None) -> bool:
    """Return True if the decision allows before and after. Without models, the recorded refusals of OpenFGA stay."""
    if old is None or new is None or not (old.allow and new.allow):
        return False
    if related is not None:
        return related.old and related.new
    decision = asked.decision
    return decision.outcome == "allowed" or decision.failure in (
        "RestrictedWithoutEnforcer",
        "ObligationWithoutEnforcer",
    )


class _Policies(NamedTuple):
    """The program `opa`, a directory of each different set of policies, their rules, and which callers are alike."""

    opa: Path
    directories: Sequence[Path]
    modules: Sequence[Module]
    equivalence: CallerEquivalence

    def answered(self, recorded: Sequence[Recorded], *, exact: bool, merge: bool = True) -> list[Compared]:
        """Return each question with both answers. Without `merge`, each caller is evaluated."""
        from gateway.opa.caller_equivalence import merged
        from gateway.opa.replay_run import evaluate

        asked, indexes = merged(recorded, self.equivalence) if merge else (recorded, range(len(recorded)))
        with click.progressbar(length=len(self.directories) * len(asked), label="replaying", file=sys.stderr) as bar:
            sides = [list(evaluate(self.opa, each, asked, exact=exact, done=bar.update)) for each in self.directories]
        return [(each, sides[0][index], sides[-1][index]) for each, index in zip(recorded, indexes, strict=True)]


def _written(settings: Settings, old: str, new: str, directory: Path) -> _Policies:
    """Write both sets of policies below a directory, equal ones once."""
    from gateway.opa.caller_equivalence import caller_equivalence
    from gateway.opa.replay_run import deployed, has_shipped_entry, policy_data, write_policies
    from gateway.opa.syntax import parse
    from lakegate.local.toolchain import locate_opa

    opa = locate_opa(settings)
    modules: list[Module] = []
    sets = [deployed(_files(settings, name)) for name in (old, new)]
    directories = [directory / each for each in (["old"] if sets[0] == sets[1] else ["old", "new"])]
    for name, files, into in zip((old, new), sets, directories, strict=False):
        if not has_shipped_entry(files):
            raise click.ClickException(f"{name} replaces gateway/main.rego, so its decisions cannot be replayed.")
        write_policies(files, into)
        modules += parse(opa, {each: text for each, text in files.items() if each.endswith(".rego")})
    equivalence = caller_equivalence(modules, [each for files in sets for each in policy_data(files)])
    return _Policies(opa, directories, modules, equivalence)


def _replayed(settings: Settings, old: str, new: str, lines: BinaryIO) -> tuple[list[Compared], int]:
    """Return (the different questions with the answers of both policies, number of decisions without inputs)."""
    from gateway.opa.replay import read_inputs, time_is_only_parsed
    from gateway.opa.replay_records import distinct

    with tempfile.TemporaryDirectory(prefix="lakegate-replay-") as created:
        policies = _written(settings, old, new, Path(created))
        read, timeless = read_inputs(policies.modules), time_is_only_parsed(policies.modules)
        asked, not_replayable = distinct(lines, read - {"time"} if timeless else read)
        compared = policies.answered(asked, exact=not timeless)
        if timeless and any(None in answers for _, *answers in compared):
            compared = _at_recorded_times(policies, compared, read, lines)
    return compared, not_replayable


def _at_recorded_times(
    policies: _Policies, compared: Sequence[Compared], read: frozenset[str], lines: BinaryIO
) -> list[Compared]:
    """Return the answers, and those that failed without the time evaluated with it.

    Without its time, a question fails exactly if its answer depends on the time. A merged evaluation fails for all of
    its callers, so each of them is evaluated alone first.
    """
    from gateway.opa.replay_records import distinct

    answered = [each for each in compared if None not in each]
    apart = policies.answered([each[0] for each in compared if None in each], exact=False, merge=False)
    answered += [each for each in apart if None not in each]
    failed = {each[0].key for each in apart if None in each}
    lines.seek(0)
    return [*answered, *policies.answered(distinct(lines, read, failed).recorded, exact=True)]


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

        async def run(settings: Settings) -> None:
            from gateway.cli.models import opened_database
            from gateway.db.audit.audit_log import records_since

            async with opened_database(settings) as database, database.transaction() as connection:
                async for record in records_since(connection, since):
                    spooled.write(record + b"\n")

        about_models(run)
        spooled.seek(0)
        yield spooled


def _print_text(found: _Found) -> None:
    for group in found.groups:
        who = f" of {len(group.principals)} callers" if group.principals else ""
        click.echo(f"{group.difference}: {group.count}{who}, for example {group.example}")
    counts = f"{found.decisions} decisions, {found.questions} different questions"
    click.echo(f"{counts}: {len(found.groups)} kinds of differences")
    if found.not_replayable:
        click.echo(f"not replayable: {found.not_replayable} decisions, because their records lack inputs")
    if found.decided_otherwise:
        click.echo(
            f"{found.decided_otherwise} decisions differ from their records by the grants of now and the old model"
        )


def _print_json(found: _Found, unacknowledged: list[str], stale: list[str]) -> None:
    import msgspec

    differences = [
        {**msgspec.structs.asdict(each.difference), "line": str(each.difference), "widens": each.difference.widens}
        | {"count": each.count, "example": each.example, "principals": sorted(each.principals)}
        for each in found.groups
    ]
    fields = {**found._asdict(), "differences": differences, "unacknowledged": unacknowledged, "stale": stale}
    del fields["groups"]
    click.echo(msgspec.json.format(msgspec.json.encode(fields), indent=2).decode())
