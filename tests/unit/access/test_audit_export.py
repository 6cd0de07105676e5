# SPDX-License-Identifier: Apache-2.0
"""An exported file verifies without the database, and every change of it is found."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.audit.audit_chain import Anchor, Block, SealedRecord, seal
from gateway.access.audit.audit_export import lines_of, verify_lines

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


def _records(block: int, text: str = 'ä\n"') -> list[SealedRecord]:
    return [
        SealedRecord(
            UUID(int=block * 100 + n), AT, "r", "oidc~alice", "load_table", "allowed", f'{{"n":"{text}"}}'.encode()
        )
        for n in range(3)
    ]


def _chain(length: int = 3, text: str = "x") -> tuple[list[Block], list[bytes]]:
    blocks: list[Block] = []
    lines: list[bytes] = []
    for number in range(length):
        records = _records(number, text)
        blocks.append(seal(records, after=blocks[-1] if blocks else None, sealed_at=AT))
        lines += lines_of(blocks[-1], records)
    return blocks, lines


@given(st.text(max_size=20))
def test_an_export_verifies_with_any_text_in_its_records(text: str) -> None:
    blocks, lines = _chain(2, text.encode("utf-8", "replace").decode())
    found = verify_lines(lines)
    assert (found.blocks, found.records, found.fault) == (2, 6, None)
    assert found.last == Anchor(2, blocks[-1].digest)


def test_an_export_may_begin_with_any_block() -> None:
    blocks, lines = _chain()
    found = verify_lines(lines[4:])
    assert (found.blocks, found.first, found.fault) == (2, Anchor(2, blocks[1].digest), None)


@pytest.mark.parametrize("left_out", range(12))
def test_a_line_that_is_missing_is_found_with_an_anchor(left_out: int) -> None:
    blocks, lines = _chain()
    del lines[left_out]
    anchor = Anchor(3, blocks[-1].digest)
    found = verify_lines(lines, anchor=anchor)
    assert found.fault is not None


@given(st.data())
def test_a_changed_byte_is_found(data: st.DataObject) -> None:
    blocks, lines = _chain()
    number = data.draw(st.integers(0, len(lines) - 1))
    place = data.draw(st.integers(0, len(lines[number]) - 2))
    other = data.draw(st.sampled_from(b'09afZ{}"\\ ').filter(lambda byte: byte != lines[number][place]))
    changed = bytearray(lines[number])
    changed[place] = other
    original, lines[number] = lines[number], bytes(changed)
    found = verify_lines(lines, anchor=Anchor(3, blocks[-1].digest))
    # The same values in another spelling are no change: a digit of a digest in upper case, a time with a space for `T`.
    spelt = [json.loads(each.lower().replace(b" ", b"t")) for each in (changed, original)] if not found.fault else []
    assert found.fault is not None or spelt[0] == spelt[1]


def test_a_record_before_the_first_block_and_a_time_without_zone_are_faults() -> None:
    _, lines = _chain()
    assert verify_lines(lines[1:]).fault is not None
    lines[1] = lines[1].replace(b'000006Z"', b'000006"')
    found = verify_lines(lines)
    assert found.fault is not None and "line 2" in found.fault.reason


def test_an_empty_file_has_no_blocks_and_misses_the_anchor() -> None:
    assert verify_lines([]).fault is None
    assert verify_lines([], anchor=Anchor(1, b"x")).fault is not None
