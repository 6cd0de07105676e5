# SPDX-License-Identifier: Apache-2.0
"""A warehouse in a local directory, from its creation to the purge of a table, with PyIceberg and over plain HTTP.

The module has its own stack: every gateway of it must allow the directory, or its background tasks fail.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from tests.integration.conftest import _up
from tests.support.servers.toxic import second_gateway
from tests.support.stack.warehouses import WAREHOUSE, Made, until
from tests.support.stack.world import SCHEMA, Person, World, error_triple, unique

pytestmark = [pytest.mark.servers, pytest.mark.integration]

#: Validation checks for stores that vend credentials.
_VENDED = {
    "vended-credentials-issued",
    "vended-credentials-read-write",
    "vended-credentials-scope-enforced",
    "vended-credentials-policy-enforced",
    "vended-credentials-no-role-assumption",
}


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory that the operator allows."""
    return Path(os.path.realpath(tmp_path_factory.mktemp("listed")))


@pytest.fixture(scope="module")
def world(listed: Path) -> Iterator[World]:
    with _up(STORAGE_LOCAL_DIRECTORIES=str(listed)) as ready:
        world = World(ready)
        yield world
        world.close()


def creation(directory: Path | str, **more: Any) -> dict[str, Any]:
    return {
        "warehouse-name": unique("local"),
        "storage-profile": {"type": "local", "directory": str(directory)},
        **more,
    }


def make(world: World, directory: Path) -> Made:
    body = creation(directory)
    made = world.admin.post(WAREHOUSE, body)
    assert made.status_code == 201, made.text
    return Made(made.json()["warehouse-id"], body["warehouse-name"], made.json())


@pytest.fixture(scope="module")
def local(world: World, listed: Path) -> Made:
    return make(world, listed / unique("wh"))


def files_below(directory: Path) -> set[str]:
    return {str(each.relative_to(directory)) for each in directory.rglob("*") if not each.is_dir()}


def directory_of(local: Made) -> Path:
    return Path(local.answer["storage-profile"]["directory"])


def test_local_warehouse_is_returned_as_created_without_a_credential(local: Made) -> None:
    assert local.answer["storage-profile"] == {
        "type": "local",
        "directory": str(directory_of(local)),
        "storage-layout": {"type": "default"},
    }
    assert "storage-credential-type" not in local.answer
    assert files_below(directory_of(local)) == set()  # the validation of the directory left no file


def test_pyiceberg_creates_appends_reads_and_purges(world: World, local: Made) -> None:
    catalog = load_catalog(
        "local", type="rest", uri=world.ready.catalog_uri, warehouse=local.name, token=world.admin.token
    )
    namespace, rows = unique("ns"), pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    catalog.create_namespace(namespace)
    table = catalog.create_table((namespace, "t"), schema=rows.schema)
    assert table.location().startswith(f"file://{directory_of(local)}/")
    table.append(rows)
    table.append(rows)
    loaded = catalog.load_table((namespace, "t"))
    assert sorted(loaded.scan().to_arrow()["id"].to_pylist()) == [1, 1, 2, 2, 3, 3]
    assert not [name for name in loaded.io.properties if name.startswith("s3.")]
    location = Path(table.location().removeprefix("file://"))
    assert len([name for name in files_below(location) if name.endswith(".parquet")]) == 2
    catalog.purge_table((namespace, "t"))
    until(lambda: not location.exists())
    catalog.drop_namespace(namespace)
    assert files_below(directory_of(local)) == set()


def test_local_table_load_has_no_credentials_and_a_request_is_refused(world: World, local: Made) -> None:
    path = local.table(world.admin)
    loaded = world.admin.get(path, headers={"X-Iceberg-Access-Delegation": "vended-credentials"}).json()
    assert (loaded["config"], loaded.get("storage-credentials", [])) == ({}, [])
    status, kind, message = error_triple(world.admin.get(f"{path}/credentials"))
    assert (status, kind) == (403, "NoCredentialsVended")
    assert "open its directory directly" in message
    changed = world.commit(world.admin, path, {"action": "set-properties", "updates": {"a": "b"}})
    assert changed.status_code == 200, changed.text
    written = Path(changed.json()["metadata-location"].removeprefix("file://"))
    assert json.loads(written.read_bytes())["properties"]["a"] == "b"


