# SPDX-License-Identifier: Apache-2.0
"""Explanations of past moments, and principals that had a right then: grants, placements and models of that time."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from gateway.fga.compiled import compiled_model
from tests.support.stack.explained import EXPLAIN, explain, of_table
from tests.support.stack.grants import give, strangers  # noqa: F401 - a fixture
from tests.support.stack.renames import rename
from tests.support.stack.role_policies import make_role, put_in
from tests.support.stack.world import Person, Table, World, error_of, send_until_decided

_ABSENT_MODEL = "01J00000000000000000000000"

pytestmark = pytest.mark.usefixtures("strangers")


def moment() -> str:
    """Return the time now. The database of the stack has the same clock."""
    return datetime.now(UTC).isoformat()


def take(world: World, kind: str, id: str, privilege: str, principal: dict[str, str]) -> None:
    """Revoke a privilege on an object in the warehouse, or on the warehouse itself."""
    within = f"/management/v1/warehouse/{world.warehouse}"
    path = f"{within}/grants" if kind == "warehouse" else f"{within}/{kind}/{id}/grants"
    body = {"deletes": [{"privilege": privilege, "principal": principal}]}
    done = send_until_decided(lambda: world.admin.post(path, body))
    assert done.status_code == 204, done.text


def of_carol(world: World, table: Table, at: str, action: str = "read_data") -> dict[str, Any]:
    """Return the administrator's explanation of an action of carol at the moment."""
    found = explain(world.admin, of_table(world, table.uuid, action), identity={"user": world.carol.id}, at=at)
    assert (found["decision"] == "allowed") is found["relationships"]["holds"]
    assert datetime.fromisoformat(found["as-of"]) == datetime.fromisoformat(at)
    return found


def allowed(world: World, table: Table, *moments: str, action: str = "read_data") -> list[bool]:
    """Return for each moment whether carol had the right to the action."""
    return [of_carol(world, table, at, action)["decision"] == "allowed" for at in moments]


def who_could(asker: Person, world: World, table: Table, at: str | None, action: str = "read_data") -> dict[str, Any]:
    """Return the answer to the question who could take an action on the table at the moment."""
    object = {"table": {"warehouse-id": world.warehouse, "table-id": table.uuid}}
    body = {"action": action, "object": object} | ({} if at is None else {"at": at})
    answer = send_until_decided(lambda: asker.post("/management/v1/access/who-can", body))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def named(answer: dict[str, Any]) -> set[str]:
    """Return the ids of the users and roles in the rows."""
    return {row["principal"].get("user") or row["principal"]["role"] for row in answer["rows"]}


def test_a_revoked_grant_holds_at_the_moments_of_its_life_only(world: World, ns: str) -> None:
    table = world.table(ns)
    before = moment()
    give(world, "table", table.uuid, "select", {"user": world.carol.id}, reason="quarterly review")
    during = moment()
    take(world, "table", table.uuid, "select", {"user": world.carol.id})
    after = moment()
    assert allowed(world, table, before, during, after) == [False, True, False]
    found = of_carol(world, table, during)
    (witness,) = found["relationships"]["witnesses"]
    (grant,) = [each for each in witness["facts"] if each["kind"] == "grant"]
    assert [row["reason"] for row in grant["grants"]] == ["quarterly review"]
    assert f"At {during[:19]}" in found["summary"]
    assert "had the right to read_data" in found["summary"]
    assert "policies" not in found
    assert found["not-kept"] == ["policies", "data-policies", "token-groups", "warehouse-status"]


def test_an_expired_grant_holds_until_its_expiry(world: World, ns: str) -> None:
    table = world.table(ns)
    end = datetime.now(UTC) + timedelta(seconds=2)
    give(world, "table", table.uuid, "select", {"user": world.carol.id}, **{"expires-at": end.isoformat()})
    during = moment()
    time.sleep((end - datetime.now(UTC)).total_seconds())
    assert allowed(world, table, during, end.isoformat()) == [True, False]
    assert datetime.fromisoformat(of_carol(world, table, during)["relationships"]["witnesses"][0]["until"]) == end


def test_a_membership_that_ended_counts_at_its_time(world: World, ns: str) -> None:
    table, role = world.table(ns), make_role(world)
    put_in(world, role, "user", world.carol.id)
    give(world, "warehouse", "", "select", {"role": role})
    during = moment()
    path = f"/management/v1/role/{role}/members"
    gone = send_until_decided(lambda: world.admin.delete(f"{path}/user/{world.carol.id}"))
    assert gone.status_code == 204, gone.text
    assert allowed(world, table, during, moment()) == [True, False]
    take(world, "warehouse", "", "select", {"role": role})


