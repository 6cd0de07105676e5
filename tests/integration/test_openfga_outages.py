# SPDX-License-Identifier: Apache-2.0
"""An OpenFGA that is slow, broken or incomplete.

It allows no request, each failure raises the typed error, and no message contains the key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.access.dependency_errors import ConditionConflict, DecisionEngineUnavailable, WriteOutcomeUnknown
from gateway.fga.client import FgaClient
from gateway.fga.wire import FgaTuple, TuplesRefused
from tests.support.clock import quickest
from tests.support.rows.parts import closed_port

pytestmark = pytest.mark.chaos

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
KEY = "very-secret-key"
CONTEXT = {"current_time": "2026-03-04T12:00:00Z"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
MISSING_CONTEXT = (
    "failed to evaluate relationship condition: 'unexpired' - tuple 'table:1#select@user:a' is missing context "
    "parameters '[current_time]'"
)


def check(number: int) -> FgaTuple:
    return FgaTuple(f"user:u{number}", "can_read_data", "table:1")


@asynccontextmanager
async def openfga(handler: Handler, **options: Any) -> AsyncIterator[FgaClient]:
    """Yield a client whose OpenFGA is a server that answers every request with `handler`."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as server:
        client = FgaClient(str(server.make_url("/")), KEY, ULID, ULID, **{"timeout_s": 10.0, **options})
        try:
            yield client
        finally:
            await client.aclose()


def answering(body: Any, status: int = 200) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, content_type="application/json")

    return handler


async def echoing(request: web.Request) -> web.StreamResponse:
    """Allow the users with an even number."""
    requested = await request.json()
    result = {
        each["correlation_id"]: {"allowed": int(each["tuple_key"]["user"].removeprefix("user:u")) % 2 == 0}
        for each in requested["checks"]
    }
    return web.json_response({"result": result})


async def outage(client: FgaClient, number: int = 1) -> DecisionEngineUnavailable:
    """Return the error that a check raises."""
    with pytest.raises(DecisionEngineUnavailable) as raised:
        await client.batch_check([check(n) for n in range(number)], context=CONTEXT)
    assert KEY not in repr(raised.value)
    assert raised.value.__cause__ is None
    return raised.value


@pytest.mark.threat("LG-DEC-19")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"result": {}},
        {"result": True},
        {"result": []},
        {"result": {"0": {}}},
        {"result": {"0": True}},
        {"result": {"0": {"allowed": "true"}}},
        {"result": {"0": {"allowed": 1}}},
        {"result": {"0": {"allowed": None}}},
        {"result": {"1": {"allowed": True}}},
        {"result": {"0": {"allowed": True}, "1": {"allowed": True}}},
        {"result": {"0": {"allowed": True, "error": {"message": MISSING_CONTEXT}}}},
        {"result": {"0": {"error": {"message": "relation 'table#nope' not found"}}}},
        {"result": {"0": {"error": {"message": f"relation not found: {MISSING_CONTEXT}"}}}},
        {"result": {"0": {"error": {}}}},
        "[" * 100_000,
        "not json",
        "",
        "null",
    ],
)
async def test_ambiguous_openfga_response_is_an_outage(body: Any) -> None:
    async with openfga(answering(body)) as client:
        await outage(client)


async def test_condition_without_context_denies_only_its_own_check() -> None:
    body = {"result": {"0": {"error": {"message": MISSING_CONTEXT}}, "1": {"allowed": True}}}
    async with openfga(answering(body)) as client:
        assert await client.batch_check([check(0), check(1)], context={}) == [False, True]


@pytest.mark.threat("LG-DEC-23")
async def test_one_missing_answer_among_many_is_an_outage() -> None:
    async def partial(request: web.Request) -> web.StreamResponse:
        requested = await request.json()
        result = {each["correlation_id"]: {"allowed": True} for each in requested["checks"]}
        result.pop("7", None)
        return web.json_response({"result": result})

    async with openfga(partial) as client:
        await outage(client, 20)


async def test_one_broken_chunk_among_good_ones_is_an_outage() -> None:
    async def third_breaks(request: web.Request) -> web.StreamResponse:
        requested = await request.json()
        if requested["checks"][0]["tuple_key"]["user"] == "user:u20":
            return web.Response(status=500, text="{}")
        return await echoing(request)

    async with openfga(third_breaks, max_batch=10) as client:
        assert "status 500" in str(await outage(client, 40))


@pytest.mark.parametrize("status", [201, 204, 301, 307, 400, 401, 403, 404, 409, 429, 500, 502, 503])
async def test_any_other_status_is_an_outage(status: int) -> None:
    body = json.dumps({"result": {"0": {"allowed": True}}})

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body, headers={"Location": str(request.url)})

    async with openfga(handler) as client:
        await outage(client)


async def test_slow_server_is_an_outage_at_the_timeout() -> None:
    async def slow(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3)
        return web.Response()

    async with openfga(slow, timeout_s=0.2) as client:
        assert await quickest(lambda: outage(client, 120)) < 1


async def test_a_body_that_trickles_is_an_outage_after_the_timeout() -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for _ in range(30):
            await response.write(b" ")
            await asyncio.sleep(0.1)
        return response

    async with openfga(trickle, timeout_s=0.3) as client:
        assert await quickest(lambda: outage(client)) < 1


