# SPDX-License-Identifier: Apache-2.0
"""The grants API: idempotent writes with reason and expiry, lists by object and by principal, history."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.stack.checks import known_role
from tests.support.stack.grants import strangers
from tests.support.stack.world import Person, World, error_of, unique

__all__ = ["strangers"]


MANAGEMENT = "/management/v1"


pytestmark = pytest.mark.usefixtures("strangers")


def _path(world: World, kind: str, id: str = "") -> str:
    within = f"warehouse/{world.warehouse}"
    return {
        "server": f"{MANAGEMENT}/server/grants",
        "project": f"{MANAGEMENT}/project/grants",
        "warehouse": f"{MANAGEMENT}/{within}/grants",
    }.get(kind, f"{MANAGEMENT}/{within}/{kind}/{id}/grants" if kind != "role" else f"{MANAGEMENT}/role/{id}/grants")


def _entry(privilege: str, to: Person, **more: Any) -> dict[str, Any]:
    return {"privilege": privilege, "principal": {"user": to.id}, **more}


def _list(person: Person, path: str, **query: Any) -> list[dict[str, Any]]:
    answer = person.get(path, params=query)
    assert answer.status_code == 200, answer.text
    grants: list[dict[str, Any]] = answer.json()["grants"]
    return grants


def _all(person: Person, path: str) -> list[dict[str, Any]]:
    """Return all pages: the server, the project and the warehouse are shared with other tests."""
    grants: list[dict[str, Any]] = []
    token = ""
    while True:
        answer = person.get(path, params={"pageToken": token} if token else {})
        assert answer.status_code == 200, answer.text
        grants += answer.json()["grants"]
        token = answer.json().get("next-page-token")
        if not token:
            return grants


def _in(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def test_grant_is_listed_with_grantor_time_reason_and_expiry(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    path, until = _path(world, "namespace", id), _in(3600)
    body = {"writes": [_entry("select", world.analyst, reason="quarterly review", **{"expires-at": until})]}
    assert world.admin.post(path, body).status_code == 204
    (found,) = [each for each in _list(world.admin, path) if each["principal"] == {"user": world.analyst.id}]
    given = datetime.fromisoformat(found.pop("created-at"))
    assert abs(given - datetime.now(UTC)) < timedelta(minutes=1)
    assert datetime.fromisoformat(found.pop("expires-at")) == datetime.fromisoformat(until)
    assert found == {
        "privilege": "select",
        "principal": {"user": world.analyst.id},
        "resource": {
            "type": "namespace",
            "project-id": world.project,
            "warehouse-id": world.warehouse,
            "namespace-id": id,
        },
        "granted-by": world.admin.id,
        "reason": "quarterly review",
        "recognized": True,
    }


def test_granting_is_idempotent_and_revoking_a_missing_grant_succeeds(world: World, ns: str) -> None:
    path = _path(world, "namespace", world.namespace_id(ns))
    for _ in range(2):
        assert world.admin.post(path, {"writes": [_entry("select", world.analyst)]}).status_code == 204
        assert len(_list(world.admin, path)) == 2, "expected the grants of the owner and of the analyst"
    for _ in range(2):
        assert world.admin.post(path, {"deletes": [_entry("select", world.analyst)]}).status_code == 204
    assert [each["privilege"] for each in _list(world.admin, path)] == ["ownership"]
    (ended,) = _list(world.admin, f"{path}/history")
    assert (ended["ended-because"], ended["ended-by"], ended["granted-by"]) == (
        "revoked",
        world.admin.id,
        world.admin.id,
    )


def test_grant_expires_and_an_earlier_expiry_applies_at_once(world: World, ns: str) -> None:
    table = world.table(ns)
    path = _path(world, "table", table.uuid)

    def until(seconds: float) -> httpx.Response:
        return world.admin.post(path, {"writes": [_entry("select", world.analyst, **{"expires-at": _in(seconds)})]})

    assert until(3600).status_code == 204
    assert world.analyst.get(table.path).status_code == 200
    end = datetime.now(UTC) + timedelta(seconds=6)
    assert until(6).status_code == 204
    assert world.analyst.get(table.path).status_code == 200 or datetime.now(UTC) >= end
    time.sleep(6.2)
    assert world.analyst.get(table.path).status_code == 404
    assert world.analyst.id not in str(_list(world.admin, path))


@pytest.mark.parametrize("end", ["2020-01-01T00:00:00Z", "2999-01-01T00:00:00", "tomorrow", 1, "2999-13-01T00:00:00Z"])
def test_expiry_in_the_past_or_without_zone_is_400(world: World, ns: str, end: object) -> None:
    path = _path(world, "namespace", world.namespace_id(ns))
    refused = world.admin.post(path, {"writes": [_entry("select", world.analyst, **{"expires-at": end})]})
    expected = "InvalidGrantExpiry" if end == "2020-01-01T00:00:00Z" else "BadRequestException"
    assert (refused.status_code, error_of(refused)["type"]) == (400, expected)
    assert len(_list(world.admin, path)) == 1


def test_grant_change_is_atomic(world: World, ns: str) -> None:
    path = _path(world, "namespace", world.namespace_id(ns))
    unknown = {"privilege": "select", "principal": {"user": "oidc~anlayst"}}
    refused = world.admin.post(path, {"writes": [_entry("select", world.analyst), unknown]})
    assert (refused.status_code, error_of(refused)["type"]) == (404, "GrantTargetNotFound")
    role = {"privilege": "select", "principal": {"role": str(uuid4())}}
    assert world.admin.post(path, {"writes": [role]}).status_code == 404
    assert len(_list(world.admin, path)) == 1


def test_grant_change_holds_at_most_100_entries(world: World, ns: str) -> None:
    path = _path(world, "namespace", world.namespace_id(ns))
    people = [f"oidc~{unique('p')}" for _ in range(100)]
    for id in people:
        assert world.admin.post(f"{MANAGEMENT}/user", {"id": id, "name": "x"}).status_code == 201
    entries = [{"privilege": "describe", "principal": {"user": id}} for id in people]
    mixed = {"writes": entries[:99], "deletes": [_entry("select", world.analyst), _entry("modify", world.analyst)]}
    assert world.admin.post(path, mixed).status_code == 400
    assert world.admin.post(path, {"writes": entries}).status_code == 204
    first = world.admin.get(path, params={"pageSize": 60}).json()
    rest = world.admin.get(path, params={"pageSize": 60, "pageToken": first["next-page-token"]}).json()
    assert (len(first["grants"]), len(rest["grants"]), "next-page-token" in rest) == (60, 41, False)
    assert world.admin.post(path, {"deletes": entries}).status_code == 204
    assert len(_list(world.admin, path)) == 1


@pytest.mark.parametrize(
    ("body", "type"),
    [
        ({"writes": [{"privilege": "assignee", "principal": {"user": "oidc~bob"}}]}, "InvalidGrantPrivilege"),
        ({"writes": [{"privilege": "fly", "principal": {"user": "oidc~bob"}}]}, "InvalidGrantPrivilege"),
        ({"writes": [{"privilege": "select", "principal": {}}]}, "BadRequestException"),
        ({"writes": [{"privilege": "select", "principal": {"user": "bob"}}]}, "BadRequestException"),
        ({"writes": [{"privilege": "select", "principal": {"user": "oidc~bob"}, "until": 1}]}, "BadRequestException"),
        ({"writes": [{"privilege": "select", "principal": {"user": "oidc~bob"}}] * 2}, "BadRequestException"),
        (
            {"deletes": [{"privilege": "select", "principal": {"user": "oidc~bob"}, "reason": "x"}]},
            "BadRequestException",
        ),
    ],
)
def test_malformed_grant_is_400(world: World, ns: str, body: dict[str, Any], type: str) -> None:
    refused = world.admin.post(_path(world, "namespace", world.namespace_id(ns)), body)
    assert (refused.status_code, error_of(refused)["type"]) == (400, type)


def test_privileges_of_another_object_type_are_refused(world: World, ns: str) -> None:
    table = world.table(ns)
    for kind, id, privilege in (
        ("server", "", "select"),
        ("project", "", "ownership"),
        ("warehouse", "", "data_admin"),
        ("table", table.uuid, "create"),
    ):
        refused = world.admin.post(_path(world, kind, id), {"writes": [_entry(privilege, world.analyst)]})
        assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidGrantPrivilege"), kind


def test_grant_on_a_deleted_or_foreign_object_is_not_found(world: World, ns: str) -> None:
    table = world.table(ns)
    id = world.namespace_id(ns)
    assert world.admin.delete(table.path).status_code == 204
    gone = world.admin.post(_path(world, "table", table.uuid), {"writes": [_entry("select", world.analyst)]})
    assert (gone.status_code, error_of(gone)["type"]) == (404, "NoSuchTableException")
    elsewhere = f"{MANAGEMENT}/warehouse/{uuid4()}/namespace/{id}/grants"
    assert world.admin.get(elsewhere).status_code == 404
    assert world.admin.post(elsewhere, {"writes": [_entry("select", world.analyst)]}).status_code == 404


# ---- authority to grant ----------------------------------------------------------------------------------------------


def test_grants_beyond_the_grantors_authority_are_refused(world: World, ns: str) -> None:
    """The test grants directly, to the grantor, by ownership, through a role of the grantor, and by revocation of
    other grants.
    """
    id = world.namespace_id(ns)
    path = _path(world, "namespace", id)
    world.grant("select", world.analyst, "namespace", id)
    role = known_role(world)
    world.admin.post(_path(world, "role", role), {"writes": [_entry("ownership", world.analyst)]})
    before = _list(world.admin, path)
    to_role = {"privilege": "select", "principal": {"role": role}}
    for change in (
        {"writes": [_entry("select", world.steward)]},
        {"writes": [_entry("modify", world.analyst)]},
        {"writes": [_entry("ownership", world.analyst)]},
        {"writes": [_entry("manage_grants", world.analyst)]},
        {"writes": [to_role]},
        {"deletes": [_entry("ownership", world.admin)]},
    ):
        assert world.analyst.post(path, change).status_code == 403, change
    assert world.carol.post(path, {"writes": [_entry("select", world.carol)]}).status_code == 404
    world.grant("pass_grants", world.analyst, "namespace", id)
    allowed_and_not = {"writes": [_entry("select", world.steward), _entry("modify", world.steward)]}
    assert world.analyst.post(path, allowed_and_not).status_code == 403
    assert len(_list(world.admin, path)) == len(before) + 1, "a refused request must apply none of its entries"
    assert world.analyst.post(path, {"writes": [_entry("select", world.steward)]}).status_code == 204


def test_role_ownership_gives_no_authority_beyond_the_roles_own(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    role = known_role(world)
    world.admin.post(_path(world, "role", role), {"writes": [_entry("ownership", world.analyst)]})
    assert (
        world.analyst.post(_path(world, "role", role), {"writes": [_entry("assignee", world.steward)]}).status_code
        == 204
    )
    assert world.analyst.get(f"{world.root}/namespaces/{ns}").status_code == 404
    world.admin.post(
        _path(world, "namespace", id), {"writes": [{"privilege": "describe", "principal": {"role": role}}]}
    )
    for person in (world.analyst, world.steward):
        assert person.get(f"{world.root}/namespaces/{ns}").status_code == 200
        assert person.post(_path(world, "namespace", id), {"writes": [_entry("describe", person)]}).status_code == 403
    assert (
        world.steward.post(_path(world, "role", role), {"writes": [_entry("assignee", world.carol)]}).status_code == 404
    )


def test_role_nesting_refuses_cycles_excess_depth_and_expiry(world: World) -> None:
    roles = [known_role(world) for _ in range(12)]

    def member(inner: str, outer: str, **more: Any) -> httpx.Response:
        entry = {"privilege": "assignee", "principal": {"role": inner}, **more}
        return world.admin.post(_path(world, "role", outer), {"writes": [entry]})

    def refusal(answer: httpx.Response) -> tuple[int, str]:
        return answer.status_code, error_of(answer)["type"]

    assert refusal(member(roles[0], roles[0])) == (400, "SelfAssignment")
    assert refusal(member(roles[0], roles[1], **{"expires-at": _in(3600)})) == (400, "InvalidGrantExpiry")
    for inner, outer in zip(roles[:10], roles[1:11], strict=True):
        assert member(inner, outer).status_code == 204
    assert refusal(member(roles[10], roles[0])) == (409, "RoleMembershipCycle")
    assert refusal(member(roles[1], roles[0])) == (409, "RoleMembershipCycle")
    assert refusal(member(roles[10], roles[11])) == (409, "RoleMembershipDepthExceeded")
    owner = {"writes": [{"type": "ownership", "role": roles[5]}]}
    closing = world.admin.post(f"{MANAGEMENT}/permissions/role/{roles[2]}/assignments", owner)
    assert refusal(closing) == (409, "RoleMembershipCycle"), (
        "an owner counts as a member, so this membership is a cycle"
    )


def test_concurrent_memberships_cannot_form_a_cycle(world: World) -> None:
    for _ in range(5):
        pair = known_role(world), known_role(world)

        def nest(inner: str, outer: str) -> int:
            entry = {"privilege": "assignee", "principal": {"role": inner}}
            return world.admin.post(_path(world, "role", outer), {"writes": [entry]}).status_code

        with ThreadPoolExecutor(2) as pool:
            codes = list(pool.map(nest, pair, reversed(pair)))
        assert sorted(codes) == [204, 409]


def test_concurrent_crossing_grant_changes_all_complete(world: World, ns: str) -> None:
    path = _path(world, "namespace", world.namespace_id(ns))
    pair = [_entry("select", world.analyst), _entry("modify", world.analyst)]

    def attempt(number: int) -> int:
        first, second = pair if number % 2 else reversed(pair)
        return world.admin.post(path, {"writes": [first], "deletes": [second]}).status_code

    with ThreadPoolExecutor(6) as pool:
        codes = list(pool.map(attempt, range(24)))
    assert set(codes) <= {204, 503}, "concurrent grant changes must return 204, or 503 to retry"
    assert codes.count(204) >= 6
    held = [each["privilege"] for each in _list(world.admin, path) if each["principal"] == {"user": world.analyst.id}]
    assert len(held) == 1


# ---- lists ------------------------------------------------------------------------------------------------------


def test_grantable_privileges_are_listed_with_text_and_category(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    path = f"{_path(world, 'namespace', id)}/grantable-privileges"
    world.grant("select", world.analyst, "namespace", id)
    world.grant("pass_grants", world.analyst, "namespace", id)
    privileges = {each["privilege"]["name"]: each for each in world.analyst.get(path).json()["privileges"]}
    assert {name for name, each in privileges.items() if each["allowed"]} == {"select", "describe"}
    assert privileges["select"]["privilege"]["category"] == "read"
    assert privileges["select"]["privilege"]["resource-type"] == "namespace"
    assert {each["allowed"] for each in world.admin.get(path).json()["privileges"]} == {True}
    assert world.carol.get(path).status_code == 404


def test_grants_of_a_principal_in_a_project_are_listed_by_page(world: World, ns: str) -> None:
    table = world.table(ns)
    id = world.namespace_id(ns)
    world.grant("select", world.analyst, "table", table.uuid)
    world.grant("describe", world.analyst, "namespace", id)
    world.grant("describe", world.analyst, "warehouse", world.warehouse)
    expected = [
        {"type": "table", "project-id": world.project, "warehouse-id": world.warehouse, "table-id": table.uuid},
        {"type": "namespace", "project-id": world.project, "warehouse-id": world.warehouse, "namespace-id": id},
        {"type": "warehouse", "project-id": world.project, "warehouse-id": world.warehouse},
    ]
    own = _list(world.analyst, f"{MANAGEMENT}/grants")
    assert [each["resource"] for each in own] == expected, "a user lists its own grants without any right"
    assert _list(world.analyst, f"{MANAGEMENT}/grants", principalUser=world.analyst.id) == own
    assert _list(world.admin, f"{MANAGEMENT}/grants", principalUser=world.analyst.id) == own
    found, token = [], None
    for _ in range(3):
        query = {"pageSize": 1, **({"pageToken": token} if token else {})}
        page = world.analyst.get(f"{MANAGEMENT}/grants", params=query).json()
        found += page["grants"]
        token = page.get("next-page-token")
    assert (found, token) == (own, None)
    refused = world.analyst.get(f"{MANAGEMENT}/grants", params={"principalUser": world.bob.id})
    assert refused.status_code == 403
    other = {"x-project-id": str(uuid4())}
    assert world.carol.get(f"{MANAGEMENT}/grants", headers=other).json() == {"grants": []}
    assert (
        error_of(world.admin.get(f"{MANAGEMENT}/grants", params={"pageToken": "x"}))["type"] == "InvalidPaginationToken"
    )


def test_grants_of_a_role_are_listed_to_members_only(world: World, ns: str) -> None:
    role = known_role(world)
    id = world.namespace_id(ns)
    world.admin.post(_path(world, "namespace", id), {"writes": [{"privilege": "select", "principal": {"role": role}}]})
    path = f"{MANAGEMENT}/grants"
    assert world.carol.get(path, params={"principalRole": role}).status_code == 404
    world.admin.post(_path(world, "role", role), {"writes": [_entry("assignee", world.analyst)]})
    (held,) = _list(world.analyst, path, principalRole=role)
    assert (held["privilege"], held["principal"], held["resource"]["namespace-id"]) == ("select", {"role": role}, id)
    assert _list(world.admin, path, principalRole=role) == [held]


def test_project_list_omits_server_grants_of_other_users(world: World) -> None:
    project = world.admin.post(f"{MANAGEMENT}/project", {"project-name": unique("p")}).json()["project-id"]
    world.grant("security_admin", world.steward, "project", project)
    header = {"x-project-id": project}
    query = {"principalUser": world.admin.id}
    by_steward = world.steward.get(f"{MANAGEMENT}/grants", params=query, headers=header).json()["grants"]
    by_self = world.admin.get(f"{MANAGEMENT}/grants", headers=header).json()["grants"]
    assert "server" not in {each["resource"]["type"] for each in by_steward}
    assert "server" in {each["resource"]["type"] for each in by_self}


def test_history_lists_ended_grants_latest_first_for_assignment_readers(world: World, ns: str) -> None:
    path = _path(world, "namespace", world.namespace_id(ns))
    world.admin.post(path, {"writes": [_entry("select", world.analyst, reason="first")]})
    shorter = world.admin.post(
        path, {"writes": [_entry("select", world.analyst, reason="second", **{"expires-at": _in(5)})]}
    )
    assert shorter.status_code == 204, shorter.text
    time.sleep(5.1)
    world.admin.post(path, {"writes": [_entry("select", world.analyst)]})
    world.admin.post(path, {"deletes": [_entry("select", world.analyst)]})
    ended = _list(world.admin, f"{path}/history")
    assert [(each["ended-because"], each.get("reason")) for each in ended] == [
        ("revoked", None),
        ("expired", "second"),
        ("replaced", "first"),
    ]
    assert [each.get("ended-by") for each in ended] == [world.admin.id, None, world.admin.id]
    page = world.admin.get(f"{path}/history", params={"pageSize": 2}).json()
    rest = world.admin.get(f"{path}/history", params={"pageToken": page["next-page-token"]}).json()
    assert page["grants"] + rest["grants"] == ended
    world.grant("select", world.analyst, "namespace", world.namespace_id(ns))
    assert world.analyst.get(f"{path}/history").status_code == 403
    assert world.carol.get(f"{path}/history").status_code == 404


def test_every_kind_of_object_lists_its_grants(world: World, ns: str) -> None:
    someone, other = world.stranger(), world.stranger()
    table = world.table(ns)
    role = known_role(world)
    for kind, id in (("server", ""), ("project", ""), ("warehouse", ""), ("table", table.uuid), ("role", role)):
        path = _path(world, kind, id)
        privilege = {"server": "operator", "project": "describe", "role": "assignee"}.get(kind, "describe")
        assert world.admin.post(path, {"writes": [_entry(privilege, someone)]}).status_code == 204
        found = [each for each in _all(world.admin, path) if each["principal"] == {"user": someone.id}]
        assert [(each["privilege"], each["resource"]["type"]) for each in found] == [(privilege, kind)]
        assert other.get(path).status_code == (403 if kind == "server" else 404)
        assert world.admin.post(path, {"deletes": [_entry(privilege, someone)]}).status_code == 204
        assert _list(world.admin, f"{path}/history")[0]["principal"] == {"user": someone.id}


def test_assignments_can_be_filtered_by_relation(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    for privilege in ("select", "describe"):
        world.grant(privilege, world.analyst, "namespace", id)
    path = world.grants_path("namespace", id)

    def privileges(query: str) -> list[str]:
        return [each["type"] for each in world.admin.get(f"{path}?{query}").json()["assignments"]]

    assert (
        privileges("relations=select,describe")
        == privileges("relations=select&relations=describe")
        == ["select", "describe"]
    )
    assert privileges("relations=describe") == ["describe"]
    assert privileges("") == ["ownership", "select", "describe"]
    refused = world.admin.get(f"{path}?relations=fly")
    assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidGrantPrivilege")
