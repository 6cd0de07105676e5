# SPDX-License-Identifier: Apache-2.0
"""Two steps of a request at the same time: results, precedence of errors, and cancellation."""

from __future__ import annotations

import asyncio

import pytest

from gateway.catalog.concurrency import concurrently


class _Step:
    """A step that waits for `release`, and then returns `result` or raises it. `state` is its last state."""

    def __init__(self, result: object) -> None:
        self._result = result
        self.begun, self.release = asyncio.Event(), asyncio.Event()
        self.state = "not begun"

    async def run(self) -> object:
        self.state = "running"
        self.begun.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # the clean-up of a cancelled step takes a while
            self.state = "cancelled"
            raise
        self.state = "ended"
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


async def test_both_steps_run_at_the_same_time_and_both_results_are_returned() -> None:
    first, second = _Step("document"), _Step("credentials")
    both = asyncio.create_task(concurrently(first.run(), second.run()))
    await first.begun.wait()
    await second.begun.wait()
    second.release.set()
    first.release.set()
    assert await both == ("document", "credentials")


async def test_an_error_of_the_first_step_cancels_the_second() -> None:
    first, second = _Step(LookupError("no document")), _Step("credentials")
    both = asyncio.create_task(concurrently(first.run(), second.run()))
    await second.begun.wait()
    first.release.set()
    with pytest.raises(LookupError, match="no document"):
        await both
    assert second.state == "cancelled"


async def test_an_error_of_the_first_step_has_precedence_over_an_earlier_one_of_the_second() -> None:
    first, second = _Step(LookupError("no document")), _Step(ValueError("no credentials"))
    both = asyncio.create_task(concurrently(first.run(), second.run()))
    second.release.set()
    await second.begun.wait()
    await asyncio.sleep(0)
    assert second.state == "ended" and not both.done()
    first.release.set()
    with pytest.raises(LookupError, match="no document"):
        await both


async def test_an_error_of_the_second_step_is_raised_when_the_first_has_ended() -> None:
    first, second = _Step("document"), _Step(ValueError("no credentials"))
    first.release.set()
    second.release.set()
    with pytest.raises(ValueError, match="no credentials"):
        await concurrently(first.run(), second.run())
    assert first.state == "ended"


@pytest.mark.parametrize("first_has_ended", [False, True])
async def test_cancellation_of_the_request_ends_both_steps(first_has_ended: bool) -> None:
    first, second = _Step("document"), _Step("credentials")
    both = asyncio.create_task(concurrently(first.run(), second.run()))
    await first.begun.wait()
    await second.begun.wait()
    if first_has_ended:
        first.release.set()
        await asyncio.sleep(0.01)
    both.cancel()
    with pytest.raises(asyncio.CancelledError):
        await both
    assert second.state == "cancelled"
    assert first.state == ("ended" if first_has_ended else "cancelled")
