# SPDX-License-Identifier: Apache-2.0
"""Attacks by requests for access by a tag: learn which objects exist, evade guardrails, or use a detached tag."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest

from gateway.access.door.engines import Engines
from tests.support.rows.metered import metered
from tests.support.stack.access_requests import REQUESTS, ask, on_table
from tests.support.stack.policy_gateway import PolicyGateway
from tests.support.stack.tags import attach, define, tags_path
from tests.support.stack.world import Person, Table, World, error_of, send_until_decided

pytestmark = pytest.mark.servers

_FREEZE = (
    'denials[index] contains {"code": "freeze", "message": "The table is frozen."} if {\n'
    "\tsome index, question in input.questions\n"
    '\tquestion.resource.name == "NAME"\n'
    "\tquestion.resource.warehouse_id\n"
    "}\n"
)


def _by_tag(world: World, table: Table) -> tuple[Person, str]:
    """Return a user that may request access to the table by a tag only, and the id of the tag."""
    person, tag = world.stranger("requester"), define(world)
    assert attach(world, tag, tags_path(world, "table", table.uuid)).is_success
    entry = {"privilege": "requester", "principal": {"user": person.id}}
    path = f"/management/v1/tag-definition/{tag['id']}/grants"
    assert world.admin.post(path, {"writes": [entry]}).status_code == 204
    return person, str(tag["id"])


@contextmanager
def _at(gateway: PolicyGateway, person: Person) -> Iterator[Person]:
    """Yield the user with requests to another gateway."""
    beside = Person(person.name, person.id, person.token, str(gateway.admin.http.base_url))
    try:
        yield beside
    finally:
        beside.http.close()


def _absent(on: dict[str, Any]) -> dict[str, Any]:
    return {**on, "table-id": str(uuid4())}


@pytest.mark.threat("LG-REQ-03")
def test_a_guardrail_about_an_invisible_object_shows_nothing(
    world: World, guarded_gateway: PolicyGateway, table: Table
) -> None:
    on, answers = on_table(world, table), set()
    with (
        guarded_gateway.guarded(_FREEZE.replace("NAME", table.name)),
        _at(guarded_gateway, world.stranger()) as mallory,
    ):
        for each in (on, _absent(on)):
            answer = send_until_decided(partial(ask, mallory, each))
            error = error_of(answer)
            answers.add((answer.status_code, error["type"], error["message"].replace(each["table-id"], "ID")))
    assert len(answers) == 1, answers
    assert answers.pop()[0] == 404


@pytest.mark.threat("LG-REQ-02")
@pytest.mark.parametrize("sees", [False, True], ids=["invisible", "visible"])
def test_a_guardrail_about_the_object_decides_a_request_by_tag(
    world: World, guarded_gateway: PolicyGateway, table: Table, sees: bool
) -> None:
    bob, _ = _by_tag(world, table)
    if sees:
        world.grant("describe", bob, "table", table.uuid)
    rule = _FREEZE.replace("NAME", table.name).replace("}\n", '\tquestion.operation == "create_access_request"\n}\n')
    with guarded_gateway.guarded(rule), _at(guarded_gateway, bob) as beside:
        refused = send_until_decided(lambda: ask(beside, on_table(world, table)))
        body = {"object": on_table(world, table), "privileges": ["select"], "reason": "report"}
        tried = send_until_decided(lambda: beside.post(f"{REQUESTS}/dry-run", body))
    assert (tried.status_code, table.name in tried.text) == (403, False), tried.text
    assert "freeze: The table is frozen." in error_of(tried)["message"]
    assert refused.status_code == 403, refused.text
    message = error_of(refused)["message"]
    assert "freeze: The table is frozen." in message
    assert ("?denial=" in message) is sees, "nothing explains a decision on a tag"
    if sees:
        path = f"/management/v1/access/denials/{message.rpartition('denial=')[2]}"
        assert bob.get(path).json()["reasons"] == ["freeze: The table is frozen."]
        assert world.admin.get(path).json()["reasons"] == [], "only the refused caller received them"
    assert ask(bob, on_table(world, table)).status_code == 201


@pytest.mark.threat("LG-REQ-02")
def test_the_audit_record_of_a_request_by_tag_is_about_the_object(world: World, table: Table) -> None:
    bob, tag = _by_tag(world, table)
    made = ask(bob, on_table(world, table))
    assert made.status_code == 201, made.text
    decided = "convert_from(record, 'UTF8')::jsonb -> 'decisions' -> 0"
    ((first, second),) = world.sql(
        f"select {decided} -> 'resources' -> 0 ->> 'id', {decided} -> 'resources' -> 1 ->> 'id' from audit_log "
        f"where request_id = $1 and {decided} ->> 'operation' = 'create_access_request'",
        made.headers["x-request-id"],
    )
    assert (first, second) == (table.uuid, tag)


@pytest.mark.threat("LG-REQ-03")
@pytest.mark.parametrize("sees", [False, True], ids=["invisible", "visible"])
def test_a_tag_that_is_detached_during_the_request_does_not_count(world: World, table: Table, sees: bool) -> None:
    bob, tag = _by_tag(world, table)
    if sees:
        world.grant("describe", bob, "table", table.uuid)
    waiting = "select 1 from pg_locks where not granted"
    with ThreadPoolExecutor(1) as threads:
        world.sql("begin")
        try:
            world.sql("delete from tag_attachments where tag_id = $1::text::uuid", tag)
            asking = threads.submit(ask, bob, on_table(world, table))
            deadline = time.monotonic() + 30
            while not asking.done() and not world.sql(waiting):
                assert time.monotonic() < deadline, "the request neither ended nor waited for the attachment"
                time.sleep(0.02)
        finally:
            world.sql("commit")
        answer = asking.result()
    assert answer.status_code == (201 if sees else 404), answer.text
    if not sees:
        assert error_of(answer)["type"] == error_of(ask(bob, _absent(on_table(world, table))))["type"]


@pytest.mark.threat("LG-REQ-03")
def test_the_number_of_checks_does_not_show_the_tags_of_an_invisible_object(world: World, ns: str) -> None:
    tables = [world.table(ns) for _ in range(3)]
    tags = [define(world) for _ in range(4)]
    for table, number in zip(tables, (0, 1, 4), strict=True):
        for tag in tags[:number]:
            assert attach(world, tag, tags_path(world, "table", table.uuid)).is_success
    (mallory, _), on = _by_tag(world, world.table(ns)), on_table(world, tables[0])
    objects = [on, _absent(on), *(on_table(world, each) for each in tables[1:])]
    found = asyncio.run(_work(world, mallory, objects))
    assert {status for status, *_ in found} == {404}
    assert len(set(found)) == 1, found


async def _work(world: World, person: Person, objects: list[dict[str, Any]]) -> list[tuple[int, tuple[int, ...], int]]:
    """Return (status, number of questions in each check, number of statements) of a request for each object."""
    asked: list[int] = []
    check = Engines.check

    async def counted(engines: Engines, actor: Any, questions: Any, *given: Any, **more: Any) -> list[bool]:
        asked.append(len(questions))
        return await check(engines, actor, questions, *given, **more)

    found = []
    with patch.object(Engines, "check", counted):
        async with metered(world.ready) as gateway:
            # The first request also reads what the process then keeps.
            for each in (_absent(objects[0]), *objects):
                asked.clear()
                body = {"object": each, "privileges": ["select"], "reason": "report"}
                answer, cost = await gateway.send("POST", REQUESTS, person.token, body=body)
                found.append((answer.status_code, tuple(asked), len(cost.statements)))
    return found[1:]
