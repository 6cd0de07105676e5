# SPDX-License-Identifier: Apache-2.0
"""What requests are counted as: by their route, their status, and where what they are about lies."""

from __future__ import annotations

from gateway.access.resolved import Whereabouts
from gateway.telemetry.calls import Call, Calls
from tests.access import world
from tests.access.app import running
from tests.access.examples import EXAMPLES, Example
from tests.access.world import House


def _example(name: str) -> Example:
    return next(each for each in EXAMPLES if type(each.operation).__name__ == name)


async def test_a_request_counts_where_the_thing_lies_whether_it_is_allowed_or_not() -> None:
    load, calls, house = _example("LoadTable"), Calls(), House()
    async with running(house, calls=calls) as app:
        await app.send(load)
        house.judge.answer = lambda _: False
        for _ in range(2):
            assert (await app.send(load)).status_code == 404
        await app.send(_example("GetProject"))
        await app.send(load, subject=None)
    route = "GET /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    counted = calls.take()
    assert counted[Call(world.PROJECT_ID, world.WAREHOUSE_ID, route, 404)] == 2
    assert counted[Call(None, None, route, 401)] == 1, "nobody knows what it was about"
    assert counted[Call(world.PROJECT_ID, None, "GET /management/v1/project", 404)] == 1
    assert sum(counted.values()) == 5
    assert not calls.take()


async def test_what_is_absent_counts_where_it_would_lie() -> None:
    load, calls, house = _example("LoadTable"), Calls(), House()
    house.resolver.rows.pop(world.TABLE)
    house.resolver.standing = {"absent": {world.TABLE: Whereabouts(world.PROJECT_ID, ())}}
    house.judge.answer = lambda _: False
    async with running(house, calls=calls) as app:
        assert (await app.send(load)).status_code == 404
    assert [(call.project_id, call.warehouse_id) for call in calls.take()] == [(world.PROJECT_ID, world.WAREHOUSE_ID)]


async def test_what_no_route_knows_and_what_is_open_to_all_is_not_counted() -> None:
    calls = Calls()
    async with running(calls=calls) as app:
        await app.client.get("/health")
        await app.client.get("/nowhere")
    assert not calls.take()


def test_what_could_not_be_written_down_is_counted_on() -> None:
    calls, call = Calls(), Call("p", None, "GET /x", 200)
    calls.add(call)
    taken = calls.take()
    calls.add(call)
    calls.put_back(taken)
    assert calls.take() == {call: 2}
