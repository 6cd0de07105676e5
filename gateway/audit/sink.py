# SPDX-License-Identifier: Apache-2.0
"""The audit sink of one process.

Buffered records are written within `flush_seconds`; what a kill may lose is that much of reads and refusals, nothing
else. Committed records share one insert with whatever else waits (group commit) and return once it is durable.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence

import structlog

from gateway.access.audit_record import AuditRecord
from gateway.access.dependency_errors import AuditShareFull, AuditUnavailable, DatabaseUnavailable

_log = structlog.get_logger("audit.sink")

#: Errors that no record is to blame for: all of them are tried again, together.
_OUTAGES = (DatabaseUnavailable, OSError, TimeoutError)

Write = Callable[[Sequence[AuditRecord]], Awaitable[None]]
Counted = Callable[[str, int], None]


class BufferedAudit:
    """Takes records without waiting and writes them in batches; refuses when it cannot keep up.

    `write` makes a batch durable or raises: DatabaseUnavailable when no record is to blame. `counted` is told
    (durability, number) of what was written. A full buffer raises AuditUnavailable, which the door turns into a
    refusal: what cannot be recorded does not happen. A record that the database refuses is kept and told in the log.
    One principal has at most `share` records in the buffer, so that it cannot fill the buffer for the others.
    """

    def __init__(
        self,
        write: Write,
        *,
        counted: Counted,
        capacity: int = 10_000,
        share: int | None = None,
        flush_seconds: float = 0.1,
        commit_timeout: float = 5.0,
        batch: int = 500,
    ) -> None:
        self._write = write
        self._counted = counted
        self._capacity = capacity
        self._share = capacity if share is None else share
        self._held: Counter[str] = Counter()
        self._flush_seconds = flush_seconds
        self._commit_timeout = commit_timeout
        self._batch = batch
        self._buffered: deque[AuditRecord] = deque()
        self._refused: list[AuditRecord] = []
        self._committing: deque[tuple[AuditRecord, asyncio.Future[None]]] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._writer: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write, in the running loop."""
        self._writer = asyncio.create_task(self._run(), name="audit")

    async def stop(self) -> None:
        """Write what is buffered and stop. Raises AuditUnavailable when that did not succeed."""
        self._closing = True
        self._wake.set()
        if self._writer is not None:
            await self._writer
        lost = len(self._buffered) + len(self._refused)
        if lost:
            raise AuditUnavailable(f"{lost} buffered audit records could not be written")

    def buffer(self, record: AuditRecord) -> None:
        """Take a record for writing soon. Raises AuditUnavailable when the buffer is full or the sink is closed, and
        AuditShareFull when the principal's share of it is full.
        """
        if self._closing or len(self._buffered) + len(self._refused) >= self._capacity:
            raise AuditUnavailable("the audit buffer is full")
        principal = _principal(record)
        if principal is not None and self._held[principal] >= self._share:
            raise AuditShareFull("the principal's share of the audit buffer is full")
        if principal is not None:
            self._held[principal] += 1
        self._buffered.append(record)
        if len(self._buffered) >= self._batch:
            self._wake.set()

    async def commit(self, record: AuditRecord) -> None:
        """Return once the record is durable. Raises AuditUnavailable when it is not within the commit timeout."""
        if self._closing or len(self._committing) >= self._capacity:
            raise AuditUnavailable("the audit cannot take more records")
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._committing.append((record, durable))
        self._wake.set()
        try:
            await asyncio.wait_for(durable, self._commit_timeout)
        except TimeoutError as late:
            raise AuditUnavailable("the audit record was not durable in time") from late

    async def _run(self) -> None:
        while not self._closing:
            # Committed records end the wait at once; buffered ones wait for company.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._flush_seconds)
            self._wake.clear()
            await self._flush()
        for _ in range(3):
            if not (self._buffered or self._committing):
                return
            await self._flush()

    async def _flush(self) -> None:
        # What is buffered meanwhile waits for its own turn: written at once, every record would be a batch of its own.
        due = len(self._buffered)
        while due > 0 or self._committing:
            waiting = [self._committing.popleft() for _ in range(min(self._batch, len(self._committing)))]
            buffered = [self._buffered.popleft() for _ in range(min(self._batch, len(self._buffered)))]
            due -= len(buffered)
            try:
                await self._write([record for record, _ in waiting] + buffered)
            except _OUTAGES as outage:
                for _, durable in waiting:
                    _fail(durable, outage)
                self._buffered.extendleft(reversed(buffered))
                await asyncio.sleep(self._flush_seconds)
                return
            except Exception:  # one of the records is to blame; the others must not wait for it
                await self._write_each(waiting, buffered)
                continue
            for _, durable in waiting:
                _succeed(durable)
            self._counted("group", len(waiting))
            self._counted("buffered", len(buffered))
            self._give_back(buffered)

    async def _write_each(
        self, waiting: Sequence[tuple[AuditRecord, asyncio.Future[None]]], buffered: Sequence[AuditRecord]
    ) -> None:
        """Write one by one what could not be written together, and put aside what can never be."""
        for record, durable in waiting:
            try:
                await self._write([record])
            except Exception as error:  # whatever it is: nobody may be told that it is durable
                _fail(durable, error)
            else:
                _succeed(durable)
                self._counted("group", 1)
        for number, record in enumerate(buffered):
            try:
                await self._write([record])
            except _OUTAGES:
                self._buffered.extendleft(reversed(buffered[number:]))
                await asyncio.sleep(self._flush_seconds)
                return
            except Exception as error:  # it stays, and counts as not written
                self._refused.append(record)
                self._give_back([record])
                _log.error(
                    "audit.record_refused",
                    record_id=str(record.id),
                    operation=record.operation,
                    error=type(error).__name__,
                )
            else:
                self._counted("buffered", 1)
                self._give_back([record])

    def _give_back(self, written: Sequence[AuditRecord]) -> None:
        """Free the room that written records had in their principals' shares."""
        for principal in filter(None, map(_principal, written)):
            self._held[principal] -= 1
            if self._held[principal] <= 0:
                del self._held[principal]


def _principal(record: AuditRecord) -> str | None:
    """Return the principal that a record counts for: the user, or the engine and the user; None for the system."""
    actor = record.actor
    if actor.kind == "system":
        return None
    return f"{actor.engine or ''}\x00{actor.asked_by or actor.id}"


def _succeed(durable: asyncio.Future[None]) -> None:
    if not durable.done():
        durable.set_result(None)


def _fail(durable: asyncio.Future[None], error: Exception) -> None:
    if not durable.done():
        durable.set_exception(AuditUnavailable(f"not written: {type(error).__name__}"))
