# SPDX-License-Identifier: Apache-2.0
"""Codings of bodies in the real application: never beside a secret, and inflated bytes count as plain ones."""

from __future__ import annotations

import dataclasses
import gzip
from typing import Any, cast

import pytest
from litestar import get

from gateway.access.actor import Actor
from gateway.access.nouns.authz_errors import ShareExceeded
from gateway.access.operation import HttpOperation, Operation
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.tables import LoadTable
from gateway.access.shares.shares import Shares
from gateway.api.latch import LEASE, Latch
from gateway.api.serves import SERVED, _inject_context
from gateway.telemetry.metrics import Metrics
from tests.support.door import world
from tests.support.door.app import LIMITS, running

LOAD, VEND = LoadTable(world.TABLE), VendCredentials(world.TABLE)
TEXT = "ab" * 4096
HEADERS = {"authorization": "Bearer alice", "accept-encoding": "gzip"}


@pytest.mark.threat("LG-DIS-22")
@pytest.mark.parametrize(
    ("served", "admitted", "coding"),
    [
        ((LoadTable,), (LOAD,), "gzip"),
        ((LoadTable,), (LOAD, VEND), None),
        ((LoadTable,), (VEND, LOAD), None),
        ((LoadTable, VendCredentials), (LOAD,), None),
    ],
    ids=["without a secret", "admitted after", "admitted before", "served by the route"],
)
async def test_what_the_route_serves_or_admits_decides_whether_an_answer_is_compressed(
    served: tuple[type[HttpOperation], ...], admitted: tuple[Operation, ...], coding: str | None
) -> None:
    async def answering(ctx: Any) -> str:
        for operation in admitted:
            permit = await ctx.admit(operation)
            await permit.pending_audit.commit()
        return TEXT

    _inject_context(answering)
    route = get("/text", opt={"operations": frozenset(served)})(answering)
    async with running(extra_handlers=[route]) as app:
        answer = await app.client.get("/text", headers=HEADERS)
    assert (answer.status_code, answer.text) == (200, TEXT)
    assert answer.headers.get("content-encoding") == coding


async def test_an_unread_body_in_another_coding_closes_the_connection_and_names_the_coding_that_is_read() -> None:
    async with running() as app:
        answer = await app.client.post(
            f"/catalog/v1/{world.WAREHOUSE_ID}/namespaces",
            content=b"{}",
            headers={"authorization": "Bearer alice", "content-encoding": "br"},
        )
    assert answer.status_code == 415
    assert (answer.headers["connection"], answer.headers["accept-encoding"]) == ("close", "gzip")


@pytest.mark.threat("LG-DIS-23")
async def test_inflated_bytes_are_charged_to_the_share_of_the_caller() -> None:
    shares = Shares(dataclasses.replace(LIMITS, bytes=500_000), Metrics())
    (await shares.enter(Actor.user("oidc~alice"))).take_bytes(1)  # the only request of a caller has no such limit
    packed = gzip.compress(bytes(1_000_000))
    assert len(packed) < 10_000

    async def receive() -> Any:
        return {"type": "http.request", "body": packed, "more_body": False}

    async def reading(scope: Any, receive: Any, send: Any) -> None:
        scope["state"][LEASE] = await shares.enter(Actor.user("oidc~alice"))
        while (await receive())["more_body"]:
            pass

    scope: Any = {
        "type": "http",
        "method": "POST",
        "path": "/text",
        "headers": [(b"content-encoding", b"gzip")],
        "state": {},
        "route_handler": SERVED[LoadTable],
    }
    with pytest.raises(ShareExceeded):
        await Latch(world.Watcher()).handle(scope, receive, cast(Any, None), cast(Any, reading))
