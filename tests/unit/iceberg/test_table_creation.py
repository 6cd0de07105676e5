# SPDX-License-Identifier: Apache-2.0
"""The first metadata of a table."""

import json
from typing import Any

import pytest

from gateway.iceberg.errors import BadRequestException, CatalogError, FormatVersionNotAllowed, InvalidTableUpdate
from gateway.iceberg.metadata import decode_table_metadata, encode_table_metadata


def document(metadata: Any) -> dict[str, Any]:
    members: dict[str, Any] = json.loads(encode_table_metadata(metadata))
    return members


def test_a_new_table_equals_the_document_that_clients_expect(table: Any, w: Any) -> None:
    made = document(table(properties={"owner": "ann", "uuid": "x", "current-schema": "y"}))
    assert made == {
        "format-version": 2,
        "table-uuid": str(w.table_uuid),
        "location": w.location,
        "last-sequence-number": 0,
        "last-updated-ms": w.created_ms,
        "last-column-id": 2,
        "current-schema-id": 0,
        "schemas": [{**w.schema(), "schema-id": 0}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"owner": "ann", "write.parquet.compression-codec": "zstd"},
        "current-snapshot-id": -1,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }


def test_version_1_duplicates_schema_and_spec_for_old_readers(table: Any, w: Any) -> None:
    spec = {"fields": [{"source-id": 2, "transform": "day", "name": "d"}]}
    made = document(table(1, **{"partition-spec": spec}))
    assert made["schema"] == made["schemas"][0]
    assert made["partition-spec"] == made["partition-specs"][0]["fields"]
    assert "last-sequence-number" not in made and "next-row-id" not in made
    assert made["current-snapshot-id"] == -1


def test_version_3_has_next_row_id_and_null_for_no_snapshot(table: Any) -> None:
    made = document(table(3))
    assert made["next-row-id"] == 0
    assert made["current-snapshot-id"] is None


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_new_table_is_consistent_and_reads_back_to_the_same_bytes(table: Any, version: int) -> None:
    data = encode_table_metadata(table(version))
    assert encode_table_metadata(decode_table_metadata(data)) == data


def test_spec_and_order_follow_their_columns_to_the_new_ids(table: Any, w: Any) -> None:
    fields = w.schema(
        w.column(70, "id", required=True), w.column(50, "at", "timestamptz"), w.column(60, "region", "string")
    )
    made = table(
        fields=fields,
        **{
            "partition-spec": {
                "spec-id": 9,
                "fields": [
                    {"source-id": 50, "field-id": 1234, "transform": "month", "name": "at_month"},
                    {"source-id": 60, "transform": "identity", "name": "region"},
                ],
            },
            "write-order": {
                "order-id": 8,
                "fields": [
                    {"source-id": 70, "transform": "bucket[4]", "direction": "asc", "null-order": "nulls-first"}
                ],
            },
        },
    )
    spec = [(f.source_id, f.field_id, f.name) for f in made.default_spec.fields]
    assert (made.default_spec_id, spec) == (0, [(2, 1000, "at_month"), (3, 1001, "region")])
    assert made.last_partition_id == 1001
    assert (made.default_sort_order_id, made.default_sort_order.fields[0].source_id) == (1, 1)


def test_the_location_loses_its_trailing_slash(table: Any) -> None:
    assert not table().location.endswith("/")


@pytest.mark.parametrize(
    ("version", "error"),
    [(4, InvalidTableUpdate), (0, InvalidTableUpdate), ("two", BadRequestException), ("-1", BadRequestException)],
)
def test_a_format_version_that_does_not_exist_is_refused(table: Any, version: Any, error: type[CatalogError]) -> None:
    with pytest.raises(error):
        table(version)


def test_a_format_version_that_the_warehouse_forbids_is_refused() -> None:
    from uuid import UUID

    from gateway.iceberg import wire
    from gateway.iceberg.creation import new_table_metadata

    body = b'{"name":"t","schema":{"type":"struct","fields":[]},"properties":{"format-version":"3"}}'
    request = wire.decode(body, wire.CreateTableRequest)
    with pytest.raises(FormatVersionNotAllowed, match="v3 is not allowed in this warehouse. Allowed versions: v1, v2"):
        new_table_metadata(request, table_uuid=UUID(int=1), location="s3://a/b", now_ms=0, allowed=frozenset({1, 2}))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([{"source-id": 9, "transform": "day", "name": "d"}], "Cannot find source column for partition field"),
        ([{"source-id": 1, "transform": "day", "name": "d"}], "Invalid source type long for transform: day"),
        ([{"source-id": 1, "transform": "identity", "name": "ts"}], "Cannot create identity partition sourced from"),
        ([{"source-id": 1, "transform": "identity", "name": ""}], "empty or null partition name"),
        ([{"source-id": 1, "transform": "bucket[2]", "name": n} for n in "aa"], "partition name more than once: a"),
        (
            [{"source-id": 1, "transform": "bucket[2]", "name": n} for n in "ab"],
            "redundant partition: a conflicts with b",
        ),
        ([{"source-id": 1, "transform": "identity"}], "`$.partition-spec.fields[0]`"),
    ],
)
def test_an_invalid_spec_is_refused(table: Any, spec: Any, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        table(**{"partition-spec": {"fields": spec}})
    assert caught.value.code == 400
    assert message in caught.value.message


def test_a_nested_column_is_no_sort_key_unless_primitive(table: Any, w: Any) -> None:
    point = {"type": "struct", "fields": [w.column(2, "x", "int")]}
    order = {
        "order-id": 1,
        "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-last"}],
    }
    with pytest.raises(BadRequestException, match="Cannot sort by non-primitive source field: p"):
        table(fields=w.schema(w.column(1, "p", point)), **{"write-order": order})


def test_a_variant_in_version_2_is_refused_with_the_message_clients_match(table: Any, w: Any) -> None:
    with pytest.raises(BadRequestException, match="variant is not supported until v3"):
        table(2, w.schema(w.column(1, "v", "variant")))
    assert table(3, w.schema(w.column(1, "v", "variant"))).format_version == 3


def test_commit_properties_must_be_counts(table: Any) -> None:
    with pytest.raises(BadRequestException, match="commit.retry.num-retries must have non-negative integer value"):
        table(properties={"commit.retry.num-retries": "-1"})
