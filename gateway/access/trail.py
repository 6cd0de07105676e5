# SPDX-License-Identifier: Apache-2.0
"""The way of one admitted request into the audit: what still has to become durable before its answer may leave."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.audit_record import AuditRecord
from gateway.access.operation import Durability
from gateway.access.ports import AuditSink


class Trail:
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
        """The record as it stands."""
        return self._record

    def tell(self, **detail: str) -> None:
        """Add what was done (a location, a session name; never a secret) to the record before it is written."""
        merged: Mapping[str, str] = {**self._record.detail, **detail}
        self._record = msgspec.structs.replace(self._record, detail=merged)

    async def commit(self) -> None:
        """Make the record durable now. Raises AuditUnavailable, and then nothing may leave."""
        await self._sink.commit(self._record)
        self.settled = True

    async def also(self, **detail: str) -> None:
        """Make durable what followed from the change this record already went with. Raises AuditUnavailable."""
        await self._sink.commit(msgspec.structs.replace(self._record, id=uuid7(), detail=detail))

    def keep_as_read(self) -> None:
        """Keep the record as that of a read: what would have had to be durable before the answer did not happen.

        A read is kept from the beginning already. Raises AuditUnavailable when the buffer is full.
        """
        if not self.settled:
            self._sink.buffer(self._record)
            self.settled = True

    def settle(self) -> None:
        """Say that the record was committed together with the change it records."""
        self.settled = True

    def abandon(self, error: str) -> None:
        """Keep the record of an admitted request that then failed: the attempt was allowed and is told with
        its error.
        """
        if not self.settled:
            self.tell(result="failed", error=error)
            # A record of its own: the first may have been committed by a transaction whose answer got lost.
            self._sink.buffer(msgspec.structs.replace(self._record, id=uuid7()))
            self.settled = True