def test_registered_local_file_must_be_in_its_table_without_symlinks(world: World, local: Made, listed: Path) -> None:
    other = make(world, listed / unique("other"))
    loaded = world.admin.get(other.table(world.admin)).json()
    foreign = Path(loaded["metadata-location"].removeprefix("file://"))
    namespace = unique("ns")
    assert world.admin.post(f"{local.root}/namespaces", {"namespace": [namespace]}).status_code == 200
    register, adopting = f"{local.root}/namespaces/{namespace}/register", {"X-Lakegate-Adopt": "true"}
    planted = directory_of(local) / unique("t")
    (planted / "metadata").mkdir(parents=True)
    (planted / "metadata/1.metadata.json").symlink_to(foreign)
    (directory_of(local) / "link").symlink_to(foreign.parent.parent)
    for text, expected in (
        (loaded["metadata-location"], (400, "InvalidLocation")),
        (f"file://{directory_of(local)}/../{foreign.relative_to(listed)}", (400, "InvalidLocation")),
        (f"file://{planted}/metadata/1.metadata.json", (412, "StorageDenied")),
        (f"file://{directory_of(local)}/link/metadata/{foreign.name}", (412, "StorageDenied")),
    ):
        body = {"name": unique("t"), "metadata-location": text}
        assert error_triple(world.admin.post(register, body, headers=adopting))[:2] == expected, text
    assert world.admin.get(f"{local.root}/namespaces/{namespace}/tables").json()["identifiers"] == []


def test_local_warehouse_must_be_below_an_allowed_directory_and_in_no_other(
    world: World, local: Made, listed: Path
) -> None:
    outside = "LAKEGATE__STORAGE_LOCAL_DIRECTORIES"
    for directory, kind, words in (
        (listed, "InvalidStorageProfile", outside),
        (f"{listed}2/x", "InvalidStorageProfile", outside),
        ("/etc", "InvalidStorageProfile", outside),
        (f"{listed}/../x", "InvalidLocation", "'..'"),
        ("relative", "InvalidLocation", "absolute"),
        (directory_of(local) / "inner", "CreateWarehouseStorageProfileOverlap", "overlaps"),
    ):
        status, found, message = error_triple(world.admin.post(WAREHOUSE, creation(directory)))
        assert (status, found) == (400, kind) and words in message, directory
    key = {"type": "s3", "credential-type": "access-key", "access-key-id": "AK", "secret-access-key": "x"}
    with_key = creation(listed / unique("wh"), **{"storage-credential": key})
    assert error_triple(world.admin.post(WAREHOUSE, with_key))[:2] == (400, "InvalidStorageCredential")


def test_symlinked_directory_is_refused_and_not_written(world: World, listed: Path, tmp_path: Path) -> None:
    (listed / "alias").symlink_to(tmp_path)
    status, kind, _ = error_triple(world.admin.post(WAREHOUSE, creation(listed / "alias" / "wh")))
    assert (status, kind) == (400, "StorageValidationFailed")
    assert list(tmp_path.iterdir()) == []


def test_local_warehouse_storage_is_validated_and_cannot_move(world: World, local: Made) -> None:
    report = world.admin.post(f"{local.path}/storage/validate-access").json()
    statuses = {check["name"]: check["status"] for check in report["checks"]}
    assert report["valid"] and statuses["lakekeeper-read-write"] == statuses["cleanup"] == "passed"
    assert {name for name, status in statuses.items() if status == "skipped"} >= _VENDED
    moved = {"storage-profile": {"type": "local", "directory": f"{directory_of(local)}2"}}
    answer = error_triple(world.admin.post(f"{local.path}/storage", moved))
    assert answer[:2] == (400, "UpdateError") and "directory" in answer[2]


def test_gateway_without_the_allowed_directory_writes_nothing_there(
    world: World, local: Made, listed: Path, tmp_path: Path
) -> None:
    path = local.table(world.admin)
    before = files_below(listed)
    settings = {"STORAGE_LOCAL_DIRECTORIES": str(tmp_path), "TASK_TABULAR_PURGE_WORKERS": "0"}
    with second_gateway(world.ready, tmp_path / "gateway.log", **settings) as (base, _):
        there = Person("admin", world.admin.id, world.admin.token, base)
        update = {"action": "set-properties", "updates": {"c": "d"}}
        refused = error_triple(world.commit(there, path, update))
        assert refused[:2] == (412, "StorageEndpointRefused")
        assert "LAKEGATE__STORAGE_LOCAL_DIRECTORIES" in refused[2]
        made = there.post(path.rsplit("/", 1)[0], {"name": unique("t"), "schema": SCHEMA})
        assert error_triple(made)[:2] == (412, "StorageEndpointRefused")
        there.http.close()
    assert files_below(listed) == before
