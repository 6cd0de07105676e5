# SPDX-License-Identifier: Apache-2.0
"""Keep the audit record of an admitted request, from the decision until the record is durable in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.audit.audit_record import AuditRecord, IssuedCredential
from gateway.access.events.change_event import FurtherChanges
from gateway.access.operation import Durability
from gateway.access.ports import AuditSink


class PendingAudit:
    """The audit record of one admission, and whether it is durable enough for the response.

    `settled` becomes True when the record was buffered (reads), committed (`commit`, vending) or written in the
    transaction of the change (`settle`, mutations). The latch sends no success response before that.
    """

    __slots__ = ("_record", "_sink", "durability", "further_changes", "settled")

    def __init__(self, record: AuditRecord, durability: Durability, sink: AuditSink) -> None:
        self._record = record
        self._sink = sink
        self.durability = durability
        self.settled = False
        #: Function that returns further changes of the transaction, for their events. Without an event sink, the
        #: function is not called.
        self.further_changes: Callable[[], FurtherChanges] | None = None
        if durability is Durability.BUFFERED:
            sink.buffer(record)
            self.settled = True

    @property
    def record(self) -> AuditRecord:
        """The audit record with the details so far."""
        return self._record

    def add_details(self, **detail: str) -> None:
        """Add details of the result (a location, a session name; never a secret) to the record before it is written."""
        merged: Mapping[str, str] = {**self._record.detail, **detail}
        self._record = msgspec.structs.replace(self._record, detail=merged)

    async def commit(self, issued: IssuedCredential | None = None) -> None:
        """Make the record durable now, together with the register entry of the credential that the response contains.

        Raises AuditUnavailable; then no credentials may be sent.
        """
        await self._sink.commit(self._record, issued)
        self.settled = True

    async def also(self, issued: IssuedCredential | None = None, /, **detail: str) -> None:
        """Write a second record, with details of a step after the change. Return once it is durable.

        The register entry of the credential that the response contains is written in the same transaction. The
        transaction of the change has written the first record. Raises AuditUnavailable.
        """
        await self._sink.commit(msgspec.structs.replace(self._record, id=uuid7(), detail=detail), issued)

    def keep_as_read(self) -> None:
        """Buffer the record, as for a read. Used if the part of the operation that needed a durable record did not
        happen.

        Does nothing for a read, whose record is buffered already. Raises AuditUnavailable if the buffer is full.
        """
        if not self.settled:
            self._sink.buffer(self._record)
            self.settled = True

    def settle(self) -> None:
        """Mark the record as committed. The transaction of the change has written it."""
        self.settled = True

    def abandon(self, error: str) -> None:
        """Buffer the record of an admitted request that failed afterwards, with the error."""
        if not self.settled:
            self.add_details(result="failed", error=error)
            # The record of the failure gets a new id: the transaction may have committed the first record although its
            # response was lost.
            self._sink.buffer(msgspec.structs.replace(self._record, id=uuid7()))
            self.settled = True
