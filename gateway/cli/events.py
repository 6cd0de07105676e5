# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate events``: the state of event sinks, stored events, replay, and dead letters.

A dead letter is an event that a sink refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from gateway.cli.common import quiet_settings, run_on_services

if TYPE_CHECKING:
    from gateway.access.door.door import Door
    from gateway.db.engine.database import Database
    from gateway.settings import Settings

_Result = TypeVar("_Result")
_SINK = click.option("--sink", help="Name of a sink. Default: all sinks in the settings.")
_LIMIT = click.option("--limit", type=click.IntRange(1, 10_000), default=100, help="Maximum number of lines.")


@click.group()
def events() -> None:
    """Commands on change events and their sinks."""


@events.command()
def sinks() -> None:
    """Print each sink: waiting events, age of the oldest in seconds, dead letters, and if it is in the settings."""
    from gateway.db.warehouses import event_deliveries

    settings = quiet_settings()
    found = {state.sink: state for state in _run(settings, event_deliveries.states)}
    for name in sorted({*settings.events.sinks, *found}):
        state = found.get(name)
        waiting, oldest, dead = (state.waiting, state.oldest_seconds, state.dead_letters) if state else (0, 0.0, 0)
        note = "" if name in settings.events.sinks else " (not in the settings; see `lakegate events forget`)"
        click.echo(f"{name}: waiting {waiting}, oldest {oldest:.0f} s, dead letters {dead}{note}")


@events.command("list")
@click.option("--after", type=click.IntRange(min=0), default=0, help="Print only events with a higher sequence.")
@_LIMIT
def list_events(after: int, limit: int) -> None:
    """Print stored events in order: sequence, time, id, type and key."""
    from gateway.db.warehouses import event_deliveries

    for each in _run(quiet_settings(), lambda database: event_deliveries.kept(database, after=after, limit=limit)):
        click.echo(f"{each.sequence} {each.at.isoformat()} {each.id} {each.type} {each.key}")


@events.command()
@click.option("--from", "start", required=True, help="Sequence, or time in ISO 8601 with its offset, of the first.")
@_SINK
def replay(start: str, sink: str | None) -> None:
    """Send all stored events from a sequence or time on again. They keep their ids."""
    from gateway.features.events import events as event_commands

    settings = quiet_settings()
    names = _chosen(settings, sink)
    sequence, time = _start(start)
    count = _change(settings, partial(event_commands.replay, sinks=names, sequence=sequence, time=time))
    click.echo(f"events that wait again: {count}")


@events.command("dead-letters")
@click.option("--retry", is_flag=True, help="Let the dead letters wait again instead of printing them.")
@_SINK
@click.option("--after", type=click.IntRange(min=0), default=0, help="Print only those with a higher sequence.")
@_LIMIT
def dead_letters(retry: bool, sink: str | None, after: int, limit: int) -> None:
    """Print the events that sinks refused, each with the reason."""
    from gateway.db.warehouses import event_deliveries
    from gateway.features.events import events as event_commands

    settings = quiet_settings()
    if retry:
        again = partial(event_commands.retry, sinks=_chosen(settings, sink))
        click.echo(f"events that wait again: {_change(settings, again)}")
        return

    def read(database: Database) -> Awaitable[list[event_deliveries.DeadLetter]]:
        return event_deliveries.dead_letters(database, sink=sink, after=after, limit=limit)

    for each in _run(settings, read):
        click.echo(f"{each.sink} {each.sequence} {each.at.isoformat()} {each.id} {each.type} {each.key}: {each.reason}")


@events.command()
@click.option("--sink", required=True, help="Name of a sink that is not in the settings any more.")
def forget(sink: str) -> None:
    """Delete the waiting events and dead letters of a sink that is not in the settings."""
    from gateway.features.events import events as event_commands

    settings = quiet_settings()
    if sink in settings.events.sinks:
        raise click.ClickException(f"the sink {sink} is in the settings; remove it there, and restart all gateways")
    click.echo(f"deleted rows: {_change(settings, partial(event_commands.forget, sink=sink))}")


def _run(settings: Settings, work: Callable[[Database], Awaitable[_Result]]) -> _Result:
    """Run `work` on the database, and return its result."""
    from gateway.assembly.events import on_database

    return run_on_services(settings, on_database(settings, work))


def _change(settings: Settings, work: Callable[[Database, Door], Awaitable[int]]) -> int:
    """Make a change, which is recorded in the audit log, and return its result."""
    from gateway import app

    return run_on_services(settings, app.change_events(settings, work))


def _chosen(settings: Settings, sink: str | None) -> tuple[str, ...]:
    """Return the sink in the option, or all sinks in the settings. An unknown sink ends the command with a message."""
    known = settings.events.sink_names()
    if sink is None and known:
        return known
    if sink is not None and sink in known:
        return (sink,)
    names = ", ".join(known) or "none"
    raise click.ClickException(
        f"the settings have no event sink{f' {sink}' if sink else ''}; configured sinks: {names}"
    )


def _start(text: str) -> tuple[int | None, datetime | None]:
    """Parse a start: return (sequence, None) or (None, time). Any other text ends the command with a message."""
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text), None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise click.ClickException(f"--from must be a sequence, or a time such as 2026-01-31T12:00:00Z, not {text!r}")
    return None, time
