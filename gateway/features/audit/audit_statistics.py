# SPDX-License-Identifier: Apache-2.0
"""Count the records of the audit log over time, and show how far the log is sealed."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from gateway.access.audit.audit_chain import month_of_id, records_fault, time_of
from gateway.access.door.permit import Permit
from gateway.access.operations.audit import (
    AuditCount,
    AuditIntegrity,
    AuditStatistics,
    CountAudit,
    GetAuditIntegrity,
    Interval,
)
from gateway.db.audit import audit_blocks, audit_partitions, audit_search
from gateway.db.audit.audit_search import AuditScan, RecordCount
from gateway.db.engine.database import Connection
from gateway.features.audit.audit_search import audit_place
from gateway.features.audit.audit_view import MOST_WAREHOUSES, parts_of_place
from gateway.features.kit import UseCases
from gateway.iceberg.errors import BadRequestException

LONGEST: Final[dict[Interval, timedelta]] = {"hour": timedelta(days=31), "day": timedelta(days=366)}
"""The longest time range by the length of its intervals."""

MOST_RECORDS: Final = 1_000_000
MOST_RECORDS_OF_PLACE: Final = 200_000
"""The number of records that are counted at most: on the server, and in a project or warehouse."""
_MOST_COUNTS: Final = 50_000
_RECENT: Final = timedelta(minutes=15)
_MOST_UNSEALED: Final = 1000


class AuditStatisticsReads(UseCases):
    """The use cases that count audit records, and show how far the audit log is sealed."""

    async def count(self, permit: Permit[CountAudit]) -> AuditStatistics:
        """Return the numbers of records by interval, operation and outcome. Raise 400 if there are too many."""
        operation, selection = permit.operation, permit.operation.selection
        place = await audit_place(self._reads, operation.on)
        if len(place.warehouses) > MOST_WAREHOUSES:
            raise BadRequestException(
                f"Records of a project with more than {MOST_WAREHOUSES} warehouses are counted by warehouse. Send "
                "`warehouse-id`."
            )
        scan = AuditScan(
            since=selection.since,
            until=selection.until,
            actor=selection.actor,
            before=None,
            parts=[] if place.is_server else [parts_of_place(place)],
        )
        rows = await self._reads.run(partial(_counted, scan=scan, operation=operation))
        counts = [
            AuditCount(at=row.at, operation=row.operation, outcome=row.outcome, count=row.records) for row in rows
        ]
        return AuditStatistics(since=selection.since, until=selection.until, interval=operation.interval, counts=counts)

    async def integrity(self, permit: Permit[GetAuditIntegrity]) -> AuditIntegrity:
        """Return the newest block of the chain. Only the records of this block are verified."""
        async with self._database.read() as connection:
            since = await audit_blocks.now(connection) - _RECENT
            unsealed = len(await audit_blocks.unsealed(connection, since=since, limit=_MOST_UNSEALED))
            below = await audit_partitions.removed_below(connection)
            last = await audit_blocks.last_block(connection)
            records = [] if last is None else await audit_blocks.records_of(connection, last.number)
        removed_until = None if below is None else time_of(below)
        if last is None:
            return AuditIntegrity(unsealed=unsealed, removed_until=removed_until)
        # Retention removes whole months, and a block has records of one month.
        removed = below is not None and last.last.int < below.int and month_of_id(last.last) is not None
        fault = None if removed else records_fault(last, records)
        return AuditIntegrity(
            unsealed=unsealed,
            block=last.number,
            anchor=f"{last.number}:{last.digest.hex()}",
            records=last.count,
            sealed_at=last.sealed_at,
            newest_record_at=time_of(last.last),
            fault=None if fault is None else fault.reason,
            removed_until=removed_until,
        )


async def _counted(connection: Connection, *, scan: AuditScan, operation: CountAudit) -> list[RecordCount]:
    most = MOST_RECORDS_OF_PLACE if scan.is_filtered else MOST_RECORDS
    if (await audit_search.within_budget(connection, scan, most=most)).since > scan.since:
        raise BadRequestException(f"The time range has more than {most} records. Send a shorter one, or an `actor`.")
    found = await audit_search.counts(
        connection,
        scan,
        interval=operation.interval,
        operations=operation.selection.operations,
        outcomes=operation.selection.outcomes,
        limit=_MOST_COUNTS + 1,
    )
    if len(found) > _MOST_COUNTS:
        raise BadRequestException(f"The answer has more than {_MOST_COUNTS} numbers. Send a shorter time range.")
    return list(found)
