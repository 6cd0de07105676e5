# SPDX-License-Identifier: Apache-2.0
"""The chain of audit blocks: every change of a record or of a block is found."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.audit.audit_chain import (
    Anchor,
    Block,
    ChainVerifier,
    Fault,
    Month,
    SealedRecord,
    digest_of,
    header_fault,
    records_fault,
    seal,
)

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)

RECORDS = st.lists(
    st.builds(
        SealedRecord,
        id=st.uuids(),
        at=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
        request_id=st.text(max_size=5),
        actor_id=st.text(max_size=5),
        operation=st.text(max_size=5),
        outcome=st.text(max_size=5),
        record=st.binary(max_size=10),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda record: record.id,
)


def _changed(value: Any) -> Any:
    match value:
        case int():
            return value + 1
        case str():
            return value + "x"
        case bytes():
            return value + b"x"
        case datetime():
            return value + timedelta(microseconds=1)
        case UUID():
            return UUID(int=value.int ^ 1)
    raise AssertionError(f"no change for {type(value)}")


def _chain(*numbers: int) -> list[Block]:
    blocks: list[Block] = []
    for number in numbers:
        record = SealedRecord(UUID(int=number), AT, "r", "a", "o", "allowed", b"{}")
        blocks.append(seal([record], after=blocks[-1] if blocks else None, sealed_at=AT))
    return blocks


@given(records=RECORDS, data=st.data())
def test_change_of_any_field_of_any_record_is_found(records: list[SealedRecord], data: st.DataObject) -> None:
    block = seal(records, after=None, sealed_at=AT)
    assert records_fault(block, records) is None
    index = data.draw(st.integers(0, len(records) - 1))
    name = data.draw(st.sampled_from(sorted(SealedRecord.__slots__)))
    altered = replace(records[index], **{name: _changed(getattr(records[index], name))})
    assert records_fault(block, [*records[:index], altered, *records[index + 1 :]]) is not None


@pytest.mark.parametrize("name", sorted(Block.__slots__))
@pytest.mark.parametrize("key", [None, b"secret"])
def test_change_of_any_field_of_a_block_is_found(name: str, key: bytes | None) -> None:
    record = SealedRecord(UUID(int=1), AT, "r", "a", "o", "allowed", b"{}")
    block = seal([record], after=None, sealed_at=AT, key=key)
    assert header_fault(block, after=None, key=key) is None
    assert header_fault(replace(block, **{name: _changed(getattr(block, name))}), after=None, key=key) is not None


@given(records=RECORDS)
def test_deleted_and_inserted_records_are_found(records: list[SealedRecord]) -> None:
    block = seal(records, after=None, sealed_at=AT)
    deleted = records_fault(block, records[1:])
    inserted = records_fault(block, [*records, records[0]])
    assert deleted is not None
    assert "deleted" in deleted.reason
    assert inserted is not None
    assert "inserted" in inserted.reason


def test_removed_block_is_reported_with_its_number() -> None:
    first, _, third = _chain(1, 2, 3)
    assert header_fault(third, after=first) == Fault(2, "the block is missing")


def test_removed_tail_and_rewritten_chain_differ_from_the_anchor() -> None:
    blocks = _chain(1, 2, 3)
    anchor = Anchor(3, blocks[-1].digest)
    assert _verified(blocks, anchor=anchor) is None
    assert _verified(blocks[:2], anchor=anchor) is not None
    assert _verified(_chain(1, 2, 4), anchor=anchor) is not None


def _verified(
    blocks: list[Block],
    *,
    anchor: Anchor | None = None,
    removed_below: int | None = None,
    gone: frozenset[int] = frozenset(),
) -> Fault | None:
    """Return the fault of blocks of one record each. The records of the blocks in `gone` do not exist."""
    below = None if removed_below is None else UUID(int=removed_below)
    chain = ChainVerifier(key=None, anchor=anchor, removed_below=below)
    for block in blocks:
        records = [] if block.number in gone else [SealedRecord(block.first, AT, "r", "a", "o", "allowed", b"{}")]
        if (fault := chain.add(block, records)) is not None:
            return fault
    return chain.end()


def test_records_that_retention_removed_may_be_missing_and_no_others() -> None:
    blocks = _chain(1, 2, 3)
    assert _verified(blocks, gone=frozenset({1, 2})) is not None
    assert _verified(blocks, gone=frozenset({1, 2}), removed_below=3) is None
    found = _verified(blocks, gone=frozenset({1, 2, 3}), removed_below=3)
    assert found is not None
    assert found.number == 3


@pytest.mark.parametrize(("kept", "accepted"), [({3, 4}, True), ({1, 3, 4}, False), ({2, 3}, False), (set(), False)])
def test_a_block_across_the_limit_of_retention_keeps_its_later_records(kept: set[int], accepted: bool) -> None:
    records = [SealedRecord(UUID(int=n), AT, "r", "a", "o", "allowed", b"{}") for n in range(1, 5)]
    block = seal(records, after=None, sealed_at=AT)
    chain = ChainVerifier(key=None, anchor=None, removed_below=UUID(int=3))
    fault = chain.add(block, [record for record in records if record.id.int in kept])
    assert (fault is None) is accepted


def test_block_rewritten_without_the_key_is_found() -> None:
    (forged,) = _chain(1)
    assert header_fault(forged, after=None, key=b"secret") is not None


def test_order_and_time_zone_of_the_rows_do_not_matter() -> None:
    zone = timezone(timedelta(hours=2))
    rows = [SealedRecord(UUID(int=n), AT, "r", "a", "o", "allowed", b"{}") for n in range(3)]
    shifted = [replace(row, at=row.at.astimezone(zone)) for row in reversed(rows)]
    assert digest_of(rows) == digest_of(shifted)


def test_block_without_records_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        seal([], after=None, sealed_at=AT)


def test_each_month_is_followed_by_the_next_one() -> None:
    months = [Month(2026, number) for number in range(1, 13)]
    assert [month.following for month in months] == [*months[1:], Month(2027, 1)]
