# SPDX-License-Identifier: Apache-2.0
"""Handle idempotency keys: a change with the header `Idempotency-Key` succeeds at most once per key.

`serves` wraps every handler of a change with `replay_recorded`. The transaction of the change records its success
(`Database.change`); this module claims the key and answers retries.
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
from gateway.api.answers import repeated_answer, returns_no_content
from gateway.iceberg.errors import DuplicateIdempotencyKey, InvalidIdempotencyKey, UnprocessableEntityException

_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def parse_key(values: list[str]) -> UUID | None:
    """Return the idempotency key from the values of its header; None if it is absent or blank.

    Raises DuplicateIdempotencyKey for several values, and InvalidIdempotencyKey for anything but a hyphenated UUID.
    """
    if len(values) > 1:
        raise DuplicateIdempotencyKey(f"The header Idempotency-Key is given {len(values)} times; give it once.")
    text = values[0].strip() if values else ""
    if not text:
        return None
    if _UUID.fullmatch(text) is None:
        raise InvalidIdempotencyKey("The header Idempotency-Key must be a UUID.")
    return UUID(text)


def replay_recorded(
    handler: Callable[..., Awaitable[Any]], operation: type[Operation], replay: Callable[..., Awaitable[Any]] | None
) -> Callable[..., Awaitable[Any]]:
    """Wrap `handler` so that it is not called if the idempotency key has a recorded success.

    Instead, `replay` builds the response from (context, recorded success). Raises 422 if there is no `replay` and the
    handler returns a body.
    """

    # `Any`, because the module that defines `Ctx` imports this module.
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
                    # A client that disconnects must not leave the key claimed.
                    await asyncio.shield(ctx.services.idempotency.release(begun))
        await ctx.admit(RepeatAnswer(operation.name()))
        await ctx.services.idempotency.finish(begun)
        if replay is not None:
            return await replay(ctx, begun)
        if not returns_no_content(handler):
            raise UnprocessableEntityException(
                "A request with this idempotency key already succeeded. Its response is not stored; read the object "
                "again."
            )
        return repeated_answer(handler)

    return guarded
