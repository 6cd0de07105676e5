# SPDX-License-Identifier: Apache-2.0
"""Requests of published guides for Doris, Fluss, StarRocks and RisingWave, sent to the gateway.

The guides were written for Lakekeeper. Their requests to the management API are sent with the published bodies: only
addresses, names, keys and the bearer token differ. The requests of the engines are those that their Iceberg clients
send with the guide's catalog properties: the Java library for Doris, Fluss and StarRocks, iceberg-rust for RisingWave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.stack.java_client import new_snapshot, set_ref
from tests.support.stack.lifecycle import until
from tests.support.stack.world import Person, World, error_triple, send_until_decided, unique

JSON = dict[str, Any]

DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}
"""Sent by `iceberg.rest.vended-credentials-enabled` (Doris, StarRocks) and `vended_credentials` (RisingWave)."""

_PROJECT = "00000000-0000-0000-0000-000000000000"
_SEPARATOR = "%1F"


@dataclass(frozen=True)
class Warehouse:
    """A warehouse that a guide created."""

    id: str
    name: str


def created(world: World, *, project_in_header: bool, **profile: Any) -> Warehouse:
    """Create a warehouse with the body of the guides; `profile` are the fields in which the guides differ."""
    name = unique("guide-warehouse").replace("_", "-")
    body: JSON = {
        "warehouse-name": name,
        "storage-profile": {"type": "s3", "bucket": world.bucket, "key-prefix": name, "region": "us-east-1"}
        | {"endpoint": world.ready.s3.endpoint}
        | profile,
        "storage-credential": {
            "type": "s3",
            "credential-type": "access-key",
            "aws-access-key-id": world.ready.s3.access_key,
            "aws-secret-access-key": world.ready.s3.secret_key,
        },
    }
    headers = {"x-project-id": world.project} if project_in_header else {}
    if not project_in_header:
        body["project-id"] = _PROJECT
    made = send_until_decided(lambda: world.admin.post("/management/v1/warehouse", body, headers=headers))
    assert made.status_code == 201, made.text
    return Warehouse(made.json()["warehouse-id"], name)


def vending(world: World) -> Warehouse:
    """Create the warehouse of the Doris guide for vended credentials."""
    role = world.ready.s3.profile["sts-role-arn"]
    profile = {"sts-enabled": True, "flavor": "aws", "assume-role-arn": role}
    return created(world, project_in_header=True, **profile)


def ok(answer: httpx.Response, status: int = 200) -> Any:
    """Return the body of a response with this status."""
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


def connected(by: Person, warehouse: str) -> str:
    """Return the root of the catalog's paths, as a client derives it from the configuration of a warehouse by name."""
    found = ok(by.get("/catalog/v1/config", params={"warehouse": warehouse}))
    properties = found["defaults"] | found["overrides"]
    assert "POST /v1/{prefix}/namespaces/{namespace}/tables" in found["endpoints"]
    return f"/catalog/v1/{properties['prefix']}"


def column(id: int, name: str, type: str, *, required: bool = False) -> JSON:
    """Return a column of a schema."""
    return {"id": id, "name": name, "type": type, "required": required}


def appended(by: Person, path: str, loaded: JSON, **summary: str) -> JSON:
    """Commit a snapshot as the Java library does; return the response."""
    metadata = loaded["metadata"]
    parent = metadata.get("refs", {}).get("main", {}).get("snapshot-id")
    added = new_snapshot(metadata, parent=parent)
    added["snapshot"]["summary"] |= summary
    body = {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
        ],
        "updates": [added, set_ref(added["snapshot"]["snapshot-id"])],
    }
    answer: JSON = ok(send_until_decided(lambda: by.post(path, body)))
    return answer


# ---- Doris -----------------------------------------------------------------------------------------------------------


def test_doris_guide_prepares_project_and_warehouses(world: World) -> None:
    name = unique("default")
    made = ok(world.admin.post("/management/v1/project", {"project-name": name}), 201)
    listed = ok(world.admin.get("/management/v1/project-list"))["projects"]
    assert {"project-id": made["project-id"], "project-name": name} in listed
    own = vending(world)
    static = created(world, project_in_header=True, **{"sts-enabled": False, "flavor": "aws"})
    headers = {"x-project-id": world.project}
    names = [each["name"] for each in ok(world.admin.get("/management/v1/warehouse", headers=headers))["warehouses"]]
    assert {own.name, static.name} <= set(names)
    space = {"namespace": ["demo"], "properties": {}}
    for each in (own, static):
        answer = world.admin.post(f"/catalog/v1/{each.id}/namespaces", space, headers={"Accept": "application/json"})
        assert ok(answer)["namespace"] == ["demo"]


