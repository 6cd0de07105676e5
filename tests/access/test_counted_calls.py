# SPDX-License-Identifier: Apache-2.0
"""Request statistics: counts by route, status, and warehouse or project of the target."""

from __future__ import annotations

from gateway.access.nouns.resolved import AbsentLocation
from gateway.telemetry.calls import Call, Calls
from tests.support.door import world
from tests.support.door.app import running
from tests.support.door.examples import EXAMPLES, Example
from tests.support.door.world import DoorFixture


def _example(name: str) -> Example:
    return next(each for each in EXAMPLES if type(each.operation).__name__ == name)


async def test_allowed_and_refused_requests_count_for_the_container_of_the_object() -> None:
    load, calls, door_fixture = _example("LoadTable"), Calls(), DoorFixture()
    async with running(door_fixture, calls=calls) as app:
        await app.send(load)
        door_fixture.judge.answer = lambda _: False
        for _ in range(2):
            assert (await app.send(load)).status_code == 404
        await app.send(_example("GetProject"))
        await app.send(load, subject=None)
    route = "GET /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    counted = calls.take()
    assert counted[Call(world.PROJECT_ID, world.WAREHOUSE_ID, route, 404)] == 2
    assert counted[Call(None, None, route, 401)] == 1, "a request without a resolved object counts for no container"
    assert counted[Call(world.PROJECT_ID, None, "GET /management/v1/project", 404)] == 1
    assert sum(counted.values()) == 5
    assert not calls.take()


async def test_a_request_for_an_absent_object_counts_for_its_container() -> None:
    load, calls, door_fixture = _example("LoadTable"), Calls(), DoorFixture()
    door_fixture.resolver.rows.pop(world.TABLE)
    door_fixture.resolver.validity = {"absent": {world.TABLE: AbsentLocation(world.PROJECT_ID, ())}}
    door_fixture.judge.answer = lambda _: False
    async with running(door_fixture, calls=calls) as app:
        assert (await app.send(load)).status_code == 404
    assert [(call.project_id, call.warehouse_id) for call in calls.take()] == [(world.PROJECT_ID, world.WAREHOUSE_ID)]


async def test_unrouted_and_public_requests_are_not_counted() -> None:
    calls = Calls()
    async with running(calls=calls) as app:
        await app.client.get("/health")
        await app.client.get("/nowhere")
    assert not calls.take()


def test_counts_that_could_not_be_stored_are_kept_for_the_next_write() -> None:
    calls, call = Calls(), Call("p", None, "GET /x", 200)
    calls.add(call)
    taken = calls.take()
    calls.add(call)
    calls.put_back(taken)
    assert calls.take() == {call: 2}
