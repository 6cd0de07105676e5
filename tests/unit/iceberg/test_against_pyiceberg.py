# SPDX-License-Identifier: Apache-2.0
"""The client library as a second opinion, for versions 1 and 2 and the updates where it applies a catalog's rules."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import TableUpdate, update_table_metadata

from gateway.iceberg.metadata import decode_table_metadata, encode_table_metadata

ORDER = {
    "order-id": 1,
    "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
}
MORE = {"source-id": 1, "transform": "bucket[4]", "name": "b", "field-id": 1000}


def theirs(document: bytes) -> dict[str, Any]:
    """The document as the library understands it, without what it only records for itself."""
    return spaced(TableMetadataUtil.parse_raw(document.decode()).model_dump_json())


def spaced(text: str) -> dict[str, Any]:
    """Normalised; the library writes decimals with a space we do not add."""
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
def test_the_library_reads_new_tables_as_we_wrote_them(table: Any, version: int, w: Any) -> None:
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
def test_the_library_applies_updates_as_we_do(table: Any, commit: Any, w: Any, name: str, version: int) -> None:
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
    """The library does not keep the version 1 copy of the default spec up to date; the specification wants it so."""
    return {name: v for name, v in members.items() if name != "partition-spec"}


def test_we_read_what_the_library_writes(table: Any, commit: Any, w: Any) -> None:
    made = commit(table(2), w.snapshot(10**15), w.ref("main", 10**15)).metadata
    written = TableMetadataUtil.parse_raw(encode_table_metadata(made).decode()).model_dump_json().encode()
    again = decode_table_metadata(written)
    assert (again.current_snapshot_id, again.refs["main"].type) == (10**15, "branch")
    assert normal(json.loads(encode_table_metadata(again))) == theirs(written)
