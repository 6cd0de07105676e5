# SPDX-License-Identifier: Apache-2.0
"""Lost races, and a COMMIT without a response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.db.tables import tables
from gateway.features.tables.commit_retry import CommitConflict, CommitQueue, determine_outcome, retry_conflicts
from gateway.iceberg.errors import CommitFailedException, CommitStateUnknownException

ID = UUID(int=1)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(_: float) -> None:
        return None

    monkeypatch.setattr(asyncio, "sleep", at_once)


async def test_only_an_attempt_after_a_lost_race_reads_again() -> None:
    retried: list[bool] = []

    async def attempt(again: bool) -> str:
        retried.append(again)
        if len(retried) < 3:
            raise CommitConflict
        return "won"

    assert await retry_conflicts(CommitQueue(), [uuid4()], attempt) == "won"
    assert retried == [False, True, True]


async def test_a_commit_that_loses_every_retry_gets_a_retryable_error() -> None:
    async def attempt(_: bool) -> str:
        raise CommitConflict

    with pytest.raises(CommitFailedException, match="concurrent commits changed the table"):
        await retry_conflicts(CommitQueue(), [uuid4()], attempt)


async def test_a_failed_requirement_is_not_retried() -> None:
    tries: list[bool] = []

    async def attempt(again: bool) -> str:
        tries.append(again)
        raise CommitFailedException("Requirement failed: current schema changed")

    with pytest.raises(CommitFailedException, match="current schema"):
        await retry_conflicts(CommitQueue(), [uuid4()], attempt)
    assert tries == [False]


class PendingAudit:
    """An audit record that is settled or not."""

    settled = False

    def settle(self) -> None:
        self.settled = True


class Database:
    """A database that opens transactions, or is unavailable."""

    def __init__(self, *, away: bool = False) -> None:
        self._away = away

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        if self._away:
            raise DatabaseUnavailable("away")
        yield None


async def _learn(monkeypatch: pytest.MonkeyPatch, now: Any, *, away: bool = False) -> bool:
    """Return True if the audit was settled, for a change from version 4 to the file `mine`."""

    async def no_other_writer(connection: Any, id: UUID) -> None:
        return None

    async def pointer(connection: Any, id: UUID) -> Any:
        return now

    monkeypatch.setattr(tables, "wait_for_writers", no_other_writer)
    monkeypatch.setattr(tables, "pointer", pointer)
    pending_audit = PendingAudit()
    await determine_outcome(
        cast(Any, Database(away=away)),
        cast(Any, SimpleNamespace(pending_audit=pending_audit)),
        ID,
        from_version=4,
        written="mine",
        unknown=CommitUnknown("lost"),
    )
    return pending_audit.settled


@pytest.mark.parametrize(
    "now",
    [
        SimpleNamespace(metadata_location="mine", metadata=b"{}", version=5),
        SimpleNamespace(metadata_location="later", metadata=b'{"metadata-log": ["mine"]}', version=6),
    ],
    ids=["metadata is current", "metadata is in the log of a later commit"],
)
async def test_a_commit_that_took_effect_succeeds_after_a_lost_response(
    monkeypatch: pytest.MonkeyPatch, now: Any
) -> None:
    assert await _learn(monkeypatch, now)


async def test_a_commit_without_effect_counts_as_a_lost_race_after_a_lost_response(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CommitConflict):
        await _learn(monkeypatch, SimpleNamespace(metadata_location="old", metadata=b"{}", version=4))


@pytest.mark.parametrize(
    ("now", "away"),
    [(None, False), (SimpleNamespace(metadata_location="other", metadata=b"{}", version=6), False), (None, True)],
    ids=["table is gone", "later commits without a log", "database is unavailable"],
)
async def test_an_undeterminable_commit_outcome_is_reported_as_unknown(
    monkeypatch: pytest.MonkeyPatch, now: Any, away: bool
) -> None:
    with pytest.raises(CommitStateUnknownException):
        await _learn(monkeypatch, now, away=away)