def test_a_moved_table_is_in_its_namespace_of_that_moment(world: World, ns: str) -> None:
    other, table = world.namespace(), world.table(ns)
    give(world, "namespace", world.namespace_id(ns), "select", {"user": world.carol.id})
    during = moment()
    assert rename(world.admin, world, "tables", (ns, table.name), (other, table.name)).status_code == 204
    after = moment()
    assert allowed(world, table, during, after) == [True, False]
    assert rename(world.admin, world, "tables", (other, table.name), (ns, table.name)).status_code == 204
    assert allowed(world, table, during, after, moment()) == [True, False, True]


def test_a_moved_namespace_is_in_its_parent_of_that_moment(world: World) -> None:
    old, new = world.namespace(), world.namespace()
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [old, "inner"]})
    assert made.status_code == 200, made.text
    table = world.table(f"{old}%1Finner")
    inner = world.namespace_id(f"{old}%1Finner")
    give(world, "namespace", world.namespace_id(old), "select", {"user": world.carol.id})
    before = moment()
    path = f"/management/v1/warehouse/{world.warehouse}/namespace/{inner}/move"
    assert world.admin.post(path, {"destination": [new, "inner"]}).status_code == 200
    assert allowed(world, table, before, moment()) == [True, False]


def test_managed_access_counts_at_the_moments_when_it_was_on(world: World, ns: str) -> None:
    give(world, "namespace", world.namespace_id(ns), "create", {"user": world.carol.id})
    table = world.table(ns, by=world.carol)
    path = f"/management/v1/permissions/namespace/{world.namespace_id(ns)}/managed-access"
    moments = [moment()]
    for managed in (True, False):
        assert world.admin.post(path, {"managed-access": managed}).status_code == 200
        moments.append(moment())
    assert allowed(world, table, *moments, action="grant_select") == [True, False, True]


@contextmanager
def served(world: World, model_id: str) -> Iterator[str]:
    """Record that checks used another model for a moment, and yield that moment."""
    store = world.ready.openfga.store_id
    world.sql(
        "insert into relationship_models (model_id, store_id, version, content_hash, recorded_by) "
        "values ($1, $2, '0', '', 'a test')",
        model_id,
        store,
    )
    [row] = world.sql("select model_id from model_switches order by id desc limit 1")
    known = (row["model_id"], model_id)
    [last] = world.sql(
        "insert into model_switches (model_id, previous_id, switched_at, switched_by) values "
        "($2, $1, clock_timestamp() - interval '1 millisecond', 'a test'), ($1, $2, clock_timestamp(), 'a test') "
        "returning switched_at",
        *known,
    )[:1]
    try:
        yield last["switched_at"].isoformat()
    finally:
        world.sql("delete from model_switches where $1 in (model_id, previous_id)", model_id)
        world.sql("delete from relationship_models where model_id = $1", model_id)


def test_the_model_of_that_moment_decides(world: World, ns: str) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "describe", {"user": world.carol.id})
    model = copy.deepcopy(compiled_model())
    types = {each["type"]: each for each in model["type_definitions"]}
    types["table"]["relations"]["can_read_data"] = {"computedUserset": {"relation": "describe"}}
    openfga = world.ready.openfga
    made = httpx.post(
        f"{openfga.url}/stores/{openfga.store_id}/authorization-models",
        headers={"Authorization": f"Bearer {openfga.token}"},
        json=model,
        timeout=60,
        trust_env=False,
    )
    model_id = made.raise_for_status().json()["authorization_model_id"]
    with served(world, model_id) as at:
        assert allowed(world, table, at, moment()) == [True, False]
        assert of_carol(world, table, at)["revisions"] == {"model": model_id}


def refused(world: World, table: Table, at: str) -> str:
    """Return the message of the refusal."""
    asked = {"operation": of_table(world, table.uuid, "read_data"), "identity": {"user": world.carol.id}, "at": at}
    answer = world.admin.post(EXPLAIN, asked)
    assert (answer.status_code, error_of(answer)["type"]) == (400, "PastNotAnswered"), answer.text
    return str(error_of(answer)["message"])


def test_a_model_that_the_store_lost_is_named(world: World, ns: str) -> None:
    table = world.table(ns)
    with served(world, _ABSENT_MODEL) as at:
        assert f"model {_ABSENT_MODEL}, which checks used at that moment, is no longer" in refused(world, table, at)


