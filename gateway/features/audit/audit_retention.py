# SPDX-License-Identifier: Apache-2.0
"""Create the partitions of the audit log for the next months, and remove partitions that are too old.

A record is removed only with its whole partition. A partition stays while one of its records is younger than the
retention. If records are sealed into the audit chain or exported, a partition also stays until this is done for all of
its records.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from gateway.access.audit.audit_chain import month_of, time_of
from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.db.audit import audit_blocks, audit_partitions
from gateway.db.audit.audit_partitions import Partition, PartitionBusy
from gateway.db.engine.database import Connection, Database

_log = structlog.get_logger("tasks.audit_retention")

_MONTHS_AHEAD: Final = 2
_EVERY_SECONDS: Final = 3600.0
_FIRST_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The rules of removal. `keep` is None if records are kept for ever.

    If `sealed` is set, unsealed records are kept. `export` is the name of the export that must have sent the records,
    None if records are not exported.
    """

    keep: timedelta | None = None
    sealed: bool = False
    export: str | None = None


class AuditPartitions:
    """Creates and removes partitions, in one process at a time. Its statements may read a whole partition."""

    def __init__(self, database: Database, rules: Retention) -> None:
        self._database = database
        self._rules = rules

    async def run(self) -> None:
        """Maintain the partitions until the process ends."""
        wait = random.uniform(0, _FIRST_SECONDS)  # noqa: S311 - jitter, not a secret
        while True:
            await asyncio.sleep(wait)
            wait = _EVERY_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311 - jitter, not a secret
            try:
                await self.maintain()
            except (DatabaseUnavailable, CommitUnknown, PartitionBusy) as outage:
                _log.warning("audit.partitions_postponed", reason=str(outage))
                wait = _RETRY_SECONDS
            except Exception:
                # The loop must survive unexpected errors; they are logged with their traceback.
                _log.exception("audit.partitions_failed")

    async def maintain(self) -> None:
        """Create the missing partitions of the next months, and remove partitions that are too old. Raises
        PartitionBusy.
        """
        while await self._create_next():
            pass
        if self._rules.keep is not None:
            while await self._remove_oldest(self._rules.keep):
                pass
        await self._forget_members()

    async def _create_next(self) -> bool:
        """Create one missing partition. Return False if none is missing, or another process creates it."""
        async with self._database.transaction() as connection, audit_partitions.exclusive(connection) as alone:
            if not alone:
                return False
            existing = await audit_partitions.partitions(connection)
            month = month_of(await audit_blocks.now(connection))
            for _ in range(_MONTHS_AHEAD + 1):
                if not any(_covers(each, month.start) for each in existing):
                    made = await audit_partitions.create(connection, month)
                    break
                month = month.following
            else:
                return False
        _log.info("audit.partition_created", partition=made.name)
        return True

    async def _remove_oldest(self, keep: timedelta) -> bool:
        """Remove the oldest partition if all its records may be removed. Return False if it is kept."""
        async with self._database.transaction() as connection, audit_partitions.exclusive(connection) as alone:
            existing = await audit_partitions.partitions(connection)
            until = await audit_blocks.now(connection) - keep
            if not alone or not existing or not _ends_before(existing[0], until):
                return False
            oldest = existing[0]
            await audit_partitions.freeze(connection, oldest)
            reason = await self._reason_to_stay(connection, oldest, until)
            if reason is None:
                removed = await audit_partitions.remove(connection, oldest)
        if reason is not None:
            _log.warning("audit.partition_kept", partition=oldest.name, reason=reason)
            return False
        _log.info("audit.partition_removed", partition=oldest.name, records=removed, below=str(oldest.end))
        return True

    async def _reason_to_stay(self, connection: Connection, partition: Partition, until: datetime) -> str | None:
        """Return the reason why a partition must be kept; None if all of its records may be removed."""
        if await audit_partitions.has_records_since(connection, partition, until):
            return "it has a record that is younger than the retention"
        if self._rules.sealed and await audit_partitions.has_unsealed(connection, partition):
            return "it has a record that is not sealed"
        if self._rules.export is not None and await audit_partitions.has_unexported(
            connection, partition, self._rules.export
        ):
            return "it has a record that was not exported"
        return None

    async def _forget_members(self) -> None:
        """Delete the rows that assign removed records to blocks, in short transactions."""
        async with self._database.read() as connection:
            below = await audit_partitions.removed_below(connection)
        while below is not None:
            async with self._database.transaction() as connection:
                if not await audit_partitions.forget_members(connection, below):
                    return


def _covers(partition: Partition, time: datetime) -> bool:
    """Return True if records of `time` belong to the partition."""
    end = time_of(partition.end)
    first = None if partition.first is None else time_of(partition.first)
    return (first is None or first <= time) and (end is None or time < end)


def _ends_before(partition: Partition, time: datetime) -> bool:
    end = time_of(partition.end)
    return end is not None and end <= time
