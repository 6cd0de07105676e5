# SPDX-License-Identifier: Apache-2.0
"""Count refused logins, and record them in the audit log once in each time window.

A client without a valid token can send any number of requests. So refused logins are counted by client address and
reason, and each count becomes one record at the end of the window. Neither a flood from one address nor one from many
addresses can fill the audit buffer or the table. A record contains nothing of the token: not even the claimed subject.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
from uuid_utils.compat import uuid7

from gateway.access.actor import ActorKind
from gateway.access.audit.audit_record import AUDIT_FORMAT, AuditedActor, AuditedDecision, AuditRecord
from gateway.access.dependency_errors import AuditUnavailable

_log = structlog.get_logger("audit.refused_logins")

OPERATION: Final = "authenticate"
OUTCOME: Final = "unauthenticated"
_MOST: Final = 500
"""Limit of counts of a window by address. Further addresses share one count for each reason."""
_LONGEST_ADDRESS: Final = 64


@dataclass(slots=True)
class _Count:
    """The number of refused logins from one address for one reason. `request_id` is the id of the last request."""

    first: datetime
    last: datetime
    request_id: str
    requests: int = 1


class RefusedLogins:
    """The refused logins of one process.

    `buffer` accepts a record for writing, or raises AuditUnavailable. `window` is the time between two writes in
    seconds. At most `most` pairs of address and reason are counted separately; the others share one count for each
    reason.
    """

    def __init__(
        self,
        buffer: Callable[[AuditRecord], None],
        *,
        window: float,
        most: int = _MOST,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._buffer = buffer
        self._window = window
        self._most = most
        self._clock = clock
        self._counts: dict[tuple[str | None, str], _Count] = {}

    def add(self, *, address: str | None, reason: str, request_id: str) -> None:
        """Count one refused login. `reason` is one of a fixed set (`gateway.identity.errors.Refusal`)."""
        now = self._clock()
        key = (None if address is None else address[:_LONGEST_ADDRESS], reason)
        if key not in self._counts and len(self._counts) >= self._most:
            key = (None, reason)
        count = self._counts.get(key)
        if count is None:
            self._counts[key] = _Count(first=now, last=now, request_id=request_id)
            return
        count.requests += 1
        count.last, count.request_id = now, request_id

    async def run(self) -> None:
        """Write the counts at the end of each window, until the task is cancelled."""
        while True:
            await asyncio.sleep(self._window)
            self.flush()

    def flush(self) -> None:
        """Write one record for each count. Counts that the buffer does not accept remain for the next window."""
        for key, count in list(self._counts.items()):
            try:
                self._buffer(_record(*key, count))
            except AuditUnavailable as full:
                _log.warning("audit.refused_logins_postponed", counts=len(self._counts), reason=str(full))
                return
            del self._counts[key]


def _record(address: str | None, reason: str, count: _Count) -> AuditRecord:
    """Return the audit record of a count. A record without an address is about several clients."""
    return AuditRecord(
        id=uuid7(),
        format=AUDIT_FORMAT,
        at=count.last,
        request_id=count.request_id,
        actor=AuditedActor(kind=ActorKind.ANONYMOUS.value, id=""),
        client_address=address,
        decisions=(AuditedDecision(operation=OPERATION, outcome=OUTCOME, determined_by="none"),),
        detail={
            "reason": reason,
            "requests": str(count.requests),
            "first": count.first.isoformat(),
            "last": count.last.isoformat(),
        },
    )
