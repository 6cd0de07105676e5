# SPDX-License-Identifier: Apache-2.0
"""A name does not lose data policies by a swap: a restricted principal is refused, and other losses are announced."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.stack.adoption import register
from tests.support.stack.columns import WIDE, wide
from tests.support.stack.data_policies import POLICY, change, make, target
from tests.support.stack.lifecycle import soft_world, undrop
from tests.support.stack.namespace_moves import move_namespace
from tests.support.stack.policy_files import at, clean, owner
from tests.support.stack.tags import attach, define, tags_path
from tests.support.stack.views import body as view_body
from tests.support.stack.world import Person, Table, World, error_triple, send_until_decided, unique

__all__ = ["clean", "owner"]

REFUSED = (403, "DataPolicyLost")
_NULLED: dict[str, Any] = {"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "name"}]}


def owned(world: World, owner: Person) -> str:
    """Return a namespace of the owner."""
    ns = world.namespace()
    world.grant("ownership", owner, "namespace", world.namespace_id(ns))
    return ns


def namespace_target(world: World, ns: str) -> dict[str, str]:
    return {"type": "namespace", "id": world.namespace_id(ns), "warehouse-id": world.warehouse}


def restricted(world: World, owner: Person, shape: str = "table") -> tuple[str, Table, dict[str, Any]]:
    """Return a namespace of the owner, its table `t`, and a policy of this shape that restricts the owner on it."""
    ns = owned(world, owner)
    table = wide(world, ns, name="t", by=owner)
    tag = define(world)
    columns = [{"tag": tag["name"]}]
    policy = make(world, {**_NULLED, "columns": columns} if shape == "named tag" else _NULLED)
    on_column = tags_path(world, "table", table.uuid, "name")
    bound: dict[str, Any] = {"type": "tag", "id": tag["id"]}
    match shape:
        case "table":
            bound = target(world, table)
        case "namespace":
            bound = namespace_target(world, ns)
        case "tag of the table":
            assert attach(world, tag, tags_path(world, "table", table.uuid)).status_code < 300
        case "tag of a column":
            assert attach(world, tag, on_column).status_code < 300
        case "tag of the namespace":
            assert attach(world, tag, tags_path(world, "namespace", world.namespace_id(ns))).status_code < 300
        case _:
            assert attach(world, tag, on_column).status_code < 300
            bound = {"type": "warehouse", "id": world.warehouse}
    assert change(world, policy, add=[bound]).status_code == 204
    return ns, table, policy


def created(world: World, by: Person, ns: str, name: str = "t", *, stage_create: bool = False) -> httpx.Response:
    body = {"name": name, "schema": WIDE, "stage-create": stage_create}
    return send_until_decided(lambda: by.post(f"{world.root}/namespaces/{ns}/tables", body))


def renamed(world: World, by: Person, source: tuple[str, str], to: tuple[str, str], kind: str = "tables") -> Any:
    sides = {side: {"namespace": [ns], "name": name} for side, (ns, name) in (("source", source), ("destination", to))}
    return send_until_decided(lambda: by.post(f"{world.root}/{kind}/rename", sides))


def dropped(world: World, by: Person, table: Table, purge: str = "true") -> None:
    done = send_until_decided(lambda: by.delete(f"{table.path}?purgeRequested={purge}"))
    assert done.status_code == 204, done.text


def dropped_with_namespace(world: World, by: Person, ns: str) -> None:
    """Drop the namespace, and let an administrator create it again for the owner."""
    path = f"{world.root}/namespaces/{ns}?recursive=true&purge=true&force=true"
    assert send_until_decided(lambda: by.delete(path)).status_code == 204
    assert world.admin.post(f"{world.root}/namespaces", {"namespace": [ns]}).status_code == 200
    world.grant("ownership", by, "namespace", world.namespace_id(ns))


#: Ways in which the restricted owner frees the name `t`.
LEAVE: dict[str, Callable[[World, Person, str, Table], object]] = {
    "renamed": lambda world, owner, ns, table: renamed(world, owner, (ns, "t"), (ns, "t_old")),
    "moved": lambda world, owner, ns, table: renamed(world, owner, (ns, "t"), (owned(world, owner), "t")),
    "dropped and purged": lambda world, owner, ns, table: dropped(world, owner, table),
    "dropped": lambda world, owner, ns, table: dropped(world, owner, table, "false"),
    "dropped with its namespace": lambda world, owner, ns, table: dropped_with_namespace(world, owner, ns),
}


@pytest.mark.threat("LG-DEC-43")
@pytest.mark.parametrize("way", LEAVE)
def test_a_restricted_owner_gives_a_vacated_name_to_no_table_without_the_policy(
    world: World, owner: Person, way: str
) -> None:
    ns, table, _ = restricted(world, owner)
    LEAVE[way](world, owner, ns, table)
    assert error_triple(created(world, owner, ns))[:2] == REFUSED
    assert error_triple(created(world, owner, ns, "T"))[:2] == REFUSED, "names differ in more than letter case"
    assert owner.get(f"{world.root}/namespaces/{ns}/tables/t").status_code == 404
    assert created(world, owner, ns, "other").status_code == 200


@pytest.mark.threat("LG-DEC-43")
@pytest.mark.parametrize(
    "shape", ["namespace", "tag of the table", "tag of a column", "tag of the namespace", "named tag"]
)
def test_each_shape_of_a_policy_is_missed_on_a_name_that_it_restricted(world: World, owner: Person, shape: str) -> None:
    ns, table, _ = restricted(world, owner, shape)
    dropped(world, owner, table)
    if "namespace" in shape:
        assert created(world, owner, ns).status_code == 200, "the namespace still restricts the name"
        world.admin.delete(f"{world.root}/namespaces/{ns}/tables/t?purgeRequested=true")
        dropped_with_namespace(world, owner, ns)
    assert error_triple(created(world, owner, ns))[:2] == REFUSED


def staged(world: World, owner: Person, ns: str) -> httpx.Response:
    """Create the table `t` in two steps."""
    made = created(world, owner, ns, stage_create=True)
    assert made.status_code == 200, made.text
    metadata = made.json()["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": WIDE, "last-column-id": 5},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    requirements: list[dict[str, Any]] = [{"type": "assert-create"}]
    body = {"requirements": requirements, "updates": updates}
    single = owner.post(f"{world.root}/namespaces/{ns}/tables/t", body)
    identifier = {"namespace": [ns], "name": "t"}
    several = owner.post(f"{world.root}/transactions/commit", {"table-changes": [{"identifier": identifier, **body}]})
    assert single.status_code == several.status_code
    return several


def registered(world: World, owner: Person, ns: str) -> httpx.Response:
    """Register the files of another table under the name."""
    other = wide(world, ns, name="other", by=owner)
    dropped(world, owner, other, "false")
    return register(owner, world, ns, other.answer["metadata-location"], "t")


def moved(world: World, owner: Person, ns: str) -> httpx.Response:
    """Give a namespace with a table `t` the path of the vacated one."""
    move_namespace(world, ns, [unique("away")])
    source = owned(world, owner)
    assert created(world, owner, source).status_code == 200
    world.grant("create", owner, "warehouse", world.warehouse)
    world.grant("manage_grants", owner, "warehouse", world.warehouse)
    id = world.namespace_id(source)
    path = f"/management/v1/warehouse/{world.warehouse}/namespace/{id}/move"
    return send_until_decided(lambda: owner.post(path, {"destination": [ns]}))


#: Ways in which the restricted owner gives the vacated name `t` to another object.
TAKE: dict[str, Callable[[World, Person, str], Any]] = {
    "rename": lambda world, owner, ns: (
        created(world, owner, ns, "tmp"),
        renamed(world, owner, (ns, "tmp"), (ns, "t")),
    )[1],
    "staged creation": staged,
    "registration": registered,
    "view": lambda world, owner, ns: owner.post(f"{world.root}/namespaces/{ns}/views", view_body("t")),
    "generic table": lambda world, owner, ns: owner.post(
        f"/lakekeeper/v1/{world.warehouse}/namespaces/{ns}/generic-tables", {"name": "t", "format": "lance"}
    ),
    "move of a namespace": moved,
}


@pytest.mark.threat("LG-DEC-43")
@pytest.mark.parametrize("way", TAKE)
def test_no_way_gives_a_vacated_name_to_an_object_without_the_policy(world: World, owner: Person, way: str) -> None:
    ns, table, _ = restricted(world, owner)
    dropped(world, owner, table)
    answer = TAKE[way](world, owner, ns)
    assert error_triple(answer)[:2] == REFUSED, answer.text
    found = world.sql(
        "select 1 from tables t join namespaces n on n.id = t.namespace_id "
        "where n.path_key = $1 and t.name_key = 't' and t.staged_by is null",
        ns,
    )
    assert found == []


@pytest.mark.threat("LG-DEC-43")
def test_a_dropped_table_is_restored_under_its_name_and_no_other_one(world: World, owner: Person) -> None:
    soft = soft_world(world)
    ns, table, _ = restricted(soft, owner)
    other = wide(soft, ns, name="u", by=owner)
    dropped(soft, owner, table)
    dropped(soft, owner, other)
    assert error_triple(created(soft, owner, ns))[:2] == REFUSED
    assert undrop(owner, soft, ("table", table.uuid)).status_code == 204
    assert renamed(soft, owner, (ns, "t"), (ns, "u")).status_code == 204
    assert renamed(soft, owner, (ns, "u"), (ns, "t")).status_code == 204
    assert error_triple(undrop(owner, soft, ("table", other.uuid)))[:2] == REFUSED, "the name had the policy of `t`"
    soft.admin.post(f"/management/v1/warehouse/{soft.warehouse}/delete-profile", {"delete-profile": {"type": "hard"}})


@pytest.mark.threat("LG-DEC-43")
def test_a_restricted_owner_creates_no_namespace_again_without_its_policy(world: World, owner: Person) -> None:
    ns, _, policy = restricted(world, owner, "namespace")
    world.grant("create", owner, "warehouse", world.warehouse)
    path = f"{world.root}/namespaces/{ns}?recursive=true&purge=true&force=true"
    assert send_until_decided(lambda: owner.delete(path)).status_code == 204
    make_again = lambda: owner.post(f"{world.root}/namespaces", {"namespace": [ns]})  # noqa: E731
    assert error_triple(send_until_decided(make_again))[:2] == REFUSED
    world.grant("exempt", owner, "data-policy", policy["id"])
    assert send_until_decided(make_again).status_code == 200


def test_a_name_is_free_again_when_the_policy_holds_for_it_or_is_removed_from_it(world: World, owner: Person) -> None:
    ns, table, policy = restricted(world, owner)
    dropped(world, owner, table)
    name = {"warehouse-id": world.warehouse, "namespace": [ns], "name": "t"}
    assert error_triple(created(world, owner, ns))[:2] == REFUSED
    bound: dict[str, Any] = {"add-names": [name]}
    assert change(world, policy, **bound).status_code == 204
    assert created(world, owner, ns).status_code == 200
    dropped(world, owner, at(world, ns, "t", table))
    freed: dict[str, Any] = {"remove-names": [name]}
    assert change(world, policy, **freed).status_code == 204
    assert created(world, owner, ns).status_code == 200, "a manager of the policy has removed it from the name"
    second = make(world)
    assert change(world, second, add=[namespace_target(world, ns)]).status_code == 204
    dropped(world, owner, at(world, ns, "t", table))
    assert world.admin.send("DELETE", f"{POLICY}/{second['id']}", params={"force": "true"}).status_code == 204
    assert created(world, owner, ns).status_code == 200


def test_a_released_column_does_not_make_another_table_a_holder_of_the_restriction(world: World, owner: Person) -> None:
    ns, table, policy = restricted(world, owner)
    other = wide(world, ns, name="other", by=owner)
    assert change(world, policy, add=[target(world, other)]).status_code == 204
    released = {"table-id": other.uuid, "field-id": 2}
    assert world.admin.post(f"{POLICY}/{policy['id']}/release", released).status_code == 204
    dropped(world, owner, table)
    assert error_triple(renamed(world, owner, (ns, "other"), (ns, "t")))[:2] == REFUSED
    assert renamed(world, owner, (ns, "other"), (ns, "o")).status_code == 204
    assert renamed(world, owner, (ns, "o"), (ns, "other")).status_code == 204, "it had the release under this name"


@pytest.mark.threat("LG-DEC-43")
def test_an_exempt_principal_swaps_and_the_managers_of_the_policy_learn_it(world: World, owner: Person) -> None:
    ns, table, policy = restricted(world, owner)
    world.grant("exempt", owner, "data-policy", policy["id"])
    dropped(world, owner, table)
    new = created(world, owner, ns)
    assert new.status_code == 200, new.text
    id = new.json()["metadata"]["table-uuid"]
    (row,) = world.sql("select id::text as id from tables where table_uuid = $1", id)
    (alert,) = world.admin.get(f"{POLICY}/{policy['id']}/alerts").json()["alerts"]
    assert alert["table-id"] == row["id"] and f"{ns}.t" in alert["problem"]
    (affected,) = world.admin.get(f"{POLICY}/{policy['id']}/affected").json()["tables"]
    assert (affected["table-id"], affected["name"], affected["lost"]) == (row["id"], "t", True)
    records = world.sql(
        "select convert_from(record, 'UTF8') as it from audit_log where operation = 'create_table' and actor_id = $1",
        owner.id,
    )
    details = [json.loads(each["it"])["detail"].get("policies_lost") for each in records]
    assert f"{policy['id']}:{row['id']}" in details
    # Bound again, the name has lost nothing.
    assert change(world, policy, add=[{**target(world, table), "id": row["id"]}]).status_code == 204
    (affected,) = world.admin.get(f"{POLICY}/{policy['id']}/affected").json()["tables"]
    assert affected["table-id"] == row["id"] and "lost" not in affected


def test_a_manager_of_the_policy_swaps(world: World, owner: Person) -> None:
    ns, table, policy = restricted(world, owner)
    world.grant("ownership", owner, "data-policy", policy["id"])
    dropped(world, owner, table)
    assert created(world, owner, ns).status_code == 200


@pytest.mark.threat("LG-DEC-43")
def test_the_warehouse_says_whether_a_loss_is_refused_or_announced(world: World, owner: Person) -> None:
    soft = soft_world(world)
    path = f"/management/v1/warehouse/{soft.warehouse}"
    assert soft.admin.get(path).json()["policy-loss"] == "refuse-restricted"
    world.grant("ownership", owner, "warehouse", soft.warehouse)
    answer = send_until_decided(lambda: owner.post(f"{path}/policy-loss", {"policy-loss": "announce"}))
    assert answer.status_code == 403, "owners of the warehouse may be restricted themselves"
    for mode, exempt, status in (
        ("announce", False, 200),
        ("refuse-restricted", True, 200),
        ("refuse", True, 403),
    ):
        answer = soft.admin.post(f"{path}/policy-loss", {"policy-loss": mode})
        assert (answer.status_code, answer.json()["policy-loss"]) == (200, mode)
        ns, table, policy = restricted(soft, owner)
        if exempt:
            world.grant("exempt", owner, "data-policy", policy["id"])
        dropped(soft, owner, table)
        assert created(soft, owner, ns).status_code == status, mode
    assert error_triple(soft.admin.post(f"{path}/policy-loss", {"policy-loss": "ignore"}))[0] == 400
