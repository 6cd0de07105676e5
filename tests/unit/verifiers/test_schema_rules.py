# SPDX-License-Identifier: Apache-2.0
"""Rules on schemas: each kind of incompatible change is found by field id, and a compatible one is not."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.verification.builtin import compatibility, protected_columns
from gateway.verification.builtin.compatibility import incompatible, widens
from gateway.verification.builtin.documents import DocumentMissing
from gateway.verification.builtin.protected_columns import changed_columns, parse_columns
from gateway.verification.builtin.rule import Rule
from gateway.verification.port import Approved, ChangeKind, Pending, Rejected
from tests.support.door.verified_changes import change, document, field

ADDRESS = {"type": "struct", "fields": [field(5, "street", "string"), field(6, "zip", "int")]}
TAGS = {"type": "list", "element-id": 8, "element": "int", "element-required": False}
MAP = {"type": "map", "key-id": 10, "key": "string", "value-id": 11, "value": "float", "value-required": False}
BASE = [
    field(1, "id", "int", required=True),
    field(2, "total", "decimal(9,2)"),
    field(4, "address", ADDRESS),
    field(7, "tags", TAGS),
    field(9, "rates", MAP),
]


def mutated(*path: object, value: object) -> list[dict[str, Any]]:
    """Return BASE with one member replaced. `path` leads to it."""
    fields = copy.deepcopy(BASE)
    at: Any = fields
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return fields


def reasons(after: list[dict[str, Any]], before: list[dict[str, Any]] = BASE) -> tuple[str, ...]:
    return incompatible(change(before=document(before), after=document(after)))


COMPATIBLE = {
    "nothing": BASE,
    "reordered": [*reversed(BASE)],
    "optional column": [*BASE, field(20, "note", "string")],
    "required column with default": [*BASE, field(20, "note", "string", required=True, **{"initial-default": "x"})],
    "new struct with required field": [
        *BASE,
        field(20, "more", {"type": "struct", "fields": [field(21, "x", required=True)]}),
    ],
    "int to long": mutated(0, "type", value="long"),
    "wider decimal": mutated(1, "type", value="decimal(12, 2)"),
    "required to optional": mutated(0, "required", value=False),
    "wider element": mutated(3, "type", "element", value="long"),
    "wider value": mutated(4, "type", "value", value="double"),
    "documented": mutated(0, "doc", value="text"),
}
INCOMPATIBLE = {
    "dropped": (BASE[1:], "column id (id 1) must not be dropped"),
    "dropped nested": (mutated(2, "type", "fields", value=ADDRESS["fields"][:1]), "address.zip (id 6) must not be dr"),
    "dropped struct": ([*BASE[:2], *BASE[3:]], "column address (id 4) must not be dropped"),
    "renamed": (mutated(0, "name", value="key"), "column id (id 1) must not be renamed to key"),
    "renamed nested": (mutated(2, "type", "fields", 1, "name", value="plz"), "address.zip (id 6) must not be renamed"),
    "dropped and added again": (mutated(0, "id", value=30), "column id (id 1) must not be dropped"),
    "narrowed": (mutated(0, "type", value="string"), "column id (id 1) must not change its type from int to string"),
    "narrower decimal": (mutated(1, "type", value="decimal(8,2)"), "from decimal(9,2) to decimal(8,2)"),
    "another scale": (mutated(1, "type", value="decimal(12,3)"), "from decimal(9,2) to decimal(12,3)"),
    "primitive to struct": (mutated(1, "type", value={"type": "struct", "fields": []}), "to struct"),
    "struct to primitive": (mutated(2, "type", value="string"), "from struct to string"),
    "element narrowed": (mutated(3, "type", "element", value="date"), "tags.element (id 8) must not change its type"),
    "element required": (mutated(3, "type", "element-required", value=True), "tags.element (id 8) must stay optional"),
    "optional to required": (mutated(1, "required", value=True), "column total (id 2) must stay optional"),
    "required column": ([*BASE, field(20, "note", required=True)], "note (id 20) must be optional or have an initial"),
    "required nested": (
        mutated(2, "type", "fields", value=[*ADDRESS["fields"], field(20, "no", required=True)]),
        "address.no (id 20) must be optional",
    ),
    "moved": (
        [*mutated(2, "type", "fields", value=ADDRESS["fields"][:1]), field(6, "zip", "int")],
        "must not be moved",
    ),
}


@pytest.mark.parametrize("after", COMPATIBLE.values(), ids=COMPATIBLE.keys())
def test_compatible_schema_is_approved(after: list[dict[str, Any]]) -> None:
    assert reasons(after) == ()


@pytest.mark.parametrize(("after", "reason"), INCOMPATIBLE.values(), ids=INCOMPATIBLE.keys())
def test_incompatible_schema_is_refused_with_its_column(after: list[dict[str, Any]], reason: str) -> None:
    found = reasons(after)
    assert any(reason in each for each in found), found


def test_dropped_struct_has_one_reason_and_not_one_for_each_field() -> None:
    assert len(reasons([*BASE[:2], *BASE[3:]])) == 1


def test_only_the_current_schemas_count() -> None:
    """An older schema in the document may have other columns."""
    before = change(before=document(BASE[1:]), after=document(BASE[1:]))
    assert incompatible(before) == ()


def test_new_table_is_approved_and_a_missing_document_is_no_approval() -> None:
    assert incompatible(change(object_id=None, after=document(BASE))) == ()
    for broken in (change(after=document(BASE)), change(before=document(BASE))):
        with pytest.raises(DocumentMissing):
            incompatible(broken)


PROMOTIONS = {("int", "long"), ("float", "double"), ("date", "timestamp"), ("date", "timestamp_ns")}
PRIMITIVES = ["boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns"]
PRIMITIVES += ["string", "uuid", "binary", "fixed[4]", "fixed[8]", "decimal(9,2)"]


@pytest.mark.parametrize("old", PRIMITIVES)
def test_only_promotions_of_the_specification_widen(old: str) -> None:
    assert {new for new in PRIMITIVES if widens(old, new)} == {old} | {new for kind, new in PROMOTIONS if kind == old}
    assert widens("unknown", old) and not widens(old, "unknown")


@st.composite
def schemas(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Generate schemas with nested columns and unique ids."""
    ids = iter(range(1, 1000))

    def build(depth: int) -> list[dict[str, Any]]:
        return [one(depth) for _ in range(draw(st.integers(1, 3)))]

    def one(depth: int) -> dict[str, Any]:
        id = next(ids)
        kind: object = draw(st.sampled_from(["int", "long", "string", "date", "decimal(9,2)"]))
        match draw(st.sampled_from(["primitive", "struct", "list"])) if depth < 3 else "primitive":
            case "struct":
                kind = {"type": "struct", "fields": build(depth + 1)}
            case "list":
                kind = {
                    "type": "list",
                    "element-id": next(ids),
                    "element": kind,
                    "element-required": draw(st.booleans()),
                }
        return field(id, f"c{id}", kind, required=draw(st.booleans()))

    return build(0)


