# SPDX-License-Identifier: Apache-2.0
"""The audit record of an admitted request, from the decision until it is durable."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.audit_record import AuditRecord
from gateway.access.operation import Durability
from gateway.access.ports import AuditSink


class PendingAudit:
    """The audit record of one admission and whether it is durable enough for its answer.

    `settled` becomes true when the record was buffered (reads), committed (`commit`, vending) or written in the
    transaction of the change (`settle`, mutations). The latch lets no success answer of an unsettled trail leave.
    """

    __slots__ = ("_record", "_sink", "durability", "settled")

    def __init__(self, record: AuditRecord, durability: Durability, sink: AuditSink) -> None:
        self._record = record
        self._sink = sink
        self.durability = durability
        self.settled = False
        if durability is Durability.BUFFERED:
            sink.buffer(record)
            self.settled = True

    @property
    def record(self) -> AuditRecord:
        """The record so far."""
        return self._record

    def tell(self, **detail: str) -> None:
        """Add details of the result (a location, a session name; never a secret) to the record before it is written."""
        merged: Mapping[str, str] = {**self._record.detail, **detail}
        self._record = msgspec.structs.replace(self._record, detail=merged)

    async def commit(self) -> None:
        """Make the record durable now. Raises AuditUnavailable, and then nothing may leave."""
        await self._sink.commit(self._record)
        self.settled = True

    async def also(self, **detail: str) -> None:
        """Make details of a later step durable, after the change whose transaction wrote the record. Raises
        AuditUnavailable.
        """
        await self._sink.commit(msgspec.structs.replace(self._record, id=uuid7(), detail=detail))

    def keep_as_read(self) -> None:
        """Keep the record as that of a read, because the part that needed a durable record did not happen.

        The record of a read is buffered already. Raises AuditUnavailable if the buffer is full.
        """
        if not self.settled:
            self._sink.buffer(self._record)
            self.settled = True

    def settle(self) -> None:
        """Say that the record was committed together with the change it records."""
        self.settled = True

    def abandon(self, error: str) -> None:
        """Keep the record of an admitted request that failed afterwards, with its error."""
        if not self.settled:
            self.tell(result="failed", error=error)
            # A record of its own: the first may have been committed by a transaction whose answer got lost.
            self._sink.buffer(msgspec.structs.replace(self._record, id=uuid7()))
            self.settled = True
