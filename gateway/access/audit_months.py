# SPDX-License-Identifier: Apache-2.0
"""The calendar months of audit records, by which the table of records is partitioned.

The id of a record is a UUIDv7, which begins with its time in milliseconds (RFC 9562 section 5.7). So ids sort by time,
and a range of ids is a range of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

_RANDOM_BITS: Final = 80
"""Bits of a UUIDv7 after its time."""


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A month of UTC. Raises ValueError for a number outside of 1 to 12."""

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
        """Return the smallest id of a record of this month."""
        return first_id(self.start)


def month_of(time: datetime) -> Month:
    """Return the month of a time with a zone."""
    there = time.astimezone(UTC)
    return Month(there.year, there.month)


def month_of_id(id: UUID) -> Month | None:
    """Return the month of a record's id; None for an id that has no time before the year 10000."""
    time = time_of(id)
    return None if time is None else month_of(time)


def first_id(time: datetime) -> UUID:
    """Return the smallest UUIDv7 of a time with a zone."""
    return UUID(int=round(time.timestamp() * 1000) << _RANDOM_BITS)


def time_of(id: UUID) -> datetime | None:
    """Return the time in an id; None if it is later than the year 9999: the id is no UUIDv7."""
    try:
        return datetime.fromtimestamp((id.int >> _RANDOM_BITS) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
