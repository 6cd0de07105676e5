# SPDX-License-Identifier: Apache-2.0
"""A warehouse in Azure storage on an emulator: files of the gateway and of PyIceberg, and vended signatures.

Opt-in by `make test-azurite`, which sets LAKEGATE_TEST_AZURITE: it downloads the emulator (365 MB) once. The emulator
accepts no signature for a directory. So the validation of a warehouse that vends must fail on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from tests.integration.conftest import _up
from tests.support.servers.azure_emulator import Emulator, azure_emulator
from tests.support.servers.toxic import second_gateway
from tests.support.stack.warehouses import WAREHOUSE, Made, until
from tests.support.stack.world import Person, World, unique

pytestmark = [
    pytest.mark.servers,
    pytest.mark.integration,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_AZURITE"), reason="needs Azurite: run `make test-azurite`"),
]

CONTAINER = "lake-1"
_DELEGATED = {"X-Iceberg-Access-Delegation": "vended-credentials"}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with azure_emulator(tmp_path_factory.mktemp("azurite")) as running:
        running.make_container(CONTAINER)
        yield running


@pytest.fixture(scope="module")
def world(emulator: Emulator) -> Iterator[World]:
    with _up(STORAGE__ADLS_ENDPOINT=emulator.url) as ready:
        world = World(ready)
        yield world
        world.close()


def creation(emulator: Emulator, **profile: Any) -> dict[str, Any]:
    return {
        "warehouse-name": unique("adls"),
        "storage-profile": {
            "type": "adls",
            "account-name": emulator.account,
            "filesystem": CONTAINER,
            "key-prefix": unique("wh"),
            **profile,
        },
        "storage-credential": {"type": "az", "credential-type": "shared-access-key", "key": emulator.key},
    }


def make(admin: Person, emulator: Emulator, **profile: Any) -> Made:
    body = creation(emulator, **profile)
    made = admin.post(WAREHOUSE, body)
    assert made.status_code == 201, made.text
    assert emulator.key not in made.text
    return Made(made.json()["warehouse-id"], body["warehouse-name"], made.json())


@pytest.fixture(scope="module")
def plain(world: World, emulator: Emulator) -> Made:
    return make(world.admin, emulator, **{"sas-enabled": False})


def test_a_warehouse_is_returned_with_the_types_of_its_credential(plain: Made) -> None:
    assert plain.answer["storage-credential-type"] == {"type": "az", "credential-type": "shared-access-key"}
    assert plain.answer["storage-profile"]["type"] == "adls"


def test_tables_are_created_changed_loaded_and_purged(world: World, emulator: Emulator, plain: Made) -> None:
    path = plain.table(world.admin)
    changed = world.commit(world.admin, path, {"action": "set-properties", "updates": {"a": "b"}})
    assert changed.status_code == 200, changed.text
    base = f"abfss://{CONTAINER}@{emulator.account}.dfs.core.windows.net/"
    location = changed.json()["metadata"]["location"]
    assert location.startswith(base)
    folder = location.removeprefix(base)
    assert {name for name in emulator.names(CONTAINER) if name.startswith(folder + "/metadata/")}
    loaded = world.admin.get(path, headers=_DELEGATED).json()
    assert loaded["metadata"]["properties"]["a"] == "b"
    assert loaded["config"] == {"adls.account-name": emulator.account}
    assert world.admin.delete(f"{path}?purgeRequested=true").status_code == 204
    until(lambda: not [name for name in emulator.names(CONTAINER) if name.startswith(folder)])


def test_pyiceberg_writes_and_reads_by_its_own_client(world: World, emulator: Emulator, plain: Made) -> None:
    # Its other client does not read locations with an account.
    pytest.importorskip("adlfs")
    blobs = emulator.url.replace("{account}", emulator.account)
    connection = (
        f"DefaultEndpointsProtocol=http;AccountName={emulator.account};AccountKey={emulator.key};BlobEndpoint={blobs};"
    )
    catalog = load_catalog(
        "adls",
        type="rest",
        uri=world.ready.catalog_uri,
        warehouse=plain.name,
        token=world.admin.token,
        **{"adls.connection-string": connection},
    )
    namespace, rows = unique("ns"), pa.table({"id": [1, 2, 3]})
    catalog.create_namespace(namespace)
    table = catalog.create_table((namespace, "t"), schema=rows.schema)
    table.append(rows)
    assert catalog.load_table((namespace, "t")).scan().to_arrow()["id"].to_pylist() == [1, 2, 3]


@pytest.mark.threat("LG-POL-08")
def test_a_store_without_signatures_for_a_directory_is_refused(world: World, emulator: Emulator) -> None:
    body = creation(emulator)
    assert world.admin.post(WAREHOUSE, body).status_code == 400
    report = world.admin.post("/management/v1/warehouse-creation-validation", body).json()
    failed = {check["name"] for check in report["checks"] if check["status"] == "failed"}
    assert "vended-credentials-read-write" in failed


def test_a_load_returns_a_signature_for_the_table_alone(
    world: World, emulator: Emulator, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = tmp_path_factory.mktemp("vending") / "gateway.log"
    with second_gateway(world.ready, log, SKIP_STORAGE_VALIDATION="true") as (base, _):
        there = Person("admin", world.admin.id, world.admin.token, base)
        made = make(there, emulator)
        loaded = there.get(made.table(there), headers=_DELEGATED).json()
        there.http.close()
    [found] = loaded["storage-credentials"]
    assert found["prefix"] == loaded["metadata"]["location"] + "/"
    server = f"{emulator.account}.dfs.core.windows.net"
    signature = parse_qs(found["config"][f"adls.sas-token.{server}"])
    assert (signature["sr"], signature["sp"], signature["spr"]) == (["d"], ["racwdl"], ["https"])
    # The key prefix of the warehouse and the folder of the table.
    assert signature["sdd"] == ["2"]
    assert int(found["config"][f"adls.sas-token-expires-at-ms.{server}"]) > 0
    assert found["config"]["adls.refresh-credentials-endpoint"].endswith("/credentials")
    assert emulator.key not in str(loaded)
