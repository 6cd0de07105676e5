# SPDX-License-Identifier: Apache-2.0
"""Compare all tuples in OpenFGA with all tuples that the rows require. Differences are repaired or only reported.

This is done after a restore of the database or of OpenFGA's store, and on request. A comparison can run while gateways
serve. It can be interrupted: completed repairs persist, and the next run starts again. It keeps a digest of 8 bytes for
each tuple of the store in memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from gateway.access.door.door import Door
from gateway.access.operations.tasks import CompareTuples
from gateway.access.tuples import TupleKey
from gateway.db.engine.database import Database
from gateway.db.tasks import tasks
from gateway.db.tasks.tasks import Queue
from gateway.db.tuples import outbox
from gateway.db.warehouses import drift
from gateway.features.kit import admitted
from gateway.features.tuples.drift import BATCH, DriftKeeper, new_run_id
from gateway.features.tuples.drift_findings import Finding, Kind, RepairAction
from gateway.fga.client import FgaClient
from gateway.fga.relationships import StoredTuple, bare, read_back

_log = structlog.get_logger("tasks.reconcile")

TASK: Final = "reconcile_tuples"
_ROWS: Final = 500
DELETING: Final = (Queue.SOFT_DELETION, Queue.TABULAR_PURGE, Queue.EXPIRE_STAGED_TABLE)
"""Queues whose tasks delete rows and files."""
RESTORED_WAIT_SECONDS: Final = 86_400.0
"""The delay of these tasks in a restored database, in which its operator can review them."""


@dataclass(slots=True)
class Comparison:
    """The findings of a full comparison, and the numbers of repairs by action."""

    tuples: int = 0
    found: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    mended: dict[RepairAction, int] = field(default_factory=lambda: dict.fromkeys(RepairAction, 0))
    """The number of tuples by action, for drift and expired tuples."""
    postponed: int = 0
    """The number of deleting tasks that were delayed."""

    @property
    def drift(self) -> int:
        """The number of tuples that differ from the rows (`Finding.is_drift`)."""
        return sum(count for kind, count in self.found.items() if kind not in (Kind.EXPIRED, Kind.UNKNOWN))

    @property
    def left(self) -> int:
        """The number of grants that were only reported, not repaired."""
        return self.mended[RepairAction.LEFT]

    def summary(self) -> str:
        """Return one line of text for the operator."""
        found = ", ".join(f"{count} {kind}" for kind, count in self.found.items() if count) or "no difference"
        mended = ", ".join(f"{count} {action}" for action, count in self.mended.items() if count)
        waiting = f"{self.postponed} deleting tasks are delayed by one day" if self.postponed else ""
        return "; ".join(part for part in (f"{self.tuples} tuples: {found}", mended, waiting) if part)


class EmptyStore(Exception):
    """OpenFGA is empty, so it does not show which grants were revoked."""


ReportFinding = Callable[[Finding], None]
Beat = Callable[[], Awaitable[None]]


async def _no_beat() -> None:
    return None


class Reconcile:
    """Runs full comparisons. `keeper` verifies and repairs the findings."""

    def __init__(self, *, database: Database, client: FgaClient, door: Door, keeper: DriftKeeper) -> None:
        self._database = database
        self._client = client
        self._door = door
        self._keeper = keeper

    async def require_some_grants(self) -> None:
        """Raise EmptyStore if OpenFGA is empty: every grant would be treated as revoked."""
        async for _ in self._client.read():
            return
        raise EmptyStore(
            "OpenFGA contains no relationships, because it is new or was emptied. Thus it does not show which "
            "grants were revoked after the backup. Use `--restored give-back`."
        )

    async def discard_pending_work(self) -> int:
        """Empty the outbox of a restored database and delay its deleting tasks, before the comparison. Return the
        number of delayed tasks.

        Keys in the backup's outbox would count as changes in progress. Their delivery would restore grants that were
        revoked after the backup. Due tasks would delete objects at the first start, even objects that were undropped
        after the backup. Raises DatabaseUnavailable and CommitUnknown.
        """
        async with self._database.transaction() as connection:
            await outbox.empty(connection)
            return await tasks.delay(connection, DELETING, seconds=RESTORED_WAIT_SECONDS)

    async def run(self, *, repair: bool, report: ReportFinding | None = None, beat: Beat = _no_beat) -> Comparison:
        """Compare everything. With `repair`, repair all drift, and change all revisions.

        `report` is called with each finding, `beat` after each page. Raises the door's refusals and the errors of
        outages.
        """
        run = new_run_id()
        comparison = Comparison()
        operation = CompareTuples(repairs=repair)
        async with admitted(self._door, TASK, str(run), operation):
            if repair:
                await self._keeper.move_all_revisions()
            async for findings in self._findings(comparison, repair):
                for finding in findings:
                    comparison.found[finding.kind] += 1
                    if report is not None:
                        report(finding)
                if repair and findings:
                    for action, count in (await self._keeper.repair(findings, task=TASK, run=run)).items():
                        comparison.mended[action] += count
                await beat()
            if repair and any(comparison.mended.values()):
                await self._keeper.move_all_revisions()
        return comparison

    async def _findings(self, comparison: Comparison, repair: bool) -> AsyncIterator[list[Finding]]:
        """Yield the findings page by page, including empty pages: first about existing tuples, then about missing
        ones.
        """
        digests = _Digests()
        async for page in self._stored_pages():
            comparison.tuples += len(page)
            digests.add(page)
            keys = [each.key for each in page if each.key is not None]
            desired = await self._keeper.desired(keys)
            suspects = [
                each.key
                for each in page
                if each.key is not None
                and not (each.key in desired and each.plain and each.expires_at == desired[each.key])
            ]
            unmapped = [each for each in page if each.key is None]
            yield await self._keeper.verify(suspects, unmapped, quietly=not repair)
        for source in drift.SOURCES:
            after: str | None = None
            while True:
                async with self._database.read() as connection:
                    candidates = await drift.candidates(connection, source, after=after, limit=_ROWS)
                absent = [key for key in candidates.keys if key not in digests]
                missing = list(await self._keeper.desired(absent))
                for start in range(0, len(missing), BATCH):
                    yield await self._keeper.verify(missing[start : start + BATCH], quietly=not repair)
                yield []
                after = candidates.after
                if after is None:
                    break

    async def _stored_pages(self) -> AsyncIterator[list[StoredTuple]]:
        page: list[StoredTuple] = []
        async for raw in self._client.read():
            page.append(read_back(raw))
            if len(page) == BATCH:
                yield page
                page = []
        yield page


class _Digests:
    """A set of tuple keys that takes 8 bytes of memory for each. The hash has a random key, so collisions cannot be
    constructed.
    """

    def __init__(self) -> None:
        self._key = os.urandom(16)
        self._seen: set[int] = set()

    def add(self, page: list[StoredTuple]) -> None:
        self._seen.update(self._digest(each.key) for each in page if each.key is not None)

    def __contains__(self, key: TupleKey) -> bool:
        return self._digest(key) in self._seen

    def _digest(self, key: TupleKey) -> int:
        raw = bare(key)
        text = f"{raw.user}\x1f{raw.relation}\x1f{raw.object}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=self._key).digest(), "big")
