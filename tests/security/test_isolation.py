# SPDX-License-Identifier: Apache-2.0
"""Principals, tenants and tables are never confused with one another (LG-POL-09, LG-DEC-02, -14, -15, -18)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.stack.world import SCHEMA, Person, World, error_triple, unique


@pytest.fixture(scope="module")
def tenant(world: World) -> dict[str, str]:
    """Create another project whose warehouse, namespace and table have the same names as in the first one."""
    project = world.admin.post("/management/v1/project", {"project-name": unique("tenant")}).json()["project-id"]
    body = {
        "warehouse-name": "demo",
        "project-id": project,
        "storage-profile": {**world.ready.s3.profile, "bucket": world.bucket, "key-prefix": unique("tenant")},
        "storage-credential": {
            "type": "s3",
            "credential-type": "access-key",
            "access-key-id": world.ready.s3.access_key,
            "secret-access-key": world.ready.s3.secret_key,
        },
    }
    made = world.admin.post("/management/v1/warehouse", body)
    assert made.status_code == 201, made.text
    return {"project": project, "warehouse": made.json()["warehouse-id"]}


@pytest.mark.threat("LG-DEC-15")
def test_rights_in_one_project_give_no_access_to_same_names_in_another(
    world: World, ns: str, tenant: dict[str, str]
) -> None:
    """alice has `select` and bob has `modify` on the `demo` of their own project."""
    mine = world.table(ns, "twin")
    other = f"/catalog/v1/{tenant['warehouse']}"
    assert world.admin.post(f"{other}/namespaces", {"namespace": [ns]}).status_code == 200
    twin = world.admin.post(f"{other}/namespaces/{ns}/tables", {"name": "twin", "schema": SCHEMA})
    assert twin.status_code == 200
    assert world.alice.get(mine.path).status_code == 200
    for person in (world.alice, world.bob):
        for path in (f"{other}/namespaces", f"{other}/namespaces/{ns}", f"{other}/namespaces/{ns}/tables/twin"):
            assert person.get(path).status_code == 404
        config = person.get("/catalog/v1/config", params={"warehouse": f"{tenant['project']}/demo"})
        assert error_triple(config)[:2] == (404, "NoSuchWarehouseException")
        header = {"x-project-id": tenant["project"]}
        assert person.get("/management/v1/warehouse", headers=header).status_code == 404
    keys = world.store_of(mine.answer["config"])
    key = twin.json()["metadata-location"].removeprefix(f"s3://{world.bucket}/")
    with pytest.raises(ClientError):
        keys.get_object(Bucket=world.bucket, Key=key)


@pytest.mark.threat("LG-DEC-02")
def test_ids_of_another_warehouse_in_the_path_are_not_found(world: World, ns: str, tenant: dict[str, str]) -> None:
    """The authorized object is the object used, so the ids in the path must be consistent."""
    table = world.table(ns)
    path = f"/management/v1/permissions/warehouse/{tenant['warehouse']}/table/{table.uuid}/assignments"
    assert world.admin.get(path).status_code == 404
    body = {"writes": [{"type": "select", "user": "oidc~analyst"}]}
    assert world.admin.post(path, body).status_code == 404
    crossed = f"/catalog/v1/{tenant['warehouse']}/namespaces/{ns}/tables/{table.name}"
    assert world.admin.get(crossed).status_code == 404


@pytest.mark.threat("LG-DEC-02")
def test_request_naming_two_projects_is_refused(world: World, tenant: dict[str, str]) -> None:
    """The gateway never chooses between two different projects, neither to authorize nor to create."""
    body = {"warehouse-name": unique("w"), "project-id": world.project, "storage-profile": {"type": "s3"}}
    header = {"x-project-id": tenant["project"]}
    assert world.admin.post("/management/v1/warehouse", body, headers=header).status_code == 400
    assert world.admin.get(f"/management/v1/warehouse?projectId={world.project}", headers=header).status_code == 400
    listed = world.admin.get(f"/management/v1/warehouse?projectId={tenant['project']}", headers=header).json()
    assert {each["warehouse-id"] for each in listed["warehouses"]} == {tenant["warehouse"]}


@pytest.mark.threat("LG-DEC-14")
@pytest.mark.parametrize("order", ["writer first", "reader first"])
def test_two_principals_never_share_vended_keys(world: World, ns: str, order: str) -> None:
    """Vended keys are never shared between principals (ARCHITECTURE.md, invariant 6)."""
    table = world.table(ns)
    world.grant("modify", world.steward, "table", table.uuid)
    people = [world.steward, world.alice]
    if order == "reader first":
        people.reverse()
    configs = {person.name: person.get(table.path).json()["config"] for person in people * 2}
    assert configs["steward"]["s3.access-key-id"] != configs["alice"]["s3.access-key-id"]
    key = f"{table.location.removeprefix(f's3://{world.bucket}/')}/data/new"
    world.store_of(configs["steward"]).put_object(Bucket=world.bucket, Key=key, Body=b"x")
    with pytest.raises(ClientError):
        world.store_of(configs["alice"]).put_object(Bucket=world.bucket, Key=key, Body=b"y")


def test_keys_shrink_with_the_grant(world: World, ns: str) -> None:
    """A cached credential of a wider grant is not vended again."""
    table = world.table(ns)
    world.grant("modify", world.steward, "table", table.uuid)
    assert world.steward.get(table.path).json()["config"]["s3.access-key-id"]
    world.grant("select", world.steward, "table", table.uuid)
    world.revoke("modify", world.steward, "table", table.uuid)
    keys = world.store_of(world.steward.get(table.path).json()["config"])
    key = f"{table.location.removeprefix(f's3://{world.bucket}/')}/data/new"
    with pytest.raises(ClientError):
        keys.put_object(Bucket=world.bucket, Key=key, Body=b"y")


_ODD_SUBJECTS = [
    "*",
    "a#assignee",
    "x:y",
    "carol#",
    "@",
    "a|b",
    "%2A",
    "user:*",
    "role:1#assignee",
    "ünï",
    "a b",
    "CAROL",
]


@pytest.mark.threat("LG-POL-09")
@pytest.mark.parametrize("subject", _ODD_SUBJECTS)
def test_user_id_with_relationship_syntax_is_an_ordinary_user(world: World, ns: str, subject: str) -> None:
    """A grant to `oidc~*` must not be a grant to all users."""
    user = f"oidc~{subject}"
    made = world.admin.post("/management/v1/user", {"id": user, "name": "odd"})
    assert made.status_code == 201, made.text
    table = world.table(ns)
    world.grant("select", Person("odd", user, "", world.base), "table", table.uuid)
    assert world.carol.get(table.path).status_code == 404
    assert world.analyst.get(table.path).status_code == 404
    (tuple_user,) = {name for name, relation in world.tuples(f"table:{table.uuid}") if relation == "select"}
    assert tuple_user.startswith("user:oidc~")
    assert not set("#*:| @") & set(tuple_user.removeprefix("user:"))
    assert world.admin.get(world.grants_path("table", table.uuid)).json()["assignments"][-1]["user"] == user
    operation = {"table": {"warehouse-id": world.warehouse, "table-id": table.uuid, "action": "read_data"}}
    about = world.admin.post("/management/v1/permissions/check", {"operation": operation, "identity": {"user": user}})
    assert about.json() == {"allowed": True}


@pytest.mark.threat("LG-DEC-18")
@pytest.mark.parametrize(
    "smuggled",
    [
        {"contextual-tuples": [{"user": "user:oidc~carol", "relation": "ownership", "object": "warehouse:{id}"}]},
        {"context": {"current_time": "1999-01-01T00:00:00Z"}},
        {"identity": {"user": "oidc~carol", "groups": ["admins"]}},
    ],
    ids=str,
)
def test_client_supplied_relationships_have_no_effect(world: World, smuggled: dict[str, Any]) -> None:
    """Neither headers, query parameters nor body members may add relationships to a decision: a caller that could
    make itself an owner by them would be allowed to delete the warehouse.
    """
    smuggled = json.loads(json.dumps(smuggled).replace("{id}", world.warehouse))
    operation = {"warehouse": {"warehouse-id": world.warehouse, "action": "delete"}}
    answer = world.carol.post("/management/v1/permissions/check", {"operation": operation, **smuggled})
    assert answer.status_code == 400 or answer.json() == {"allowed": False}, answer.text
    beside = {**operation["warehouse"], **smuggled}
    inside = world.carol.post("/management/v1/permissions/check", {"operation": {"warehouse": beside}})
    assert inside.status_code == 400


def _generic_table(world: World, ns: str, *, by: Person | None = None) -> dict[str, Any]:
    path = f"/lakekeeper/v1/{world.warehouse}/namespaces/{ns}/generic-tables"
    made = (by or world.admin).post(path, {"name": unique("g"), "format": "lance"})
    assert made.status_code == 200, made.text
    return dict(made.json())


def _below(world: World, location: str, name: str = "data/new") -> str:
    return f"{location.removeprefix(f's3://{world.bucket}/').rstrip('/')}/{name}"


def test_keys_of_a_generic_table_reach_its_location_only(world: World, ns: str) -> None:
    """Invariant 2, on the store itself: keys reach no sibling, no location with the same prefix, and no parent."""
    mine, beside, table = _generic_table(world, ns), _generic_table(world, ns), world.table(ns)
    location = mine["table"]["base-location"].rstrip("/")
    keys = world.store_of(mine["config"])
    own = _below(world, location)
    keys.put_object(Bucket=world.bucket, Key=own, Body=b"x")
    assert keys.get_object(Bucket=world.bucket, Key=own)["Body"].read() == b"x"
    others = (
        _below(world, beside["table"]["base-location"]),
        _below(world, table.location),
        table.answer["metadata-location"].removeprefix(f"s3://{world.bucket}/"),
        _below(world, f"{location}2"),
        _below(world, location.rpartition("/")[0], "new"),
    )
    for key in others:
        if key != others[2]:
            world.s3.put_object(Bucket=world.bucket, Key=key, Body=b"theirs")
        attempts: tuple[Callable[[], object], ...] = (
            partial(keys.get_object, Bucket=world.bucket, Key=key),
            partial(keys.put_object, Bucket=world.bucket, Key=key, Body=b"y"),
            partial(keys.delete_object, Bucket=world.bucket, Key=key),
        )
        for tried in attempts:
            with pytest.raises(ClientError):
                tried()
    with pytest.raises(ClientError):
        keys.list_objects_v2(Bucket=world.bucket, Prefix=_below(world, location.rpartition("/")[0], ""))


def test_the_keys_of_a_table_reach_no_generic_table(world: World, ns: str) -> None:
    made, table = _generic_table(world, ns), world.table(ns)
    keys = world.store_of(table.answer["config"])
    with pytest.raises(ClientError):
        keys.put_object(Bucket=world.bucket, Key=_below(world, made["table"]["base-location"]), Body=b"y")


def test_generic_table_reader_keys_are_read_only_and_not_shared(world: World, ns: str) -> None:
    made = _generic_table(world, ns)
    [row] = world.sql("select id::text from tables where name = $1", made["table"]["name"])
    key = _below(world, made["table"]["base-location"])
    world.store_of(made["config"]).put_object(Bucket=world.bucket, Key=key, Body=b"x")
    world.strip(world.steward)
    world.grant("select", world.steward, "generic-table", row["id"])
    path = f"/lakekeeper/v1/{world.warehouse}/namespaces/{ns}/generic-tables/{made['table']['name']}"
    config = world.steward.get(path).json()["config"]
    assert config["s3.access-key-id"] not in (
        made["config"]["s3.access-key-id"],
        world.admin.get(path).json()["config"]["s3.access-key-id"],
    )
    keys = world.store_of(config)
    assert keys.get_object(Bucket=world.bucket, Key=key)["Body"].read() == b"x"
    attempts: tuple[Callable[[], object], ...] = (
        lambda: keys.put_object(Bucket=world.bucket, Key=key, Body=b"y"),
        lambda: keys.delete_object(Bucket=world.bucket, Key=key),
    )
    for tried in attempts:
        with pytest.raises(ClientError):
            tried()
    world.strip(world.steward)
    assert world.steward.get(f"{path}/credentials").status_code == 404


def test_former_generic_table_location_is_blocked_while_its_keys_live(world: World, ns: str) -> None:
    """The user that dropped it may still hold keys, so no other user gets the location."""
    made = _generic_table(world, ns)
    location = made["table"]["base-location"]
    path = f"/lakekeeper/v1/{world.warehouse}/namespaces/{ns}/generic-tables"
    dropped = world.admin.delete(f"{path}/{made['table']['name']}?purgeRequested=false")
    assert dropped.status_code == 204
    body = {"name": unique("g"), "format": "lance", "base-location": location}
    assert error_triple(world.admin.post(path, body))[:2] == (409, "LocationAlreadyTaken")
    requested = {"name": unique("t"), "schema": SCHEMA, "location": location}
    assert error_triple(world.admin.post(f"{world.root}/namespaces/{ns}/tables", requested))[:2] == (
        409,
        "LocationAlreadyTaken",
    )
