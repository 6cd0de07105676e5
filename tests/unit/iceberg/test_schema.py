# SPDX-License-Identifier: Apache-2.0
"""Schemas: validity by format version, equality and fresh ids."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.schema import MAX_TYPE_DEPTH, Schema, assign_fresh_ids, check_compatibility, read_schema

ADDRESS: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"id": 30, "name": "street", "type": "string", "required": True},
        {"id": 31, "name": "no", "type": "int", "required": False},
    ],
}
NESTED = {
    "type": "struct",
    "identifier-field-ids": [10, 30],
    "fields": [
        {"id": 10, "name": "id", "type": "long", "required": True},
        {"id": 20, "name": "home", "type": ADDRESS, "required": True},
        {
            "id": 40,
            "name": "tags",
            "required": False,
            "type": {
                "type": "map",
                "key-id": 41,
                "key": "string",
                "value-id": 42,
                "value-required": False,
                "value": {"type": "list", "element-id": 43, "element": "double", "element-required": True},
            },
        },
    ],
}


def read(members: Any) -> Schema:
    return read_schema(Raw(json.dumps(members).encode()), at="$.schema")


def one(kind: Any, **more: Any) -> Schema:
    return read({"type": "struct", "fields": [{"id": 1, "name": "v", "type": kind, "required": False, **more}]})


def refused(members: Any) -> str:
    with pytest.raises(BadRequestException) as caught:
        read(members)
    return caught.value.message


def test_nested_columns_are_found_by_id_and_by_name() -> None:
    schema = read(NESTED)
    assert sorted(schema.columns) == [10, 20, 30, 31, 40, 41, 42, 43]
    assert schema.name_of(43) == "tags.value.element"
    assert schema.name_of(99) is None
    street = schema.named("home.street")
    assert street is not None and street.field.id == 30
    assert schema.highest_field_id == 43


def test_fresh_ids_number_all_fields_of_a_struct_before_nested_fields() -> None:
    fresh, last = assign_fresh_ids(read(NESTED))
    assert last == 8
    assert {c.dotted: i for i, c in fresh.columns.items()} == {
        "id": 1,
        "home": 2,
        "tags": 3,
        "home.street": 4,
        "home.no": 5,
        "tags.key": 6,
        "tags.value": 7,
        "tags.value.element": 8,
    }
    assert fresh.identifier_field_ids == (1, 4)
    assert fresh.schema_id == 0


def test_unknown_members_of_columns_survive_fresh_ids_and_a_new_schema_id() -> None:
    members = {
        "type": "struct",
        "x-origin": "y",
        "fields": [{"id": 5, "name": "a", "type": "int", "required": False, "x-tag": 1}],
    }
    fresh, _ = assign_fresh_ids(read(members))
    assert fresh.with_id(7).members() == {
        "type": "struct",
        "schema-id": 7,
        "x-origin": "y",
        "fields": [{"id": 1, "name": "a", "type": "int", "required": False, "x-tag": 1}],
    }


def test_schema_equality_ignores_the_schema_id_and_type_spacing() -> None:
    assert one("decimal(9, 2)").with_id(4).same_as(one("decimal(9,2)").with_id(0))
    assert not one("decimal(9,2)").same_as(one("decimal(9,3)"))
    assert not one("int").same_as(one("int", doc="a"))
    assert not one("int").same_as(one("int", **{"write-default": 3}))


def test_schema_equality_includes_identifier_fields() -> None:
    plain = {k: v for k, v in NESTED.items() if k != "identifier-field-ids"}
    assert not read(NESTED).same_as(read(plain))
    assert read(plain).same_as(read({**plain, "identifier-field-ids": []}))


@pytest.mark.parametrize(
    "kind",
    [
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "string",
        "uuid",
        "binary",
    ]
    + ["fixed[16]", "decimal(38,10)"],
)
def test_plain_types_are_legal_in_every_version(kind: str) -> None:
    for version in (1, 2, 3):
        check_compatibility(one(kind), version)


@pytest.mark.parametrize(
    "kind",
    ["timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geometry(srid:4326)", "geography"]
    + ["geography(srid:4326)", "geography(srid:4326,karney)"],
)
def test_new_types_need_version_3(kind: str) -> None:
    check_compatibility(one(kind), 3)
    with pytest.raises(BadRequestException, match="is not supported until v3") as caught:
        check_compatibility(one(kind), 2)
    assert caught.value.message.startswith("Invalid schema for v2:\n- Invalid type for v: ")


def test_the_message_about_variants_is_the_one_that_clients_match() -> None:
    with pytest.raises(BadRequestException, match="variant is not supported until v3"):
        check_compatibility(one({"type": "list", "element-id": 2, "element": "variant", "element-required": False}), 2)


@pytest.mark.parametrize(
    "kind",
    [
        "longg",
        "",
        "fixed",
        "fixed[]",
        "decimal(39,2)",
        "decimal(0,0)",
        "decimal(5,6)",
        "decimal(5)",
        "int)",
        "geometry()",
    ]
    + ["geography(a,flat)", "list"],
)
def test_types_no_version_has_are_refused(kind: str) -> None:
    with pytest.raises(BadRequestException, match="Invalid type for v"):
        one(kind)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("int", 1), ("double", 1.5), ("boolean", True), ("string", "x"), ("decimal(9,2)", "1.00"), ("date", "2024-01-01")],
)
def test_an_initial_default_needs_version_3(kind: str, value: Any) -> None:
    check_compatibility(one(kind, **{"initial-default": value}), 3)
    with pytest.raises(BadRequestException, match="is not supported until v3"):
        check_compatibility(one(kind, **{"initial-default": value}), 2)


def test_a_null_default_counts_as_absent() -> None:
    check_compatibility(one("int", **{"initial-default": None, "write-default": None, "doc": None}), 1)


def test_a_write_default_alone_is_legal_before_version_3() -> None:
    check_compatibility(one("int", **{"write-default": 3}), 2)


@pytest.mark.parametrize(
    ("kind", "value"), [("int", "1"), ("int", True), ("boolean", 1), ("string", 1), ("variant", {}), ("date", 1)]
)
def test_a_default_must_have_the_form_of_its_type(kind: str, value: Any) -> None:
    with pytest.raises(BadRequestException, match="is not a value of"):
        check_compatibility(one(kind, **{"initial-default": value}), 3)


def test_an_id_used_twice_is_refused() -> None:
    clash = {**ADDRESS, "fields": [{**ADDRESS["fields"][0], "id": 31}, ADDRESS["fields"][1]]}
    assert "field id 31 is used by" in refused(clash)


@pytest.mark.parametrize("field_id", [-1, 2_147_483_448])
def test_reserved_field_ids_are_refused(field_id: int) -> None:
    assert "must be from 0 to" in refused(
        {"type": "struct", "fields": [{"id": field_id, "name": "a", "type": "int", "required": False}]}
    )


def test_a_name_used_twice_is_refused() -> None:
    fields = [{"id": i, "name": "a", "type": "int", "required": False} for i in (1, 2)]
    assert refused({"type": "struct", "fields": fields}) == "Invalid schema: multiple fields for name a: 1 and 2"


@pytest.mark.parametrize(
    ("field_id", "reason"),
    [
        (99, "field does not exist"),
        (20, "not a primitive type field"),
        (31, "not a required field"),
        (43, "must not be float or double field"),
        (41, "must not be nested in a map"),
    ],
)
def test_an_identifier_field_must_be_a_required_primitive(field_id: int, reason: str) -> None:
    assert reason in refused({**NESTED, "identifier-field-ids": [field_id]})


def test_an_identifier_field_inside_an_optional_struct_is_refused() -> None:
    fields = [{"id": 20, "name": "home", "type": ADDRESS, "required": False}]
    message = refused({"type": "struct", "fields": fields, "identifier-field-ids": [30]})
    assert "must not be nested in an optional struct" in message


def deep(levels: int) -> Any:
    kind: Any = "int"
    for i in range(levels):
        kind = {"type": "list", "element-id": i + 2, "element": kind, "element-required": False}
    return {"type": "struct", "fields": [{"id": 1, "name": "a", "type": kind, "required": False}]}


def test_deeply_nested_types_are_refused_early() -> None:
    read(deep(MAX_TYPE_DEPTH - 1))
    assert "nested deeper" in refused(deep(MAX_TYPE_DEPTH + 5))
    assert "nested deeper" in refused(deep(500))


@pytest.mark.parametrize("members", [[], "x", {"type": "struct"}, {"type": "struct", "fields": [{"id": 1}]}])
def test_malformed_schemas_are_refused_with_a_path(members: Any) -> None:
    assert "at `$.schema" in refused(members)


LEAF = st.sampled_from(["int", "string", "decimal(9,2)", "timestamptz"])
TYPE = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda kinds: ("struct", kinds)),
        inner.map(lambda kind: ("list", kind)),
        st.tuples(LEAF, inner).map(lambda pair: ("map", *pair)),
    ),
    max_leaves=12,
)


def build(shape: Any, ids: Any) -> Any:
    if isinstance(shape, str):
        return shape
    if shape[0] == "struct":
        fields = [
            {"id": next(ids), "name": f"f{i}", "type": build(k, ids), "required": False} for i, k in enumerate(shape[1])
        ]
        return {"type": "struct", "fields": fields}
    if shape[0] == "list":
        return {"type": "list", "element-id": next(ids), "element": build(shape[1], ids), "element-required": False}
    ids_of_map = {"key-id": next(ids), "value-id": next(ids)}
    return {"type": "map", **ids_of_map, "key": shape[1], "value": build(shape[2], ids), "value-required": True}


@given(st.lists(TYPE, min_size=1, max_size=4), st.integers(min_value=1, max_value=1000))
def test_fresh_ids_are_dense_keep_names_and_do_not_depend_on_the_old_ones(shapes: list[Any], first: int) -> None:
    one_way = read(build(("struct", shapes), iter(range(first, first + 1000))))
    other_way = read(build(("struct", shapes), iter(range(5000, 4000, -1))))
    fresh, last = assign_fresh_ids(one_way)
    assert sorted(fresh.columns) == list(range(1, last + 1))
    assert {c.dotted for c in fresh.columns.values()} == {c.dotted for c in one_way.columns.values()}
    assert fresh.same_as(assign_fresh_ids(other_way)[0])