async def test_unreachable_server_is_an_outage() -> None:
    with closed_port() as port:
        client = FgaClient(f"http://127.0.0.1:{port}", KEY, ULID, ULID, timeout_s=10)
        await outage(client)
        with pytest.raises(DecisionEngineUnavailable) as raised:
            await client.write([check(0)])
        assert not isinstance(raised.value, WriteOutcomeUnknown), "a write that was not sent has a known outcome"
        with pytest.raises(DecisionEngineUnavailable):
            await client.ping()
        await client.aclose()


@asynccontextmanager
async def dropping(times: int) -> AsyncIterator[tuple[FgaClient, list[int]]]:
    """Yield a client of a server that reads a request and drops the connection, `times` times, and then answers."""
    seen: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        seen.append(1)
        if len(seen) > times:
            body = b'{"result": {"0": {"allowed": true}}}'
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
        else:
            writer.transport.abort()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = FgaClient(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", KEY, ULID, ULID, timeout_s=30)
    try:
        yield client, seen
    finally:
        await client.aclose()
        listener.close()
        await listener.wait_closed()


async def test_check_is_retried_once_after_a_connection_loss() -> None:
    async with dropping(1) as (client, seen):
        assert await client.batch_check([check(0)], context=CONTEXT) == [True]
        assert len(seen) == 2


async def test_check_is_not_retried_twice() -> None:
    async with dropping(2) as (client, seen):
        await outage(client)
        assert len(seen) == 2


async def test_a_write_is_never_sent_twice_and_its_outcome_is_unknown() -> None:
    async with dropping(5) as (client, seen):
        with pytest.raises(WriteOutcomeUnknown):
            await client.write([check(0)])
        assert len(seen) == 1


async def test_timed_out_write_has_an_unknown_outcome() -> None:
    async def slow(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3)
        return web.Response()

    async with openfga(slow, timeout_s=0.2) as client:
        with pytest.raises(WriteOutcomeUnknown):
            await client.write([check(0)])


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (409, "attempted to write a tuple which already exists with a different condition: x", ConditionConflict),
        (400, "Invalid tuple", TuplesRefused),
        (500, "", WriteOutcomeUnknown),
        (503, "", WriteOutcomeUnknown),
        (409, "transactional write failed due to conflict", DecisionEngineUnavailable),
        (401, "", DecisionEngineUnavailable),
        (429, "", DecisionEngineUnavailable),
        (302, "", DecisionEngineUnavailable),
    ],
)
async def test_refused_write_reports_a_possible_effect(status: int, message: str, kind: type[Exception]) -> None:
    async with openfga(answering({"code": "c", "message": message}, status)) as client:
        with pytest.raises(kind) as raised:
            await client.write([check(0)])
        assert type(raised.value) is kind


async def test_chunks_are_checked_concurrently_and_results_keep_their_order() -> None:
    sizes: list[int] = []
    several = asyncio.Event()

    async def later_chunks_first(request: web.Request) -> web.StreamResponse:
        requested = await request.json()
        sizes.append(len(requested["checks"]))
        first = int(requested["checks"][0]["tuple_key"]["user"].removeprefix("user:u"))
        if len(sizes) == 3:
            several.set()
        await several.wait()  # no check is answered before this number of them has arrived
        await asyncio.sleep(0.3 - first / 1000)
        return await echoing(request)

    async with openfga(later_chunks_first, max_batch=20) as client:
        answers = await client.batch_check([check(n) for n in range(45)], context=CONTEXT)
    assert sorted(sizes) == [5, 20, 20]
    assert answers == [n % 2 == 0 for n in range(45)]


@pytest.mark.parametrize(("max_batch", "expected"), [(50, [10] * 22), (4, [4] * 55)])
async def test_large_check_is_sent_in_sequential_batches(max_batch: int, expected: list[int]) -> None:
    sizes: list[int] = []
    under_way = 0

    async def alone(request: web.Request) -> web.StreamResponse:
        nonlocal under_way
        assert under_way == 0
        under_way += 1
        await asyncio.sleep(0)
        sizes.append(len((await request.json())["checks"]))
        under_way -= 1
        return await echoing(request)

    async with openfga(alone, max_batch=max_batch) as client:
        answers = await client.batch_check([check(n) for n in range(220)], context=CONTEXT)
    assert sizes == expected
    assert answers == [n % 2 == 0 for n in range(220)]


async def test_equal_checks_are_sent_once_and_answered_each() -> None:
    bodies: list[Any] = []

    async def keeping(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.json())
        return await echoing(request)

    async with openfga(keeping) as client:
        answers = await client.batch_check([check(0), check(1), check(0), check(1), check(2)], context=CONTEXT)
    assert answers == [True, False, True, False, True]
    [body] = bodies
    assert len(body["checks"]) == 3
    assert body["consistency"] == "HIGHER_CONSISTENCY"
    assert body["authorization_model_id"] == ULID
    assert all(each["context"] == CONTEXT for each in body["checks"])


async def test_a_list_of_tuples_that_breaks_off_or_repeats_is_an_outage() -> None:
    pages = [{"tuples": [], "continuation_token": "again"}, {"tuples": [], "continuation_token": "again"}]

    async def repeating(_: web.Request) -> web.StreamResponse:
        return web.json_response(pages[0])

    for handler in (repeating, answering({"tuples": [{"key": {"user": "u"}}]}), answering({}, 500)):
        async with openfga(handler) as client:
            with pytest.raises(DecisionEngineUnavailable):
                [found async for found in client.read()]
