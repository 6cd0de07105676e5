# SPDX-License-Identifier: Apache-2.0
"""What the client refuses before anything is sent."""

from __future__ import annotations

import pytest

from gateway.fga.client import FgaClient, FgaTuple

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


async def test_nothing_to_ask_or_write_calls_nobody() -> None:
    assert await client().batch_check([], context={}) == []
    await client().write()
