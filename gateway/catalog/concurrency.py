# SPDX-License-Identifier: Apache-2.0
"""Await two independent steps of a request at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

First = TypeVar("First")
Second = TypeVar("Second")


async def concurrently(first: Coroutine[Any, Any, First], second: Coroutine[Any, Any, Second]) -> tuple[First, Second]:
    """Return the results of both. `first` runs in the task of the request, `second` in a task of its own.

    Errors are those of the two steps one after the other: if `first` fails, its error is raised and `second` is
    cancelled. When this function ends, also by cancellation, neither is running any more.
    """
    task = asyncio.create_task(second)
    try:
        result = await first
        return result, await task
    except BaseException:
        task.cancel()
        # The error of `second` is raised already, or that of `first` has precedence.
        await asyncio.gather(task, return_exceptions=True)
        raise
