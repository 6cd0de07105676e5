# SPDX-License-Identifier: Apache-2.0
"""Comparison with PyIceberg for format versions 1 and 2, and for updates with the rules of a catalog."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter
from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import TableUpdate, update_table_metadata

from gateway.iceberg import wire
from gateway.iceberg.creation import new_table_metadata
from gateway.iceberg.metadata import decode_table_metadata, encode_table_metadata

ORDER = {
    "order-id": 1,
    "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
}
MORE = {"source-id": 1, "transform": "bucket[4]", "name": "b", "field-id": 1000}


def theirs(document: bytes) -> dict[str, Any]:
    """Return the document as PyIceberg reads it, without its internal fields."""
    return spaced(TableMetadataUtil.parse_raw(document.decode()).model_dump_json())


def spaced(text: str) -> dict[str, Any]:
    """Return a normalized type; PyIceberg writes decimals with an additional space."""
    return normal(json.loads(text.replace("decimal(9, 2)", "decimal(9,2)")))


def normal(members: dict[str, Any]) -> dict[str, Any]:
    members = {name: v for name, v in members.items() if v not in (None, [], {}) and name != "last-updated-ms"}
    if members.get("current-snapshot-id") == -1:
        del members["current-snapshot-id"]
    for schema in members.get("schemas", []) + ([members["schema"]] if "schema" in members else []):
        schema.setdefault("identifier-field-ids", [])
    members.pop("metadata-log", None)
    return members


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_new_tables_as_written(table: Any, version: int, w: Any) -> None:
    fields = w.schema(
        w.column(9, "id", required=True, doc="key"),
        w.column(4, "l", {"type": "list", "element-id": 5, "element": "decimal(9,2)", "element-required": False}),
        **{"identifier-field-ids": [9]},
    )
    made = table(
        version, fields, **{"partition-spec": {"fields": [{"source-id": 9, "transform": "bucket[4]", "name": "b"}]}}
    )
    data = encode_table_metadata(made)
    assert theirs(data) == normal(json.loads(data))


CASES: dict[str, list[Any]] = {
    "append": ["snapshot", "ref"],
    "properties": [
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-properties", "removals": ["a"]},
    ],
    "order": [
        {"action": "add-sort-order", "sort-order": ORDER},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ],
    "spec": [
        {"action": "add-spec", "spec": {"spec-id": 1, "fields": [MORE]}},
        {"action": "set-default-spec", "spec-id": -1},
    ],
    "tag": ["snapshot", "ref", "tag"],
    "branch away": ["snapshot", "ref", "tag", {"action": "remove-snapshot-ref", "ref-name": "t"}],
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_pyiceberg_applies_updates_with_the_same_result(
    table: Any, commit: Any, w: Any, name: str, version: int
) -> None:
    named = {
        "snapshot": w.snapshot(10**15, seq=1 if version == 2 else 0),
        "ref": w.ref("main", 10**15),
        "tag": w.ref("t", 10**15, "tag", **{"max-ref-age-ms": 1000}),
    }
    updates = [named.get(u, u) if isinstance(u, str) else u for u in CASES[name]]
    base = table(version)
    ours = encode_table_metadata(commit(base, *updates).metadata)
    parsed = TypeAdapter(tuple[TableUpdate, ...]).validate_json(json.dumps(updates))
    other = update_table_metadata(TableMetadataUtil.parse_raw(encode_table_metadata(base).decode()), parsed)
    assert theirs(ours) == normal(json.loads(ours))
    assert without_old_spec(spaced(other.model_dump_json())) == without_old_spec(theirs(ours))


def without_old_spec(members: dict[str, Any]) -> dict[str, Any]:
    """Remove the version 1 copy of the default spec, which PyIceberg does not update as the specification requires."""
    return {name: v for name, v in members.items() if name != "partition-spec"}


def test_metadata_written_by_pyiceberg_is_readable(table: Any, commit: Any, w: Any) -> None:
    made = commit(table(2), w.snapshot(10**15), w.ref("main", 10**15)).metadata
    written = TableMetadataUtil.parse_raw(encode_table_metadata(made).decode()).model_dump_json().encode()
    again = decode_table_metadata(written)
    assert (again.current_snapshot_id, again.refs["main"].type) == (10**15, "branch")
    assert normal(json.loads(encode_table_metadata(again))) == theirs(written)


def every_update_and_requirement_of_the_library(w: Any) -> tuple[list[Any], list[Any]]:
    """Return one instance of each class, made from wire JSON by PyIceberg."""
    stats = {"snapshot-id": 1, "statistics-path": "s3://b/a", "file-size-in-bytes": 1}
    full = {**stats, "file-footer-size-in-bytes": 1, "blob-metadata": []}
    updates = [
        {"action": "assign-uuid", "uuid": str(w.table_uuid)},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": {**w.schema(), "schema-id": 1}, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 1, "fields": [MORE]}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": ORDER},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        w.snapshot(1),
        w.ref("main", 1),
        {"action": "remove-snapshots", "snapshot-ids": [1]},
        {"action": "remove-snapshot-ref", "ref-name": "main"},
        {"action": "set-location", "location": "s3://b/t"},
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-properties", "removals": ["a"]},
        {"action": "set-statistics", "statistics": full},
        {"action": "remove-statistics", "snapshot-id": 1},
        {"action": "remove-partition-specs", "spec-ids": [1]},
        {"action": "remove-schemas", "schema-ids": [1]},
        {"action": "set-partition-statistics", "partition-statistics": stats},
        {"action": "remove-partition-statistics", "snapshot-id": 1},
    ]
    requirements = [
        {"type": "assert-create"},
        {"type": "assert-table-uuid", "uuid": str(w.table_uuid)},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1},
        {"type": "assert-current-schema-id", "current-schema-id": 1},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1},
        {"type": "assert-default-spec-id", "default-spec-id": 1},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 1},
    ]
    return updates, requirements


def test_strict_request_bodies_accept_every_pyiceberg_request(w: Any) -> None:
    updates, requirements = every_update_and_requirement_of_the_library(w)
    body = {"identifier": {"namespace": ["a", "b"], "name": "t"}, "requirements": requirements, "updates": updates}
    sent = CommitTableRequest.model_validate(body).model_dump_json().encode()
    request = wire.decode(sent, wire.CommitTableRequest)
    assert [u.__struct_config__.tag for u in request.updates] == [u["action"] for u in updates]
    assert [r.__struct_config__.tag for r in request.requirements] == [r["type"] for r in requirements]
    assert request.identifier is not None and request.identifier.dotted == "a.b.t"


def test_a_table_requested_by_pyiceberg_is_created(w: Any) -> None:
    members = {
        "name": "t",
        "schema": {**w.schema(), "schema-id": 0},
        "partition-spec": {"spec-id": 0, "fields": [MORE]},
    }
    sent = CreateTableRequest.model_validate(
        {**members, "write-order": ORDER, "properties": {}, "location": None, "stage-create": True}
    )
    request = wire.decode(sent.model_dump_json().encode(), wire.CreateTableRequest)
    made = new_table_metadata(request, table_uuid=w.table_uuid, location=w.location, now_ms=1)
    assert request.stage_create
    assert (made.default_spec.fields[0].name, made.default_sort_order.fields[0].source_id) == ("b", 1)
