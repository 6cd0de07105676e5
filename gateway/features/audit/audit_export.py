# SPDX-License-Identifier: Apache-2.0
"""Export sealed audit records continuously, at least once and in the order of their blocks.

A record is sealed when it belongs to a block of the audit chain. The position is stored after the receiver accepted a
block. If the process is killed before that, the block is sent again: receivers recognize a duplicate by the id of the
record. Requests do not wait for the export. While the receiver is down, the position stays, and retention removes no
record that was not exported.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, Protocol
from uuid import uuid4

import structlog

from gateway.access.audit.audit_otlp import rejected_in, requests_of
from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.db.audit import audit_blocks
from gateway.db.engine.database import Database
from gateway.telemetry.otlp_client import CollectorRefused, CollectorUnavailable

_log = structlog.get_logger("tasks.audit_export")

OTLP: Final = "otlp"
"""The name of the export in the table of positions."""
_HELD_SECONDS: Final = 60.0
_LONGEST_PAUSE: Final = 60.0


class ExportObserver(Protocol):
    """Receiver of the number and age of records that wait for an export, for metrics."""

    def export_counted(self, export: str, records: int, oldest_seconds: float) -> None:
        """Set the number of records that wait for an export, and the age of the oldest block that waits, in seconds."""
        ...


class AuditExport:
    """The audit export of one process. Only one process at a time sends.

    `send` sends the body of a request and returns the response, or raises CollectorUnavailable or CollectorRefused.
    `every` is the mean interval in seconds between two searches for new blocks.
    """

    def __init__(
        self,
        database: Database,
        send: Callable[[bytes], Awaitable[bytes]],
        *,
        every: float,
        observer: ExportObserver | None = None,
    ) -> None:
        self._database = database
        self._observer = observer
        self._send = send
        self._every = every
        self._holder = uuid4()
        self._failed: Exception | None = None

    async def run(self) -> None:
        """Export until the process ends."""
        failures = 0
        while True:
            pause = self._every if not failures else min(self._every * 2**failures, _LONGEST_PAUSE)
            if isinstance(self._failed, CollectorUnavailable) and self._failed.retry_after is not None:
                pause = max(pause, self._failed.retry_after)
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            try:
                await self.count_backlog()
                await self.export_all()
                await self.count_backlog()
            except (CollectorUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
                _log.warning("audit.export_postponed", reason=str(outage))
                self._failed, failures = outage, min(failures + 1, 10)
            except CollectorRefused as refused:
                # The block is not skipped: an operator must correct the settings or the collector.
                _log.error("audit.export_refused", reason=str(refused))
                self._failed, failures = refused, 10
            except Exception as error:
                # The loop must survive unexpected errors; they are logged with their traceback.
                _log.exception("audit.export_failed")
                self._failed, failures = error, min(failures + 1, 10)
            else:
                self._failed, failures = None, 0

    async def check(self) -> None:
        """Raise CollectorUnavailable if the last attempt to export failed. The health endpoint calls it."""
        if self._failed is not None:
            raise CollectorUnavailable(str(self._failed))

    async def count_backlog(self) -> None:
        """Report the number and age of the records that wait for an export. Raises the errors of the database."""
        if self._observer is not None:
            async with self._database.read() as connection:
                self._observer.export_counted(OTLP, *await audit_blocks.export_backlog(connection, OTLP))

    async def export_all(self) -> int:
        """Send all blocks that wait. Return the number of sent blocks. Raises the errors of `send` and of the
        database.
        """
        sent = 0
        try:
            while await self._export_next():
                sent += 1
        finally:
            async with self._database.transaction() as connection:
                await audit_blocks.release_export(connection, OTLP, self._holder)
        return sent

    async def _export_next(self) -> bool:
        """Send the next block. Return False if none waits, or another process sends."""
        async with self._database.transaction() as connection:
            position = await audit_blocks.hold_export(connection, OTLP, self._holder, seconds=_HELD_SECONDS)
        if position is None:
            return False
        async with self._database.read() as connection:
            page = await audit_blocks.blocks(connection, after=position, limit=1)
        if not page:
            return False
        (block,) = page
        async with self._database.read() as connection:
            records = await audit_blocks.records_of(connection, block.number)
        if len(records) != block.count:
            # Records are missing: retention removed them before the export was configured, or a database administrator
            # did.
            _log.error("audit.export_postponed", block=block.number, records=len(records), expected=block.count)
        for body in requests_of(block, records):
            rejected = rejected_in(await self._send(body))
            if rejected is not None:
                # The OpenTelemetry specification forbids clients to send rejected records again.
                _log.error(
                    "audit.records_rejected", block=block.number, records=rejected.records, reason=rejected.reason
                )
        async with self._database.transaction() as connection:
            return await audit_blocks.advance_export(connection, OTLP, self._holder, block.number)
