# SPDX-License-Identifier: Apache-2.0
"""A slow request body does not occupy a slot of its principal's share."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.authz_errors import ShareExceeded
from gateway.access.shares.shares import ShareLimits, Shares
from gateway.api.latch import LEASE, _Body

ALICE = Actor.user("oidc~alice")
LIMITS = ShareLimits(
    requests=1,
    waiting=0,
    wait=0.0,
    total_requests=1,
    engine_requests=4,
    questions_per_second=10.0,
    question_burst=20.0,
    bytes=100,
)


class _Silent:
    """An observer that ignores all figures."""

    def share_used(self, share: str, lane: str, amount: int) -> None: ...

    def share_waited(self, share: str, lane: str) -> None: ...

    def share_refused(self, share: str, lane: str) -> None: ...


async def _reading(arrives_after: float) -> tuple[Shares, asyncio.Task[Any]]:
    """Start a request of Alice that holds the only slot and reads a body of ten bytes."""
    made = Shares(LIMITS, _Silent())
    lease = await made.enter(ALICE, 10)

    async def receive() -> Any:
        await asyncio.sleep(arrives_after)
        return {"type": "http.request", "body": b"0123456789", "more_body": False}

    scope: Any = {"state": {LEASE: lease}, "headers": [(b"content-length", b"10")]}
    return made, asyncio.create_task(_Body(receive, 10.0, scope).receive())


async def test_a_slow_body_leaves_the_slot_to_another_request() -> None:
    made, reading = await _reading(0.4)
    await asyncio.sleep(0.2)
    other = await made.enter(ALICE)
    other.release()
    assert (await reading)["body"] == b"0123456789"
    with pytest.raises(ShareExceeded):
        await made.enter(ALICE)  # the body is complete, so the slot is taken again


async def test_a_prompt_body_keeps_its_slot() -> None:
    made, reading = await _reading(0.0)
    await reading
    await asyncio.sleep(0.1)
    with pytest.raises(ShareExceeded):
        await made.enter(ALICE)


async def test_a_body_that_arrives_while_the_share_is_in_use_is_refused() -> None:
    made, reading = await _reading(0.3)
    await asyncio.sleep(0.15)
    await made.enter(ALICE)
    with pytest.raises(ShareExceeded):
        await reading