def test_a_moment_before_the_history_names_its_beginning(world: World, ns: str) -> None:
    table = world.table(ns)
    [row] = world.sql("select created_at from tables where id::text = $1", table.uuid)
    first = row["created_at"]
    assert first.isoformat() in refused(world, table, (first - timedelta(microseconds=1)).isoformat())
    assert allowed(world, table, first.isoformat()) == [False]
    [row] = world.sql("select history_since from server")
    world.sql("update server set history_since = clock_timestamp()")
    try:
        assert first.isoformat() not in refused(world, table, first.isoformat())
    finally:
        world.sql("update server set history_since = $1", row["history_since"])


def test_a_future_moment_and_circumstances_are_refused(world: World, ns: str) -> None:
    asked: dict[str, Any] = {"operation": of_table(world, world.table(ns).uuid, "read_data")}
    future = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    circumstances = {"circumstances": {"user-agent": "x"}, "at": moment()}
    for more in ({"at": future}, {"at": "2026-01-01T00:00:00"}, {"at": "yesterday"}, circumstances):
        assert world.admin.post(EXPLAIN, asked | more).status_code == 400, more


def test_past_facts_that_the_asker_may_not_read_are_another_grant(world: World, ns: str) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "manage_grants", {"user": world.analyst.id})
    role = make_role(world)
    put_in(world, role, "user", world.carol.id)
    give(world, "warehouse", "", "select", {"role": role})
    one = moment()
    give(world, "warehouse", "", "select", {"user": world.carol.id})
    two = moment()
    for principal in ({"role": role}, {"user": world.carol.id}):
        take(world, "warehouse", "", "select", principal)

    def of_analyst(at: str) -> Any:
        asked = of_table(world, table.uuid, "read_data")
        return explain(world.analyst, asked, identity={"user": world.carol.id}, at=at)["relationships"]

    assert of_analyst(one) == of_analyst(two) == {"holds": True, "relation": "can_read_data", "another-grant": True}
    assert of_analyst(moment())["holds"] is False


def test_who_may_ask_about_a_past_moment_is_decided_now(world: World, ns: str) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "select", {"user": world.analyst.id})
    during = moment()
    body = {"operation": of_table(world, table.uuid, "read_data"), "at": during}

    def status(person: Person, **more: Any) -> int:
        return person.post(EXPLAIN, body | more).status_code

    assert status(world.analyst) == 200
    assert status(world.analyst, identity={"user": world.carol.id}) == 403
    take(world, "table", table.uuid, "select", {"user": world.analyst.id})
    assert status(world.analyst) == 404


def test_the_rows_of_who_can_are_those_of_that_moment(world: World, ns: str) -> None:
    table, role, other = world.table(ns), make_role(world), world.namespace()
    put_in(world, role, "user", world.carol.id)
    give(world, "namespace", world.namespace_id(ns), "select", {"role": role})
    give(world, "table", table.uuid, "select", {"user": world.analyst.id}, reason="quarterly review")
    during = moment()
    take(world, "table", table.uuid, "select", {"user": world.analyst.id})
    assert rename(world.admin, world, "tables", (ns, table.name), (other, table.name)).status_code == 204
    then, after, now = (who_could(world.admin, world, table, at) for at in (during, moment(), None))
    assert {role, world.analyst.id} <= named(then)
    assert not {role, world.analyst.id} & named(after)
    assert named(after) == named(now)
    [row] = [each for each in then["rows"] if each["principal"].get("user") == world.analyst.id]
    assert [fact["reason"] for fact in row["reason"]] == ["quarterly review"]
    assert datetime.fromisoformat(then["as-of"]) == datetime.fromisoformat(during)
    assert then["not-kept"] == ["policies", "data-policies", "token-groups", "warehouse-status"]
    assert "limits" not in str(then["rows"])
    for person in (world.analyst, world.carol, world.steward):
        found = explain(world.admin, of_table(world, table.uuid, "read_data"), identity={"user": person.id}, at=during)
        assert found["relationships"]["holds"] is (person is not world.steward)


def test_a_namespace_was_visible_by_a_table_that_is_deleted_now(world: World, ns: str) -> None:
    table, id = world.table(ns), world.namespace_id(ns)
    give(world, "table", table.uuid, "select", {"user": world.carol.id})
    during = moment()
    assert world.admin.delete(f"{table.path}?purgeRequested=false").status_code == 204
    world.sql("delete from tables where id::text = $1", table.uuid)
    asked = {"namespace": {"action": "include_in_list", "namespace-id": id}}

    def saw(at: str) -> bool:
        return bool(explain(world.admin, asked, identity={"user": world.carol.id}, at=at)["relationships"]["holds"])

    assert [saw(during), saw(moment())] == [True, False]
    body = {"action": "include_in_list", "object": {"namespace": {"namespace-id": id}}}
    for at, there in ((during, True), (moment(), False)):
        rows = world.admin.post("/management/v1/access/who-can", body | {"at": at}).json()
        assert (world.carol.id in named(rows)) is there


