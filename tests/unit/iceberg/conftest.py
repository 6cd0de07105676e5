# SPDX-License-Identifier: Apache-2.0
"""Tables and commits in their wire form: tests use JSON, as clients do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from gateway.iceberg import wire
from gateway.iceberg.commit import CommitOutcome, commit_table
from gateway.iceberg.creation import new_table_metadata
from gateway.iceberg.metadata import TableMetadata, encode_table_metadata

TABLE_UUID = UUID("0193a5b2-4c1e-7f00-8000-00000000abcd")
LOCATION = "s3://lake/sales/orders-0193a5b2"
BASE_FILE = f"{LOCATION}/metadata/00000-aaaa.metadata.json"
CREATED_MS = 1_700_000_000_000

Make = Callable[..., TableMetadata]
Commit = Callable[..., CommitOutcome]


def column(field_id: int, name: str, kind: Any = "long", *, required: bool = False, **more: Any) -> dict[str, Any]:
    """Return a column in schema JSON."""
    return {"id": field_id, "name": name, "type": kind, "required": required, **more}


def schema(*fields: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a schema in JSON, by default with two plain columns."""
    return {
        "type": "struct",
        "fields": list(fields) or [column(1, "id", required=True), column(2, "ts", "timestamptz")],
        **more,
    }


def snapshot(snapshot_id: int, *, seq: int = 1, parent: int | None = None, **more: Any) -> dict[str, Any]:
    """Return an `add-snapshot` update."""
    members = {
        "snapshot-id": snapshot_id,
        "sequence-number": seq,
        "timestamp-ms": CREATED_MS + 1000 * seq,
        "manifest-list": f"{LOCATION}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
        **more,
    }
    if parent is not None:
        members["parent-snapshot-id"] = parent
    return {"action": "add-snapshot", "snapshot": members}


def ref(name: str, snapshot_id: int, kind: str = "branch", **more: Any) -> dict[str, Any]:
    """Return a `set-snapshot-ref` update."""
    return {"action": "set-snapshot-ref", "ref-name": name, "snapshot-id": snapshot_id, "type": kind, **more}


class Wire:
    """The functions above as members of a fixture."""

    column = staticmethod(column)
    schema = staticmethod(schema)
    snapshot = staticmethod(snapshot)
    ref = staticmethod(ref)
    location = LOCATION
    base_file = BASE_FILE
    created_ms = CREATED_MS
    table_uuid = TABLE_UUID


@pytest.fixture(scope="session")
def w() -> Wire:
    """Return the functions that make wire JSON."""
    return Wire()


def make_table(version: int = 2, fields: Mapping[str, Any] | None = None, **request: Any) -> TableMetadata:
    """Return a new table."""
    properties = {"format-version": str(version), **request.pop("properties", {})}
    body = {"name": "orders", "schema": fields or schema(), "properties": properties, **request}
    return new_table_metadata(
        wire.decode(json.dumps(body).encode(), wire.CreateTableRequest),
        table_uuid=TABLE_UUID,
        location=LOCATION,
        now_ms=CREATED_MS,
    )


@pytest.fixture(scope="session")
def table() -> Make:
    """Return a function that creates a table of a format version."""
    return make_table


def run_commit(
    base: TableMetadata | None,
    *updates: Mapping[str, Any],
    requirements: Sequence[Mapping[str, Any]] = (),
    now_ms: int = CREATED_MS + 60_000,
    base_location: str | None = BASE_FILE,
    **more: Any,
) -> CommitOutcome:
    """Decode a commit from JSON and apply it; check that its base is unchanged."""
    body = {"requirements": list(requirements), "updates": list(updates)}
    request = wire.decode(json.dumps(body).encode(), wire.CommitTableRequest)
    before = encode_table_metadata(base) if base is not None else None
    location = base_location if base is not None else None
    try:
        return commit_table(base, location, request.requirements, request.updates, now_ms=now_ms, **more)
    finally:
        assert base is None or encode_table_metadata(base) == before


@pytest.fixture(scope="session")
def commit() -> Commit:
    """Return a function that applies a commit given in JSON."""
    return run_commit
