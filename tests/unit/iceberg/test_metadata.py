# SPDX-License-Identifier: Apache-2.0
"""Metadata documents: round trips, old forms, and refused documents."""

import json
from typing import Any

import pytest

from gateway.iceberg.errors import BadRequestException, MetadataTooLarge
from gateway.iceberg.limits import Limits
from gateway.iceberg.metadata import (
    decode_stored_table_metadata,
    decode_table_metadata,
    encode_table_metadata,
)

UUID_TEXT = "d20125c8-7284-442c-9aea-15fee620737c"
OLD_V1: dict[str, Any] = {
    "format-version": 1,
    "table-uuid": UUID_TEXT,
    "location": "s3://bucket/test/location",
    "last-updated-ms": 1602638573874,
    "last-column-id": 3,
    "schema": {
        "type": "struct",
        "fields": [
            {"id": 1, "name": "x", "required": True, "type": "long"},
            {"id": 2, "name": "y", "required": True, "type": "long", "doc": "comment"},
            {"id": 3, "name": "z", "required": True, "type": "long"},
        ],
    },
    "partition-spec": [{"name": "x", "transform": "identity", "source-id": 1}],
    "properties": {"a": "b"},
    "current-snapshot-id": 7,
    "snapshots": [{"snapshot-id": 7, "timestamp-ms": 1602638573822, "manifests": ["s3://bucket/test/m.avro"]}],
}


def encoded(document: Any) -> bytes:
    return json.dumps(document).encode()


def members(data: bytes) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(data)
    return value


@pytest.fixture(scope="module")
def rich(table: Any, commit: Any, w: Any) -> dict[str, Any]:
    """Return a document with every member set."""
    stats = {
        "snapshot-id": 1,
        "statistics-path": "s3://lake/a",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    made = commit(
        table(3),
        w.snapshot(1, **{"first-row-id": 0, "added-rows": 5, "key-id": "k"}),
        w.ref("main", 1),
        {"action": "set-statistics", "statistics": stats},
        {"action": "set-partition-statistics", "partition-statistics": {**stats, "blob-metadata": None}},
        {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "AA=="}},
    ).metadata
    return members(encode_table_metadata(made))


def test_reading_and_writing_gives_the_same_bytes(rich: dict[str, Any]) -> None:
    data = encode_table_metadata(decode_table_metadata(encoded(rich)))
    assert members(data) == rich
    for decode in (decode_table_metadata, decode_stored_table_metadata):
        assert encode_table_metadata(decode(data)) == data


def test_unknown_members_are_preserved_everywhere(rich: dict[str, Any], commit: Any) -> None:
    future = json.loads(json.dumps(rich))
    future["x-top"] = {"deep": [1, None, "ü"]}
    for name in ("schemas", "partition-specs", "sort-orders", "snapshots", "statistics", "partition-statistics"):
        future[name][0]["x-new"] = [name, 1.5]
    for name in ("snapshot-log", "metadata-log", "encryption-keys"):
        future[name][0]["x-new"] = name
    future["schemas"][0]["fields"][0]["x-field"] = True
    future["refs"]["main"]["x-ref"] = "r"
    read = decode_table_metadata(encoded(future))
    assert members(encode_table_metadata(read)) == future
    changed = commit(read, {"action": "set-properties", "updates": {"a": "b"}}).metadata
    after = members(encode_table_metadata(changed))
    after["metadata-log"].pop()
    assert {**after, "properties": future["properties"], "last-updated-ms": future["last-updated-ms"]} == future


def test_an_early_version_1_document_gets_the_members_that_readers_need() -> None:
    made = members(encode_table_metadata(decode_table_metadata(encoded(OLD_V1))))
    assert made["schemas"] == [{**OLD_V1["schema"], "schema-id": 0}]
    assert made["schema"] == made["schemas"][0]
    field = {"name": "x", "transform": "identity", "source-id": 1, "field-id": 1000}
    assert made["partition-specs"] == [{"spec-id": 0, "fields": [field]}]
    assert made["partition-spec"] == [field]
    assert (made["last-partition-id"], made["default-sort-order-id"]) == (1000, 0)
    assert made["sort-orders"] == [{"order-id": 0, "fields": []}]
    assert made["refs"] == {"main": {"snapshot-id": 7, "type": "branch"}}
    assert made["current-snapshot-id"] == 7
    assert "last-sequence-number" not in made


def test_an_early_version_1_table_can_be_upgraded_and_written(commit: Any, w: Any) -> None:
    base = decode_table_metadata(encoded(OLD_V1))
    upgrade = {"action": "upgrade-format-version", "format-version": 2}
    more = w.snapshot(8, parent=7, **{"timestamp-ms": OLD_V1["last-updated-ms"] + 5})
    new = commit(base, upgrade, more, w.ref("main", 8)).metadata
    assert members(encode_table_metadata(new))["last-sequence-number"] == 1
    assert [s.snapshot_id for s in new.snapshots] == [7, 8]


