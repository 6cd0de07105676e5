# SPDX-License-Identifier: Apache-2.0
"""Seal audit records into a chain of blocks, verify the chain and export it: `lakegate audit`.

To seal a record is to assign it to a block, whose digest covers it. Records are written by many processes at the same
time, so they cannot be chained when they are written. One process at a time seals the records that are committed and
unsealed. Each block is written in one transaction, so a killed sealer leaves no partial block.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from gateway.access.audit.audit_chain import (
    Anchor,
    Block,
    ChainVerifier,
    Fault,
    SealedRecord,
    month_of_id,
    seal,
    time_of,
)
from gateway.access.audit.audit_export import VerifiedFile, lines_of, verify_lines
from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.db.audit import audit_blocks, audit_partitions
from gateway.db.engine.database import Database

_log = structlog.get_logger("tasks.audit_chain")

_RECENT: Final = timedelta(minutes=15)
"""Records of this period are searched by each run. A request and its retries take less time."""
_WHOLE_SECONDS: Final = 3600.0
"""Interval between two searches of the whole log, for records that waited longer in a process without a database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of a verification. `fault` is the first fault, None if there is none.

    `strays` is the number of records that are marked as sealed in a block that does not exist. `removed` is the number
    of blocks with records that retention removed; all of these were older than `removed_until`.
    """

    blocks: int
    records: int
    unsealed: int
    strays: int
    removed: int
    removed_until: datetime | None
    last: Anchor | None
    fault: Fault | None


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export: the number of the last block, and the number of exported records."""

    last: int
    records: int


class RecordsGone(Exception):
    """A sealed block has lost records. `lakegate audit verify` names the first such block."""


class AuditSealer:
    """The sealer of one process. `every` is the mean interval in seconds, `key` the key of the digests' HMAC."""

    def __init__(self, database: Database, *, every: float, key: bytes | None, most: int = 1000) -> None:
        self._database = database
        self._every = every
        self._key = key
        self._most = most
        self._whole_at = -_WHOLE_SECONDS

    async def run(self) -> None:
        """Seal records until the process ends."""
        while True:
            await asyncio.sleep(self._every * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            try:
                await self.seal_all()
            except (DatabaseUnavailable, CommitUnknown) as outage:
                _log.warning("audit.sealing_postponed", reason=str(outage))
            except Exception:
                # The loop must survive unexpected errors; they are logged with their traceback.
                _log.exception("audit.sealing_failed")

    async def seal_all(self) -> int:
        """Seal all unsealed records, in blocks. Return the number of new blocks. Raises the database's errors."""
        began = time.monotonic()
        added = await self._seal_since(_RECENT)
        if began - self._whole_at >= _WHOLE_SECONDS:
            added += await self._seal_since(None)
            self._whole_at = began
        return added

    async def _seal_since(self, period: timedelta | None) -> int:
        """Seal the records of the last `period`, or of the whole log, in blocks. Return the number of new blocks.

        Each search starts at the time of the oldest record that the previous search found. Otherwise the first run on a
        large log would read all sealed records again for each block.
        """
        added = 0
        since: datetime | None = None
        while (sealed := await self._seal_block(since, period)) is not None:
            block, since = sealed
            added += 1
            # An operator can keep this log line outside of the database, as an anchor for the verification of the
            # chain.
            _log.info("audit.sealed", block=block.number, digest=block.digest.hex(), records=block.count)
        return added

    async def _seal_block(self, since: datetime | None, period: timedelta | None) -> tuple[Block, datetime] | None:
        """Seal the oldest unsealed records. Return (the block, the time of the oldest record in the search).

        Return None if no record is unsealed, or another process seals. Without `since`, the last `period` is searched.
        """
        async with self._database.transaction() as connection:
            if not await audit_blocks.lock_chain(connection):
                return None
            now = await audit_blocks.now(connection)
            if since is None and period is not None:
                since = now - period
            found = await audit_blocks.unsealed(connection, since=since, limit=self._most)
            if not found:
                return None
            records = _of_one_month(found)
            block = seal(records, after=await audit_blocks.last_block(connection), sealed_at=now, key=self._key)
            await audit_blocks.add(connection, block, records)
        return block, found[0].at


def _of_one_month(records: Sequence[SealedRecord]) -> list[SealedRecord]:
    """Return the records of the first record's month. Retention removes whole months, and must not divide a block."""
    month = month_of_id(records[0].id)
    return [record for record in records if month_of_id(record.id) == month]


async def verify(database: Database, *, key: bytes | None, anchor: Anchor | None = None) -> Verified:
    """Recompute the digests of all blocks, in order, up to the first fault.

    With an `anchor`, a chain that lacks the anchor's block has a fault: it was cut or rewritten. Raises
    DatabaseUnavailable.
    """
    async with database.read() as connection:
        below = await audit_partitions.removed_below(connection)
    chain = ChainVerifier(key=key, anchor=anchor, removed_below=below)
    fault: Fault | None = None
    while fault is None:
        async with database.read() as connection:
            page = await audit_blocks.blocks(connection, after=chain.last.number if chain.last else 0, limit=100)
        for block in page:
            async with database.read() as connection:
                found = await audit_blocks.records_of(connection, block.number)
            if (fault := chain.add(block, found)) is not None:
                break
        if not page:
            break
    async with database.read() as connection:
        unsealed = await audit_blocks.count_unsealed(connection)
        strays = await audit_blocks.count_strays(connection)
    return Verified(
        blocks=chain.blocks,
        records=chain.records,
        unsealed=unsealed,
        strays=strays,
        removed=chain.removed,
        removed_until=None if below is None else time_of(below),
        last=chain.last,
        fault=fault or chain.end(),
    )


async def export(database: Database, path: Path, *, after: int = 0) -> Exported:
    """Write the blocks with a number above `after`, and their records, to a new file of JSON lines.

    The file must not exist: an interrupted export starts again. Raises RecordsGone if a block lacks records, OSError,
    and DatabaseUnavailable.
    """
    last, records = after, 0
    with path.open("xb") as file:
        while True:
            async with database.read() as connection:
                page = await audit_blocks.blocks(connection, after=last, limit=100)
            for block in page:
                async with database.read() as connection:
                    found = await audit_blocks.records_of(connection, block.number)
                if len(found) != block.count:
                    raise RecordsGone(
                        f"block {block.number} has {len(found)} of {block.count} records; if retention removed the "
                        f"others, export with --after {block.number}"
                    )
                file.writelines(lines_of(block, found))
                last, records = block.number, records + block.count
            if not page:
                return Exported(last=last, records=records)


def verify_file(path: Path, *, key: bytes | None, anchor: Anchor | None) -> VerifiedFile:
    """Verify an exported file without the database. Raises OSError."""
    with path.open("rb") as file:
        return verify_lines(file, key=key, anchor=anchor)