@pytest.mark.parametrize("vended", [True, False])
def test_doris_creates_fills_and_reads_a_table(world: World, vended: bool) -> None:
    own = vending(world) if vended else created(world, project_in_header=True, **{"sts-enabled": False})
    headers = DELEGATION if vended else {}
    root = connected(world.admin, own.name)
    ok(world.admin.post(f"{root}/namespaces", {"namespace": ["demo"], "properties": {}}))
    assert ["demo"] in ok(world.admin.get(f"{root}/namespaces"))["namespaces"]
    assert ok(world.admin.get(f"{root}/namespaces/demo"))["namespace"] == ["demo"]
    tables = f"{root}/namespaces/demo/tables"
    body = {
        "name": "my_iceberg_table",
        "schema": {"type": "struct", "schema-id": 0, "fields": [column(0, "id", "int"), column(1, "name", "string")]},
        "partition-spec": {"spec-id": 0, "fields": []},
        "stage-create": False,
        "properties": {"write-format": "parquet"},
    }
    ok(world.admin.post(tables, body, headers=headers))
    path = f"{tables}/my_iceberg_table"
    loaded = ok(world.admin.get(path, params={"snapshots": "all"}, headers=headers))
    assert ("s3.session-token" in loaded["config"]) == vended
    assert loaded["config"].get("s3.path-style-access") == "true"  # the endpoint is an IP address
    if vended:
        key = f"{loaded['metadata']['location'].removeprefix(f's3://{world.bucket}/')}/data/part-0.parquet"
        world.store_of(loaded["config"]).put_object(Bucket=world.bucket, Key=key, Body=b"row")
    written = appended(world.admin, path, loaded)
    assert len(written["metadata"]["snapshots"]) == 1
    assert ok(world.admin.get(path, headers=headers))["metadata"]["current-snapshot-id"] > 0
    assert ok(world.admin.get(tables))["identifiers"] == [{"namespace": ["demo"], "name": "my_iceberg_table"}]


def test_nested_namespaces_are_listed_level_by_level(world: World) -> None:
    root, top = connected(world.admin, str(world.ready.warehouse)), unique("parent_ns")
    for levels in ([top], [top, "child_ns"], [top, "child_ns", "leaf"]):
        ok(world.admin.post(f"{root}/namespaces", {"namespace": levels, "properties": {}}))
    below = ok(world.admin.get(f"{root}/namespaces?parent={top}"))["namespaces"]
    assert below == [[top, "child_ns"]]
    deeper = f"{top}{_SEPARATOR}child_ns"
    assert ok(world.admin.get(f"{root}/namespaces?parent={deeper}"))["namespaces"] == [[top, "child_ns", "leaf"]]
    assert world.admin.head(f"{root}/namespaces/{deeper}").status_code == 204
    schema = {"type": "struct", "schema-id": 0, "fields": [column(0, "id", "int")]}
    ok(world.admin.post(f"{root}/namespaces/{deeper}/tables", {"name": "t", "schema": schema}))
    [found] = ok(world.admin.get(f"{root}/namespaces/{deeper}/tables"))["identifiers"]
    assert found == {"namespace": [top, "child_ns"], "name": "t"}


# ---- Fluss -----------------------------------------------------------------------------------------------------------

_FLUSS_COLUMNS = [
    column(0, "order_id", "long", required=True),
    column(1, "customer_id", "int", required=True),
    column(2, "total_price", "decimal(15, 2)"),
    column(3, "order_date", "date"),
    column(4, "status", "string"),
    column(5, "__bucket", "int", required=True),
    column(6, "__offset", "long", required=True),
    column(7, "__timestamp", "timestamptz", required=True),
]


def test_fluss_guide_bootstrap_body_is_understood(world: World) -> None:
    answer = world.admin.post("/management/v1/bootstrap", {"accept-terms-of-use": True})
    assert error_triple(answer)[:2] == (400, "CatalogAlreadyBootstrapped")


