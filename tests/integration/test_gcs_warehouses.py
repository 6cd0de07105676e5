# SPDX-License-Identifier: Apache-2.0
"""A warehouse in Google Cloud Storage on an emulator: files of the gateway and of PyIceberg, and vended tokens.

The emulator checks no token. So the validation of a warehouse that vends must fail on it. A second gateway of the stack
skips that validation, and shows which credentials clients receive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from tests.integration.conftest import _up
from tests.support.servers.gcs_emulator import Emulator, gcs_emulator, google_tokens, service_account_key
from tests.support.servers.toxic import second_gateway
from tests.support.stack.warehouses import WAREHOUSE, Made, until
from tests.support.stack.world import SCHEMA, Person, World, send_until_decided, unique

pytestmark = [pytest.mark.servers, pytest.mark.integration]

BUCKET = "lake-1"
_DELEGATED = {"X-Iceberg-Access-Delegation": "vended-credentials"}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with gcs_emulator(tmp_path_factory.mktemp("gcs") / "log") as running:
        running.make_bucket(BUCKET)
        yield running


@pytest.fixture(scope="module")
def exchanges() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    with google_tokens() as services:
        yield services


@pytest.fixture(scope="module")
def world(emulator: Emulator, exchanges: tuple[str, list[dict[str, Any]]]) -> Iterator[World]:
    with _up(STORAGE__GCS_ENDPOINT=emulator.url, STORAGE__GCS_TOKEN_ENDPOINT=exchanges[0]) as ready:
        world = World(ready)
        yield world
        world.close()


def creation(**profile: Any) -> dict[str, Any]:
    return {
        "warehouse-name": unique("gcs"),
        "storage-profile": {"type": "gcs", "bucket": BUCKET, "key-prefix": unique("wh"), **profile},
        "storage-credential": {
            "type": "gcs",
            "credential-type": "service-account-key",
            "key": service_account_key(),
        },
    }


def make(admin: Person, **profile: Any) -> Made:
    body = creation(**profile)
    made = admin.post(WAREHOUSE, body)
    assert made.status_code == 201, made.text
    return Made(made.json()["warehouse-id"], body["warehouse-name"], made.json())


@pytest.fixture(scope="module")
def plain(world: World) -> Made:
    return make(world.admin, **{"sts-enabled": False})


def test_a_warehouse_is_returned_as_created_without_its_key(plain: Made) -> None:
    assert plain.answer["storage-credential-type"] == {"type": "gcs", "credential-type": "service-account-key"}
    assert plain.answer["storage-profile"]["type"] == "gcs"
    assert "PRIVATE KEY" not in json.dumps(plain.answer)


def test_tables_are_created_changed_loaded_and_purged(world: World, emulator: Emulator, plain: Made) -> None:
    path = plain.table(world.admin)
    changed = world.commit(world.admin, path, {"action": "set-properties", "updates": {"a": "b"}})
    assert changed.status_code == 200, changed.text
    location = changed.json()["metadata"]["location"].removeprefix(f"gs://{BUCKET}/")
    assert {name for name in emulator.names(BUCKET) if name.startswith(location + "/metadata/")}
    loaded = world.admin.get(path, headers=_DELEGATED).json()
    assert loaded["metadata"]["properties"]["a"] == "b"
    assert not loaded.get("storage-credentials") and not [name for name in loaded["config"] if "token" in name]
    assert world.admin.delete(f"{path}?purgeRequested=true").status_code == 204
    until(lambda: not [name for name in emulator.names(BUCKET) if name.startswith(location)])


def test_pyiceberg_writes_and_reads_by_its_own_client(world: World, emulator: Emulator, plain: Made) -> None:
    catalog = load_catalog(
        "gcs",
        type="rest",
        uri=world.ready.catalog_uri,
        warehouse=plain.name,
        token=world.admin.token,
        **{
            "gcs.service.host": emulator.json_url,
            "gcs.oauth2.token": "its-own",
            "gcs.oauth2.token-expires-at": "4102444800000",
        },
    )
    namespace, rows = unique("ns"), pa.table({"id": [1, 2, 3]})
    catalog.create_namespace(namespace)
    table = catalog.create_table((namespace, "t"), schema=rows.schema)
    assert table.location().startswith(f"gs://{BUCKET}/")
    table.append(rows)
    assert catalog.load_table((namespace, "t")).scan().to_arrow()["id"].to_pylist() == [1, 2, 3]


@pytest.mark.threat("LG-POL-08")
def test_a_store_that_ignores_the_boundary_is_refused(world: World) -> None:
    body = creation()
    refused = world.admin.post(WAREHOUSE, body)
    assert refused.status_code == 400
    report = world.admin.post("/management/v1/warehouse-creation-validation", body).json()
    failed = {check["name"] for check in report["checks"] if check["status"] == "failed"}
    assert failed == {
        "vended-credentials-scope-enforced",
        "vended-credentials-policy-enforced",
        "vended-credentials-no-role-assumption",
    }


@pytest.fixture(scope="module")
def vending(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    log = tmp_path_factory.mktemp("vending") / "gateway.log"
    with second_gateway(world.ready, log, SKIP_STORAGE_VALIDATION="true") as (base, _):
        there = Person("admin", world.admin.id, world.admin.token, base)
        yield there
        there.http.close()


def test_a_load_returns_a_token_for_the_table_alone(
    vending: Person, exchanges: tuple[str, list[dict[str, Any]]], emulator: Emulator
) -> None:
    made = make(vending)
    path = made.table(vending)
    loaded: httpx.Response = vending.get(path, headers=_DELEGATED)
    [found] = loaded.json()["storage-credentials"]
    location = loaded.json()["metadata"]["location"]
    assert found["prefix"] == location + "/"
    config = found["config"]
    assert config["gcs.oauth2.token"].startswith("downscoped-")
    assert config["gcs.oauth2.refresh-credentials-endpoint"].endswith("/credentials")
    last = [each for each in exchanges[1] if each["path"] == "/v1/token"][-1]
    assert location.removeprefix(f"gs://{BUCKET}/") + "/')" in unquote(last["form"]["options"][0])
    catalog = load_catalog(
        "gcs",
        type="rest",
        uri=f"{vending.http.base_url}/catalog",
        warehouse=made.name,
        token=vending.token,
        **{"gcs.service.host": emulator.json_url},
    )
    rows = pa.table({"id": [1]})
    catalog.create_namespace("vended")
    table = catalog.create_table(("vended", "t"), schema=rows.schema)
    table.append(rows)
    assert catalog.load_table(("vended", "t")).scan().to_arrow().num_rows == 1
    # A token cannot live for less than an hour, so the vended one is the same until half of it is over.
    again = vending.get(path, headers=_DELEGATED).json()
    assert again["storage-credentials"] == loaded.json()["storage-credentials"]


@pytest.mark.threat("LG-DEC-07")
def test_a_stranger_gets_no_token_and_a_reader_one_that_only_reads(
    world: World, vending: Person, exchanges: tuple[str, list[dict[str, Any]]], emulator: Emulator
) -> None:
    made = make(vending)
    path = made.table(vending)
    stranger, reader = (
        Person(each.name, each.id, each.token, str(vending.http.base_url))
        for each in (world.stranger(), world.stranger("reader"))
    )
    before, objects = len(exchanges[1]), emulator.names(BUCKET)
    for attempt in (path, f"{path}/credentials"):
        assert stranger.get(attempt, headers=_DELEGATED).status_code in (403, 404)
    creation_path = path.rsplit("/", 1)[0]
    assert stranger.post(creation_path, {"name": "x", "schema": SCHEMA, "stage-create": True}).status_code in (403, 404)
    assert len(exchanges[1]) == before and emulator.names(BUCKET) == objects
    world.grant("select", reader, "warehouse", made.id)
    loaded = send_until_decided(lambda: reader.get(path, headers=_DELEGATED)).json()
    assert len(loaded["storage-credentials"]) == 1
    options = json.loads(unquote(exchanges[1][-1]["form"]["options"][0]))
    [rule] = options["accessBoundary"]["accessBoundaryRules"]
    assert rule["availablePermissions"] == ["inRole:roles/storage.objectViewer"]
    for person in (stranger, reader):
        person.http.close()
