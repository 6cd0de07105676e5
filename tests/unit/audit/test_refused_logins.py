# SPDX-License-Identifier: Apache-2.0
"""Refused logins are counted, and a flood of them fills neither the buffer nor the table."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from gateway.access.audit.audit_record import AuditRecord
from gateway.access.dependency_errors import AuditShareFull
from gateway.audit.refused_logins import RefusedLogins

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Buffer:
    """Keeps at most `room` records."""

    def __init__(self, room: int = 10_000) -> None:
        self.room = room
        self.records: list[AuditRecord] = []

    def __call__(self, record: AuditRecord) -> None:
        if len(self.records) >= self.room:
            raise AuditShareFull("full")
        self.records.append(record)

    def counted(self) -> Counter[tuple[str | None, str]]:
        """Return the counted requests by (address, reason)."""
        total: Counter[tuple[str | None, str]] = Counter()
        for each in self.records:
            total[each.client_address, each.detail["reason"]] += int(each.detail["requests"])
        return total


@pytest.fixture
def buffer() -> Buffer:
    return Buffer()


def _counting(buffer: Buffer, most: int = 500) -> RefusedLogins:
    return RefusedLogins(buffer, window=60, most=most, clock=lambda: NOON)


def test_a_flood_from_one_address_is_one_record_with_a_count(buffer: Buffer) -> None:
    logins = _counting(buffer)
    for number in range(100_000):
        logins.add(address="192.0.2.1", reason="signature", request_id=str(number))
    logins.add(address="192.0.2.1", reason="expired", request_id="other")
    assert not buffer.records
    logins.flush()
    assert buffer.counted() == {("192.0.2.1", "signature"): 100_000, ("192.0.2.1", "expired"): 1}
    assert [each.request_id for each in buffer.records] == ["99999", "other"]


def test_a_flood_from_many_addresses_makes_a_bounded_number_of_records(buffer: Buffer) -> None:
    logins = _counting(buffer, most=50)
    for number in range(10_000):
        logins.add(address=f"2001:db8::{number:x}", reason=("signature", "issuer")[number % 2], request_id="r")
    logins.flush()
    counted = buffer.counted()
    assert len(buffer.records) == 52
    assert counted.total() == 10_000
    assert counted[None, "signature"] + counted[None, "issuer"] == 9_950


def test_counts_that_a_full_buffer_refuses_are_written_later(buffer: Buffer) -> None:
    logins = _counting(buffer)
    for address in ("a", "b", "c"):
        logins.add(address=address, reason="missing", request_id="r")
    buffer.room = 1
    logins.flush()
    logins.add(address="b", reason="missing", request_id="r")
    buffer.room = 10
    logins.flush()
    logins.flush()
    assert buffer.counted() == {("a", "missing"): 1, ("b", "missing"): 2, ("c", "missing"): 1}


def test_a_record_names_no_actor(buffer: Buffer) -> None:
    logins = _counting(buffer)
    logins.add(address=None, reason="audience", request_id="r")
    logins.flush()
    (record,) = buffer.records
    assert (record.actor.kind, record.actor.id) == ("anonymous", "")
    assert (record.operation, record.outcome, record.at) == ("authenticate", "unauthenticated", NOON)
