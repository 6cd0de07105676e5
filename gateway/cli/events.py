# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate events``: what waits for the sinks of change events, and its repetition."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import click

from gateway.cli.common import settings_for, start_failures

if TYPE_CHECKING:
    from gateway.db.engine import Connection
    from gateway.settings import Settings

T = TypeVar("T")
_SHOWN = 100


@click.group()
def events() -> None:
    """Commands on change events and their sinks."""


@events.command()
def sinks() -> None:
    """Print what waits for each sink: name, waiting events, time of the oldest, and events that the sink refused."""
    from gateway.db import event_deliveries

    settings = _settings()
    for state in _run(settings, lambda connection: event_deliveries.states(connection, list(settings.events.sinks))):
        known = "" if state.sink in settings.events.sinks else "\tnot configured"
        oldest = "-" if state.oldest is None else state.oldest.isoformat()
        click.echo(f"{state.sink}\twaiting {state.waiting}\toldest {oldest}\tdead letters {state.dead_letters}{known}")


@events.command("list")
@click.option("--after", type=click.IntRange(min=0), default=0, help="Print events with a higher sequence.")
def list_events(after: int) -> None:
    """Print at most 100 stored events: sequence, time, type, and id of the changed object."""
    from gateway.db import event_deliveries

    for event in _run(_settings(), lambda each: event_deliveries.recent(each, after=after, limit=_SHOWN)):
        click.echo(f"{event.sequence}\t{event.at.isoformat()}\t{event.type}\t{event.key}\t{event.id}")


@events.command("dead-letters")
@click.option("--sink", help="Only those of this sink.")
@click.option("--retry", is_flag=True, help="Send the dead letters of the sink again instead of printing them.")
def dead_letters(sink: str | None, retry: bool) -> None:
    """Print at most 100 events that a sink refused for good, with its reason."""
    from gateway.db import event_deliveries

    if retry:
        if sink is None:
            raise click.UsageError("--retry needs --sink")
        count = _run(_settings(), lambda each: event_deliveries.retry_dead_letters(each, sink))
        click.echo(f"events that wait again: {count}")
        return
    for letter in _run(_settings(), lambda each: event_deliveries.dead_letters(each, sink=sink, limit=_SHOWN)):
        click.echo(f"{letter.sink}\t{letter.sequence}\t{letter.type}\t{letter.key}\t{letter.reason}")


@events.command()
@click.option("--from", "start", required=True, help="First sequence, or a time such as 2026-01-31T12:00:00Z.")
@click.option("--sink", help="Only for this sink. Default: all configured sinks.")
def replay(start: str, sink: str | None) -> None:
    """Send stored events again, from a sequence or time on. Receivers recognise repeated events by their id."""
    from gateway.db import event_deliveries

    settings = _settings()
    names = list(settings.events.sinks)
    if sink is not None:
        if sink not in names:
            raise click.ClickException(f"No sink has the name {sink!r}. Configured: {', '.join(names) or 'none'}.")
        names = [sink]
    sequence = int(start) if start.isdecimal() else None
    since = None if sequence is not None else _time(start)
    count = _run(settings, lambda each: event_deliveries.replay(each, names, sequence=sequence, since=since))
    click.echo(f"deliveries that wait again: {count}")


@events.command()
@click.option("--sink", required=True, help="A sink that is no longer configured.")
def forget(sink: str) -> None:
    """Remove everything that waits for a removed sink, so that its events can be deleted."""
    from gateway.db import event_deliveries

    settings = _settings()
    if sink in settings.events.sinks:
        raise click.ClickException(f"The sink {sink!r} is configured. Remove it from all settings first.")
    count = _run(settings, lambda each: event_deliveries.forget(each, sink))
    click.echo(f"removed deliveries: {count}")


def _settings() -> Settings:
    from gateway.telemetry.logs import configure_logging

    configure_logging(level="WARNING", stream=sys.stderr.buffer)
    return settings_for(_needed)


def _needed(settings: Settings) -> None:
    settings.write_url()
    settings.events.check()


def _run(settings: Settings, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Run one statement. An outage or another schema ends the command with a message."""
    try:
        return asyncio.run(_on_outbox(settings, work))
    except start_failures() as error:
        raise click.ClickException(str(error)) from None


async def _on_outbox(settings: Settings, work: Callable[[Connection], Awaitable[T]]) -> T:
    from gateway.assembly.adapters import open_database
    from gateway.settings import certificate_sources
    from gateway.tls import trusted

    async with AsyncExitStack() as stack:
        database = await open_database(settings, trusted(*certificate_sources()), stack)
        async with database.autocommit() as connection:
            return await work(connection)


def _time(text: str) -> datetime:
    """Return the time; one without a zone is UTC. An invalid text ends the command with a message."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise click.ClickException(f"--from must be a sequence or a time, not {text!r}") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
