# SPDX-License-Identifier: Apache-2.0
"""Pages of lists: page tokens, the page that a request selects, and pages that contain only what the caller can see."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

import msgspec

from gateway.access.tuples import PrincipalType
from gateway.iceberg.errors import InvalidPaginationToken

Place = TypeVar("Place")
Row = TypeVar("Row")

# The number of rows of one read. A list without a page size reads larger blocks, and checks all rows of a block in one
# call.
FETCH = 1000
_FETCH_OF_ALL = 10_000


class Paged(Protocol):
    """The paging parameters of a list request."""

    @property
    def page_token(self) -> str | None: ...
    @property
    def page_size(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Page(Generic[Place]):
    """A page of at most `size` rows. It begins after the row at the place `after`, or with the first row if that is
    None.
    """

    after: Place | None
    size: int

    @property
    def limit(self) -> int:
        """Return the number of rows to read: the page size plus one, since a further row shows that another page
        follows.
        """
        return self.size + 1

    def rows(self, found: Sequence[Row]) -> Sequence[Row]:
        """Return the rows of the page: `found` without the row that only shows that another page follows."""
        return found[: self.size]

    def next_token(self, found: Sequence[Row], place: Callable[[Row], object]) -> str | None:
        """Return the token of the next page, or None if this page is the last one. The token is the place of the last
        row of this page, as text.
        """
        return str(place(found[self.size - 1])) if len(found) > self.size else None


def place_of(token: str | None, read: Callable[[str], Place]) -> Place | None:
    """Return the place in a page token, parsed by `read`; None without a token. Raises InvalidPaginationToken."""
    return token_place(token, read) if token else None


def token_place(token: str, read: Callable[[str], Place]) -> Place:
    """Return the place in a page token, parsed by `read`. Raises InvalidPaginationToken, even if the token is empty."""
    try:
        return read(token)
    except (ValueError, OverflowError, OSError, msgspec.MsgspecError):
        raise InvalidPaginationToken(
            "The page token is invalid: this server did not issue it. Send the request without a page token to get "
            "the first page."
        ) from None


def number(most_digits: int) -> Callable[[str], int]:
    """Return a parser of page tokens that consist of a whole number of at most `most_digits` digits."""

    def read(token: str) -> int:
        if not (token.isascii() and token.isdigit() and len(token) <= most_digits):
            raise ValueError(token)
        return int(token)

    return read


def principal(token: str) -> tuple[str, str]:
    """Parse a page token into the (type, id) of a principal."""
    type, colon, id = token.partition(":")
    if not colon:
        raise ValueError(token)
    return PrincipalType(type).value, id


def named(token: str) -> tuple[str, UUID]:
    """Parse a packed page token into (folded name, id)."""
    key, id = unpacked(token, tuple[str, UUID])
    if "\x00" in key:
        raise ValueError("PostgreSQL accepts no NUL in a text")
    return key, id


def packed(place: Any) -> str:
    """Encode a place as a page token, which `unpacked` decodes."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(place)).decode().rstrip("=")


def unpacked(token: str, type: type[Place]) -> Place:
    """Decode the place in a page token that `packed` has encoded."""
    return msgspec.msgpack.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=type)


async def visible_page(
    fetch: Callable[[Place | None, int], Awaitable[Sequence[Row]]],
    is_visible: Callable[[Sequence[Row]], Awaitable[Sequence[bool]]],
    place: Callable[[Row], Place],
    *,
    after: Place | None,
    page_size: int | None,
    later_reads: int | None = None,
) -> tuple[list[Row], str | None]:
    """Return (rows of one page, token of the next page or None at the end of the list). The page has all rows that the
    caller can see; if that cannot be decided, raise an error (invariant 8).

    Without a size, all rows are returned (REST specification, "Pagination"). With a size, rows are read until the page
    is full of visible rows or no row is left. So the length of a page reveals nothing about hidden rows. `later_reads`
    is the number of rows to read after the first read, by default as many as the first.
    """
    if page_size is None:
        return await _everything(fetch, is_visible, place, after), None
    page: list[Row] = []
    limit = min(FETCH, page_size + 1)
    while True:
        rows = await fetch(after, limit)
        for row, visible in zip(rows, await is_visible(rows), strict=True):
            if visible:
                if len(page) == page_size:
                    return page, packed(place(page[-1]))
                page.append(row)
        if len(rows) < limit:
            return page, None
        after, limit = place(rows[-1]), later_reads or limit


async def _everything(
    fetch: Callable[[Place | None, int], Awaitable[Sequence[Row]]],
    is_visible: Callable[[Sequence[Row]], Awaitable[Sequence[bool]]],
    place: Callable[[Row], Place],
    after: Place | None,
) -> list[Row]:
    rows: list[Row] = []
    while True:
        more = await fetch(after, _FETCH_OF_ALL)
        rows += more
        if len(more) < _FETCH_OF_ALL:
            return [row for row, visible in zip(rows, await is_visible(rows), strict=True) if visible]
        after = place(more[-1])
