# SPDX-License-Identifier: Apache-2.0
"""Refusals on tags and data policies lead to an explanation and to a request, as those on tables do."""

from __future__ import annotations

import itertools
import re
from typing import Any

import httpx
import pytest

from tests.support.stack.access_requests import asked, decide, listed
from tests.support.stack.data_policies import POLICY, make
from tests.support.stack.explained import CHECK, EXPLAIN, explain
from tests.support.stack.tags import TAG, attach, define, tags_path
from tests.support.stack.world import Person, World, error_of, error_triple, send_until_decided

DENIALS = "/management/v1/access/denials"
ABSENT = "01890000-0000-7000-8000-000000000000"
PATHS = {"tag": TAG, "data-policy": POLICY}
ACTIONS = {
    "tag": ["read", "update", "apply", "remove", "grant_apply", "request_access", "read_attachments"],
    "data-policy": ["read", "update", "bind", "grant_exempt", "skip", "be_subject", "read_affected"],
}


def made(world: World, kind: str) -> str:
    """Make a tag or a data policy; return its id."""
    return str((define(world) if kind == "tag" else make(world))["id"])


def observer(world: World) -> Person:
    """Return a user that sees the tags and data policies of the project, and may not change them."""
    person = world.stranger("observer")
    world.grant("auditor", person, "project", world.project)
    return person


def on(kind: str, id: str, action: str) -> dict[str, Any]:
    """Return the operation of a question about an action on a tag or data policy."""
    return {kind: {"action": action, f"{kind}-id": id}}


def denial_of(answer: httpx.Response) -> str:
    """Return the id of the denial in the message of a refusal."""
    assert answer.status_code == 403, answer.text
    found = re.search(r"/ui\?denial=([0-9a-f-]{36})$", error_of(answer)["message"])
    assert found is not None, answer.text
    return found[1]


@pytest.mark.parametrize("kind", PATHS)
def test_a_refused_caller_requests_what_the_explanation_offers(world: World, kind: str) -> None:
    id, person = made(world, kind), observer(world)
    path = f"{PATHS[kind]}/{id}"
    denial = denial_of(send_until_decided(lambda: person.delete(path), unless=403))
    found = person.get(f"{DENIALS}/{denial}").json()["explanation"]
    assert (found["decision"], found["action"], found["object"]["id"]) == ("denied", "delete", id)
    (missing,) = found["relationships"]["repairs"][0]["grants"]
    assert (missing["privilege"], missing["object"]["id"]) == ("ownership", id)
    request = asked(person, {"type": kind, f"{kind}-id": id}, "ownership", duration_seconds=3600)
    assert decide(world.admin, request, "approve").status_code == 204
    assert send_until_decided(lambda: person.delete(path)).status_code == 204


@pytest.mark.parametrize("kind", PATHS)
def test_owners_find_requests_in_their_list(world: World, kind: str) -> None:
    id, owner = made(world, kind), world.stranger("owner")
    world.grant("ownership", owner, kind, id)
    request = asked(observer(world), {"type": kind, f"{kind}-id": id}, "ownership")
    assert listed(owner) == [request]
    assert decide(owner, request, "approve").status_code == 204


def test_a_refused_attachment_names_the_right_on_the_tag(world: World, ns: str) -> None:
    """The request is about a table, the missing right about the tag."""
    tag, table, person = define(world), world.table(ns), observer(world)
    world.grant("manage_tags", person, "table", table.uuid)
    denial = denial_of(attach(world, tag, tags_path(world, "table", table.uuid), by=person))
    found = person.get(f"{DENIALS}/{denial}").json()["explanation"]
    assert (found["object"]["id"], found["action"]) == (tag["id"], "apply")
    least = found["relationships"]["repairs"][0]
    assert ([each["privilege"] for each in least["grants"]], least["opens"]) == (["apply"], [])


@pytest.mark.parametrize("kind", PATHS)
def test_for_other_callers_the_denial_does_not_exist(world: World, kind: str) -> None:
    id = made(world, kind)
    refused = observer(world)
    denial = denial_of(send_until_decided(lambda: refused.delete(f"{PATHS[kind]}/{id}"), unless=403))
    assert error_triple(world.carol.get(f"{DENIALS}/{denial}"))[:2] == (404, "DenialNotFound")
    assert world.admin.get(f"{DENIALS}/{denial}").json()["explanation"]["principal"]["id"] == refused.id


@pytest.mark.parametrize("kind", PATHS)
def test_invisible_and_absent_objects_answer_alike(world: World, kind: str) -> None:
    id = made(world, kind)
    for path in (EXPLAIN, CHECK):
        about = {"identity": {"user": world.analyst.id}}
        for more in ({}, about) if path == EXPLAIN else (about,):
            hidden, missing = (
                error_triple(world.carol.post(path, {"operation": on(kind, each, "read"), **more}))
                for each in (id, ABSENT)
            )
            assert hidden[0] == 404, hidden
            assert (*hidden[:2], hidden[2].replace(id, ABSENT)) == missing
    allowed = [world.carol.post(CHECK, {"operation": on(kind, each, "read")}).json() for each in (id, ABSENT)]
    assert allowed == [{"allowed": False}] * 2


@pytest.mark.parametrize("kind", PATHS)
def test_explanations_equal_permission_checks(world: World, kind: str) -> None:
    id, reader, owner = made(world, kind), observer(world), world.stranger("owner")
    world.grant("ownership", owner, kind, id)
    decided = set()
    for person, action in itertools.product((reader, owner), ACTIONS[kind]):
        body = {"operation": on(kind, id, action), "identity": {"user": person.id}}
        allowed = world.admin.post(CHECK, body).json()["allowed"]
        found = explain(world.admin, body["operation"], identity=body["identity"])
        assert found["decision"] == ("allowed" if allowed else "denied"), (person, action)
        assert bool(found["relationships"].get("witnesses")) is allowed
        decided.add(allowed)
    assert decided == {True, False}
