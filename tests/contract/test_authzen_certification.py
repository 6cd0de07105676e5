# SPDX-License-Identifier: Apache-2.0
"""The public certification scenario of AuthZEN 1.0, at all levels.

Its eight cases are about users, records and actions. Here a record is a table, rights are grants, and a guardrail reads
the properties that the enforcement point states. A mapping in the settings has the scenario's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.stack.authzen import EVALUATION, EVALUATIONS, SEARCH, action, search, subject
from tests.support.stack.policy_gateway import policy_gateway
from tests.support.stack.world import Person, World

pytestmark = pytest.mark.servers

GUARDRAIL = """
denials[index] contains {"code": "record_archived", "message": "The record is archived."} if {
	some index, question in input.questions
	question.operation == "commit_table"
	question.asserted.resource.status == "archived"
	not _admin(question)
}

denials[index] contains {"code": "not_soft", "message": "Records are deleted softly."} if {
	some index, question in input.questions
	question.operation == "drop_table"
	question.asserted.action.soft == false
}

_admin(question) if question.asserted.subject.role == "admin"
"""


@dataclass(frozen=True)
class Case:
    """One of the eight cases, with identifiers alone or with properties."""

    subject: Mapping[str, Any]
    action: Mapping[str, Any]
    resource: Mapping[str, Any]
    decision: bool

    @property
    def body(self) -> dict[str, Any]:
        return {"subject": self.subject, "action": self.action, "resource": self.resource}


def record(id: str, **properties: object) -> dict[str, Any]:
    return {"type": "record", "id": id} | ({"properties": properties} if properties else {})


ADMIN = subject("bob", role="admin")
ARCHIVED = record("record-2", status="archived")
CORE = {
    "1": Case(subject("alice"), action("read"), record("record-1"), True),
    "2": Case(subject("alice"), action("write"), record("record-1"), True),
    "3": Case(subject("bob"), action("read"), record("record-1"), True),
    "4": Case(subject("bob"), action("write"), record("record-1"), False),
}
PROPERTIES = {
    "5": Case(subject("alice"), action("write"), ARCHIVED, False),
    "5, another record": Case(subject("alice"), action("write"), record("record-1", status="archived"), False),
    "5, without a role": Case(subject("bob"), action("write"), ARCHIVED, False),
    "6": Case(ADMIN, action("write"), ARCHIVED, True),
    "7": Case(subject("alice"), action("delete", soft=True), record("record-1"), True),
    "8": Case(subject("alice"), action("delete", soft=False), record("record-1"), False),
}


@pytest.fixture(scope="module")
def point(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Yield the enforcement point: a user with `inspector`, of a gateway with the mapping and the guardrail."""
    namespace = world.namespace()
    one, two = (world.table(namespace, name) for name in ("record-1", "record-2"))
    for person in (world.alice, world.bob):
        world.strip(person)
    for privilege, person, table in (
        ("modify", world.alice, one),
        ("modify", world.alice, two),
        ("select", world.bob, one),
        ("modify", world.bob, two),
    ):
        world.grant(privilege, person, "table", table.uuid)
    asker = world.stranger("point")
    world.grant("inspector", asker, "warehouse", world.warehouse)
    settings = {
        "AUTHZEN__PROVIDER": "oidc",
        "AUTHZEN__OWN_NAMES": "false",
        "AUTHZEN__SUBJECTS": "user=user",
        "AUTHZEN__TYPES__RECORD__TYPE": "table",
        "AUTHZEN__TYPES__RECORD__WITHIN": f"{world.warehouse}/{namespace}",
        "AUTHZEN__TYPES__RECORD__ACTIONS": "read=read_data,write=commit,delete=drop",
    }
    started = policy_gateway(world, tmp_path_factory.mktemp("authzen"), **settings)
    with started as running, running.guarded(GUARDRAIL):
        person = Person("point", asker.id, asker.token, str(running.admin.http.base_url))
        yield person
        person.http.close()


def _decision(point: Person, body: Mapping[str, Any]) -> object:
    answer = point.post(EVALUATION, dict(body))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    return answer.json()["decision"]


@pytest.mark.parametrize("name", [*CORE, *PROPERTIES])
def test_basic_level(point: Person, name: str) -> None:
    case = (CORE | PROPERTIES)[name]
    assert _decision(point, case.body) is case.decision
    assert _decision(point, case.body) is case.decision, "the same request has the same answer"
    context = {"time": "2026-08-01T12:00:00Z", "status": "archived", "role": "admin", "soft": False}
    assert _decision(point, {**case.body, "context": context, "later": [1]}) is case.decision


