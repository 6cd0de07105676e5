# SPDX-License-Identifier: Apache-2.0
"""The size limit of audit records (64 KiB), and the summary of omitted parts."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.access.audit.audit_record import (
    MAX_RECORD_BYTES,
    AuditedActor,
    AuditedDecision,
    AuditedResource,
    AuditRecord,
    bounded,
    digest,
    encode_record,
)


def decision(resources: int = 1, *, name: str = "t", **more: Any) -> AuditedDecision:
    return AuditedDecision(
        operation="load_table",
        outcome="allowed",
        determined_by="both",
        resources=tuple(AuditedResource(type="table", id=f"{number}", name=name) for number in range(resources)),
        **more,
    )


def record(*decisions: AuditedDecision, **detail: str) -> AuditRecord:
    return AuditRecord(
        id=UUID(int=1),
        format=1,
        at=datetime(2026, 3, 4, tzinfo=UTC),
        request_id="r",
        actor=AuditedActor(kind="user", id="oidc~ann"),
        decisions=decisions,
        detail=detail,
    )


def test_a_small_record_is_left_as_it_is() -> None:
    small = record(decision(3, policy_reasons=("a: b",)), asked_about="[1,2]")
    assert bounded(small) is small
    assert b"left_out" not in encode_record(small)


def test_omitted_resources_are_counted_with_a_digest_of_all_resources() -> None:
    large = record(decision(5_000, name="x" * 60))
    encoded = json.loads(encode_record(large))
    [kept] = encoded["decisions"]
    assert len(kept["resources"]) > 300, "the record must keep as many resources as fit"
    assert kept["resources_left_out"]["count"] == 5_000 - len(kept["resources"])
    whole = msgspec.json.encode(large.decisions[0].resources)
    assert kept["resources_left_out"]["sha256"] == hashlib.sha256(whole).hexdigest()
    assert kept["resources"] == json.loads(whole)[: len(kept["resources"])]


def test_omitted_decisions_are_counted_with_a_digest_of_all_decisions() -> None:
    large = record(*(decision(2, name=f"{number}" * 10) for number in range(1_000)))
    encoded = json.loads(encode_record(large))
    assert encoded["decisions_left_out"] == {
        "count": 1_000 - len(encoded["decisions"]),
        "sha256": hashlib.sha256(msgspec.json.encode(large.decisions)).hexdigest(),
    }
    assert len(encoded["decisions"]) > 100 and large.operation == "load_table"


def test_a_truncated_list_in_the_details_is_still_a_list() -> None:
    encoded = json.loads(
        encode_record(record(decision(), asked_about=json.dumps(["x" * 50] * 5_000), where="y" * 90_000))
    )
    kept = json.loads(encoded["detail"]["asked_about"])
    assert set(kept) == {"x" * 50}
    assert encoded["detail_left_out"]["asked_about"]["count"] == 5_000 - len(kept)
    assert encoded["detail_left_out"]["where"]["sha256"] == digest("y" * 90_000)
    assert encoded["detail"]["where"] == "y" * len(encoded["detail"]["where"])


def test_a_truncated_list_of_ids_keeps_whole_ids() -> None:
    ids = [str(UUID(int=number)) for number in range(10_000)]
    encoded = json.loads(encode_record(record(decision(), namespaces=" ".join(ids))))
    kept = encoded["detail"]["namespaces"].split()
    assert len(kept) > 200 and kept == ids[: len(kept)]
    assert encoded["detail_left_out"]["namespaces"]["count"] == 37 * (10_000 - len(kept))


def test_a_value_truncated_twice_is_counted_once_and_keeps_its_digest() -> None:
    large = record(*(decision(2, name=f"{number}" * 10) for number in range(1_000)))
    once = bounded(large)
    again = bounded(msgspec.structs.replace(once, detail={"a": "z" * 60_000}))
    assert again.decisions_left_out is not None
    assert again.decisions_left_out.count + len(again.decisions) == 1_000
    assert again.decisions_left_out.sha256 == digest(large.decisions)


@pytest.mark.parametrize("character", ["x", '"', "\\", "\x01", "\u00e9", "\U0001f600"])
def test_one_very_long_name_fits_for_any_character_encoding(character: str) -> None:
    encoded = encode_record(record(decision(1, name=character * 100_000)))
    assert len(encoded) <= MAX_RECORD_BYTES
    assert json.loads(encoded)["decisions"][0]["resources_left_out"]["count"] == 0, (
        "the resource must be kept with a truncated name"
    )


_REASONS = st.lists(st.text(max_size=2000), max_size=20)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 400), st.text(max_size=300), _REASONS), min_size=1, max_size=40),
    st.dictionaries(st.sampled_from("abcdef"), st.text(max_size=40_000), max_size=6),
)
def test_no_record_exceeds_the_size_limit(parts: list[tuple[int, str, list[str]]], detail: dict[str, str]) -> None:
    made = record(*(decision(n, name=name, policy_reasons=tuple(why)) for n, name, why in parts), **detail)
    encoded = encode_record(made)
    assert len(encoded) <= MAX_RECORD_BYTES
    assert msgspec.json.decode(encoded, type=AuditRecord).decisions, "the record must name the requested operation"
