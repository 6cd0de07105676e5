# SPDX-License-Identifier: Apache-2.0
"""`Idempotency-Key`: a change happens once however often it is sent.

Every handler of a change is wrapped here by `serves`, so no use case has to think of it: the change itself
remembers the success (`Database.change`), this module decides whether there is anything left to do.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from gateway.access.idempotency import Claim
from gateway.access.operation import Operation
from gateway.access.operations.steps import RepeatAnswer
from gateway.api.answers import answers_nothing
from gateway.iceberg.errors import DuplicateIdempotencyKey, InvalidIdempotencyKey, UnprocessableEntityException

_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def parse_key(values: list[str]) -> UUID | None:
    """Return the key of a request from the lines of its header; a blank one counts as none.

    Raises DuplicateIdempotencyKey for several lines and InvalidIdempotencyKey for anything but a UUID in its usual
    form.
    """
    if len(values) > 1:
        raise DuplicateIdempotencyKey(f"The header Idempotency-Key is given {len(values)} times.")
    text = values[0].strip() if values else ""
    if not text:
        return None
    if _UUID.fullmatch(text) is None:
        raise InvalidIdempotencyKey("The header Idempotency-Key must be a UUID.")
    return UUID(text)


def once(
    handler: Callable[..., Awaitable[Any]], operation: type[Operation], replay: Callable[..., Awaitable[Any]] | None
) -> Callable[..., Awaitable[Any]]:
    """The handler, called at most once with success for each key."""

    # `Any`: the context's own module imports `serves`.
    @functools.wraps(handler)
    async def guarded(ctx: Any) -> Any:
        begun = await ctx.begin(operation)
        if begun is None:
            return await handler(ctx)
        if isinstance(begun, Claim):
            try:
                return await handler(ctx)
            finally:
                if not begun.fulfilled:
                    # The caller who goes away must not leave the key taken.
                    await asyncio.shield(ctx.services.repetitions.give_up(begun))
        await ctx.admit(RepeatAnswer(operation.name()))
        await ctx.services.repetitions.finish(begun)
        if replay is not None:
            return await replay(ctx, begun)
        if not answers_nothing(handler):
            raise UnprocessableEntityException("This was done under this idempotency key; its answer is not repeated.")
        return None

    return guarded
