# SPDX-License-Identifier: Apache-2.0
"""Lock 5: no success response is sent for a request that was not admitted, or whose audit record is not durable."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest
from litestar import get
from litestar.handlers import HTTPRouteHandler
from litestar.response import Redirect, Stream

from gateway.access.operation import Operation
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.server import GetHealth
from gateway.access.operations.tables import DropTable, LoadTable
from gateway.api.context import Ctx
from gateway.api.latch import Latch, _may_be_sent
from gateway.api.serves import SERVED, _inject_context
from gateway.iceberg.errors import NamespaceNotEmptyException
from tests.support.door import world
from tests.support.door.app import running
from tests.support.door.examples import EXAMPLES
from tests.support.door.world import DoorFixture, MemoryAudit

SECRET = "the-secret-of-the-house"
LOAD, VEND, DROP = LoadTable(world.TABLE), VendCredentials(world.TABLE), DropTable(world.TABLE)


async def _send(
    handler: Any, *operations: type[Operation], door_fixture: DoorFixture | None = None, **more: Any
) -> httpx.Response:
    """Return the response of a route with this handler that serves `operations`."""
    _inject_context(handler)
    route: HTTPRouteHandler = get("/lax", opt={"operations": frozenset(operations)})(handler)
    async with running(door_fixture, extra_handlers=[route]) as app:
        return await app.client.get("/lax", headers={"authorization": "Bearer alice"}, **more)


def _assert_withheld(answer: httpx.Response) -> None:
    assert answer.status_code == 500
    assert SECRET not in answer.text
    assert answer.json()["error"]["type"] == "InternalServerError"
    assert answer.headers["content-type"] == "application/json"


async def test_success_without_admission_sends_no_byte() -> None:
    async def forgot(ctx: Ctx) -> str:
        return SECRET

    _assert_withheld(await _send(forgot, LoadTable))


async def test_a_stream_without_admission_sends_no_chunk() -> None:
    async def chunks() -> AsyncIterator[str]:
        yield SECRET
        yield SECRET

    async def forgot(ctx: Ctx) -> Stream:
        return Stream(chunks())

    _assert_withheld(await _send(forgot, LoadTable))


async def test_a_redirect_without_admission_is_withheld() -> None:
    async def forgot(ctx: Ctx) -> Redirect:
        return Redirect(f"https://elsewhere/{SECRET}")

    answer = await _send(forgot, LoadTable)
    _assert_withheld(answer)
    assert "location" not in answer.headers


async def test_a_handler_without_any_context_is_withheld() -> None:
    async def alone() -> str:
        return SECRET

    _assert_withheld(await _send(alone, LoadTable))


async def test_no_part_of_a_withheld_response_follows_the_500() -> None:
    """A server would forward bytes sent after the end of a response; the client of these tests would not show them."""
    sent: list[Any] = []

    async def leaking(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for more in (True, False):
            await send({"type": "http.response.body", "body": SECRET.encode(), "more_body": more})

    async def collect(message: Any) -> None:
        sent.append(message)

    scope: Any = {
        "type": "http",
        "method": "GET",
        "path": "/lax",
        "headers": [],
        "state": {},
        "route_handler": SERVED[LoadTable],
    }
    await Latch(world.Watcher()).handle(scope, cast(Any, None), collect, cast(Any, leaking))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[0]["status"] == 500
    assert SECRET.encode() not in sent[1]["body"]


def test_a_route_without_operations_answers_only_options() -> None:
    """The boot-time walk refuses such a route; the latch does not rely on that."""
    assert _may_be_sent("OPTIONS", {}, None)
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
        assert not _may_be_sent(method, {}, None)
        assert not _may_be_sent(method, {"request_context": world.request_context()}, frozenset({LoadTable}))


async def test_admission_for_another_operation_does_not_open_the_latch() -> None:
    async def mistaken(ctx: Ctx) -> str:
        await ctx.admit(LOAD)
        return SECRET

    _assert_withheld(await _send(mistaken, VendCredentials))


async def test_an_admitted_and_audited_response_is_sent() -> None:
    async def careful(ctx: Ctx) -> str:
        await ctx.admit(LOAD)
        return "metadata"

    answer = await _send(careful, LoadTable)
    assert (answer.status_code, answer.text) == (200, "metadata")
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("operation", [VEND, DROP], ids=["before the response", "with the change"])
async def test_success_with_an_unsettled_audit_record_is_withheld_and_logged(operation: Operation) -> None:
    async def hasty(ctx: Ctx) -> str:
        await ctx.admit(operation)
        return SECRET

    door_fixture = DoorFixture()
    _assert_withheld(await _send(hasty, type(operation), door_fixture=door_fixture))
    [record] = door_fixture.audit.buffered
    assert (record.operation, record.outcome) == (operation.name(), "allowed")
    assert {**record.detail, "facts": None} == {"result": "failed", "error": "answered 500", "facts": None}


async def test_one_unsettled_audit_record_withholds_the_response() -> None:
    async def half(ctx: Ctx) -> str:
        await ctx.admit(LOAD)
        permit = await ctx.admit(VEND)
        await permit.pending_audit.commit()
        await ctx.admit(DROP)
        return SECRET

    _assert_withheld(await _send(half, LoadTable))


async def test_a_committed_audit_record_opens_the_latch() -> None:
    async def careful(ctx: Ctx) -> str:
        permit = await ctx.admit(VEND)
        permit.pending_audit.add_details(vended="read")
        await permit.pending_audit.commit()
        return "keys"

    door_fixture = DoorFixture()
    assert (await _send(careful, VendCredentials, door_fixture=door_fixture)).status_code == 200
    [record] = door_fixture.audit.committed
    assert record.detail == {"vended": "read"}
    assert door_fixture.audit.buffered == []


@pytest.mark.parametrize(
    ("error", "status"), [(NamespaceNotEmptyException("not empty"), 409), (RuntimeError(SECRET), 500)]
)
async def test_the_audit_records_the_outcome_of_an_admitted_request_that_fails(error: Exception, status: int) -> None:
    async def failing(ctx: Ctx) -> None:
        await ctx.admit(DROP)
        raise error

    door_fixture = DoorFixture()
    answer = await _send(failing, DropTable, door_fixture=door_fixture)
    assert answer.status_code == status
    assert SECRET not in answer.text
    [record] = door_fixture.audit.buffered
    assert record.detail == {
        "result": "failed",
        "error": f"answered {status}",
        "facts": '{"drop_table":{"force":false}}',
    }


async def test_a_failed_request_does_not_repeat_settled_audit_records() -> None:
    async def failing(ctx: Ctx) -> None:
        permit = await ctx.admit(DROP)
        permit.pending_audit.settle()
        raise RuntimeError

    door_fixture = DoorFixture()
    assert (await _send(failing, DropTable, door_fixture=door_fixture)).status_code == 500
    assert door_fixture.audit.buffered == []


async def test_credentials_are_withheld_when_the_audit_cannot_be_written() -> None:
    async def vending(ctx: Ctx) -> str:
        permit = await ctx.admit(VEND)
        ctx_audit.full = True
        await permit.pending_audit.commit()
        return SECRET

    ctx_audit = MemoryAudit()
    answer = await _send(vending, VendCredentials, door_fixture=DoorFixture(audit=ctx_audit))
    assert answer.status_code == 503
    assert SECRET not in answer.text
    assert "retry-after" in answer.headers


async def test_a_refusal_passes_the_latch_unchanged() -> None:
    async def careful(ctx: Ctx) -> str:
        await ctx.admit(LOAD)
        return SECRET

    door_fixture = DoorFixture()
    door_fixture.judge.answer = lambda _: False
    answer = await _send(careful, LoadTable, door_fixture=door_fixture)
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "NoSuchTableException"


async def test_health_needs_no_token_and_no_admission() -> None:
    async with running() as app:
        answer = await app.client.get("/health")
    assert answer.status_code == 200
    assert SECRET not in answer.text


async def test_an_options_response_lists_only_the_methods_of_the_path() -> None:
    async with running() as app:
        for example in EXAMPLES:
            answer = await app.client.options(example.url)
            assert answer.status_code == 204
            assert answer.content == b""


async def test_a_valid_request_id_of_the_caller_is_recorded_beside_the_gateways_own() -> None:
    for given, kept in (("abc-1", True), ("a" * 129, False), ("a b", False), ("<x>", False), ("", False)):
        door_fixture = DoorFixture()
        async with running(door_fixture) as app:
            example = next(each for each in EXAMPLES if type(each.operation) is LoadTable)
            answers = [
                await app.client.get(
                    example.url, headers={"x-request-id": given, "authorization": f"Bearer {world.ALICE.id[5:]}"}
                )
                for _ in range(2)
            ]
        ids = {answer.headers["x-request-id"] for answer in answers}
        assert len(ids) == 2 and given not in ids
        records = door_fixture.audit.buffered
        assert {record.request_id for record in records} == ids
        assert {record.client_request_id for record in records} == ({given} if kept else {None})


async def test_each_response_is_counted_by_operation_and_status() -> None:
    door_fixture = DoorFixture()
    async with running(door_fixture) as app:
        await app.client.get("/management/v1/whoami")
        await app.client.get("/health")
    assert door_fixture.watcher.answers[0] == ("who_am_i", 401)
    assert door_fixture.watcher.answers[1][0] == GetHealth.name()
