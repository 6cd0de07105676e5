# SPDX-License-Identifier: Apache-2.0
"""Limits of tables and commits; a table above a limit may shrink."""

from __future__ import annotations

import json
import time
from typing import Any
from uuid import UUID

import pytest

from gateway.iceberg.commit import commit_table, commit_view
from gateway.iceberg.creation import new_table_metadata, new_view_metadata
from gateway.iceberg.errors import InvalidTableUpdate, MetadataTooLarge, PayloadTooLarge, TooManyUpdatesInCommit
from gateway.iceberg.limits import Limits, count_values, refuse_many_values
from gateway.iceberg.metadata import TableMetadata, decode_stored_table_metadata, encode_table_metadata
from gateway.iceberg.wire import CommitTableRequest, CommitViewRequest, CreateTableRequest, CreateViewRequest, decode

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}


def table(**more: Any) -> TableMetadata:
    request = decode(json.dumps({"name": "t", "schema": SCHEMA, **more}).encode(), CreateTableRequest)
    return new_table_metadata(request, table_uuid=UUID(int=1), location="s3://b/t", now_ms=1)


def commit(base: TableMetadata, *updates: object, **limits: int) -> TableMetadata:
    request = decode(json.dumps({"requirements": [], "updates": updates}).encode(), CommitTableRequest)
    again = decode_stored_table_metadata(encode_table_metadata(base))
    return commit_table(again, None, (), request.updates, now_ms=10**12, limits=Limits(**limits)).metadata


def snapshot(number: int) -> dict[str, Any]:
    described = {
        "snapshot-id": number,
        "timestamp-ms": 10**12,
        "sequence-number": number,
        "manifest-list": "s3://b/t/m",
    }
    return {"action": "add-snapshot", "snapshot": described}


def schema(number: int) -> dict[str, Any]:
    field = {"id": number, "name": f"c{number}", "type": "long", "required": False}
    return {"action": "add-schema", "schema": {"type": "struct", "fields": [field]}}


def statistics(number: int) -> dict[str, Any]:
    file = {"snapshot-id": number, "statistics-path": "s3://b/t/s", "file-size-in-bytes": 1}
    return {"action": "set-partition-statistics", "partition-statistics": file}


def tag(number: int) -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": f"r{number}", "type": "tag", "snapshot-id": 1}


GROWING = {
    "snapshots": ({"snapshots": 3}, snapshot),
    "partition statistics files": ({"snapshots": 3}, statistics),
    "schemas": ({"structures": 4}, lambda n: schema(n + 1)),
    "refs": ({"structures": 3}, tag),
    "properties": ({"properties": 4}, lambda n: {"action": "set-properties", "updates": {f"k{n}": "v"}}),
}
"""Cases: limits that allow three more elements, and the function that makes the nth."""


@pytest.mark.parametrize("kind", GROWING)
def test_a_commit_may_reach_a_table_limit_and_not_exceed_it(kind: str) -> None:
    limits, update = GROWING[kind]
    first = [snapshot(1)] if kind == "refs" else []
    full = commit(table(), *first, *map(update, (1, 2, 3)), **limits)
    with pytest.raises(MetadataTooLarge, match=rf"The metadata would have \d {kind}; at most \d are allowed"):
        commit(full, update(4), **limits)
    # Elements accepted under a higher limit stay, and all other changes continue.
    over = commit(full, update(4))
    lower = {name: 1 for name in limits}
    commit(over, {"action": "remove-properties", "removals": ["write.parquet.compression-codec"]}, **lower)
    with pytest.raises(MetadataTooLarge):
        commit(over, update(5), **lower)


def test_an_expiry_shrinks_a_table_that_is_over_its_limits() -> None:
    full = commit(table(), *map(snapshot, range(1, 6)))
    smaller = commit(full, {"action": "remove-snapshots", "snapshot-ids": [1]}, snapshots=2, document_bytes=100)
    assert len(smaller.snapshots) == 4


def test_a_document_may_not_grow_beyond_its_size() -> None:
    size = table().measured.size
    with pytest.raises(MetadataTooLarge, match=f"at most {size + 50} are allowed. Expire snapshots"):
        commit(table(), {"action": "set-properties", "updates": {"k": "x" * 100}}, document_bytes=size + 50)


def test_the_estimated_size_is_close_to_the_written_size() -> None:
    full = commit(table(), *map(snapshot, range(1, 500)), *map(tag, range(1, 50)))
    written = len(encode_table_metadata(full))
    assert 0.8 * written < full.measured.size <= written


def test_a_new_table_and_a_new_view_have_the_same_limits() -> None:
    many = {f"k{n}": "v" for n in range(20)}
    request = decode(json.dumps({"name": "t", "schema": SCHEMA, "properties": many}).encode(), CreateTableRequest)
    with pytest.raises(MetadataTooLarge, match="21 properties"):
        new_table_metadata(request, table_uuid=UUID(int=1), location="s3://b/t", now_ms=1, limits=Limits(properties=10))
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["n"],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "trino"}],
    }
    body = {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {}}
    view = new_view_metadata(
        decode(json.dumps(body).encode(), CreateViewRequest), view_uuid=UUID(int=2), location="s3://b/v", now_ms=1
    )
    update = {"action": "set-properties", "updates": many}
    change = decode(json.dumps({"requirements": [], "updates": [update]}).encode(), CommitViewRequest)
    with pytest.raises(MetadataTooLarge, match="20 properties"):
        commit_view(view, (), change.updates, now_ms=2, limits=Limits(properties=10))


def test_updates_with_quadratic_cost_are_refused_early() -> None:
    """Each new schema is compared with all existing ones: ten thousand in one commit are fifty million comparisons."""
    began = time.process_time()
    with pytest.raises(TooManyUpdatesInCommit, match="Send them in several commits"):
        commit(table(), *map(schema, range(2, 10_000)))
    assert time.process_time() - began < 30


def test_expiring_snapshots_one_update_each_equals_one_update_for_all() -> None:
    """Clients up to 1.8 send this; a search for each snapshot would exceed the limits of a commit."""
    full = commit(table(), *map(snapshot, range(1, 5001)))
    removals = [{"action": "remove-snapshots", "snapshot-ids": [n]} for n in range(1, 5001)]
    one = {"action": "remove-snapshots", "snapshot-ids": list(range(1, 5001))}
    assert encode_table_metadata(commit(full, *removals)) == encode_table_metadata(commit(full, one))


def test_existing_snapshot_ids_are_detected_among_many_added_ones() -> None:
    base = commit(table(), *map(snapshot, range(100, 120)))
    for position in (1, 3, 9):
        updates = [snapshot(200 + n) for n in range(position)] + [snapshot(105)]
        with pytest.raises(InvalidTableUpdate, match="Snapshot already exists for id: 105"):
            commit(base, *updates)
        removed = {"action": "remove-snapshots", "snapshot-ids": [105]}
        assert commit(base, *updates[:-1], removed, updates[-1]).snapshot(105)


@pytest.mark.parametrize("body", [b"[1,2,3,4]", b'{"a":{"b":{"c":{"d":{}}}}}', b"[[[[[1]]]]]", b'{"a":[{},{},{}]}'])
def test_the_number_of_values_in_a_body_is_bounded(body: bytes) -> None:
    def values(value: object) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + sum(map(values, inner))

    assert count_values(body) + 1 >= values(json.loads(body))
    with pytest.raises(PayloadTooLarge, match="at most 3 are allowed"):
        refuse_many_values(body, Limits(request_values=3))
    refuse_many_values(body, Limits(request_values=count_values(body)))