def test_a_right_through_a_deleted_container_is_another_grant(world: World, ns: str) -> None:
    table, other = world.table(ns), world.namespace()
    role = make_role(world)
    put_in(world, role, "user", world.carol.id)
    for principal in ({"role": role}, {"user": world.analyst.id}):
        give(world, "namespace", world.namespace_id(ns), "select", principal)
    during = moment()
    assert rename(world.admin, world, "tables", (ns, table.name), (other, table.name)).status_code == 204
    assert world.admin.delete(f"{world.root}/namespaces/{ns}").status_code == 204
    then = who_could(world.admin, world, table, during)
    assert {role, world.analyst.id} <= named(then)
    for row in then["rows"]:
        if row["principal"] in ({"role": role}, {"user": world.analyst.id}):
            assert row["reason"] == [{"fact": "another grant"}]
    asked = explain(world.admin, of_table(world, table.uuid, "read_data"), identity={"user": world.carol.id}, at=during)
    assert asked["relationships"] == {"holds": True, "relation": "can_read_data", "another-grant": True}


def test_the_members_of_a_role_are_those_of_that_moment(world: World) -> None:
    role = make_role(world)
    put_in(world, role, "user", world.carol.id)
    during = moment()
    gone = send_until_decided(lambda: world.admin.delete(f"/management/v1/role/{role}/members/user/{world.carol.id}"))
    assert gone.status_code == 204, gone.text
    asked = {"role": {"action": "assume", "role-id": role}}
    about = {"identity": {"user": world.carol.id}}
    assert [explain(world.admin, asked, at=at, **about)["decision"] for at in (during, moment())] == [
        "allowed", "denied",
    ]  # fmt: skip


def test_a_user_had_no_right_while_the_directory_had_deactivated_it(world: World, ns: str) -> None:
    table = world.table(ns)
    person = world.stranger()
    assert person.get("/management/v1/whoami").status_code == 200
    give(world, "table", table.uuid, "select", {"user": person.id})
    world.sql(
        "insert into scim_users (id, user_id, provider_id, user_name, user_name_key, active, document) "
        "values (gen_random_uuid(), $1, 'past', $1, $1, true, '{}')",
        person.id,
    )
    moments = [moment()]
    for active in (False, True):
        world.sql("update scim_users set active = $2 where user_id = $1", person.id, active)
        moments.append(moment())
    world.sql("delete from scim_users where user_id = $1", person.id)
    asked, about = of_table(world, table.uuid, "read_data"), {"identity": {"user": person.id}}
    decisions = [explain(world.admin, asked, at=at, **about)["decision"] for at in (*moments, moment())]
    assert decisions == ["allowed", "denied", "allowed", "allowed"]


def what_could(asker: Person, at: str, object: dict[str, Any], about: Person | None = None) -> httpx.Response:
    """Ask what a principal, the asker by default, could do in the object at the moment."""
    principal = {} if about is None else {"principal": {"user": about.id}}
    body = {"object": object, "at": at, "action": "read_data", **principal}
    return send_until_decided(lambda: asker.post("/management/v1/access/what-can", body))


def reasons(answer: httpx.Response) -> dict[str, list[str]]:
    """Return the facts of the first reason in each row, by the id of the row's object."""
    assert answer.status_code == 200, answer.text
    found = {}
    for row in answer.json()["rows"]:
        resource = row["resource"]
        facts = [fact["fact"] for held in row["held"][:1] for fact in held["reason"]]
        found[str(resource.get("table-id") or resource.get("namespace-id") or resource["warehouse-id"])] = facts
    return found


def test_the_rows_of_what_can_are_those_of_that_moment(world: World, ns: str) -> None:
    moved, gone, other = world.table(ns), world.table(ns), world.namespace()
    for table in (moved, gone):
        give(world, "table", table.uuid, "select", {"user": world.carol.id})
    during = moment()
    take(world, "table", moved.uuid, "select", {"user": world.carol.id})
    assert rename(world.admin, world, "tables", (ns, moved.name), (other, moved.name)).status_code == 204
    world.sql("delete from tables where id::text = $1", gone.uuid)
    space = {"namespace": {"namespace-id": world.namespace_id(ns)}}
    then = what_could(world.admin, during, space, world.carol)
    assert reasons(then) == {moved.uuid: ["grant"], gone.uuid: ["grant"]}
    assert then.json()["not-kept"] == ["policies", "data-policies", "token-groups", "warehouse-status"]
    assert moved.uuid not in reasons(what_could(world.admin, moment(), space, world.carol))
    # An object that left the namespace since then can be one whose assignments the caller may not read.
    give(world, "namespace", world.namespace_id(ns), "manage_grants", {"user": world.analyst.id})
    refused = what_could(world.analyst, during, space, world.carol)
    assert (refused.status_code, error_of(refused)["type"]) == (403, "CannotInspectPermissions")
    give(world, "warehouse", "", "manage_grants", {"user": world.analyst.id})
    assert reasons(what_could(world.analyst, during, space, world.carol)) == reasons(then)


