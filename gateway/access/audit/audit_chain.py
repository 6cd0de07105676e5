# SPDX-License-Identifier: Apache-2.0
"""Compute and verify the chain of digests over blocks of audit records, and assign records to monthly partitions.

The chain shows whether a record was changed or removed after it was stored.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

GENESIS: Final = bytes(32)
"""The previous digest of block 1."""


@dataclass(frozen=True, slots=True)
class SealedRecord:
    """An audit record as it is stored: the searchable columns, and the encoded record as bytes."""

    id: UUID
    at: datetime
    request_id: str
    actor_id: str
    operation: str
    outcome: str
    record: bytes


@dataclass(frozen=True, slots=True)
class Block:
    """The stored header of a block. It keeps `records_digest` when retention removes the records of the block."""

    number: int
    first: UUID
    last: UUID
    count: int
    records_digest: bytes
    previous: bytes
    sealed_at: datetime
    digest: bytes


@dataclass(frozen=True, slots=True)
class Anchor:
    """The number and digest of a block. It is kept outside of the database, to detect that blocks were removed."""

    number: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Fault:
    """The first block that fails verification, and the reason."""

    number: int
    reason: str


def seal(
    records: Iterable[SealedRecord], *, after: Block | None, sealed_at: datetime, key: bytes | None = None
) -> Block:
    """Return the header of the block that contains these records and follows the block `after`.

    With `key`, the block's digest is an HMAC. Raises ValueError if there are no records.
    """
    ordered = sorted(records, key=lambda record: record.id)
    if not ordered:
        raise ValueError("a block of the audit chain must contain at least one record")
    header = Block(
        number=after.number + 1 if after else 1,
        first=ordered[0].id,
        last=ordered[-1].id,
        count=len(ordered),
        records_digest=digest_of(ordered),
        previous=after.digest if after else GENESIS,
        sealed_at=sealed_at,
        digest=b"",
    )
    return _with_digest(header, key)


def digest_of(records: Iterable[SealedRecord]) -> bytes:
    """Return the SHA-256 digest over the records, sorted by their ids."""
    total = hashlib.sha256()
    for record in sorted(records, key=lambda record: record.id):
        texts = (_instant(record.at), record.request_id, record.actor_id, record.operation, record.outcome)
        total.update(_joined(record.id.bytes, *(text.encode() for text in texts), record.record))
    return total.digest()


def header_fault(block: Block, *, after: Block | None, key: bytes | None = None) -> Fault | None:
    """Return the fault of a block's header. Return None if the block follows `after` and its digest is correct."""
    expected = after.number + 1 if after else 1
    if block.number != expected:
        return Fault(expected, "the block is missing")
    if block.previous != (after.digest if after else GENESIS):
        return Fault(block.number, "the block does not continue the block before it")
    if not hmac.compare_digest(_with_digest(block, key).digest, block.digest):
        return Fault(block.number, "the block was changed, or another key sealed it")
    return None


def records_fault(block: Block, records: Sequence[SealedRecord]) -> Fault | None:
    """Return the fault of a block's records. Return None if their number and digest match the header."""
    if len(records) != block.count:
        change = "deleted" if len(records) < block.count else "inserted"
        return Fault(block.number, f"records were {change}: {len(records)} instead of {block.count}")
    if digest_of(records) != block.records_digest:
        return Fault(block.number, "a record was changed or replaced")
    return None