@pytest.mark.parametrize("absent", [-1, None])
def test_null_and_minus_one_are_read_as_no_snapshot(absent: int | None) -> None:
    document = {**OLD_V1, "current-snapshot-id": absent, "snapshots": None}
    assert decode_table_metadata(encoded(document)).current_snapshot_id is None


def test_duplicate_members_are_refused(rich: dict[str, Any]) -> None:
    data = encoded(rich).replace(b'"statistics-path":', b'"statistics-path": "s3://other/", "statistics-path":', 1)
    assert data.count(b"s3://other/") == 1
    assert b"s3://other/" not in encode_table_metadata(decode_table_metadata(data))


def breaking(change: Any) -> Any:
    return lambda document: document.update(change) or document


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format-version": 4}, "Unsupported format version 4"),
        ({"format-version": 0}, "Unsupported format version 0"),
        ({"table-uuid": None}, "has no table-uuid"),
        ({"table-uuid": "x"}, "is not a UUID"),
        ({"location": None}, "location"),
        ({"last-updated-ms": -1}, "last-updated-ms"),
        ({"current-schema-id": 5}, "current-schema-id is 5"),
        ({"default-spec-id": 5}, "default-spec-id is 5"),
        ({"default-sort-order-id": 5}, "default-sort-order-id is 5"),
        ({"last-column-id": 1}, "last-column-id is 1"),
        ({"last-sequence-number": 0}, "last-sequence-number is 0"),
        ({"current-snapshot-id": None}, "does not match main branch"),
        ({"refs": {"main": {"snapshot-id": 1, "type": "tag"}}}, "main is a tag"),
        ({"refs": {"main": {"snapshot-id": 9, "type": "branch"}}}, "unknown snapshot 9"),
        ({"refs": {"main": {"snapshot-id": 1, "type": "twig"}}}, "$.refs.main.type"),
        ({"snapshots": {}}, "expected `array`"),
        ({"snapshot-log": [{}]}, "snapshot-id"),
        ({"metadata-log": [{"timestamp-ms": 1}]}, "metadata-file"),
        ({"statistics": [{"snapshot-id": 1}]}, "statistics-path"),
        ({"properties": {"a": 1}}, "properties"),
        ({"schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1}]}]}, "fields"),
        (
            {"schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": "a", "type": "blob", "required": True}]}]},
            "Invalid type for a",
        ),
    ],
)
def test_inconsistent_documents_are_refused(rich: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequestException) as caught:
        decode_table_metadata(encoded({**rich, **change}))
    assert message in caught.value.message


@pytest.mark.parametrize("name", ["schemas", "partition-specs", "sort-orders", "snapshots"])
def test_duplicate_ids_are_refused(rich: dict[str, Any], name: str) -> None:
    with pytest.raises(BadRequestException, match="exists twice"):
        decode_table_metadata(encoded({**rich, name: rich[name] * 2}))


def test_a_nul_character_in_a_document_is_refused(rich: dict[str, Any]) -> None:
    with pytest.raises(BadRequestException, match=r"U\+0000"):
        decode_table_metadata(encoded({**rich, "properties": {"a": "\0"}}))


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{}", b"\x1f\x8b", b'{"a":' * 100_000])
def test_documents_that_are_not_metadata_are_refused(data: bytes) -> None:
    with pytest.raises(BadRequestException):
        decode_table_metadata(data)


def test_document_size_is_checked_before_parsing(rich: dict[str, Any]) -> None:
    data = encoded(rich)
    with pytest.raises(MetadataTooLarge, match="at most 100 are allowed"):
        decode_table_metadata(data, limits=Limits(document_bytes=100))
    with pytest.raises(MetadataTooLarge, match="at most 50 are allowed"):
        decode_table_metadata(data, limits=Limits(document_values=50))
    with pytest.raises(MetadataTooLarge, match="1 snapshots; at most 0"):
        decode_table_metadata(data, limits=Limits(snapshots=0))
    with pytest.raises(MetadataTooLarge, match="at most 0 are allowed"):
        decode_table_metadata(data, limits=Limits(structures=0))
    with pytest.raises(MetadataTooLarge, match="properties; at most 0"):
        decode_table_metadata(encoded({**rich, "properties": {"a": "b"}}), limits=Limits(properties=0))


def test_deep_nesting_in_unknown_members_is_refused(rich: dict[str, Any]) -> None:
    data = encoded(rich)[:-1] + b', "x": ' + b"[" * 300 + b"]" * 300 + b"}"
    with pytest.raises(BadRequestException, match="nested deeper than 200"):
        decode_table_metadata(data)


def test_lookups_by_id_return_existing_objects(rich: dict[str, Any]) -> None:
    made = decode_table_metadata(encoded(rich))
    found = made.snapshot(1)
    assert found is not None and found.operation == "append" and found.key_id == "k"
    assert made.snapshot(1700) is None
    assert str(made.uuid) == made.table_uuid
    assert made.schema.fields[0].name == "id"
