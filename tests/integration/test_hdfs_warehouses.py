# SPDX-License-Identifier: Apache-2.0
"""A warehouse in a real HDFS, from its creation to the purge of a table.

The module has its own stack: every gateway of it must allow the directory, or its background tasks fail. The gateway is
the HDFS user `lakegate`, who owns the allowed directory and may not open what others own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hdfs_native import Client

from tests.integration.conftest import _up
from tests.support.servers.hdfs_servers import Hdfs, running
from tests.support.servers.toxic import second_gateway
from tests.support.stack.warehouses import WAREHOUSE, Made, until
from tests.support.stack.world import SCHEMA, Person, World, error_triple, unique

pytestmark = [pytest.mark.servers, pytest.mark.integration]

LISTED = "/listed"

#: Validation checks for stores that vend credentials.
_VENDED = {
    "vended-credentials-issued",
    "vended-credentials-read-write",
    "vended-credentials-scope-enforced",
    "vended-credentials-policy-enforced",
    "vended-credentials-no-role-assumption",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with running(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="module")
def superuser(server: Hdfs) -> Client:
    """Return a client that may do everything, after it made the allowed directory."""
    client = Client(server.url())
    client.mkdirs(LISTED, 0o750, True)
    client.set_owner(LISTED, "lakegate", "engines")
    client.set_permission(LISTED, 0o770)
    return client


@pytest.fixture(scope="module")
def world(server: Hdfs, superuser: Client) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HADOOP_USER_NAME", "lakegate")
        with _up(STORAGE_HDFS_ROOTS=server.url(LISTED)) as ready:
            world = World(ready)
            yield world
            world.close()


def creation(location: str, **more: Any) -> dict[str, Any]:
    return {"warehouse-name": unique("hdfs"), "storage-profile": {"type": "hdfs", "location": location}, **more}


def make(world: World, location: str) -> Made:
    body = creation(location)
    made = world.admin.post(WAREHOUSE, body)
    assert made.status_code == 201, made.text
    return Made(made.json()["warehouse-id"], body["warehouse-name"], made.json())


@pytest.fixture(scope="module")
def warehouse(world: World, server: Hdfs) -> Made:
    return make(world, server.url(f"{LISTED}/{unique('wh')}"))


def location_of(warehouse: Made) -> str:
    return str(warehouse.answer["storage-profile"]["location"])


def path_of(location: str) -> str:
    return "/" + location.removeprefix("hdfs://").partition("/")[2]


def files_below(client: Client, path: str) -> set[str]:
    return {each.path for each in client.list_status(path, True) if not each.isdir}


def test_hdfs_warehouse_is_returned_as_created_without_a_credential(superuser: Client, warehouse: Made) -> None:
    assert warehouse.answer["storage-profile"] == {
        "type": "hdfs",
        "location": location_of(warehouse),
        "storage-layout": {"type": "default"},
    }
    assert "storage-credential-type" not in warehouse.answer
    assert files_below(superuser, LISTED) == set()  # the validation of the directory left no file


def test_table_is_created_changed_loaded_and_purged(world: World, superuser: Client, warehouse: Made) -> None:
    path = warehouse.table(world.admin)
    loaded = world.admin.get(path, headers={"X-Iceberg-Access-Delegation": "vended-credentials"}).json()
    location = path_of(loaded["metadata"]["location"])
    assert loaded["metadata"]["location"].startswith(location_of(warehouse) + "/")
    assert (loaded["config"], loaded.get("storage-credentials", [])) == ({}, [])
    changed = world.commit(world.admin, path, {"action": "set-properties", "updates": {"a": "b"}})
    assert changed.status_code == 200, changed.text
    written = path_of(changed.json()["metadata-location"])
    assert json.loads(superuser.read(written).read())["properties"]["a"] == "b"
    status = superuser.get_file_info(written)
    assert (status.owner, status.group, status.permission) == ("lakegate", "engines", 0o660)
    # A member of the directory's group may write data files beside the metadata.
    assert superuser.get_file_info(location).permission == 0o770
    with superuser.create(f"{location}/data.parquet") as file:
        file.write(b"of an engine")
    assert world.admin.send("DELETE", f"{path}?purgeRequested=true").status_code == 204
    until(lambda: not _exists(superuser, location))


def _exists(client: Client, path: str) -> bool:
    try:
        client.get_file_info(path)
    except FileNotFoundError:
        return False
    return True


def test_request_for_credentials_is_refused_with_the_reason(world: World, warehouse: Made) -> None:
    status, kind, message = error_triple(world.admin.get(f"{warehouse.table(world.admin)}/credentials"))
    assert (status, kind) == (403, "NoCredentialsVended")
    assert "with their own identity" in message


def test_registered_file_must_be_in_its_table(world: World, superuser: Client, warehouse: Made, server: Hdfs) -> None:
    other = make(world, server.url(f"{LISTED}/{unique('other')}"))
    foreign = world.admin.get(other.table(world.admin)).json()["metadata-location"]
    namespace = unique("ns")
    assert world.admin.post(f"{warehouse.root}/namespaces", {"namespace": [namespace]}).status_code == 200
    register, adopting = f"{warehouse.root}/namespaces/{namespace}/register", {"X-Lakegate-Adopt": "true"}
    number = "/.reserved/.inodes/16390"
    for text in (
        foreign,
        f"{location_of(warehouse)}/../{path_of(foreign).removeprefix(LISTED + '/')}",
        server.url(number),
        location_of(warehouse) + number,
        foreign.replace("hdfs://127.0.0.1", "hdfs://localhost"),
    ):
        body = {"name": unique("t"), "metadata-location": text}
        refused = error_triple(world.admin.post(register, body, headers=adopting))
        assert refused[:2] == (400, "InvalidLocation"), text
    assert world.admin.get(f"{warehouse.root}/namespaces/{namespace}/tables").json()["identifiers"] == []


def test_warehouse_must_be_below_an_allowed_directory_and_in_no_other(
    world: World, warehouse: Made, server: Hdfs
) -> None:
    outside = "LAKEGATE__STORAGE_HDFS_ROOTS"
    for location, kind, words in (
        (server.url(LISTED), "InvalidStorageProfile", outside),
        (server.url(f"{LISTED}2/x"), "InvalidStorageProfile", outside),
        (f"hdfs://localhost{LISTED}/x", "InvalidStorageProfile", outside),
        (server.url(f"{LISTED}/../x"), "InvalidLocation", "'..'"),
        (LISTED, "InvalidLocation", "hdfs://"),
        (f"{location_of(warehouse)}/inner", "CreateWarehouseStorageProfileOverlap", "overlaps"),
    ):
        status, found, message = error_triple(world.admin.post(WAREHOUSE, creation(location)))
        assert (status, found) == (400, kind) and words in message, location
    key = {"type": "s3", "credential-type": "access-key", "access-key-id": "AK", "secret-access-key": "x"}
    with_key = creation(server.url(f"{LISTED}/{unique('wh')}"), **{"storage-credential": key})
    assert error_triple(world.admin.post(WAREHOUSE, with_key))[:2] == (400, "InvalidStorageCredential")


def test_directory_that_the_gateway_may_not_open_is_denied(
    world: World, superuser: Client, warehouse: Made, server: Hdfs
) -> None:
    closed = f"{LISTED}/{unique('closed')}"
    superuser.mkdirs(closed, 0o700, True)
    refused = error_triple(world.admin.post(WAREHOUSE, creation(server.url(closed))))
    assert refused[:2] == (400, "StorageValidationFailed")
    path = warehouse.table(world.admin)
    location = path_of(world.admin.get(path).json()["metadata"]["location"])
    superuser.set_owner(location, "somebody", "others")
    superuser.set_permission(location, 0o700)
    refused = error_triple(world.commit(world.admin, path, {"action": "set-properties", "updates": {"a": "b"}}))
    assert refused[:2] == (412, "StorageDenied")
    assert "127.0.0.1" not in refused[2] and "org.apache" not in refused[2]


def test_warehouse_storage_is_validated_and_cannot_move(world: World, warehouse: Made) -> None:
    report = world.admin.post(f"{warehouse.path}/storage/validate-access").json()
    statuses = {check["name"]: check["status"] for check in report["checks"]}
    assert report["valid"] and statuses["lakekeeper-read-write"] == statuses["cleanup"] == "passed"
    assert {name for name, status in statuses.items() if status == "skipped"} >= _VENDED
    moved = {"storage-profile": {"type": "hdfs", "location": f"{location_of(warehouse)}2"}}
    answer = error_triple(world.admin.post(f"{warehouse.path}/storage", moved))
    assert answer[:2] == (400, "UpdateError") and "location" in answer[2]


def test_gateway_without_the_allowed_directory_writes_nothing_there(
    world: World, superuser: Client, warehouse: Made, tmp_path: Path
) -> None:
    path = warehouse.table(world.admin)
    before = files_below(superuser, LISTED)
    settings = {"STORAGE_HDFS_ROOTS": "", "TASK_TABULAR_PURGE_WORKERS": "0"}
    with second_gateway(world.ready, tmp_path / "gateway.log", **settings) as (base, _):
        there = Person("admin", world.admin.id, world.admin.token, base)
        refused = error_triple(world.commit(there, path, {"action": "set-properties", "updates": {"c": "d"}}))
        assert refused[:2] == (412, "StorageEndpointRefused")
        assert "LAKEGATE__STORAGE_HDFS_ROOTS" in refused[2]
        made = there.post(path.rsplit("/", 1)[0], {"name": unique("t"), "schema": SCHEMA})
        assert error_triple(made)[:2] == (412, "StorageEndpointRefused")
        there.http.close()
    assert files_below(superuser, LISTED) == before