class ChainVerifier:
    """Verifies the blocks of a chain in order, and stops at the first fault.

    With `anywhere`, the chain may begin with any block: the blocks before it are not verified. Records with an id below
    `removed_below` may be missing, because retention removed them.
    """

    def __init__(
        self,
        *,
        key: bytes | None,
        anchor: Anchor | None,
        anywhere: bool = False,
        removed_below: UUID | None = None,
    ) -> None:
        self._key = key
        self._anchor = anchor
        self._anywhere = anywhere
        self._removed_below = removed_below
        self._anchored = anchor is None
        self._last: Block | None = None
        self.first: Anchor | None = None
        self.last: Anchor | None = None
        """The newest block without a fault."""
        self.blocks = 0
        self.records = 0
        """The number of verified records."""
        self.removed = 0
        """The number of blocks with records that retention removed."""

    def add(self, block: Block, records: Sequence[SealedRecord]) -> Fault | None:
        """Verify the next block. Return its fault, or None. After a fault, add no further block."""
        before = self._last
        if before is None and self._anywhere:
            before = _before(block)
        removed = self._is_removed(block, records)
        fault = header_fault(block, after=before, key=self._key)
        if not removed:
            fault = fault or records_fault(block, records)
        if self._anchor is not None and block.number == self._anchor.number:
            self._anchored = True
            if block.digest != self._anchor.digest:
                fault = fault or Fault(block.number, "the digest differs from the anchor")
        if fault is not None:
            return fault
        self._last = block
        self.last = Anchor(block.number, block.digest)
        self.first = self.first or self.last
        self.blocks += 1
        self.removed += removed
        self.records += 0 if removed else block.count
        return None

    def end(self) -> Fault | None:
        """Finish the verification.

        Return a fault if the anchor's block did not occur: the chain was cut or rewritten.
        """
        if self._anchor is None or self._anchored:
            return None
        return Fault(self._anchor.number, "the anchored block is missing: the end of the chain was removed")

    def _is_removed(self, block: Block, records: Sequence[SealedRecord]) -> bool:
        """Return True if records are missing and retention explains it.

        Then no record below `removed_below` is left, and at least one is left if the last id of the block is not below
        it.
        """
        below = self._removed_below
        if below is None or len(records) >= block.count or block.first.int >= below.int:
            return False
        # Earlier versions sealed records of two months in one block. If retention has removed the first month, the
        # block keeps the records of the second month.
        return bool(records) == (block.last.int >= below.int) and all(each.id.int >= below.int for each in records)


def _before(block: Block) -> Block | None:
    """Return a stand-in for the block before `block`, which is the first one of a file.

    Return None if its number is 1.
    """
    if block.number == 1:
        return None
    return Block(
        number=block.number - 1,
        first=block.first,
        last=block.last,
        count=0,
        records_digest=b"",
        previous=b"",
        sealed_at=block.sealed_at,
        digest=block.previous,
    )


def _with_digest(block: Block, key: bytes | None) -> Block:
    covered = _joined(
        str(block.number).encode(),
        block.first.bytes,
        block.last.bytes,
        str(block.count).encode(),
        block.records_digest,
        block.previous,
        _instant(block.sealed_at).encode(),
    )
    digest = hmac.digest(key, covered, "sha256") if key else hashlib.sha256(covered).digest()
    return Block(
        number=block.number,
        first=block.first,
        last=block.last,
        count=block.count,
        records_digest=block.records_digest,
        previous=block.previous,
        sealed_at=block.sealed_at,
        digest=digest,
    )


def _instant(at: datetime) -> str:
    """Return a time as text in UTC with microseconds, the same for every time zone of the database session."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _joined(*parts: bytes) -> bytes:
    """Join the parts, each preceded by its length. Different lists of parts give different bytes."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


_RANDOM_BITS: Final = 80
"""Bits of a UUIDv7 after its time."""


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A calendar month in UTC. Raises ValueError if the number is not from 1 to 12."""

    year: int
    number: int

    @property
    def start(self) -> datetime:
        """Return the first instant of the month."""
        return datetime(self.year, self.number, 1, tzinfo=UTC)

    @property
    def following(self) -> Month:
        """Return the next month."""
        return Month(self.year + self.number // 12, self.number % 12 + 1)

    @property
    def first_id(self) -> UUID:
        """Return the smallest id that a record of this month can have."""
        return first_id(self.start)


def month_of(time: datetime) -> Month:
    """Return the UTC month of a time that has a time zone."""
    there = time.astimezone(UTC)
    return Month(there.year, there.month)


def month_of_id(id: UUID) -> Month | None:
    """Return the month in which the record with this id was made.

    Return None if the id contains no time before the year 10000.
    """
    time = time_of(id)
    return None if time is None else month_of(time)


def first_id(time: datetime) -> UUID:
    """Return the smallest UUIDv7 with this time, which must have a time zone."""
    return UUID(int=round(time.timestamp() * 1000) << _RANDOM_BITS)


def time_of(id: UUID) -> datetime | None:
    """Return the time that a UUIDv7 contains.

    Return None if it is after the year 9999, because the id is then not a UUIDv7.
    """
    try:
        return datetime.fromtimestamp((id.int >> _RANDOM_BITS) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
