# SPDX-License-Identifier: Apache-2.0
"""Requests with many questions wait for those of the same user, and not for ever."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from gateway.access import inquiries
from gateway.access.inquiries import Inquiries
from gateway.access.refusals import ShareExceeded
from gateway.access.shares import Lane


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Inquiries:
    monkeypatch.setattr(inquiries, "_LONGEST_WAIT", {Lane.USER: 0.05, Lane.ENGINE: None})
    nothing = cast("Any", None)
    return Inquiries(nothing, nothing, nothing)


@pytest.mark.threat("LG-DIS-19")
async def test_who_waits_too_long_for_the_own_questions_is_told_to_come_again(asked: Inquiries) -> None:
    async with asked._slot(Lane.USER, "ann"):
        with pytest.raises(ShareExceeded) as refused:
            async with asked._slot(Lane.USER, "ann"):
                pass
        assert refused.value.code == 429 and refused.value.retry_after_s == 5
        async with asked._slot(Lane.USER, "bob"):
            pass
    async with asked._slot(Lane.USER, "ann"):
        pass


async def test_an_engine_waits_as_long_as_it_takes(asked: Inquiries) -> None:
    slots = [asked._slot(Lane.ENGINE, "trino") for _ in range(5)]
    for each in slots[:4]:
        await each.__aenter__()
    fifth = asyncio.create_task(slots[4].__aenter__())
    await asyncio.sleep(0.2)
    assert not fifth.done()
    await slots[0].__aexit__(None, None, None)
    await fifth
    for each in slots[1:]:
        await each.__aexit__(None, None, None)
