# SPDX-License-Identifier: Apache-2.0
"""Confirmations of answers use the share of the asker, although their users have new ids."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.access.actor import Actor
from gateway.fga.client import FgaClient
from gateway.fga.confirmation import Confirmations
from gateway.fga.evaluation import HeldTuple
from gateway.fga.pacing import Pacing
from gateway.fga.wire import FgaTuple

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
ASKER = Actor.user("oidc~mallory")
NAME = "user:oidc~mallory"


async def test_confirmations_wait_among_themselves_and_let_other_users_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, sent = set[str](), list[str]()
    in_flight, most = 0, 0

    async def check(self: FgaClient, model_id: str, chunk: Sequence[FgaTuple], *_: Any) -> set[tuple[str, str, str]]:
        nonlocal in_flight, most
        sent.append(chunk[0].user)
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0.001)
        in_flight -= 1
        return {(each.user, each.relation, each.object) for each in chunk}

    monkeypatch.setattr(FgaClient, "_check_chunk", check)
    monkeypatch.setattr(Pacing, "count_small_check", lambda self, user: counted.add(user))
    client = FgaClient("http://127.0.0.1:1", "key", ULID, ULID, timeout_s=4)
    world = [HeldTuple("user:profile", "select", "table:t", None)]
    questions = [(world, "can_read_data", f"table:{n}") for n in range(200)]
    asked = asyncio.create_task(
        Confirmations(client).each_alone(questions, "user:profile", datetime.now(UTC), asker=ASKER)
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    honest = FgaTuple("user:oidc~honest", "can_read_data", "table:t")
    assert await client.batch_check([honest], context={}) == [True]
    assert sent.index(honest.user) < 10
    assert await asked == [True] * 200
    assert counted == {NAME, honest.user}
    assert most <= 3
    assert len(set(sent)) == 201, "the checks are about new ids"
