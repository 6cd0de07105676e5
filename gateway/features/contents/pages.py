# SPDX-License-Identifier: Apache-2.0
"""Pages of lists that are filtered by relationship: complete for the caller, or an error (invariant 8)."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from gateway.iceberg.errors import InvalidPaginationToken

Row = TypeVar("Row")

# The number of rows of one read. A list without a page size is read in larger blocks, and checked in one call.
_FETCH = 1000
_FETCH_OF_ALL = 10_000


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The end of a page: the folded name and the id of the last row, whether visible or not."""

    key: str
    id: UUID


async def visible_page(
    fetch: Callable[[tuple[str, UUID] | None, int], Awaitable[Sequence[Any]]],
    is_visible: Callable[[Sequence[Any]], Awaitable[Sequence[bool]]],
    position: Callable[[Any], Position],
    *,
    page_token: str | None,
    page_size: int | None,
) -> tuple[list[Any], str | None]:
    """Return (rows of one page, token of the next page or None at the end of the list).

    Without a size, all rows are returned (REST specification, "Pagination"). With a size, rows are read until the page
    is full of visible rows or no row is left. So the length of a page reveals nothing about hidden rows.

    Raises InvalidPaginationToken.
    """
    after = _read_token(page_token)
    if page_size is None:
        return await _everything(fetch, is_visible, position, after), None
    page: list[Any] = []
    limit = min(_FETCH, page_size + 1)
    while True:
        rows = await fetch(after, limit)
        for row, visible in zip(rows, await is_visible(rows), strict=True):
            if visible:
                if len(page) == page_size:
                    return page, _token(position(page[-1]))
                page.append(row)
        if len(rows) < limit:
            return page, None
        last = position(rows[-1])
        after = (last.key, last.id)


async def _everything(
    fetch: Callable[[tuple[str, UUID] | None, int], Awaitable[Sequence[Any]]],
    is_visible: Callable[[Sequence[Any]], Awaitable[Sequence[bool]]],
    position: Callable[[Any], Position],
    after: tuple[str, UUID] | None,
) -> list[Any]:
    rows: list[Any] = []
    while True:
        more = await fetch(after, _FETCH_OF_ALL)
        rows += more
        if len(more) < _FETCH_OF_ALL:
            return [row for row, visible in zip(rows, await is_visible(rows), strict=True) if visible]
        last = position(more[-1])
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
        raise InvalidPaginationToken(
            "The page token is invalid: this server did not issue it. Send the request without a page token to get "
            "the first page."
        )
    return position.key, position.id
