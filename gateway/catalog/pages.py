# SPDX-License-Identifier: Apache-2.0
"""Pages of lists that are filtered by relationship: complete for their reader, or an error (invariant 8)."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from gateway.iceberg.errors import InvalidPaginationToken

Row = TypeVar("Row")

_FETCH = 1000


class Position(msgspec.Struct, frozen=True, array_like=True):
    """Where a page ended: the folded name and id of its last row read, whether visible or not."""

    key: str
    id: UUID


async def visible_page(
    fetch: Callable[[tuple[str, UUID] | None, int], Awaitable[Sequence[Any]]],
    keep: Callable[[Sequence[Any]], Awaitable[Sequence[bool]]],
    position: Callable[[Any], Position],
    *,
    page_token: str | None,
    page_size: int | None,
) -> tuple[list[Any], str | None]:
    """The rows of one page and the token of the next, or None when the list is at its end.

    Without a size and token everything is returned (REST specification, "Pagination"). With a size, rows are read on
    until the page is full of visible ones or nothing is left, so that the length of a page tells nothing about hidden
    rows.
    """
    after = _read_token(page_token)
    kept: list[Any] = []
    wanted = None if page_size is None else page_size
    while True:
        rows = await fetch(after, _FETCH if wanted is None else min(_FETCH, wanted + 1))
        for row, visible in zip(rows, await keep(rows), strict=True):
            if visible:
                if wanted is not None and len(kept) == wanted:
                    return kept, _token(position(kept[-1]))
                kept.append(row)
        asked = _FETCH if wanted is None else min(_FETCH, wanted + 1)
        if len(rows) < asked:
            return kept, None
        last = position(rows[-1])
        after = (last.key, last.id)


def _token(position: Position) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(position)).decode().rstrip("=")


def _read_token(token: str | None) -> tuple[str, UUID] | None:
    if not token:
        return None
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        position = msgspec.msgpack.decode(raw, type=Position)
    except (ValueError, msgspec.MsgspecError):
        position = None
    if position is None or "\x00" in position.key:
        raise InvalidPaginationToken("The page token is not one this server gave out.")
    return position.key, position.id
