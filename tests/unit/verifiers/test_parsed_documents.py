# SPDX-License-Identifier: Apache-2.0
"""The built-in rules on one change parse each of its documents once at most."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from gateway.iceberg.metadata import decode_stored_table_metadata
from gateway.verification.builtin import compatibility, documents, protected_columns, required_properties
from gateway.verification.builtin.documents import keep_parsed
from gateway.verification.builtin.rule import Rule
from gateway.verification.panel import Panel, Seat
from gateway.verification.port import Approved, Rejected
from tests.support.door.verified_changes import change, document, field

OLD = document([field(1, "a"), field(2, "b")], properties={"owner": "x"})
NEW = document([field(1, "a")], properties={"owner": "x"})


def panel() -> Panel:
    kept = protected_columns.parse_columns(["a"])
    owned = required_properties.parse_requirements(["owner"])
    rules = (
        Rule("a", compatibility.CONCERN, compatibility.incompatible),
        Rule("b", protected_columns.CONCERN, partial(protected_columns.changed_columns, protected=kept)),
        Rule("c", required_properties.CONCERN, partial(required_properties.missing_properties, requirements=owned)),
    )
    return Panel(Seat(verifier=rule, timeout=5) for rule in rules)


@pytest.mark.parametrize(("handed_over", "expected"), [(False, 2), (True, 1)])
def test_three_rules_parse_each_document_once(
    monkeypatch: pytest.MonkeyPatch, handed_over: bool, expected: int
) -> None:
    parsed: list[bytes] = []

    def counted(text: bytes) -> object:
        parsed.append(text)
        return decode_stored_table_metadata(text)

    monkeypatch.setattr(documents, "decode_stored_table_metadata", counted)
    proposed = change(before=OLD, after=NEW)
    if handed_over:
        keep_parsed(proposed, after=decode_stored_table_metadata(bytes(NEW)))
    assert isinstance(asyncio.run(panel().verify(proposed)).verdict, Rejected)
    assert len(parsed) == expected
    # Another change with equal documents has nothing of this one.
    assert asyncio.run(panel().verify(change(before=OLD, after=OLD))).verdict == Approved()
    assert len(parsed) == expected + 2
