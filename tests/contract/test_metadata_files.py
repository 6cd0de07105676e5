# SPDX-License-Identifier: Apache-2.0
"""Metadata files: content, retention, and cleanup after changes that failed."""

from __future__ import annotations

import gzip
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.stack.lifecycle import until
from tests.support.stack.world import SCHEMA, Table, World, error_triple, unique


def _set(world: World, table: Table, **properties: str) -> httpx.Response:
    updates = {name.replace("__", "."): value for name, value in properties.items()}
    return world.commit(world.admin, table.path, {"action": "set-properties", "updates": updates})


def _key(world: World, location: str) -> str:
    return location.removeprefix(f"s3://{world.bucket}/")


def _files(world: World, table: Table) -> set[str]:
    prefix = _key(world, table.location).rstrip("/") + "/metadata/"
    return {f"s3://{world.bucket}/{key}" for key, _ in world.objects(prefix)}


def _document(world: World, location: str) -> dict[str, Any]:
    raw = world.s3.get_object(Bucket=world.bucket, Key=_key(world, location))["Body"].read()
    text = gzip.decompress(raw) if ".gz." in location else raw
    document: dict[str, Any] = json.loads(text)
    return document


def _pending(world: World, table: Table) -> list[Any]:
    return world.sql("select location from pending_files where location like $1 || '%'", table.location)


@pytest.mark.parametrize(("codec", "suffix"), [("gzip", ".gz.metadata.json"), ("none", ".metadata.json")])
def test_metadata_file_equals_the_response_in_the_tables_compression(
    world: World, ns: str, codec: str, suffix: str
) -> None:
    table = world.table(ns, properties={"write.metadata.compression-codec": codec})
    location = table.answer["metadata-location"]
    assert location.endswith(suffix)
    assert (".gz." in location) == (codec == "gzip")
    assert location.startswith(f"{table.location}/metadata/00000-")
    assert _document(world, location) == table.answer["metadata"]
    later = _set(world, table, a="1").json()
    assert later["metadata-location"].startswith(f"{table.location}/metadata/00001-")
    assert _document(world, later["metadata-location"]) == later["metadata"]


def test_completed_change_leaves_no_pending_file(world: World, ns: str) -> None:
    table = world.table(ns)
    _set(world, table, a="1")
    assert _pending(world, table) == []


def test_metadata_log_is_trimmed_and_removed_files_are_deleted(world: World, ns: str) -> None:
    table = world.table(ns, properties={"write.metadata.previous-versions-max": "2"})
    locations = [table.answer["metadata-location"]]
    for number in range(4):
        done = _set(world, table, n=str(number))
        assert done.status_code == 200
        locations.append(done.json()["metadata-location"])
    log = [entry["metadata-file"] for entry in done.json()["metadata"]["metadata-log"]]
    assert log == locations[2:4]
    assert _files(world, table) == set(locations[2:5])


def test_table_property_keeps_files_removed_from_the_log(world: World, ns: str) -> None:
    keep = {"write.metadata.previous-versions-max": "1", "write.metadata.delete-after-commit.enabled": "false"}
    table = world.table(ns, properties=keep)
    for number in range(3):
        assert _set(world, table, n=str(number)).status_code == 200
    assert len(_files(world, table)) == 4


def test_a_commit_that_fails_leaves_no_file(world: World, ns: str) -> None:
    table = world.table(ns)
    before = _files(world, table)
    wrong = {"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}
    failed = world.commit(
        world.admin, table.path, {"action": "set-properties", "updates": {"a": "1"}}, requirements=(wrong,)
    )
    assert failed.status_code == 409
    assert _files(world, table) == before
    assert _pending(world, table) == []


def test_commits_that_lose_a_race_leave_no_file(world: World, ns: str) -> None:
    table = world.table(ns)

    def commit(number: int) -> int:
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {f"p{number}": "1"}}]}
        headers = {"Authorization": f"Bearer {world.admin.token}"}
        return httpx.post(world.base + table.path, json=body, headers=headers, timeout=60, trust_env=False).status_code

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(commit, range(18)))
    assert 200 in statuses
    metadata = world.admin.get(table.path).json()
    log = {entry["metadata-file"] for entry in metadata["metadata"]["metadata-log"]}
    assert _files(world, table) == log | {metadata["metadata-location"]}
    assert len(log) == statuses.count(200)
    assert _pending(world, table) == []