def test_fluss_tiers_a_table_into_the_warehouse_of_its_guide(world: World) -> None:
    own = created(world, project_in_header=False, **{"path-style-access": True})
    # `datalake.iceberg.header.Authorization: Bearer <token>` of the guide is the header that every request here sends.
    root = connected(world.admin, own.name)
    assert world.admin.head(f"{root}/namespaces/fluss").status_code == 404
    ok(world.admin.post(f"{root}/namespaces", {"namespace": ["fluss"], "properties": {}}))
    tables = f"{root}/namespaces/fluss/tables"
    body = {
        "name": "orders",
        "schema": {"type": "struct", "schema-id": 0, "fields": _FLUSS_COLUMNS, "identifier-field-ids": [0]},
        "partition-spec": {
            "spec-id": 0,
            "fields": [{"source-id": 0, "field-id": 1000, "name": "order_id_bucket", "transform": "bucket[3]"}],
        },
        "write-order": {
            "order-id": 1,
            "fields": [{"source-id": 6, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
        },
        "properties": {
            "write.delete.mode": "merge-on-read",
            "write.update.mode": "merge-on-read",
            "write.merge.mode": "merge-on-read",
            "fluss.table.datalake.freshness": "30s",
        },
        "stage-create": False,
    }
    made = ok(world.admin.post(tables, body))
    schema = made["metadata"]["schemas"][0]
    assert [each["name"] for each in schema["fields"]] == [each["name"] for each in _FLUSS_COLUMNS]
    [key] = schema["identifier-field-ids"]
    assert made["metadata"]["partition-specs"][0]["fields"][0]["source-id"] == key
    again = world.admin.post(tables, body)
    assert error_triple(again)[:2] == (409, "AlreadyExistsException")
    path = f"{tables}/orders"
    summary = {"commit-user": "__fluss_lake_tiering", "fluss-offsets": '{"0":7}'}
    first = appended(world.admin, path, ok(world.admin.get(path)), **summary)
    second = appended(world.admin, path, first, **summary)
    current = {each["snapshot-id"]: each for each in second["metadata"]["snapshots"]}
    assert current[second["metadata"]["current-snapshot-id"]]["summary"]["fluss-offsets"] == '{"0":7}'


def test_a_guide_warehouse_is_deleted_after_its_last_table(world: World) -> None:
    own = created(world, project_in_header=False, **{"path-style-access": True})
    root = connected(world.admin, own.name)
    ok(world.admin.post(f"{root}/namespaces", {"namespace": ["fluss"], "properties": {}}))
    assert world.admin.delete(f"{root}/namespaces/fluss").status_code == 204
    gone = f"/management/v1/warehouse/{own.id}"
    until(lambda: world.admin.delete(gone).status_code == 204, "the warehouse was not deleted", 30)
    assert world.admin.get("/catalog/v1/config", params={"warehouse": own.name}).status_code == 404


# ---- StarRocks -------------------------------------------------------------------------------------------------------


def test_starrocks_loads_with_keys_unless_vending_is_off(world: World, ns: str) -> None:
    """`iceberg.catalog.vended-credentials-enabled` is true by default."""
    root, table = connected(world.admin, str(world.ready.warehouse)), world.table(ns)
    assert world.admin.head(f"{root}/namespaces/{ns}").status_code == 204
    assert world.admin.head(table.path).status_code == 204
    loaded = ok(world.admin.get(table.path, params={"snapshots": "all"}, headers=DELEGATION))
    assert {"s3.access-key-id", "s3.secret-access-key", "s3.session-token", "client.region", "s3.endpoint"} <= set(
        loaded["config"]
    )
    # `getView` of `iceberg.catalog.rest.view-endpoints-enabled` comes before the load of a table.
    assert error_triple(world.admin.get(table.path.replace("/tables/", "/views/")))[:2] == (404, "NoSuchViewException")


def test_starrocks_user_token_decides(world: World, ns: str) -> None:
    """`iceberg.catalog.security` = JWT sends the token of the StarRocks user with each request."""
    table, user = world.table(ns), world.stranger()
    assert error_triple(user.get(table.path, headers=DELEGATION))[:2] == (404, "NoSuchTableException")
    world.grant("select", user, "table", table.uuid)
    assert ok(user.get(table.path, headers=DELEGATION))["config"]["s3.session-token"]
    world.revoke("select", user, "table", table.uuid)
    assert error_triple(user.get(table.path, headers=DELEGATION))[:2] == (404, "NoSuchTableException")


@pytest.mark.parametrize("scope", ["catalog", "PRINCIPAL_ROLE:ALL"])
def test_credential_without_server_uri_is_refused_with_advice(world: World, scope: str) -> None:
    """`oauth2.credential` alone makes a client request tokens from the catalog, which issues none to clients."""
    form = {"grant_type": "client_credentials", "client_id": "a", "client_secret": "b", "scope": scope}
    answer = world.unauthenticated.send("POST", "/catalog/v1/oauth/tokens", data=form)
    assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_grant_type")
    assert "oauth2-server-uri" in answer.json()["error_description"]


# ---- RisingWave ------------------------------------------------------------------------------------------------------


def test_risingwave_sink_creates_and_fills_a_table(world: World) -> None:
    """`warehouse.path` = the name of the warehouse. iceberg-rust sends null for each member without a value."""
    root, ns = connected(world.admin, str(world.ready.warehouse)), unique("ns")
    assert world.admin.head(f"{root}/namespaces/{ns}").status_code == 404
    ok(world.admin.post(f"{root}/namespaces", {"namespace": [ns], "properties": {}}, headers=DELEGATION))
    path = f"{root}/namespaces/{ns}/tables/t"
    assert world.admin.head(path, headers=DELEGATION).status_code == 404
    body = {
        "name": "t",
        "location": None,
        "schema": {"type": "struct", "schema-id": 0, "fields": [column(1, "id", "int", required=True)]},
        "partition-spec": None,
        "write-order": None,
        "stage-create": False,
        "properties": {},
    }
    loaded = ok(world.admin.post(f"{root}/namespaces/{ns}/tables", body, headers=DELEGATION))
    assert loaded["config"]["s3.session-token"]
    appended(world.admin, path, loaded)
    assert len(ok(world.admin.get(path, headers=DELEGATION))["metadata"]["snapshots"]) == 1
