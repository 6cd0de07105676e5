# SPDX-License-Identifier: Apache-2.0
"""No change of a table names a file or a folder outside of the table's own prefix (`docs/threats.md`, LG-LOC-08).

Engines keep file contents in caches that storage credentials do not protect. A table that names another table's
manifest list could show that table's files. `tests/contract/test_register.py` tests registered files.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.stack.world import SCHEMA, Table, World, error_triple, unique

PATHS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
KINDS = ("manifest-list", "manifests", "statistics", "partition-statistics", *PATHS)


def updates(kind: str, at: str) -> list[dict[str, Any]]:
    """Return commit updates that name the location `at` in a field of this kind."""
    snapshot = {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": 4_000_000_000_000,
        "manifest-list": f"{at}/metadata/snap-7.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    match kind:
        case "manifest-list":
            return [{"action": "add-snapshot", "snapshot": snapshot}]
        case "manifests":
            del snapshot["manifest-list"]
            return [{"action": "add-snapshot", "snapshot": {**snapshot, "manifests": [f"{at}/metadata/m.avro"]}}]
        case "statistics":
            statistics = {
                "snapshot-id": 7,
                "statistics-path": f"{at}/metadata/s.puffin",
                "file-size-in-bytes": 1,
                "file-footer-size-in-bytes": 1,
                "blob-metadata": [],
            }
            return [{"action": "set-statistics", "snapshot-id": 7, "statistics": statistics}]
        case "partition-statistics":
            statistics = {"snapshot-id": 7, "statistics-path": f"{at}/metadata/p.parquet", "file-size-in-bytes": 1}
            return [{"action": "set-partition-statistics", "partition-statistics": statistics}]
        case _:
            return [{"action": "set-properties", "updates": {kind: f"{at}/data"}}]


def locations(table: Table, victim: Table) -> list[str]:
    """Return locations where no file of `table` may be."""
    above, name = table.location.rsplit("/", 1)
    return [victim.location, above, f"{table.location}x", f"{above}/{name.upper()}", f"{table.location}/../{name}x"]


@pytest.fixture(scope="module")
def victim(world: World) -> Table:
    """Return a table of another owner."""
    return world.table(world.namespace())


def creation(kind: str, at: str, location: str) -> dict[str, Any]:
    """Return a commit that creates a table and also names `at`."""
    return {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": str(uuid4())},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "set-location", "location": location},
            {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            *updates(kind, at),
        ],
    }


def replacement(table: Table, kind: str, at: str) -> dict[str, Any]:
    """Return a commit that replaces a table (`create or replace`) and also names `at`."""
    requirements = [{"type": "assert-table-uuid", "uuid": table.uuid}]
    schema = {**SCHEMA, "schema-id": 1, "fields": SCHEMA["fields"][:1]}
    return {
        "requirements": requirements,
        "updates": [
            {"action": "add-schema", "schema": schema},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "set-location", "location": table.location},
            *updates(kind, at),
        ],
    }


def refused(answer: httpx.Response, what: object) -> None:
    """Assert that the response rejects a location."""
    assert error_triple(answer)[:2] == (400, "InvalidLocation"), (what, answer.text)


@pytest.mark.threat("LG-LOC-04", "LG-LOC-08")
@pytest.mark.parametrize("kind", KINDS)
def test_no_commit_names_a_location_outside_the_table(world: World, victim: Table, kind: str) -> None:
    table = world.table(world.namespace())
    tables = table.path.rsplit("/", 1)[0]
    for at in locations(table, victim):
        refused(world.commit(world.admin, table.path, *updates(kind, at)), at)
        refused(world.admin.post(table.path, replacement(table, kind, at)), at)
        one = {"identifier": {"namespace": [table.namespace], "name": table.name}, "requirements": []}
        change = {**one, "updates": updates(kind, at)}
        refused(world.admin.post(f"{world.root}/transactions/commit", {"table-changes": [change]}), at)
        name = unique("t")
        made = f"s3://{world.bucket}/demo/{name}"
        refused(world.admin.post(f"{tables}/{name}", creation(kind, at, made)), at)
        new = {"identifier": {"namespace": [table.namespace], "name": name}, **creation(kind, at, made)}
        refused(world.admin.post(f"{world.root}/transactions/commit", {"table-changes": [new]}), at)
        if kind in PATHS:
            for staged in (False, True):
                body = {"name": name, "schema": SCHEMA, "properties": {kind: at}, "stage-create": staged}
                refused(world.admin.post(tables, body), at)
        assert world.admin.head(f"{tables}/{name}").status_code == 404
    assert world.admin.get(table.path).json()["metadata-location"] == table.answer["metadata-location"]
    if kind in ("manifest-list", *PATHS):
        inside = world.commit(world.admin, table.path, *updates(kind, table.location))
        assert inside.status_code == 200, "the same update inside the location must succeed"
