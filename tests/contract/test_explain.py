# SPDX-License-Identifier: Apache-2.0
"""Explanations on the real stack: witnesses of a yes, repairs of a no, and their equality with real decisions."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID
from zoneinfo import ZoneInfo

import httpx
import pytest

from gateway.access.operations.answers import LiftingInput
from tests.support.rows.metered import metered
from tests.support.stack.explained import CHECK, EXPLAIN, explain, of_table
from tests.support.stack.grants import give, strangers  # noqa: F401 - a fixture
from tests.support.stack.role_policies import make_role, put_in
from tests.support.stack.world import Person, Table, World, error_of, error_triple

ABSENT = "01890000-0000-7000-8000-000000000000"

pytestmark = pytest.mark.usefixtures("strangers")


def steps(witness: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (each["kind"], each["relation"], each["object"]["id"])
        for each in witness["facts"]
        if each["kind"] != "hierarchy"
    ]


def test_a_yes_names_the_grant_with_its_grantor_reason_and_expiry(world: World, ns: str) -> None:
    table = world.table(ns)
    end = datetime.now(UTC) + timedelta(hours=1)
    more = {"reason": "quarterly review", "expires-at": end.isoformat()}
    give(world, "table", table.uuid, "select", {"user": world.analyst.id}, **more)
    found = explain(world.analyst, of_table(world, table.uuid, "read_data"))
    assert (found["decision"], found["relationships"]["holds"]) == ("allowed", True), found
    (witness,) = found["relationships"]["witnesses"]
    (grant,) = [each for each in witness["facts"] if each["kind"] == "grant"]
    assert (grant["relation"], grant["object"]["name"]) == ("select", f"{ns}.{table.name}")
    (row,) = grant["grants"]
    assert (row["granted-by"], row["reason"]) == (world.admin.id, "quarterly review")
    assert datetime.fromisoformat(row["expires-at"]) == end == datetime.fromisoformat(found["until"])
    assert f"select on table {ns}.{table.name}" in found["summary"]


def test_a_chain_of_roles_is_named_from_the_principal_to_the_object(world: World, ns: str) -> None:
    table = world.table(ns)
    outer, inner = make_role(world), make_role(world)
    put_in(world, inner, "user", world.analyst.id)
    put_in(world, outer, "role", inner)
    give(world, "warehouse", "", "select", {"role": outer})
    found = explain(world.analyst, of_table(world, table.uuid, "read_data"))
    (witness,) = found["relationships"]["witnesses"]
    assert steps(witness) == [
        ("membership", "assignee", inner), ("membership", "assignee", outer), ("grant", "select", world.warehouse),
    ]  # fmt: skip
    assert [each["object"]["type"] for each in witness["facts"] if each["kind"] == "hierarchy"] == [
        "namespace", "table",
    ]  # fmt: skip


def test_a_right_to_grant_names_the_flags_that_would_take_it_away(world: World, ns: str) -> None:
    give(world, "namespace", world.namespace_id(ns), "create", {"user": world.analyst.id})
    table = world.table(ns, by=world.analyst)
    found = explain(world.analyst, of_table(world, table.uuid, "grant_select"))
    absent = found["relationships"]["witnesses"][0]["absent"]
    assert {(each["relation"], each["object"]["type"]) for each in absent} == {
        ("managed_access", "namespace"), ("managed_access", "warehouse"),
    }  # fmt: skip


def test_a_no_names_grants_that_make_it_a_yes(world: World, ns: str) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "describe", {"user": world.analyst.id})
    found = explain(world.analyst, of_table(world, table.uuid, "drop"))
    assert (found["decision"], found["relationships"]["holds"]) == ("denied", False)
    (first,) = found["relationships"]["repairs"][0]["grants"]
    assert (first["privilege"], first["object"]["id"], first["granted-with"]) == (
        "modify", table.uuid, "can_grant_modify",
    )  # fmt: skip
    assert f"modify on table {ns}.{table.name} would be enough" in found["summary"]
    give(world, "table", table.uuid, "modify", {"user": world.analyst.id})
    assert explain(world.analyst, of_table(world, table.uuid, "drop"))["decision"] == "allowed"


def test_repairs_count_the_objects_that_they_open_too(world: World, ns: str) -> None:
    table, *_ = [world.table(ns) for _ in range(3)]
    asked = explain(world.admin, of_table(world, table.uuid, "drop"), identity={"user": world.carol.id})
    repairs = asked["relationships"]["repairs"]
    (of_namespace,) = [
        each for each in repairs
        if [(one["privilege"], one["object"]["id"]) for one in each["grants"]] == [("modify", world.namespace_id(ns))]
    ]  # fmt: skip
    assert of_namespace["opens"] == [{"type": "table", "count": 3}]
    on_table = [each["grants"][0]["object"]["type"] == "table" for each in repairs]
    assert on_table[0] and on_table == sorted(on_table, reverse=True), "the smallest repairs come first"


def test_invisible_and_absent_objects_answer_alike(world: World, ns: str) -> None:
    table = world.table(ns)
    hidden = world.carol.post(EXPLAIN, {"operation": of_table(world, table.uuid, "drop")})
    missing = world.carol.post(EXPLAIN, {"operation": of_table(world, ABSENT, "drop")})
    assert hidden.status_code == 404
    status, type, message = error_triple(hidden)
    assert (status, type, message.replace(table.uuid, ABSENT)) == error_triple(missing)


def test_questions_about_others_need_the_right_to_read_assignments(world: World, ns: str) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "select", {"user": world.analyst.id})
    body = {"operation": of_table(world, table.uuid, "read_data"), "identity": {"user": world.carol.id}}
    assert world.analyst.post(EXPLAIN, body).status_code == 403
    assert world.carol.post(EXPLAIN, body | {"identity": {"user": world.analyst.id}}).status_code == 404
    assert world.admin.post(EXPLAIN, body).json()["decision"] == "denied"


def test_facts_that_the_asker_may_not_read_are_another_grant(world: World, ns: str) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "manage_grants", {"user": world.analyst.id})
    about = {"identity": {"user": world.carol.id}}
    asked = of_table(world, table.uuid, "read_data")
    role = make_role(world)
    put_in(world, role, "user", world.carol.id)
    give(world, "warehouse", "", "select", {"role": role})
    one = explain(world.analyst, asked, **about)["relationships"]
    give(world, "warehouse", "", "select", {"user": world.carol.id})
    two = explain(world.analyst, asked, **about)["relationships"]
    assert one == two == {"holds": True, "relation": "can_read_data", "another-grant": True}
    give(world, "table", table.uuid, "select", {"user": world.carol.id})
    three = explain(world.analyst, asked, **about)["relationships"]
    assert "another-grant" not in three
    assert [steps(each) for each in three["witnesses"]] == [[("grant", "select", table.uuid)]]
    assert role not in str(three)


def test_the_end_of_a_hidden_grant_stays_hidden(world: World, ns: str) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "manage_grants", {"user": world.analyst.id})
    asked, about = of_table(world, table.uuid, "read_data"), {"identity": {"user": world.carol.id}}
    end = datetime.now(UTC) + timedelta(hours=1)
    give(world, "warehouse", "", "select", {"user": world.carol.id}, **{"expires-at": end.isoformat()})
    assert "until" not in explain(world.analyst, asked, **about)
    sooner = datetime.now(UTC) + timedelta(minutes=30)
    give(world, "table", table.uuid, "select", {"user": world.carol.id}, **{"expires-at": sooner.isoformat()})
    assert datetime.fromisoformat(explain(world.analyst, asked, **about)["until"]) == sooner


@contextmanager
def working(world: World, **changed: Any) -> Iterator[None]:
    """Change the hours of the contractor; undo it at the end."""
    opa = world.ready.opa
    url, headers = f"{opa.url}/v1/data/policy_data/contractors", {"Authorization": f"Bearer {opa.token}"}
    with httpx.Client(headers=headers, trust_env=False) as client:
        before = client.get(url).raise_for_status().json()["result"]
        hours = before["hours"] | changed
        client.put(url, json={"users": [world.contractor.id], "roles": [], "hours": hours}).raise_for_status()
        try:
            yield
        finally:
            client.put(url, json=before).raise_for_status()


@pytest.fixture
def shut(world: World) -> Iterator[None]:
    """Let the contractor work on no weekday; undo it after the test."""
    with working(world, weekdays=[]):
        yield


def test_a_denial_by_the_time_names_the_first_time_that_lifts_it(world: World, ns: str) -> None:
    """The contractor may work on the day after tomorrow, from 8:20 until 18:00 in Tokyo, which is UTC+9."""
    table = world.table(ns)
    give(world, "table", table.uuid, "select", {"user": world.contractor.id})
    asked = of_table(world, table.uuid, "read_data")
    day = datetime.now(ZoneInfo("Asia/Tokyo")) + timedelta(days=2)
    opens = day.replace(hour=8, minute=20, second=0, microsecond=0)
    hours = {"weekdays": [f"{day:%A}"], "from": "08:20", "until": "18:00", "timezone": "Asia/Tokyo"}
    with working(world, **hours):
        about = {"identity": {"user": world.contractor.id}}
        found = explain(world.admin, asked, **about)
        (lift,) = found["policies"]["lifted-by"]
        assert (lift["input"], datetime.fromisoformat(lift["value"])) == ("context.time", opens)
        assert lift["value"] in found["summary"]
        for minutes, decision in ((-1, "denied"), (0, "allowed")):
            time = (opens + timedelta(minutes=minutes)).isoformat()
            found = explain(world.admin, asked, circumstances={"time": time}, **about)
            assert found["decision"] == decision, (minutes, found)


@pytest.mark.usefixtures("shut")
def test_nothing_lifts_a_denial_at_all_times(world: World, ns: str) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "select", {"user": world.contractor.id})
    asked = {"identity": {"user": world.contractor.id}}
    found = explain(world.admin, of_table(world, table.uuid, "read_data"), **asked)
    assert found["decision"] == "denied"
    assert "lifted-by" not in found["policies"]


@pytest.mark.usefixtures("shut")
def test_one_principal_searches_for_a_later_time_once_at_a_time(world: World, ns: str) -> None:
    """A search costs as many requests to OPA as a hundred decisions."""
    asked = of_table(world, world.table(ns).uuid, "read_data")
    found = asyncio.run(_searches(world, {"operation": asked, "identity": {"user": world.contractor.id}}))
    assert found == [1, 1, 1]


async def _searches(world: World, body: dict[str, Any]) -> list[int]:
    """Return the number of searches in progress at the start of each, in explanations at the same time."""
    running: list[int] = []
    found: list[int] = []

    async def counted(*_: object) -> list[LiftingInput]:
        running.append(1)
        found.append(len(running))
        await asyncio.sleep(0.5)
        running.pop()
        return []

    with patch("gateway.features.answers.explain.lifts_of", counted):
        async with metered(world.ready) as gateway:
            sent = [gateway.send("POST", EXPLAIN, world.admin.token, body=body) for _ in range(3)]
            assert [answer.status_code for answer, _ in await asyncio.gather(*sent)] == [200] * 3
    return found


@pytest.mark.usefixtures("shut")
def test_a_denial_of_a_guardrail_names_its_rule_with_file_and_line(world: World, ns: str) -> None:
    table = world.table(ns)
    asked = {"identity": {"user": world.contractor.id}}
    give(world, "table", table.uuid, "select", {"user": world.contractor.id})
    found = explain(world.admin, of_table(world, table.uuid, "read_data"), **asked)
    assert (found["decision"], found["relationships"]["holds"]) == ("denied", True), found
    policies = found["policies"]
    assert [each["code"] for each in policies["reasons"]] == ["contractor_outside_hours"]
    (rule,) = policies["rules"]
    assert rule["file"].endswith("guardrails/contractors.rego")
    rego = Path("policies/gateway/guardrails/contractors.rego").read_text().splitlines()
    assert rego[rule["line"] - 1].startswith("denials[index] contains denial if {")
    assert "context.time" in policies["read"]
    give(world, "table", table.uuid, "manage_grants", {"user": world.analyst.id})
    of_steward = explain(world.analyst, of_table(world, table.uuid, "read_data"), **asked)["policies"]
    assert of_steward["reasons"] == policies["reasons"], "callers that may not read policies see the reasons only"
    assert not {"rules", "read"} & set(of_steward)


def test_unknown_members_of_the_body_are_refused(world: World, ns: str) -> None:
    table = world.table(ns)
    body = {"operation": of_table(world, table.uuid, "drop"), "identitty": {"user": world.carol.id}}
    assert world.admin.post(EXPLAIN, body).status_code == 400


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2262-01-01T00:00:00Z"])
def test_a_time_beyond_the_clock_of_policies_is_refused(world: World, time: str) -> None:
    body = {"operation": {"server": {"action": "create_project"}}, "circumstances": {"time": time}}
    answer = world.admin.post(EXPLAIN, body)
    assert (answer.status_code, error_of(answer)["type"]) == (400, "BadRequestException"), answer.text


def test_explanations_equal_permission_checks(world: World, ns: str) -> None:
    """Compare every action of three people on a table with the check, and follow each first repair."""
    table = world.table(ns)
    people: list[Person] = [world.analyst, world.carol, world.steward]
    give(world, "table", table.uuid, "pass_grants", {"user": world.analyst.id})
    give(world, "namespace", world.namespace_id(ns), "describe", {"user": world.analyst.id})
    give(world, "warehouse", "", "modify", {"user": world.steward.id})
    actions = ["get_metadata", "read_data", "drop", "move", "grant_select", "read_assignments", "unregister"]
    for person, action in itertools.product(people, actions):
        body = {"operation": of_table(world, table.uuid, action), "identity": {"user": person.id}}
        allowed = world.admin.post(CHECK, body).json()["allowed"]
        found = explain(world.admin, body["operation"], identity=body["identity"])
        assert found["decision"] == ("allowed" if allowed else "denied"), (person, action)
        assert bool(found["relationships"].get("witnesses")) is allowed
        assert bool(found["relationships"].get("repairs")) is not allowed


def test_the_revisions_of_the_answer_are_named(world: World, ns: str) -> None:
    table: Table = world.table(ns)
    found = explain(world.admin, of_table(world, table.uuid, "drop"))
    revisions = found["revisions"]
    assert len({UUID(revisions[each]) for each in ("server", "warehouse")}) == 2
    assert len(revisions["model"]) == 26
    assert revisions["policies"]
