# SPDX-License-Identifier: Apache-2.0
"""Permission checks of engines and consoles: batch-check, allowed actions, and checks about other principals."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.stack.checks import BATCH, known_role
from tests.support.stack.exchanging import acting, unsigned
from tests.support.stack.exchanging import send as exchange
from tests.support.stack.role_policies import contractors, make_role, put_in
from tests.support.stack.views import create
from tests.support.stack.world import Person, World, error_of, error_triple, unique

RIGHTS = "/management/v1/permissions"


def _batch(person: Person, *checks: dict[str, Any], **more: Any) -> list[Any]:
    answer = person.post(BATCH, {"checks": checks, **more})
    assert answer.status_code == 200, answer.text
    results: list[Any] = answer.json()["results"]
    return results


def _allowed(person: Person, *checks: dict[str, Any]) -> list[bool]:
    return [each["allowed"] for each in _batch(person, *checks)]


def _on(world: World, kind: str, action: object, **ids: object) -> dict[str, Any]:
    return {"operation": {kind: {"warehouse-id": world.warehouse, "action": action, **ids}}}


def test_every_check_form_is_answered_in_order_with_its_id(world: World, ns: str) -> None:
    table = world.table(ns)
    namespace = world.namespace_id(ns)
    checks: Sequence[dict[str, Any]] = [
        {"id": "server", "operation": {"server": {"action": {"action": "create_project"}}}},
        {"id": "project", "operation": {"project": {"project-id": world.project, "action": {"action": "list_tags"}}}},
        {"id": "default", "operation": {"project": {"action": "create_warehouse"}}},
        {"id": "warehouse", **_on(world, "warehouse", {"action": "create_namespace", "name": "x", "properties": {}})},
        {"id": "ns id", **_on(world, "namespace", {"action": "create_table"}, **{"namespace-id": namespace})},
        {"id": "ns name", **_on(world, "namespace", {"action": "delete", "recursive": True}, namespace=[ns])},
        {"id": "table id", **_on(world, "table", {"action": "drop", "purge": True}, **{"table-id": table.uuid})},
        {"id": "table name", **_on(world, "table", {"action": "undrop"}, namespace=[ns], table=table.name)},
        _on(world, "table", {"action": "commit", "update_kinds": ["add-schema"]}, **{"table-id": table.uuid}),
    ]
    expected = [{**({"id": each["id"]} if "id" in each else {}), "allowed": True} for each in checks]
    assert _batch(world.admin, *checks) == expected
    assert _batch(world.carol, *checks) == [{**each, "allowed": False} for each in expected]


def test_unknown_and_invisible_objects_get_the_same_denial_and_404(world: World, ns: str) -> None:
    table = world.table(ns)
    there, absent = (_on(world, "table", "read_data", **{"table-id": id}) for id in (table.uuid, str(uuid4())))
    about_bob = {"identity": {"user": "oidc~bob"}}
    for check in (there, absent):
        assert _allowed(world.carol, check) == [False]
        assert _allowed(world.carol, {**check, **about_bob}) == [False]
    refused = [
        error_triple(world.carol.post(BATCH, {"checks": [{**check, **more}], "error-on-not-found": True}))
        for check in (there, absent)
        for more in ({}, about_bob)
    ]
    assert {each[:2] for each in refused} == {(404, "NoSuchTableException")}
    assert _batch(world.admin, there, **{"error-on-not-found": True}) == [{"allowed": True}]


def test_checks_of_other_users_need_read_assignments(world: World, ns: str) -> None:
    table = world.table(ns)
    world.grant("select", world.analyst, "table", table.uuid)
    check = _on(world, "table", "read_data", **{"table-id": table.uuid})
    about = {**check, "identity": {"user": world.analyst.id}}
    assert _allowed(world.analyst, check, about) == [True, True], "naming oneself in a check gives the same results"
    assert _allowed(world.admin, about) == [True]
    refused = world.analyst.post(BATCH, {"checks": [{**check, "identity": {"user": world.bob.id}}]})
    assert (refused.status_code, error_of(refused)["type"]) == (403, "CannotInspectPermissions")


@pytest.mark.parametrize("privilege", ["inspector", "delegate"])
def test_inspector_may_check_all_users_and_nothing_else(world: World, ns: str, privilege: str) -> None:
    table, other, engine = world.table(ns), world.table(ns), world.steward
    world.strip(engine)
    world.grant("select", world.analyst, "table", table.uuid)

    def requested(person: Person, **more: Any) -> httpx.Response:
        checks = [
            {**_on(world, "table", "read_data", **{"table-id": each}), "identity": {"user": world.analyst.id}}
            for each in (table.uuid, other.uuid, str(uuid4()))
        ]
        return person.post(BATCH, {"checks": checks, "delegated": True, **more})

    assert error_of(requested(engine))["type"] == "CannotInspectPermissions"
    assert error_of(requested(world.admin))["type"] == "CannotInspectPermissions", (
        "a reader of assignments is no inspector"
    )
    world.grant(privilege, engine, "warehouse", world.warehouse)
    assert [each["allowed"] for each in requested(engine).json()["results"]] == [True, False, False]
    undelegated = error_of(requested(engine, delegated=False))
    assert (undelegated["code"], undelegated["type"]) == (403, "CannotInspectPermissions")
    assert _allowed(engine, _on(world, "warehouse", "get_metadata")) == [False], (
        "an inspector gets no visibility by that right"
    )
    world.revoke(privilege, engine, "warehouse", world.warehouse)
    assert error_of(requested(engine))["type"] == "CannotInspectPermissions", (
        "a revoked inspector is refused by the next request"
    )
    world.grant(privilege, engine, "project", world.project)
    assert [each["allowed"] for each in requested(engine).json()["results"]] == [True, False, False]
    world.revoke(privilege, engine, "project", world.project)


def test_inspector_checks_users_but_cannot_act_as_them(world: World, ns: str) -> None:
    """The secret of a bridge that only sends checks gives no access to data."""
    table, bridge = world.table(ns), world.steward
    world.strip(bridge)
    for kind, id in (("warehouse", world.warehouse), ("project", world.project)):
        world.grant("inspector", bridge, kind, id)
    about = {"identity": {"user": world.admin.id}}
    check = {**_on(world, "table", "read_data", **{"table-id": table.uuid}), **about}
    assert [each["allowed"] for each in _batch(bridge, check, delegated=True)] == [True]
    for token in (world.admin.token, unsigned(world.admin.id.partition("~")[2])):
        refused = exchange(world, bridge.token, subject_token=token)
        assert (refused.status_code, refused.json()["error"]) == (400, "unauthorized_client")
    world.grant("delegate", bridge, "warehouse", world.warehouse)
    person = acting(world, bridge, world.admin, proven=False)
    assert person.get(table.path).status_code == 200
    world.revoke("delegate", bridge, "warehouse", world.warehouse)
    assert error_triple(person.get(table.path))[0] == 404, (
        "a token from before the revocation must not work, although inspector remains"
    )
    assert [each["allowed"] for each in _batch(bridge, check, delegated=True)] == [True]
    world.strip(bridge)


def test_audit_names_the_checked_principal(world: World, ns: str) -> None:
    check = _on(world, "table", "read_data", **{"table-id": world.table(ns).uuid})
    about = [{**check, "identity": {"user": each.id}} for each in (world.bob, world.analyst, world.bob)]
    requested = world.admin.post(BATCH, {"checks": [check, *about]})
    assert requested.status_code == 200, requested.text
    record = "convert_from(record, 'UTF8')"
    kept = f"select {record} as r from audit_log where {record} like '%' || $1 || '%'"
    deadline = time.monotonic() + 30
    while not (rows := world.sql(kept, requested.headers["x-request-id"])) and time.monotonic() < deadline:
        time.sleep(0.1)
    error_triple = json.loads(json.loads(rows[0]["r"])["detail"]["asked_about"])
    assert error_triple == [f"user:{each}" for each in sorted((world.analyst.id, world.bob.id))]


def test_inspector_of_one_warehouse_learns_nothing_of_another(world: World, ns: str) -> None:
    table, engine = world.table(ns), world.steward
    world.strip(engine)
    world.grant("inspector", engine, "warehouse", world.warehouse)
    about = {"identity": {"user": world.admin.id}}
    here = {**_on(world, "table", "read_data", **{"table-id": table.uuid}), **about}
    there = {"operation": {"project": {"project-id": world.project, "action": "get_metadata"}}, **about}
    unknown = {"operation": {"warehouse": {"warehouse-id": str(uuid4()), "action": "use"}}, **about}
    assert [each["allowed"] for each in _batch(engine, here, there, unknown, delegated=True)] == [True, False, False]
    refused = engine.post(BATCH, {"checks": [there, unknown], "delegated": True})
    assert error_of(refused)["type"] == "CannotInspectPermissions"
    world.strip(engine)


def test_check_by_name_works_without_knowing_the_object_type(world: World, ns: str) -> None:
    table, view = world.table(ns), unique("v")
    create(world, ns, view)

    def named(name: str, action: str = "include_in_list") -> dict[str, Any]:
        return _on(world, "tabular", action, namespace=[ns], name=name)

    checks = [named(each) for each in (table.name, view, "absent")]
    assert _allowed(world.admin, *checks) == [True, True, False]
    assert _allowed(world.admin, *checks * 10) == [True, True, False] * 10, (
        "many checks must give the same results as few"
    )
    assert _allowed(world.carol, *checks * 10) == [False] * 30
    assert _allowed(world.admin, named(table.name, "read_data")) == [False], "no action of both tables and views"
    for body in (
        {"checks": [named(view)], "error-on-not-found": True},
        {"checks": [{**named(view), "identity": {"user": world.bob.id}}]},
        {"checks": [{"operation": {"server": {"action": "list_users"}}, "identity": {"user": world.bob.id}}]}
        | {"delegated": True},
    ):
        assert world.admin.post(BATCH, body).status_code == 400, body
    assert world.admin.post(f"{RIGHTS}/check", named(view)).status_code == 400


def test_batch_check_allows_exactly_the_visible_names(world: World, ns: str) -> None:
    tables = [world.table(ns) for _ in range(11)]
    world.grant("describe", world.analyst, "table", tables[4].uuid)
    names = [_on(world, "tabular", "include_in_list", namespace=[ns], name=each.name) for each in tables]
    assert _allowed(world.analyst, *names) == [index == 4 for index in range(11)]


def test_check_of_another_user_includes_that_users_policies(world: World, ns: str) -> None:
    table = world.table(ns)
    role = make_role(world)
    put_in(world, role, "user", world.steward.id)
    for person in (world.analyst, world.steward):
        world.grant("select", person, "table", table.uuid)
    check = _on(world, "table", "read_data", **{"table-id": table.uuid})
    about = [{**check, "identity": {"user": person.id}} for person in (world.analyst, world.steward)]
    single = {"operation": check["operation"], "identity": {"user": world.steward.id}}
    assert _allowed(world.admin, *about, check) == [True, True, True]
    with contractors(world, role):
        assert _allowed(world.admin, *about, check) == [True, False, True], (
            "each check uses the roles of the checked user, not of the caller"
        )
        assert world.admin.post(f"{RIGHTS}/check", single).json() == {"allowed": False}
    assert world.admin.post(f"{RIGHTS}/check", single).json() == {"allowed": True}


def test_role_is_checked_by_its_id(world: World, ns: str) -> None:
    table = world.table(ns)
    role = make_role(world)
    body = {"writes": [{"type": "select", "role": role}]}
    assert world.admin.post(world.grants_path("table", table.uuid), body).status_code == 204
    about = {"identity": {"role": role}}
    read, write = (_on(world, "table", action, **{"table-id": table.uuid}) for action in ("read_data", "write_data"))
    assert _allowed(world.admin, {**read, **about}, {**write, **about}) == [True, False]
    with contractors(world, role):
        assert _allowed(world.admin, {**read, **about}) == [False]


@pytest.mark.parametrize(
    ("body", "type"),
    [
        ({"checks": [{"operation": {"server": {"action": "list_users"}}}] * 1001}, "TooManyChecks"),
        ({"checks": [{"operation": {"server": {"action": None}}}]}, "BadRequestException"),
        ({"checks": [{"operation": {"fridge": {"action": "drop"}}}]}, "BadRequestException"),
        ({"checks": [{"operation": {"table": {"action": "drop"}}}]}, "BadRequestException"),
        (
            {"checks": [{"operation": {"server": {"action": {"action": "list_users", "x": [1]}}}}]},
            "BadRequestException",
        ),
        ({"checks": [{"operation": {"server": {"action": "list_users"}}, "identity": {}}]}, "BadRequestException"),
        ({"checks": {}}, "BadRequestException"),
    ],
)
def test_invalid_check_is_400(world: World, body: dict[str, Any], type: str) -> None:
    refused = world.admin.post(BATCH, body)
    assert (refused.status_code, error_of(refused)["type"]) == (400, type)


def test_batch_check_takes_1000_checks_of_at_most_100_principals(world: World) -> None:
    def about(count: int) -> dict[str, Any]:
        check = {"operation": {"server": {"action": "list_users"}}}
        return {"checks": [{**check, "identity": {"user": f"oidc~p{n % count}"}} for n in range(1000)]}

    assert world.admin.post(BATCH, about(100)).json() == {"results": [{"allowed": False}] * 1000}
    assert error_of(world.admin.post(BATCH, about(101)))["type"] == "TooManyChecks"


# ---- allowed actions ----------------------------------------------------------------------------------------------


def _actions(person: Person, path: str, **query: str) -> set[str]:
    answer = person.get(f"{RIGHTS}/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return set(answer.json()["allowed-actions"])


def test_access_lists_all_actions_and_authorizer_actions_the_models(world: World, ns: str) -> None:
    table = world.table(ns)
    path = f"warehouse/{world.warehouse}/table/{table.uuid}"
    world.grant("select", world.analyst, "table", table.uuid)
    world.grant("pass_grants", world.analyst, "table", table.uuid)
    assert _actions(world.analyst, f"{path}/access") == {
        "get_metadata",
        "get_tasks",
        "grant_describe",
        "grant_select",
        "include_in_list",
        "read_assignments",
        "read_columns",
        "read_data",
        "read_grants",
    }
    granting = {"grant_describe", "grant_select", "read_assignments"}
    assert _actions(world.analyst, f"{path}/authorizer-actions") == granting
    assert _actions(world.admin, f"{path}/authorizer-actions", principalUser=world.analyst.id) == granting


def test_grant_manager_may_check_otherwise_invisible_objects(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    path = f"namespace/{id}/authorizer-actions"
    assert world.analyst.get(f"{RIGHTS}/{path}").status_code == 404
    world.grant("manage_grants", world.analyst, "namespace", id)
    assert {"grant_select", "set_managed_access", "change_ownership"} <= _actions(world.analyst, path)


def test_every_object_type_lists_its_actions(world: World, ns: str) -> None:
    world.strip(world.carol)
    table, namespace, role = world.table(ns), world.namespace_id(ns), known_role(world)
    for path, own in (
        ("server", "grant_admin"),
        ("project", "grant_project_admin"),
        (f"project/{world.project}", "grant_security_admin"),
        (f"warehouse/{world.warehouse}", "grant_create"),
        (f"namespace/{namespace}", "grant_create"),
        (f"warehouse/{world.warehouse}/table/{table.uuid}", "grant_select"),
        (f"role/{role}", "can_grant_assignee"),
    ):
        assert own in _actions(world.admin, f"{path}/authorizer-actions")
        assert own in _actions(world.admin, f"{path}/access")
        mine = world.carol.get(f"{RIGHTS}/{path}/access")
        assert mine.status_code == (200 if path == "server" else 404), path
        about = world.carol.get(f"{RIGHTS}/{path}/access", params={"principalUser": world.bob.id})
        assert about.status_code == (403 if path == "server" else 404), path
    assert _actions(world.carol, "server/access") == set()


def test_actions_of_two_principals_or_none_are_400(world: World) -> None:
    path = f"{RIGHTS}/server/access"
    both = {"principalUser": world.bob.id, "principalRole": str(uuid4())}
    for query in (both, {"principalUser": "bob"}, {"principalRole": "x"}):
        assert world.admin.get(path, params=query).status_code == 400
