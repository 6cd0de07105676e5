# SPDX-License-Identifier: Apache-2.0
"""Limits that the OpenFGA client enforces before a request, and its timeouts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.fga.client import FgaClient
from gateway.fga.wire import FgaTuple

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def client() -> FgaClient:
    return FgaClient("http://127.0.0.1:1", "key", ULID, ULID, timeout_s=1)


def tuples(number: int) -> list[FgaTuple]:
    return [FgaTuple(f"user:u{n}", "select", "table:t") for n in range(number)]


@pytest.mark.parametrize("bad", ["", "x", "../stores", ULID.lower(), ULID + "A", "01ARZ3NDEKTSV4RRFFQ69G5FA/"])
def test_ids_that_would_change_the_path_are_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="id of a store"):
        FgaClient("http://127.0.0.1:1", None, bad, ULID, timeout_s=1)
    with pytest.raises(ValueError, match="id of a model"):
        FgaClient("http://127.0.0.1:1", None, ULID, bad, timeout_s=1)


def test_a_batch_holds_at_least_one_check() -> None:
    with pytest.raises(ValueError, match="max_batch"):
        FgaClient("http://127.0.0.1:1", None, ULID, ULID, timeout_s=1, max_batch=0)


async def test_more_than_one_hundred_tuples_in_one_write_are_refused() -> None:
    with pytest.raises(ValueError, match="101 tuples"):
        await client().write(tuples(60), tuples(41))


async def test_more_than_one_hundred_contextual_tuples_are_refused() -> None:
    with pytest.raises(ValueError, match="101 contextual tuples"):
        await client().batch_check(tuples(1), contextual=tuples(101), context={})


async def test_empty_checks_and_writes_send_no_request() -> None:
    assert await client().batch_check([], context={}) == []
    await client().write()


def _checks(count: int) -> list[FgaTuple]:
    return [FgaTuple("user:a", "can_include_in_list", f"table:{n}") for n in range(count)]


async def test_a_long_check_may_take_the_time_of_all_its_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of ten thousand tables is two hundred batches, each of which is in time."""

    async def slowly(
        self: FgaClient, model_id: str, chunk: Sequence[FgaTuple], *_: object
    ) -> dict[tuple[str, str, str], bool]:
        await asyncio.sleep(0.5)
        return {(check.user, check.relation, check.object): True for check in chunk}

    monkeypatch.setattr(FgaClient, "_check_chunk", slowly)
    client = FgaClient("http://127.0.0.1:1", "key", ULID, ULID, timeout_s=4, max_batch=1)
    assert await client.batch_check(_checks(40), context={}) == [True] * 40


async def test_a_hanging_batch_fails_the_check_within_one_batch_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(self: FgaClient, *_: object) -> tuple[int, bytes]:
        await asyncio.sleep(60)
        return 200, b""

    monkeypatch.setattr(FgaClient, "_send", hangs)
    client = FgaClient("http://127.0.0.1:1", "key", ULID, ULID, timeout_s=0.05, max_batch=1)
    async with asyncio.timeout(20):
        with pytest.raises(DecisionEngineUnavailable, match=r"within 0\.05 s"):
            await client.batch_check(_checks(40), context={})


async def test_a_client_without_a_model_sends_no_request_until_it_gets_one() -> None:
    """No server listens on port 1, so a sent request would fail with a connection error."""
    requested = client()
    requested.block_checks("the model lacks table#can_drop")
    with pytest.raises(DecisionEngineUnavailable, match="lacks table#can_drop"):
        await requested.batch_check(tuples(1), context={})
    with pytest.raises(DecisionEngineUnavailable, match="lacks table#can_drop"):
        await requested.ping()
    other = ULID[:-1] + "0"
    requested.use_model(other)
    assert requested.model_id == requested.answers_key == other
    with pytest.raises(DecisionEngineUnavailable, match="cannot be reached"):
        await requested.batch_check(tuples(1), context={})
    with pytest.raises(ValueError, match="id of a model"):
        requested.use_model("newest")
