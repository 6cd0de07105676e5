# SPDX-License-Identifier: Apache-2.0
"""Registration of tables and views by metadata file, and unregistration."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import asyncpg
import httpx
import pytest

from tests.support.stack.lifecycle import until
from tests.support.stack.registrations import adopt, adopt_view, foreign, register, released
from tests.support.stack.views import create as create_view
from tests.support.stack.world import SCHEMA, Loop, Person, World, error_triple, unique


def register_view(by: Person, world: World, ns: str, name: str, location: str) -> httpx.Response:
    """Register a view."""
    return by.post(f"{world.root}/namespaces/{ns}/register-view", {"name": name, "metadata-location": location})


def put(world: World, location: str, document: dict[str, Any], *, packed: bool = False) -> str:
    """Write a metadata file without the gateway; return its location."""
    body = json.dumps(document).encode()
    key = location.removeprefix(f"s3://{world.bucket}/")
    world.s3.put_object(Bucket=world.bucket, Key=key, Body=gzip.compress(body) if packed else body)
    return location


def test_unregistered_table_is_gone_and_its_files_remain(world: World, ns: str) -> None:
    table = world.table(ns)
    files = world.objects(table.location.removeprefix(f"s3://{world.bucket}/"))
    id = str(world.sql("select id from tables where name = $1", table.name)[0]["id"])
    answer = world.admin.post(f"{table.path}/unregister")
    assert answer.status_code == 200
    assert answer.json() == {
        "metadata-location": table.answer["metadata-location"],
        "metadata": table.answer["metadata"],
    }
    assert world.admin.head(table.path).status_code == 404
    assert world.commit(world.admin, table.path).status_code == 404
    assert world.objects(table.location.removeprefix(f"s3://{world.bucket}/")) == files
    world.delivered()
    assert world.tuples(f"table:{id}") == set()
    assert error_triple(world.admin.post(f"{table.path}/unregister"))[:2] == (404, "NoSuchTableException")


def test_registered_table_keeps_its_metadata_under_a_new_row(world: World, ns: str) -> None:
    table, name = world.table(ns), unique("again")
    before = world.sql("select id from tables where name = $1", table.name)[0]["id"]
    world.admin.post(f"{table.path}/unregister")
    answer = register(world.admin, world, ns, name, table.answer["metadata-location"])
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["metadata"] == table.answer["metadata"]
    assert body["metadata-location"] == table.answer["metadata-location"]
    assert answer.headers["etag"]
    row = world.sql("select id, table_uuid from tables where name = $1", name)[0]
    assert row["id"] != before
    assert str(row["table_uuid"]) == table.uuid
    change = {"action": "set-properties", "updates": {"a": "b"}}
    assert world.commit(world.admin, f"{world.root}/namespaces/{ns}/tables/{name}", change).status_code == 200


def test_registering_caller_owns_the_table_and_gets_credentials(world: World, ns: str) -> None:
    world.grant("create", world.carol, "namespace", world.namespace_id(ns))
    table = world.table(ns, by=world.carol)
    assert world.carol.post(f"{table.path}/unregister").status_code == 200
    answer = register(world.carol, world, ns, table.name, table.answer["metadata-location"]).json()
    (credential,) = answer["storage-credentials"]
    assert credential["prefix"] == f"{table.location}/"
    keys = world.store_of(credential["config"])
    prefix = table.location.removeprefix(f"s3://{world.bucket}/")
    keys.put_object(Bucket=world.bucket, Key=f"{prefix}/data/mine.parquet", Body=b"x")
    assert world.carol.delete(table.path).status_code == 204


def test_registration_without_delegation_returns_no_credentials(world: World, ns: str) -> None:
    table = released(world, ns)
    answer = world.admin.post(
        f"{world.root}/namespaces/{ns}/register",
        {"name": table.name, "metadata-location": table.answer["metadata-location"]},
        headers={"X-Iceberg-Access-Delegation": "client-managed"},
    )
    assert answer.status_code == 200
    assert not answer.json().get("storage-credentials")


def test_compressed_metadata_file_is_read_under_any_name(world: World, ns: str) -> None:
    location, metadata = foreign(world, ns)
    file = put(world, f"{location}/metadata/00003-a.metadata.json", metadata, packed=True)
    answer = adopt(world.admin, world, ns, unique("t"), file)
    assert answer.status_code == 200, answer.text
    assert answer.json()["metadata"]["location"] == location


def test_registering_needs_the_right_to_create(world: World, ns: str) -> None:
    table = released(world, ns)
    file = table.answer["metadata-location"]
    assert register(world.carol, world, ns, table.name, file).status_code == 404
    world.grant("select", world.carol, "namespace", world.namespace_id(ns))
    assert error_triple(register(world.carol, world, ns, table.name, file))[:2] == (403, "NamespaceActionForbidden")


def test_taken_name_error_names_the_existing_kind(world: World, ns: str) -> None:
    gone, table, view = released(world, ns), world.table(ns), create_view(world, ns)
    file = gone.answer["metadata-location"]
    assert error_triple(register(world.admin, world, ns, table.name, file)) == (
        409,
        "AlreadyExistsException",
        f"Table already exists: {ns}.{table.name}",
    )
    for overwrite in (False, True):
        assert error_triple(register(world.admin, world, ns, view["name"], file, overwrite=overwrite)) == (
            409,
            "AlreadyExistsException",
            f"View with same name already exists: {ns}.{view['name']}",
        )


def test_a_protected_table_is_not_overwritten(world: World, ns: str) -> None:
    table = world.table(ns)
    file = table.answer["metadata-location"]
    [row] = world.sql("select id::text from tables where table_uuid = $1::text::uuid", table.uuid)
    path = f"/management/v1/warehouse/{world.warehouse}/table/{row['id']}/protection"
    assert world.admin.post(path, {"protected": True}).status_code == 200
    refused = register(world.admin, world, ns, table.name, file, overwrite=True)
    assert error_triple(refused)[:2] == (409, "ProtectedTabularDeletionWithoutForce")
    assert world.admin.post(path, {"protected": False}).status_code == 200
    assert register(world.admin, world, ns, table.name, file, overwrite=True).status_code == 200


def test_a_missing_namespace_does_not_exist(world: World, ns: str) -> None:
    table = released(world, ns)
    for answer in (
        register(world.admin, world, "no_such_ns", "t", table.answer["metadata-location"]),
        register_view(world.admin, world, "no_such_ns", "t", table.answer["metadata-location"]),
    ):
        assert error_triple(answer) == (404, "NoSuchNamespaceException", "Namespace does not exist: no_such_ns")


def test_a_missing_file_is_not_found(world: World, ns: str) -> None:
    location, _ = foreign(world, ns)
    file = f"{location}/metadata/00000-x.metadata.json"
    assert error_triple(adopt(world.admin, world, ns, "t", file)) == (
        404,
        "NotFoundException",
        f"Failed to open input stream for file: {file}",
    )


@pytest.mark.parametrize("content", [b"", b"nonsense", b"{}", b"[1]", b'{"format-version": 9}', b"\x1f\x8bdamaged"])
def test_invalid_metadata_file_is_a_bad_request(world: World, ns: str, content: bytes) -> None:
    location, _ = foreign(world, ns)
    file = f"{location}/metadata/00000-x.metadata.json"
    world.s3.put_object(Bucket=world.bucket, Key=file.removeprefix(f"s3://{world.bucket}/"), Body=content)
    assert adopt(world.admin, world, ns, "t", file).status_code == 400
    assert adopt_view(world.admin, world, ns, "t", file).status_code == 400


def test_gzip_bomb_is_refused_without_decompression(world: World, ns: str) -> None:
    location, _ = foreign(world, ns)
    file = f"{location}/metadata/00000-x.metadata.json"
    bomb = gzip.compress(b" " * (200 * 1024 * 1024))
    world.s3.put_object(Bucket=world.bucket, Key=file.removeprefix(f"s3://{world.bucket}/"), Body=bomb)
    status, _, message = error_triple(adopt(world.admin, world, ns, "t", file))
    assert status == 400
    assert "when decompressed" in message


@pytest.mark.threat("LG-LOC-08", "LG-LOC-09")
@pytest.mark.parametrize(
    "lake_location",
    ["metadata-log", "manifest-list", "statistics", "partition-statistics", "write.data.path", "write.metadata.path"],
)
def test_metadata_file_referring_to_another_table_is_refused(world: World, ns: str, lake_location: str) -> None:
    victim = world.table(ns)
    location, metadata = foreign(world, ns)
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": metadata["last-updated-ms"],
        "manifest-list": f"{location}/metadata/snap-1.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    there = f"{victim.location}/metadata/x"
    document = {**metadata, "last-sequence-number": 1, "snapshots": [snapshot]}
    match lake_location:
        case "metadata-log":
            document["metadata-log"] = [{"timestamp-ms": 1, "metadata-file": there}]
        case "manifest-list":
            document["snapshots"] = [{**snapshot, "manifest-list": there}]
        case "statistics":
            document["statistics"] = [
                {
                    "snapshot-id": 1,
                    "statistics-path": there,
                    "file-size-in-bytes": 1,
                    "file-footer-size-in-bytes": 1,
                    "blob-metadata": [],
                }
            ]
        case "partition-statistics":
            document["partition-statistics"] = [{"snapshot-id": 1, "statistics-path": there, "file-size-in-bytes": 1}]
        case _:
            document["properties"] = {lake_location: there}
    file = put(world, f"{location}/metadata/00000-x.metadata.json", document)
    status, kind, message = error_triple(adopt(world.admin, world, ns, unique("t"), file))
    assert (status, kind) == (400, "InvalidLocation"), message
    put(
        world,
        file,
        {**document, "metadata-log": [], "statistics": [], "partition-statistics": []}
        | {"snapshots": [snapshot], "properties": {}},
    )  # The same file without the fault is accepted.
    assert adopt(world.admin, world, ns, unique("t"), file).status_code == 200


@pytest.mark.threat("LG-LOC-10")
def test_a_file_in_the_directory_of_another_table_is_refused_unread(world: World, ns: str) -> None:
    victim = world.table(ns)
    for file in (victim.answer["metadata-location"], f"{victim.location}/metadata/there-is-none.json"):
        assert error_triple(adopt(world.admin, world, ns, unique("t"), file))[:2] == (409, "LocationAlreadyTaken")
        assert error_triple(adopt_view(world.admin, world, ns, unique("t"), file))[:2] == (409, "LocationAlreadyTaken")


@pytest.mark.threat("LG-LOC-09")
def test_a_file_that_names_the_location_of_another_table_is_refused(world: World, ns: str) -> None:
    victim = world.table(ns)
    location, metadata = foreign(world, ns)
    for wrong in (victim.location, f"s3://{world.bucket}", location.rsplit("/", 1)[0], "s3://elsewhere/x", "file:///x"):
        file = put(world, f"{location}/metadata/00000-x.metadata.json", {**metadata, "location": wrong})
        status, _, message = error_triple(adopt(world.admin, world, ns, unique("t"), file))
        assert status == 400, (wrong, message)


def test_a_file_outside_of_the_warehouse_is_refused(world: World, ns: str) -> None:
    for file in (
        "s3://elsewhere/t/metadata/x.json",
        "file:///etc/passwd",
        "http://127.0.0.1/x",
        f"s3://{world.bucket}/x",
    ):
        assert error_triple(register(world.admin, world, ns, "t", file))[:2] == (400, "InvalidLocation")
        assert error_triple(adopt(world.admin, world, ns, "t", file))[:2] == (400, "InvalidLocation")


def test_one_file_cannot_be_registered_twice(world: World, ns: str) -> None:
    table = released(world, ns)
    assert register(world.admin, world, ns, "first", table.answer["metadata-location"]).status_code == 200
    second = table.answer["metadata-location"]
    assert error_triple(register(world.admin, world, ns, "second", second))[:2] == (403, "NamespaceActionForbidden")
    assert error_triple(adopt(world.admin, world, ns, "second", second))[:2] == (409, "LocationAlreadyTaken")


def test_overwriting_registration_replaces_the_table_without_a_purge(world: World, ns: str) -> None:
    table = world.table(ns)
    first = table.answer["metadata-location"]
    world.commit(world.admin, table.path, {"action": "set-properties", "updates": {"a": "b"}})
    before = world.sql("select id from tables where name = $1", table.name)[0]["id"]
    world.grant("select", world.carol, "table", str(before))
    files = world.objects(table.location.removeprefix(f"s3://{world.bucket}/"))
    answer = register(world.admin, world, ns, table.name, first, overwrite=True)
    assert answer.status_code == 200, answer.text
    assert "a" not in answer.json()["metadata"]["properties"]
    assert world.sql("select id from tables where name = $1", table.name)[0]["id"] != before
    assert world.objects(table.location.removeprefix(f"s3://{world.bucket}/")) == files
    assert world.tuples(f"table:{before}") == set()
    assert world.carol.get(table.path).status_code == 404


def test_overwriting_a_missing_table_registers_it(world: World, ns: str) -> None:
    table = released(world, ns)
    answer = register(world.admin, world, ns, table.name, table.answer["metadata-location"], overwrite=True)
    assert answer.status_code == 200


def test_overwriting_needs_the_right_to_drop(world: World, ns: str) -> None:
    gone, table = released(world, ns), world.table(ns)
    file = gone.answer["metadata-location"]
    world.grant("create", world.steward, "namespace", world.namespace_id(ns))
    assert error_triple(register(world.steward, world, ns, table.name, file, overwrite=True))[:2] == (
        403,
        "TableActionForbidden",
    )
    assert world.admin.get(table.path).json()["metadata"] == table.answer["metadata"]


def test_table_metadata_registers_no_view_and_vice_versa(world: World, ns: str) -> None:
    table, view = released(world, ns), create_view(world, ns)
    world.admin.delete(f"{view['path']}?purgeRequested=false")
    assert register_view(world.admin, world, ns, "v", table.answer["metadata-location"]).status_code == 400
    assert register(world.admin, world, ns, "t", view["metadata-location"]).status_code == 400


def test_location_too_long_for_a_credential_is_refused_at_creation(world: World, ns: str) -> None:
    """Refuse a location whose session policy would exceed the limit of 2,048 characters (LG-POL-07).

    The session policy names the prefix twice. Each form of creation refuses a longer location and leaves nothing
    behind, as no client could read the table.
    """
    location, metadata = foreign(world, ns)
    deep = f"{location}/{'/'.join('x' * 220 for _ in range(4))}"
    # A creator with its own storage access needs no keys, but other users will.
    managed = {"X-Iceberg-Access-Delegation": "client-managed"}
    file = put(world, f"{deep}/metadata/00000-a.metadata.json", {**metadata, "location": deep})
    world.quiet()
    before, tables = world.objects(), f"{world.root}/namespaces/{ns}/tables"
    body = {"name": unique("t"), "schema": SCHEMA, "location": deep}
    updates = [
        {"action": "assign-uuid", "uuid": str(uuid.uuid4())},
        {"action": "set-location", "location": deep},
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    commit = {"requirements": [{"type": "assert-create"}], "updates": updates}
    for answer in (
        adopt(world.admin, world, ns, unique("t"), file),
        world.admin.post(tables, body, headers=managed),
        world.admin.post(tables, {**body, "stage-create": True}, headers=managed),
        world.admin.post(f"{tables}/{unique('t')}", commit),
    ):
        status, type, message = error_triple(answer)
        assert (status, type) == (400, "PolicyTooLarge"), message
        assert "Use a location with a shorter path" in message
    assert world.objects() == before
    assert world.sql("select 1 from tables where location like $1", f"{location}%") == []


@pytest.mark.threat("LG-LOC-14")
def test_metadata_file_in_the_warehouse_base_is_refused_unread(world: World, ns: str) -> None:
    """Its folder would be the whole warehouse, for the table and for the credential that reads it."""
    base = world.ready.s3.profile.get("key-prefix", "demo")
    answer = register(world.admin, world, ns, unique("t"), f"s3://{world.bucket}/{base}/00000-a.metadata.json")
    assert error_triple(answer)[:2] == (400, "InvalidLocation")
    assert "folder below the base location of the warehouse" in error_triple(answer)[2]


def _note(world: World, file: str, age: str) -> None:
    world.sql(
        "insert into pending_files (location, warehouse_id, written_at) values ($1, $2, now() - $3::text::interval)",
        file,
        world.warehouse,
        age,
    )


def test_metadata_file_removed_from_a_log_cannot_be_registered(world: World, ns: str) -> None:
    """The committer may be deleting it concurrently."""
    table = world.table(ns)
    first = table.answer["metadata-location"]
    now = world.commit(world.admin, table.path, {"action": "set-properties", "updates": {"a": "1"}}).json()
    _note(world, first, "1 second")
    refused = register(world.admin, world, ns, table.name, first, overwrite=True)
    assert error_triple(refused)[:2] == (404, "NotFoundException")
    assert world.admin.get(table.path).json()["metadata-location"] == now["metadata-location"]
    world.sql("delete from pending_files where location = $1", first)
    assert register(world.admin, world, ns, table.name, first, overwrite=True).status_code == 200


def test_concurrently_committed_table_is_not_overwritten(world: World, ns: str) -> None:
    """The commit may have deleted the file that was read, because it left the metadata log."""
    table = world.table(ns)
    first = table.answer["metadata-location"]
    with ThreadPoolExecutor(1) as pool, locations_held(world):
        request = pool.submit(register, world.admin, world, ns, table.name, first, overwrite=True)
        until(lambda: bool(world.sql(_WAITS_FOR_LOCATIONS)), "no transaction waited for the lock of locations")
        change = {"action": "set-properties", "updates": {"a": "1"}}
        body = {"requirements": [], "updates": [change]}
        headers = {"Authorization": f"Bearer {world.admin.token}"}
        committed = httpx.post(world.base + table.path, json=body, headers=headers, timeout=60, trust_env=False)
    assert committed.status_code == 200, committed.text
    assert error_triple(request.result())[:2] == (409, "CommitFailedException")
    assert world.admin.get(table.path).json()["metadata-location"] == committed.json()["metadata-location"]
    assert register(world.admin, world, ns, table.name, first, overwrite=True).status_code == 200


_LOCATIONS = 0x1A4E0002
_WAITS_FOR_LOCATIONS = f"select 1 from pg_locks where locktype = 'advisory' and objid = {_LOCATIONS} and not granted"


@contextmanager
def locations_held(world: World) -> Iterator[None]:
    """Block every claim of a named location until the block ends."""

    async def begin() -> asyncpg.Connection:
        connection = await asyncpg.connect(world.ready.postgres)
        await connection.execute(f"select pg_advisory_lock({_LOCATIONS})")
        return connection

    loop = Loop()
    connection = loop.run(begin())
    try:
        yield
    finally:
        loop.run(connection.close())
        loop.close()


def _dropped_view(world: World, ns: str, age: str) -> tuple[str, str]:
    """Return (name, metadata file) of a view that was dropped this long ago."""
    view = create_view(world, ns)
    assert world.admin.delete(view["path"]).status_code == 204
    file = view["metadata-location"]
    world.sql("update pending_files set written_at = now() - $2::text::interval where location = $1", file, age)
    return view["name"], file


def _noted(world: World, file: str) -> list[Any]:
    return world.sql(
        "select now() - written_at < interval '5 minutes' as lately from pending_files where location = $1", file
    )


def test_dropped_view_file_is_not_deleted_during_its_registration(world: World, ns: str) -> None:
    name, file = _dropped_view(world, ns, "59 minutes")
    with ThreadPoolExecutor(1) as pool, locations_held(world):
        request = pool.submit(register_view, world.admin, world, ns, name, file)
        until(lambda: bool(world.sql(_WAITS_FOR_LOCATIONS)), "no transaction waited for the lock of locations")
        [noted] = _noted(world, file)
    assert noted["lately"]
    assert request.result().status_code == 200
    assert _noted(world, file) == []


@pytest.mark.parametrize("spelled", ["S3://", "s3://"])
def test_registered_file_is_removed_from_cleanup_in_any_spelling(world: World, ns: str, spelled: str) -> None:
    name, file = _dropped_view(world, ns, "1 minute")
    answer = register_view(world.admin, world, ns, name, file.replace("s3://", spelled))
    assert answer.status_code == 200, answer.text
    assert answer.json()["metadata-location"] == file
    assert _noted(world, file) == []