def every_field(fields: list[dict[str, Any]]) -> list[tuple[list[dict[str, Any]], int]]:
    """Return (list, position) for each named field at any depth."""
    found = []
    for position, each in enumerate(fields):
        found.append((fields, position))
        if isinstance(each["type"], dict) and each["type"]["type"] == "struct":
            found += every_field(each["type"]["fields"])
    return found


@given(schemas(), st.data())
def test_each_single_breaking_change_is_found_and_its_reverse_reading_is_stable(
    fields: list[dict[str, Any]], data: st.DataObject
) -> None:
    assert reasons(fields, fields) == ()
    after = copy.deepcopy(fields)
    siblings, position = data.draw(st.sampled_from(every_field(after)))
    column = siblings[position]
    match data.draw(st.sampled_from(["drop", "rename", "retype", "require"])):
        case "drop":
            siblings.pop(position)
        case "rename":
            column["name"] = "other"
        case "retype":
            column["type"] = "binary"
        case "require" if not column["required"]:
            column["required"] = True
        case _:
            return
    assert any(f"(id {column['id']})" in reason for reason in reasons(after, fields))


@given(schemas(), st.data())
def test_adding_an_optional_column_anywhere_is_compatible(fields: list[dict[str, Any]], data: st.DataObject) -> None:
    after = copy.deepcopy(fields)
    siblings, position = data.draw(st.sampled_from(every_field(after)))
    siblings.insert(position, field(5000, "added", "string"))
    assert reasons(after, fields) == ()


@pytest.mark.parametrize(
    ("entries", "after", "reason"),
    [
        (["ID"], BASE[1:], "protected column id (id 1) must not be dropped"),
        (["#1"], mutated(0, "name", value="key"), "protected column id (id 1) must not be renamed to key"),
        (["id"], mutated(0, "type", value="long"), "must not change its type from int to long"),
        (["address"], mutated(2, "type", "fields", 0, "name", value="s"), "address.street (id 5) must not be renamed"),
        (["address.zip"], mutated(2, "name", value="home"), "address.zip (id 6) must not be renamed to home.zip"),
        (["#8"], mutated(3, "type", "element", value="long"), "tags.element (id 8) must not change its type"),
        (["id"], mutated(0, "id", value=40), "protected column id (id 1) must not be dropped"),
        (["id", "absent", "#99"], BASE, None),
        (["id"], mutated(1, "name", value="sum"), None),
        (["address"], [*BASE, field(20, "note")], None),
        (["id"], mutated(0, "required", value=False), None),
    ],
)
def test_protected_columns_keep_their_id_name_and_type(
    entries: list[str], after: list[dict[str, Any]], reason: str | None
) -> None:
    found = changed_columns(change(before=document(BASE), after=document(after)), parse_columns(entries))
    assert (reason is None and not found) or (reason is not None and any(reason in each for each in found)), found


@pytest.mark.parametrize("entries", [[], ["#"], ["#-1"], ["#x"], ["#²"]])
def test_invalid_protected_column_is_refused(entries: list[str]) -> None:
    with pytest.raises(ValueError, match="column"):
        parse_columns(entries)


def test_rule_answers_as_set_and_large_documents_leave_the_loop() -> None:
    bad = change(before=document(BASE, properties={"x": "y" * 300_000}), after=document(BASE[1:]))
    held = Rule("r", compatibility.CONCERN, incompatible, violation="pending")
    refused = Rule("r", protected_columns.CONCERN, lambda each: changed_columns(each, parse_columns(["id"])))
    assert isinstance(asyncio.run(held.verify(bad)), Pending)
    assert isinstance(asyncio.run(refused.verify(bad)), Rejected)
    assert asyncio.run(held.verify(change(ChangeKind.DROP))) == Approved()