def test_the_own_past_names_only_what_the_caller_sees_now(world: World, ns: str) -> None:
    hidden, seen, own = world.table(ns), world.table(ns), world.table(ns)
    role = make_role(world)
    put_in(world, role, "user", world.analyst.id)
    for table in (hidden, seen):
        give(world, "table", table.uuid, "select", {"role": role})
    give(world, "table", own.uuid, "select", {"user": world.analyst.id})
    during = moment()
    member = f"/management/v1/role/{role}/members/user/{world.analyst.id}"
    assert send_until_decided(lambda: world.admin.delete(member)).status_code == 204
    give(world, "table", seen.uuid, "describe", {"user": world.analyst.id})
    warehouse = {"warehouse": {"warehouse-id": world.warehouse}}
    found = reasons(what_could(world.analyst, during, warehouse))
    assert found == {seen.uuid: ["another grant"], own.uuid: ["grant"]}
    give(world, "table", seen.uuid, "manage_grants", {"user": world.analyst.id})
    assert reasons(what_could(world.analyst, during, warehouse))[seen.uuid] == ["membership", "grant"]


def test_the_own_past_in_a_container_that_the_caller_does_not_see_now_is_another_grant(world: World, ns: str) -> None:
    table, other = world.table(ns), world.namespace()
    hidden = world.namespace_id(ns)
    give(world, "namespace", hidden, "select", {"user": world.analyst.id}, reason="quarterly review")
    during = moment()
    take(world, "namespace", hidden, "select", {"user": world.analyst.id})
    assert rename(world.admin, world, "tables", (ns, table.name), (other, table.name)).status_code == 204
    give(world, "table", table.uuid, "describe", {"user": world.analyst.id})
    asked = of_table(world, table.uuid, "read_data")
    found = explain(world.analyst, asked, at=during)
    assert found["relationships"] == {"holds": True, "relation": "can_read_data", "another-grant": True}
    assert hidden not in str(found)
    assert ns not in str(found)
    give(world, "namespace", hidden, "describe", {"user": world.analyst.id})
    (witness,) = explain(world.analyst, asked, at=during)["relationships"]["witnesses"]
    assert [fact["object"]["id"] for fact in witness["facts"]] == [hidden, table.uuid]


def test_a_returning_user_does_not_read_the_past_of_its_predecessor(world: World, ns: str) -> None:
    table, person = world.table(ns), world.stranger()
    give(world, "table", table.uuid, "select", {"user": person.id}, reason="of the predecessor")
    during = moment()
    asked, warehouse = of_table(world, table.uuid, "read_data"), {"warehouse": {"warehouse-id": world.warehouse}}

    def refusals(at: str) -> list[str]:
        """Return the messages of the refusals of the own questions about the moment."""
        explained = person.post(EXPLAIN, {"operation": asked, "at": at})
        answers = [answer for answer in (explained, what_could(person, at, warehouse)) if answer.status_code != 200]
        assert all(error_of(answer)["type"] == "PastNotAnswered" for answer in answers), answers
        return [str(error_of(answer)["message"]) for answer in answers]

    assert refusals(during) == []
    assert world.admin.delete(f"/management/v1/user/{person.id}").status_code == 204
    of_deleted = explain(world.admin, asked, identity={"user": person.id}, at=during)
    assert of_deleted["decision"] == "allowed"
    user = {"name": "the successor", "user-type": "human", "update-if-exists": True}
    assert person.post("/management/v1/user", user).status_code == 201
    give(world, "table", table.uuid, "describe", {"user": person.id})
    [row] = world.sql("select created_at from users where id = $1", person.id)
    begins = f"The history of this user begins at {row['created_at'].isoformat()}."
    first, second = refusals(during)
    assert first.startswith(begins)
    assert second.startswith(begins)
    assert refusals(moment()) == []
    about = {"operation": asked, "identity": {"user": person.id}, "at": during}
    assert world.admin.post(EXPLAIN, about).status_code == 400
