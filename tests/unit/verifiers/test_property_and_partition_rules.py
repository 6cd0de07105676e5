# SPDX-License-Identifier: Apache-2.0
"""Rules on properties and partition specs: required properties, allowed evolution and transforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.verification.builtin.documents import DocumentMissing
from gateway.verification.builtin.partition_evolution import (
    TRANSFORMS,
    PartitionEvolution,
    forbidden_evolution,
    parse_transforms,
)
from gateway.verification.builtin.required_properties import LONGEST_VALUE, missing_properties, parse_requirements
from gateway.verification.port import ChangeKind, ProposedChange
from tests.support.door.verified_changes import change, document, field

RULES = parse_requirements(["owner=[a-z]+@example\\.com", "team"])
GOOD = {"owner": "a@example.com", "team": "x"}


def view(properties: Mapping[str, str]) -> msgspec.Raw:
    text = {"view-uuid": "u", "format-version": 1, "location": "s3://b/v", "current-version-id": 1}
    return msgspec.Raw(msgspec.json.encode(text | {"properties": properties}))


def created(properties: Mapping[str, str]) -> ProposedChange:
    return change(ChangeKind.CREATE, object_id=None, after=document(properties=properties))


def committed(before: Mapping[str, str], after: Mapping[str, str]) -> ProposedChange:
    return change(before=document(properties=before), after=document(properties=after))


@pytest.mark.parametrize(
    ("given", "reasons"),
    [
        (GOOD, ()),
        (GOOD | {"more": "y"}, ()),
        ({}, ("the property owner must be set", "the property team must be set")),
        (GOOD | {"team": ""}, ("the property team must be set",)),
        (GOOD | {"owner": "a@example.com.evil"}, ("the property owner must match [a-z]+@example\\.com",)),
        (GOOD | {"owner": "a@example.com\n"}, ("the property owner must match [a-z]+@example\\.com",)),
    ],
)
def test_new_objects_need_the_properties(given: Mapping[str, str], reasons: tuple[str, ...]) -> None:
    assert missing_properties(created(given), RULES) == reasons
    new_view = change(ChangeKind.CREATE, "view", object_id=None, after=view(given))
    assert missing_properties(new_view, RULES) == reasons
    stored = msgspec.Raw(msgspec.json.encode({"doc": "text", "properties": given}))
    generic = change(ChangeKind.CREATE, "generic_table", object_id=None, after=stored)
    assert missing_properties(generic, RULES) == reasons
    namespace = change(ChangeKind.NAMESPACE_PROPERTIES, "namespace", properties=given)
    assert missing_properties(namespace, RULES) == reasons


def test_change_may_leave_a_missing_property_as_it_is_but_not_remove_or_spoil_one() -> None:
    assert missing_properties(committed({}, {}), RULES) == ()
    assert missing_properties(committed({"owner": "bob"}, {"owner": "bob", "team": "x"}), RULES) == ()
    assert missing_properties(committed(GOOD, {"owner": GOOD["owner"]}), RULES) == ("the property team must be set",)
    assert len(missing_properties(committed(GOOD, GOOD | {"owner": "bob"}), RULES)) == 1
    assert len(missing_properties(committed({}, {"owner": "bob"}), RULES)) == 1


def test_long_value_is_refused_without_a_comparison() -> None:
    slow = parse_requirements(["p=(a+)+b"])
    assert missing_properties(created({"p": "a" * (LONGEST_VALUE + 1)}), slow)


def test_missing_document_is_no_approval() -> None:
    for broken in (change(after=document()), change(before=document()), change(ChangeKind.CREATE, object_id=None)):
        with pytest.raises(DocumentMissing):
            missing_properties(broken, RULES)


@pytest.mark.parametrize("entries", [[], [""], ["=x"], ["a="], ["a=("], ["a", "a=b"]])
def test_invalid_requirement_is_refused(entries: list[str]) -> None:
    with pytest.raises(ValueError, match="propert|form"):
        parse_requirements(entries)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=4))
def test_satisfied_requirements_never_depend_on_other_properties(more: dict[str, str]) -> None:
    assert missing_properties(created(more | GOOD), RULES) == ()
    assert missing_properties(created({key: more[key] for key in more if key not in GOOD}), RULES) != ()


def part(source: int, transform: str, name: str | None = None, id: int = 1000) -> dict[str, Any]:
    return {"source-id": source, "transform": transform, "name": name or f"p{source}_{transform}", "field-id": id}


DAY, ID = part(1, "day"), part(2, "identity", id=1001)
FIELDS = [field(1, "at", "timestamp"), field(2, "id", "int"), field(3, "s", "string")]


@pytest.mark.parametrize(
    ("old", "new", "refused_by"),
    [
        ([DAY], [DAY], set()),
        ([], [DAY], {"none"}),
        ([DAY], [DAY, ID], {"none"}),
        ([DAY], [], {"none", "add_only"}),
        ([DAY], [part(1, "void", id=1000)], {"none", "add_only"}),
        ([DAY], [part(1, "month")], {"none", "add_only"}),
        ([DAY], [ID], {"none", "add_only"}),
        ([DAY, ID], [ID, DAY], {"none"}),
        ([DAY], [DAY | {"name": "other"}], {"none"}),
        ([part(3, "bucket[8]")], [part(3, "bucket[16]")], {"none", "add_only"}),
    ],
)
def test_modes_refuse_the_right_evolutions(old: list[Any], new: list[Any], refused_by: set[str]) -> None:
    proposed = change(before=document(FIELDS, spec=old), after=document(FIELDS, spec=new))
    modes: tuple[PartitionEvolution, ...] = get_args(PartitionEvolution)
    assert {mode for mode in modes if forbidden_evolution(proposed, mode=mode, transforms=frozenset())} == refused_by


def test_transforms_apply_to_new_tables_and_to_added_fields_only() -> None:
    only = parse_transforms(("Day", "bucket"))
    new = change(ChangeKind.CREATE, object_id=None, after=document(FIELDS, spec=[DAY, ID]))
    (reason,) = forbidden_evolution(new, mode="none", transforms=only)
    assert "p2_identity (identity of column 2) must use one of the transforms bucket, day" in reason
    kept = change(before=document(FIELDS, spec=[ID]), after=document(FIELDS, spec=[ID, part(3, "bucket[4]")]))
    assert forbidden_evolution(kept, mode="add_only", transforms=only) == ()
    hidden = change(before=document(FIELDS, spec=[ID]), after=document(FIELDS, spec=[ID, part(3, "Truncate[4]")]))
    assert len(forbidden_evolution(hidden, mode="any", transforms=only)) == 1


def test_field_that_version_1_keeps_as_void_counts_as_removed() -> None:
    void = part(1, "void", id=1000)
    removed = change(before=document(FIELDS, spec=[DAY]), after=document(FIELDS, spec=[void]))
    assert forbidden_evolution(removed, mode="any", transforms=frozenset({"day"})) == ()
    upgraded = change(before=document(FIELDS, spec=[void]), after=document(FIELDS, spec=[]))
    assert forbidden_evolution(upgraded, mode="none", transforms=frozenset()) == ()


def test_unknown_transform_in_the_settings_is_refused() -> None:
    with pytest.raises(ValueError, match="buckets must be one of"):
        parse_transforms(("buckets",))


parts = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(sorted(TRANSFORMS))), max_size=4, unique=True).map(
    lambda pairs: [part(source, name, id=1000 + n) for n, (source, name) in enumerate(pairs)]
)


@given(parts, parts)
def test_a_stricter_mode_refuses_all_that_a_laxer_one_refuses(old: list[Any], new: list[Any]) -> None:
    proposed = change(before=document(FIELDS, spec=old), after=document(FIELDS, spec=new))
    none, add_only, every = (
        bool(forbidden_evolution(proposed, mode=mode, transforms=frozenset())) for mode in ("none", "add_only", "any")
    )
    before, after = ({(f["source-id"], f["transform"]) for f in spec} for spec in (old, new))
    assert not every and add_only == (not before <= after)
    assert none == ([(f["source-id"], f["transform"]) for f in old] != [(f["source-id"], f["transform"]) for f in new])
