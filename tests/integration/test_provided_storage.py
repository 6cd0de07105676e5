# SPDX-License-Identifier: Apache-2.0
"""Storage of another package: a warehouse through a gateway, and the conformance kit against the store of the stack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.scope.profile import STORED, Downscoping
from gateway.storage.connector import Connector
from gateway.storage.provider import ClientOptions
from gateway.storage.registry import provider_named
from lakegate.conformance.storage import StorageSubject, check_storage
from tests.extensions.installing import install
from tests.support.servers.toxic import second_gateway
from tests.support.stack import warehouses
from tests.support.stack.warehouses import WAREHOUSE, Made
from tests.support.stack.world import Person, World, error_triple, unique

pytestmark = [pytest.mark.servers, pytest.mark.integration]

ROOT = Path(__file__).parents[2]


async def test_the_store_of_the_stack_keeps_the_rules_of_storage(world: World) -> None:
    s3 = provider_named("s3")
    assert s3 is not None
    connector = Connector(STORED.endpoints)
    options = ClientOptions(rules=STORED, route=connector.route)
    profile, credential = warehouses.profile(world), warehouses.credential(world)
    try:
        subject = StorageSubject("s3", s3, profile, credential, options)
        assert isinstance(subject.decoded().downscoping, Downscoping), "the credential rules would check nothing"
        await check_storage(subject)
    finally:
        connector.close()


def test_a_warehouse_in_storage_of_another_package(world: World, tmp_path: Path) -> None:
    site, volume = tmp_path / "site", tmp_path / "volume"
    site.mkdir()
    volume.mkdir()
    install(site, "folders")
    profile = {"type": "folder", "volume": "v", "path": unique("wh")}
    name = unique("w")
    body = {"warehouse-name": name, "storage-profile": profile}
    refused = world.admin.post(WAREHOUSE, body)
    assert error_triple(refused)[:2] == (400, "InvalidStorageProfile"), "it is off without the setting"

    environment = {"PYTHONPATH": f"{site}:{ROOT}", "LAKEGATE_FOLDERS_VOLUMES": f"v={volume}"}
    log = tmp_path / "gateway.log"
    with second_gateway(world.ready, log, environment, STORAGE__EXTENSIONS="folder") as (base, _):
        admin = Person("admin", world.admin.id, world.admin.token, base)
        created = admin.post(WAREHOUSE, body)
        assert created.status_code == 201, created.text
        made = Made(created.json()["warehouse-id"], name, created.json())
        path = made.table(admin)
        changed = world.commit(admin, path, {"action": "set-properties", "updates": {"a": "b"}})
        assert changed.status_code == 200, changed.text
        written = changed.json()["metadata-location"].removeprefix("folder://v/")
        assert json.loads((volume / written).read_bytes())["properties"]["a"] == "b"
        loaded = admin.get(path, headers={"X-Iceberg-Access-Delegation": "vended-credentials"}).json()
        assert (loaded["config"], loaded.get("storage-credentials", [])) == ({}, [])
        outside = {"name": unique("t"), "metadata-location": "folder://v/elsewhere/t/metadata/1.metadata.json"}
        register = path.rpartition("/tables/")[0] + "/register"
        assert error_triple(admin.post(register, outside))[:2] == (400, "InvalidLocation")
        # The gateway without the package cannot read the warehouse, and says so instead of failing.
        assert error_triple(world.admin.get(path))[1] == "StorageTypeNotSupported"
        assert admin.delete(path).status_code == 204
        admin.http.close()
