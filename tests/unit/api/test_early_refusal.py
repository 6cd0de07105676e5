# SPDX-License-Identifier: Apache-2.0
"""Early refusal: only known callers of a full process are refused, before routing and authentication."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Never

import pytest
from litestar import Litestar

from gateway.access.actor import Actor
from gateway.access.nouns.refs import WarehouseNameRef
from gateway.access.operations.server import GetConfig
from gateway.access.shares.shares import Shares
from gateway.api.context import Ctx
from gateway.api.early_refusal import EarlyRefusal, credential_of
from gateway.api.raw_path import RawPath
from tests.support.door.shares import BUSY, Clock, Observer

ALICE, BOB = Actor.user("oidc~alice"), Actor.user("oidc~bob")


def scope_of(*values: bytes, path: str = "/catalog/v1/config") -> Any:
    """Return the scope of a request with these Authorization headers."""
    headers = [(b"host", b"gateway"), *((b"authorization", value) for value in values)]
    return {"type": "http", "method": "GET", "path": path, "headers": headers, "query_string": b""}


@asynccontextmanager
async def full_process(*, target: float = 0.25) -> AsyncIterator[Shares]:
    """Yield the shares of a process that completes two requests per second. Its two slots are in use by alice, and
    alice and bob wait, each with a credential of the same name.
    """
    clock = Clock()
    shares = Shares(replace(BUSY, total_requests=2, decision_target=target), Observer(), clock=clock, sleep=clock.sleep)
    (await shares.enter(ALICE)).release()
    clock.now += 0.5
    (await shares.enter(ALICE)).release()
    for _ in range(2):
        await shares.enter(ALICE)
    waiting = [
        asyncio.create_task(shares.enter(actor, credential=b"Bearer " + actor.id.encode())) for actor in (ALICE, BOB)
    ]
    await asyncio.sleep(0)
    yield shares
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


def early(shares: Shares | None) -> EarlyRefusal:
    """Return the check of an application with these shares; None for one that has not started."""
    app = Litestar([], openapi_config=None)
    if shares is not None:
        app.state.services = SimpleNamespace(shares=shares)
    return EarlyRefusal(app)


async def test_known_caller_of_a_full_process_is_refused_and_unknown_ones_pass() -> None:
    async with full_process() as shares:
        check = early(shares)
        refusal = check.of(scope_of(b"Bearer oidc~alice"))
        assert refusal is not None
        assert (refusal.code, refusal.type, refusal.retry_after_s) == (429, "Overloaded", 1)
        for passing in (scope_of(), scope_of(b"Bearer unknown"), scope_of(*[b"Bearer oidc~alice"] * 2)):
            assert check.of(passing) is None, "authentication must decide about these"


async def test_caller_passes_when_a_slot_is_free_or_control_is_off_or_nothing_runs() -> None:
    async with full_process(target=0.0) as shares:
        assert early(shares).of(scope_of(b"Bearer oidc~alice")) is None
    async with full_process() as shares:
        shares._slots[shares.lane_of(ALICE)].resize(100, each=100)
        assert early(shares).of(scope_of(b"Bearer oidc~alice")) is None
    assert early(None).of(scope_of(b"Bearer oidc~alice")) is None


@pytest.mark.parametrize("actor", [ALICE, Actor.user("oidc~alice", engine="oidc~trino")])
async def test_recognized_engine_passes_because_it_has_slots_of_its_own(actor: Actor) -> None:
    async with full_process() as shares:
        entering = asyncio.create_task(shares.enter(actor, credential=b"Bearer engine"))
        await asyncio.sleep(0)
        entering.cancel()
        await asyncio.gather(entering, return_exceptions=True)
        assert early(shares).of(scope_of(b"Bearer engine")) is not None
        shares.recognize(actor.engine or actor.id)
        assert early(shares).of(scope_of(b"Bearer engine")) is None


@pytest.mark.parametrize("path", ["/catalog/v1/config", "/scim/v2/Users"])
async def test_refused_request_reaches_no_application_and_gets_retry_after(path: str) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def unreachable(*_: Any) -> Never:
        raise AssertionError("a refused request must not reach the application")

    async with full_process() as shares:
        await RawPath(unreachable, early(shares).of)(scope_of(b"Bearer oidc~alice", path=path), unreachable, send)
    assert sent[0]["status"] == 429
    assert dict(sent[0]["headers"])[b"retry-after"] == b"1"
    assert (b'"schemas"' in sent[1]["body"]) is path.startswith("/scim")


@pytest.mark.parametrize("entered", [True, False])
async def test_only_decisions_about_callers_with_a_slot_adapt_the_limit(entered: bool) -> None:
    """Fast requests without a token could otherwise hide slow decisions."""
    seconds: list[float] = []

    async def admit_with(*_: Any) -> tuple[None, None]:
        return None, None

    shares = Shares(BUSY, Observer())
    services: Any = SimpleNamespace(
        door=SimpleNamespace(admit_with=admit_with),
        shares=SimpleNamespace(decided=lambda took, _: seconds.append(took)),
    )
    request: Any = SimpleNamespace(route_handler=SimpleNamespace(opt={}))
    actor = ALICE if entered else Actor.anonymous()
    lease = await shares.enter(actor) if entered else None
    context: Any = SimpleNamespace(actor=actor)
    await Ctx(services, context, request, lease).admit(GetConfig(warehouse=WarehouseNameRef("p", "w")))
    assert len(seconds) == entered


def test_credential_is_the_only_authorization_header() -> None:
    assert credential_of(scope_of(b"a")) == b"a"
    assert credential_of(scope_of()) is credential_of(scope_of(b"a", b"b")) is None
