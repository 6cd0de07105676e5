# SPDX-License-Identifier: Apache-2.0
"""The audit sink of one worker process: it writes audit records to the database.

Records of reads and denials are buffered, and written within `flush_seconds`. If the process is killed, only those of
that interval can be lost. Other records must be durable before the response: `commit` returns when its record is. It
shares one insert with all records that wait at that time (group commit).
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from gateway.access.audit.audit_record import AuditRecord, IssuedCredential
from gateway.access.dependency_errors import AuditShareFull, AuditUnavailable, DatabaseUnavailable
from gateway.spans import spanned

_log = structlog.get_logger("audit.sink")

CAPACITY: Final = 10_000
"""Maximum number of records of reads and refusals that wait to be written."""

#: Errors of the database or its connection, not of a record: the whole batch is retried.
_OUTAGES = (DatabaseUnavailable, OSError, TimeoutError)

Write = Callable[[Sequence[AuditRecord], Sequence[IssuedCredential]], Awaitable[None]]
_Waiting = tuple[AuditRecord, IssuedCredential | None, asyncio.Future[None]]
Counted = Callable[[str, int], None]


class BufferedAudit:
    """Queue audit records without blocking, write them in batches, and reject new ones when the buffer is full.

    `write` stores the records of a batch in one transaction, with the register entries of the credentials that wait for
    these records. If it raises DatabaseUnavailable, no record of the batch is at fault. `counted` is called with
    (durability, number of records) after each write; durability is `group` or `buffered`. A full buffer raises
    AuditUnavailable, and the door then denies the request: an action that cannot be recorded is not executed. A record
    that the database rejects stays in memory and is logged. One principal has at most `share` records in the buffer, so
    it cannot use up the buffer of other principals.
    """

    def __init__(
        self,
        write: Write,
        *,
        counted: Counted,
        capacity: int = CAPACITY,
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
        self._committing: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._closing = False
        self._writer: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the writer task in the running event loop."""
        self._writer = asyncio.create_task(self._run(), name="audit")

    async def stop(self) -> None:
        """Write the buffered records and stop. Raises AuditUnavailable if some could not be written."""
        self._closing = True
        self._wake.set()
        if self._alarm is not None:
            self._alarm.cancel()
        if self._writer is not None:
            await self._writer
        lost = len(self._buffered) + len(self._refused)
        if lost:
            raise AuditUnavailable(f"{lost} buffered audit records could not be written")

    def buffer(self, record: AuditRecord) -> None:
        """Queue a record for the next batch.

        Raises AuditUnavailable if the buffer is full or the sink is closed, and AuditShareFull if the principal's share
        of the buffer is full.
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
        else:
            self._wake_later()

    @spanned("audit.commit")
    async def commit(self, record: AuditRecord, issued: IssuedCredential | None = None) -> None:
        """Return when the record and the register entry `issued` are durable.

        Raises AuditUnavailable if they are not durable within `commit_timeout`.
        """
        if self._closing or len(self._committing) >= self._capacity:
            raise AuditUnavailable("the audit log cannot accept more records")
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._committing.append((record, issued, durable))
        self._wake.set()
        try:
            async with asyncio.timeout(self._commit_timeout):
                await durable
        except TimeoutError as late:
            raise AuditUnavailable("the audit record was not stored in time") from late

    async def _run(self) -> None:
        while not self._closing:
            # A committed record triggers a flush immediately. Buffered records wait for `flush_seconds` or a full
            # batch. Without records nothing runs.
            await self._wake.wait()
            self._wake.clear()
            await self._flush()
            if self._buffered:
                self._wake_later()
        for _ in range(3):
            if not (self._buffered or self._committing):
                return
            await self._flush()

    def _wake_later(self) -> None:
        """Trigger a flush `flush_seconds` from now, unless an earlier one is pending."""
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(self._flush_seconds, self._wake_now)

    def _wake_now(self) -> None:
        self._alarm = None
        self._wake.set()

    async def _flush(self) -> None:
        # Records that are buffered during this flush wait for the next one. Otherwise each would become a batch of its
        # own.
        due = len(self._buffered)
        while due > 0 or self._committing:
            waiting = [self._committing.popleft() for _ in range(min(self._batch, len(self._committing)))]
            buffered = [self._buffered.popleft() for _ in range(min(self._batch, len(self._buffered)))]
            due -= len(buffered)
            try:
                await self._write([record for record, _, _ in waiting] + buffered, _entries(waiting))
            except _OUTAGES as outage:
                for _, _, durable in waiting:
                    _fail(durable, outage)
                self._buffered.extendleft(reversed(buffered))
                await asyncio.sleep(self._flush_seconds)
                return
            except Exception:  # one record is at fault; write the rest without it
                await self._write_each(waiting, buffered)
                continue
            for _, _, durable in waiting:
                _succeed(durable)
            self._counted("group", len(waiting))
            self._counted("buffered", len(buffered))
            self._release_shares(buffered)

    async def _write_each(self, waiting: Sequence[_Waiting], buffered: Sequence[AuditRecord]) -> None:
        """Write the records of a failed batch one by one. Keep apart those that the database rejects."""
        for each in waiting:
            record, _, durable = each
            try:
                await self._write([record], _entries([each]))
            except Exception as error:  # any error: the caller must not assume that the record is durable
                _fail(durable, error)
            else:
                _succeed(durable)
                self._counted("group", 1)
        for number, record in enumerate(buffered):
            try:
                await self._write([record], ())
            except _OUTAGES:
                self._buffered.extendleft(reversed(buffered[number:]))
                await asyncio.sleep(self._flush_seconds)
                return
            except Exception as error:  # kept in memory, and counted as not written
                self._refused.append(record)
                self._release_shares([record])
                _log.error(
                    "audit.record_refused",
                    record_id=str(record.id),
                    operation=record.operation,
                    error=type(error).__name__,
                )
            else:
                self._counted("buffered", 1)
                self._release_shares([record])

    def _release_shares(self, written: Sequence[AuditRecord]) -> None:
        """Free the space that written or rejected records used in the shares of their principals."""
        for principal in filter(None, map(_principal, written)):
            self._held[principal] -= 1
            if self._held[principal] <= 0:
                del self._held[principal]


def _principal(record: AuditRecord) -> str | None:
    """Return the principal whose share a record uses: the user, or engine and user together. Return None for records of
    the system.
    """
    actor = record.actor
    if actor.kind == "system":
        return None
    return f"{actor.engine or ''}\x00{actor.asked_by or actor.id}"


def _entries(waiting: Sequence[_Waiting]) -> Sequence[IssuedCredential]:
    """Return the distinct register entries of a batch. Concurrent requests can share a cached credential, and so an
    entry.
    """
    return list({issued.id: issued for _, issued, _ in waiting if issued is not None}.values())


def _succeed(durable: asyncio.Future[None]) -> None:
    if not durable.done():
        durable.set_result(None)


def _fail(durable: asyncio.Future[None], error: Exception) -> None:
    if not durable.done():
        durable.set_exception(AuditUnavailable(f"not written: {type(error).__name__}"))