@pytest.mark.parametrize("cases", [CORE, PROPERTIES], ids=["core", "properties"])
def test_batch_level(point: Person, cases: Mapping[str, Case]) -> None:
    expected = [case.decision for case in cases.values()]
    answer = point.post(EVALUATIONS, {"evaluations": [case.body for case in cases.values()]})
    assert [each["decision"] for each in answer.json()["evaluations"]] == expected
    only = next(iter(cases.values()))
    assert point.post(EVALUATIONS, only.body).json() == {"decision": only.decision}


def test_batch_level_with_defaults_and_semantics(point: Person) -> None:
    records = [{"resource": record("record-1")}, {"resource": ARCHIVED}, {"resource": record("record-1")}]
    defaults = {"subject": subject("alice"), "action": action("write"), "evaluations": records}
    for semantic, expected in (
        ("execute_all", [True, False, True]),
        ("deny_on_first_deny", [True, False]),
        ("permit_on_first_permit", [True]),
    ):
        answer = point.post(EVALUATIONS, {**defaults, "options": {"evaluations_semantic": semantic}})
        assert [each["decision"] for each in answer.json()["evaluations"]] == expected


def test_search_level_core(point: Person) -> None:
    users = search(point, "subject", subject={"type": "user"}, action=action("read"), resource=record("record-1"))
    assert {"alice", "bob"} <= set(users)
    records = search(point, "resource", subject=subject("alice"), action=action("read"), resource={"type": "record"})
    assert records.count("record-1") == 1 and set(records) == {"record-1", "record-2"}
    names = search(point, "action", subject=subject("alice"), resource=record("record-1"))
    assert {"read", "write"} <= set(names)
    assert search(point, "action", subject=subject("bob"), resource=record("record-1")) == ["read"]
    nobody, nothing = subject("nobody"), record("nothing")
    assert search(point, "resource", subject=nobody, action=action("read"), resource={"type": "record"}) == []
    assert search(point, "subject", subject={"type": "user"}, action=action("read"), resource=nothing) == []
    assert search(point, "subject", subject={"type": "ghost"}, action=action("read"), resource=record("record-1")) == []
    assert search(point, "action", subject=nobody, resource=record("record-1")) == []


def test_search_level_properties(point: Person) -> None:
    write, role = action("write"), {"role": "admin"}
    admins = search(point, "subject", subject={"type": "user", "properties": role}, action=write, resource=ARCHIVED)
    assert "bob" in admins
    assert search(point, "subject", subject={"type": "user"}, action=write, resource=ARCHIVED) == []
    searched = {"type": "record", "properties": {"status": "archived"}}
    assert search(point, "resource", subject=ADMIN, action=write, resource=searched) == ["record-2"]
    assert search(point, "resource", subject=subject("bob"), action=write, resource=searched) == []
    assert "write" in search(point, "action", subject=ADMIN, resource=ARCHIVED)
    assert "write" not in search(point, "action", subject=subject("bob"), resource=ARCHIVED)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("subject", {"subject": {"type": "user"}, "action": action("read")}),
        ("subject", {"subject": {}, "action": action("read"), "resource": record("record-1")}),
        ("resource", {"subject": {"type": "user"}, "action": action("read"), "resource": {"type": "record"}}),
        ("resource", {"subject": subject("alice"), "action": {}, "resource": {"type": "record"}}),
        ("resource", {"subject": subject("alice"), "action": action("read"), "resource": {}}),
        ("action", {"subject": subject("alice"), "resource": {"type": "record"}}),
        ("action", {"resource": record("record-1")}),
    ],
)
def test_an_incomplete_search_is_400(point: Person, kind: str, body: dict[str, Any]) -> None:
    assert point.post(SEARCH + kind, body).status_code == 400


def test_discovery_level(point: Person) -> None:
    document = point.get("/.well-known/authzen-configuration").json()
    base = str(point.http.base_url).rstrip("/")
    assert document["policy_decision_point"] == base
    case = CORE["1"]
    found = point.post(document["access_evaluation_endpoint"].removeprefix(base), case.body)
    assert found.json()["decision"] is case.decision