def test_only_the_file_of_a_killed_gateway_is_cleaned_up(world: World, ns: str) -> None:
    table = world.table(ns)
    orphan = f"{table.location}/metadata/00001-{uuid.uuid4()}.gz.metadata.json"
    young = f"{table.location}/metadata/00001-{uuid.uuid4()}.gz.metadata.json"
    current = table.answer["metadata-location"]
    for location in (orphan, young):
        world.s3.put_object(Bucket=world.bucket, Key=_key(world, location), Body=b"left behind")
    note = "insert into pending_files (location, warehouse_id, written_at) values ($1, $2, now() - $3::interval)"
    world.sql(note.replace("$3::interval", "interval '61 minutes'"), orphan, world.warehouse)
    world.sql(note.replace("$3::interval", "interval '1 minute'"), young, world.warehouse)
    # An inconsistent row: a file that a pointer names is never deleted.
    world.sql(note.replace("$3::interval", "interval '2 hours'"), current, world.warehouse)
    deadline = time.monotonic() + 60
    while orphan in _files(world, table):
        assert time.monotonic() < deadline, "the file cleanup did not run before the deadline"
        time.sleep(0.5)
    assert _files(world, table) == {young, current}
    records = (
        "select 1 from audit_log where operation = 'sweep_metadata_files' "
        "and convert_from(record, 'UTF8') like '%' || $1 || '%'"
    )
    until(lambda: bool(world.sql(records, orphan)), "the audit does not contain the deletion")
    world.sql("delete from pending_files where location = any($1::text[])", [young, current])


# ---- properties and locations ----------------------------------------------------------------------------------------


@pytest.mark.threat("LG-LOC-05")
@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path", "write.object-storage.path"])
def test_path_properties_stay_inside_the_tables_location(world: World, ns: str, name: str) -> None:
    table, other = world.table(ns), world.table(ns)
    assert _set(world, table, **{name: f"{table.location}/elsewhere"}).status_code == 200
    locations = [location.removeprefix(f"s3://{world.bucket}/") for location in (table.location, other.location)]
    before = [world.objects(location) for location in locations]
    for outside in (other.location, f"{table.location}-more", table.location.rsplit("/", 1)[0], "s3://other/x", "x"):
        answer = _set(world, table, **{name: outside})
        assert error_triple(answer)[:2] == (400, "InvalidLocation"), outside
    assert [world.objects(location) for location in locations] == before, "the server must write no file"
    made = world.admin.post(
        f"{world.root}/namespaces/{ns}/tables",
        {"name": unique("t"), "schema": SCHEMA, "properties": {name: other.location}},
    )
    assert error_triple(made)[:2] == (400, "InvalidLocation")


def test_metadata_path_property_applies_inside_the_location(world: World, ns: str) -> None:
    table = world.table(ns)
    done = _set(world, table, **{"write.metadata.path": f"{table.location}/m"})
    assert done.json()["metadata-location"].startswith(f"{table.location}/m/00001-")


@pytest.mark.parametrize("name", ["write.metadata.unheard-of", "write.metadata.path.extra", "write.data.path.extra"])
def test_unsupported_metadata_properties_are_refused(world: World, ns: str, name: str) -> None:
    table = world.table(ns)
    assert error_triple(_set(world, table, **{name: "1"}))[:2] == (409, "FailedToSetProperties")
    made = world.admin.post(
        f"{world.root}/namespaces/{ns}/tables", {"name": unique("t"), "schema": SCHEMA, "properties": {name: "1"}}
    )
    assert error_triple(made)[:2] == (409, "FailedToSetProperties")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.metadata.previous-versions-max", "3"),
        ("write.metadata.delete-after-commit.enabled", "true"),
        ("write.metadata.compression-codec", "gzip"),
        ("write.metadata.metrics.default", "full"),
        ("write.metadata.metrics.column.id", "none"),
    ],
)
def test_supported_metadata_properties_are_accepted(world: World, ns: str, name: str, value: str) -> None:
    table = world.table(ns)
    done = _set(world, table, **{name: value})
    assert done.status_code == 200, done.text
    assert done.json()["metadata"]["properties"][name] == value


@pytest.mark.parametrize(
    ("layout", "pattern"),
    [
        ({"type": "default"}, "{base}/{uuid}"),
        ({"type": "tabular-only", "tabular": "{name}-{uuid}"}, "{base}/{name}-{uuid}"),
        (
            {"type": "full-hierarchy", "namespace": "{name}-{uuid}", "tabular": "{name}-{uuid}"},
            "{base}/{ns}-{ns_uuid}/{name}-{uuid}",
        ),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_warehouse_layout_determines_table_locations(
    world: World, ns: str, layout: dict[str, str], pattern: str
) -> None:
    stored = world.sql("select profile from warehouses where id = $1", world.warehouse)[0]["profile"]
    profile = json.loads(stored)
    try:
        changed = json.dumps({**profile, "storage-layout": layout}).encode()
        world.sql("update warehouses set profile = $1 where id = $2", changed, world.warehouse)
        table = world.table(ns)
    finally:
        world.sql("update warehouses set profile = $1 where id = $2", stored, world.warehouse)
    base = f"s3://{world.bucket}" + (f"/{profile['key-prefix'].strip('/')}" if profile.get("key-prefix") else "")
    names = {"base": base, "uuid": table.uuid, "name": table.name, "ns": ns, "ns_uuid": world.namespace_id(ns)}
    assert table.location == pattern.format(**names)
