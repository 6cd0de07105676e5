# SPDX-License-Identifier: Apache-2.0
"""Generic tables with data policies: the gateway does not know their columns, so no caller reads what is restricted."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.stack.bound_policies import DELEGATION, MASK, ONE, bind, clean, engine
from tests.support.stack.columns import BATCH
from tests.support.stack.data_policies import POLICY, change
from tests.support.stack.data_policies import make as make_policy
from tests.support.stack.exchanging import acting
from tests.support.stack.generic_tables import at, create, key_in, make, rename
from tests.support.stack.lifecycle import fill
from tests.support.stack.registrations import ADOPT
from tests.support.stack.world import Person, World, error_of, send_until_decided

__all__ = ["clean", "engine"]

MANAGED = {"X-Iceberg-Access-Delegation": "client-managed"}
STATISTICS = {"rows": 4711}


@pytest.fixture
def lake(world: World, ns: str) -> dict[str, Any]:
    """Return a generic table with statistics."""
    return make(world, ns, statistics=STATISTICS, properties={"a": "b"})


def refused(answer: httpx.Response) -> None:
    """Assert a 403 that names the remedy, and nothing of the policy."""
    error = error_of(answer)
    assert (error["code"], error["type"]) == (403, "ForbiddenException"), error
    assert "`exempt`" in error["message"]
    assert "mask" not in error["message"]


@pytest.mark.parametrize("level", ["namespace", "warehouse"])
@pytest.mark.parametrize("definition", [MASK, ONE], ids=["mask", "row filter"])
def test_neither_an_owner_nor_an_enforcer_gets_credentials_of_a_generic_table_below_a_policy(
    world: World, ns: str, lake: dict[str, Any], engine: Person, level: str, definition: Any
) -> None:
    bind(world, definition, level, world.namespace_id(ns) if level == "namespace" else world.warehouse)
    for person in (world.admin, acting(world, engine, world.admin)):
        for headers in ({}, DELEGATION):
            refused(person.get(lake["path"], headers=headers))
        refused(person.get(f"{lake['path']}/credentials"))


def test_the_description_of_a_restricted_generic_table_shows_no_statistics(
    world: World, ns: str, lake: dict[str, Any]
) -> None:
    world.grant("describe", world.carol, "generic-table", lake["id"])
    assert world.carol.get(lake["path"]).json()["table"]["statistics"] == STATISTICS
    bind(world, MASK, "namespace", world.namespace_id(ns))
    for person, headers in ((world.carol, DELEGATION), (world.carol, MANAGED), (world.admin, MANAGED)):
        shown = person.get(lake["path"], headers=headers)
        assert shown.status_code == 200, shown.text
        assert set(shown.json()) == {"table"}
        assert "statistics" not in shown.json()["table"]
        assert shown.json()["table"]["properties"] == {"a": "b"}
    assert world.admin.head(lake["path"]).status_code == 204


def test_an_exempt_principal_gets_credentials_until_its_exemption_ends(
    world: World, ns: str, lake: dict[str, Any]
) -> None:
    policy = make_policy(world, MASK)["id"]
    bound = change(world, {"id": policy}, add=[{"type": "namespace", "id": world.namespace_id(ns)}])
    assert bound.status_code == 204, bound.text
    refused(world.admin.get(lake["path"]))
    world.grant("exempt", world.admin, "data-policy", policy)
    loaded = send_until_decided(lambda: world.admin.get(lake["path"]))
    assert loaded.json()["storage-credentials"]
    assert loaded.json()["table"]["statistics"] == STATISTICS
    world.revoke("exempt", world.admin, "data-policy", policy)
    refused(world.admin.get(lake["path"]))


def test_a_tag_on_the_generic_table_or_above_it_binds_and_a_tag_of_columns_does_not(
    world: World, ns: str, lake: dict[str, Any]
) -> None:
    tag = str(uuid4())
    world.sql(
        "insert into tags (id, project_id, name, name_key, scope, value_kind)"
        " select $1::uuid, project_id, $1::text, $1::text, '{}', 'marker' from warehouses where id = $2::uuid",
        tag,
        world.warehouse,
    )
    bind(world, {"kind": "mask", "action": "mask-alphanum"}, "tag", tag)
    # Another table's column carries the tag, so the warehouse is governed.
    _attach(world, tag, "column", str(uuid4()), 1)
    try:
        assert world.admin.get(f"{lake['path']}/credentials").status_code == 200
        for type, id in (("generic-table", lake["id"]), ("namespace", world.namespace_id(ns))):
            _attach(world, tag, type, id, None)
            refused(world.admin.get(f"{lake['path']}/credentials"))
            world.sql("delete from tag_attachments where object_id = $1::uuid", id)
            _touch(world)
            assert world.admin.get(f"{lake['path']}/credentials").status_code == 200
    finally:
        world.remove_policies()
        world.sql("delete from tag_attachments where tag_id = $1::uuid", tag)
        world.sql("delete from tags where id = $1::uuid", tag)


def _attach(world: World, tag: str, type: str, id: str, field: int | None) -> None:
    world.sql(
        "insert into tag_attachments (tag_id, warehouse_id, object_type, object_id, field_id, attached_by)"
        " values ($1::uuid, $2::uuid, $3, $4::uuid, $5, 'test')",
        tag,
        world.warehouse,
        type,
        id,
        field,
    )
    _touch(world)


def _touch(world: World) -> None:
    world.sql("update warehouses set data_policy_revision = gen_random_uuid() where id = $1::uuid", world.warehouse)


def test_checks_about_data_of_a_restricted_generic_table_are_denied(
    world: World, ns: str, lake: dict[str, Any]
) -> None:
    def allowed() -> list[bool]:
        about = {"warehouse-id": world.warehouse, "generic-table-id": lake["id"]}
        actions = ("read_data", "write_data", "get_metadata", "drop")
        checks = [{"operation": {"generic-table": {**about, "action": each}}} for each in actions]
        answer = world.admin.post(BATCH, {"checks": checks})
        assert answer.status_code == 200, answer.text
        single = world.admin.post("/management/v1/permissions/check", checks[0])
        first = answer.json()["results"][0]
        assert single.json() == {name: first[name] for name in ("allowed", "restricted") if name in first}
        return [each["allowed"] for each in answer.json()["results"]]

    assert allowed() == [True, True, True, True]
    bind(world, MASK, "namespace", world.namespace_id(ns))
    assert allowed() == [False, False, True, True]


def test_a_creator_below_a_policy_gets_no_credentials_and_the_owner_of_the_policy_an_alert(
    world: World, ns: str
) -> None:
    policy = bind(world, MASK, "namespace", world.namespace_id(ns))
    key = {"Idempotency-Key": str(uuid4())}
    body = {"name": "late", "format": "delta"}
    path = f"/lakekeeper/v1/{world.warehouse}/namespaces/{ns}/generic-tables"
    for _ in range(2):
        made = world.admin.post(path, body, headers={**DELEGATION, **key})
        assert made.status_code == 200, made.text
        assert not made.json().get("storage-credentials")
    refused(world.admin.get(f"{path}/late"))
    deadline = time.monotonic() + 60
    while not (rows := world.sql("select problem from data_policy_alerts where policy_id = $1::uuid", policy)):
        assert time.monotonic() < deadline, "the alert was not recorded before the deadline"
        time.sleep(0.1)
    assert rows[0]["problem"].startswith("generic-table: ")
    assert create(world, ns).status_code == 200


def test_the_affected_tables_of_a_policy_include_generic_tables_with_their_readers(
    world: World, ns: str, lake: dict[str, Any]
) -> None:
    policy = make_policy(world, MASK)
    bound = change(world, policy, add=[{"type": "namespace", "id": world.namespace_id(ns)}])
    assert bound.status_code == 204, bound.text
    world.grant("select", world.carol, "generic-table", lake["id"])
    [found] = world.admin.get(f"{POLICY}/{policy['id']}/affected").json()["tables"]
    assert (found["type"], found["table-id"], found["name"]) == ("generic-table", lake["id"], lake["name"])
    assert {"type": "user", "id": world.carol.id} in found["principals"]
    released = world.admin.post(f"{POLICY}/{policy['id']}/release", {"table-id": lake["id"], "field-id": 1})
    assert error_of(released)["code"] == 400


def governed(world: World, ns: str) -> dict[str, Any]:
    """Return a new data policy that is bound to the namespace."""
    policy = make_policy(world, {"kind": "mask", "action": "replace-with-null"})
    bound = change(world, policy, add=[{"type": "namespace", "id": world.namespace_id(ns)}])
    assert bound.status_code == 204, bound.text
    return policy


def test_a_generic_table_keeps_the_policies_of_the_namespace_that_it_leaves(
    world: World, ns: str, lake: dict[str, Any]
) -> None:
    policy, elsewhere = governed(world, ns), world.namespace()
    assert rename(world.admin, world, (ns, lake["name"]), (elsewhere, "moved")).status_code == 204
    moved = at(world, elsewhere, "moved")
    refused(world.admin.get(f"{moved}/credentials"))
    bindings = world.admin.get(f"{POLICY}/{policy['id']}/bindings").json()["bindings"]
    assert {(each["type"], each["id"]) for each in bindings} == {
        ("namespace", world.namespace_id(ns)),
        ("generic-table", lake["id"]),
    }
    own = {"type": "generic-table", "id": lake["id"], "warehouse-id": world.warehouse}
    assert change(world, policy, remove=[own]).status_code == 204
    assert world.admin.get(f"{moved}/credentials").status_code == 200, "the manager of the policy lifts it"
    assert change(world, policy, add=[own]).status_code == 204
    refused(world.admin.get(f"{moved}/credentials"))


def test_only_managers_of_its_grants_bind_policies_to_a_generic_table(
    world: World, ns: str, lake: dict[str, Any]
) -> None:
    policy = make_policy(world, MASK)
    own = {"type": "generic-table", "id": lake["id"], "warehouse-id": world.warehouse}
    world.grant("ownership", world.carol, "data-policy", policy["id"])
    world.grant("modify", world.carol, "generic-table", lake["id"])
    assert change(world, policy, by=world.carol, add=[own]).status_code == 403
    world.grant("manage_grants", world.carol, "generic-table", lake["id"])
    assert send_until_decided(lambda: change(world, policy, by=world.carol, add=[own])).status_code == 204


@pytest.mark.parametrize("kind", ["generic table", "table"])
def test_adopted_files_keep_the_policies_that_restricted_them(world: World, ns: str, kind: str) -> None:
    """Neither a generic table over its own old files nor one over the files of an Iceberg table shows them."""
    if kind == "table":
        table = world.table(ns)
        path, location = table.path, table.location
        fill(world, location)
    else:
        made = make(world, ns)
        path, location = made["path"], made["table"]["base-location"]
        world.s3.put_object(Bucket=world.bucket, Key=key_in(world, made), Body=b"x")
    governed(world, ns)
    assert world.admin.delete(f"{path}?purgeRequested=false").status_code == 204
    world.sql("update retired_locations set keys_until = clock_timestamp() where starts_with(location, $1)", location)
    elsewhere = world.namespace()
    body = {"name": "again", "format": "parquet", "base-location": location}
    adopted = send_until_decided(lambda: world.admin.post(at(world, elsewhere), body, headers={**ADOPT, **DELEGATION}))
    assert adopted.status_code == 200, adopted.text
    assert not adopted.json().get("storage-credentials")
    refused(world.admin.get(at(world, elsewhere, "again")))
