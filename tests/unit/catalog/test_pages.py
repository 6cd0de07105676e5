# SPDX-License-Identifier: Apache-2.0
"""Pages of filtered lists: complete for the reader, and silent about hidden rows."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.features.contents.pages import Position, visible_page
from gateway.iceberg.errors import InvalidPaginationToken


@dataclass
class Shelf:
    """Rows 0 to n-1 in order, some of them hidden."""

    seen: Sequence[bool]
    fetched: list[int] = field(default_factory=list)

    async def fetch(self, after: tuple[str, UUID] | None, limit: int) -> list[int]:
        start = 0 if after is None else after[1].int + 1
        self.fetched.append(limit)
        return list(range(len(self.seen)))[start : start + limit]

    async def keep(self, rows: Sequence[int]) -> list[bool]:
        return [self.seen[row] for row in rows]

    async def page(self, token: str | None, size: int | None) -> tuple[list[int], str | None]:
        return await visible_page(
            self.fetch, self.keep, lambda row: Position(f"{row:05}", UUID(int=row)), page_token=token, page_size=size
        )

    @property
    def visible(self) -> list[int]:
        return [row for row, seen in enumerate(self.seen) if seen]


async def _pages(shelf: Shelf, size: int) -> list[list[int]]:
    pages, token = [], None
    for _ in range(len(shelf.seen) + 2):
        rows, token = await shelf.page(token, size)
        pages.append(rows)
        if token is None:
            return pages
    raise AssertionError("the list did not end")


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 12))
async def test_all_pages_together_equal_the_visible_rows(seen: list[bool], size: int) -> None:
    shelf = Shelf(seen)
    pages = await _pages(shelf, size)
    assert [row for page in pages for row in page] == shelf.visible


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 12))
async def test_every_page_but_the_last_is_full_for_any_hidden_rows(seen: list[bool], size: int) -> None:
    shelf = Shelf(seen)
    pages = await _pages(shelf, size)
    assert all(len(page) == size for page in pages[:-1])
    assert len(pages[-1]) <= size
    assert len(pages) == max(1, -(-len(shelf.visible) // size)), "hidden rows must not cause further pages"


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 8))
async def test_no_page_token_names_an_invisible_row(seen: list[bool], size: int) -> None:
    shelf, token = Shelf(seen), None
    while True:
        _, token = await shelf.page(token, size)
        if token is None:
            return
        position = msgspec.msgpack.decode(base64.urlsafe_b64decode(token + "=="), type=Position)
        assert shelf.seen[position.id.int]


async def test_a_list_without_a_page_size_is_complete_and_reads_in_batches() -> None:
    shelf = Shelf([row % 3 == 0 for row in range(25_000)])
    rows, token = await shelf.page(None, None)
    assert (rows, token) == (shelf.visible, None)
    assert shelf.fetched == [10_000] * 3


async def test_an_empty_page_token_starts_at_the_first_page() -> None:
    assert await Shelf([True] * 3).page("", 2) == (await Shelf([True] * 3).page(None, 2))


async def test_a_visibility_filter_with_too_few_answers_is_an_error() -> None:
    shelf = Shelf([True] * 5)

    async def short(rows: Sequence[int]) -> list[bool]:
        return [True] * (len(rows) - 1)

    with pytest.raises(ValueError, match="shorter"):
        await visible_page(shelf.fetch, short, lambda row: Position("", UUID(int=row)), page_token=None, page_size=None)


@pytest.mark.parametrize("token", ["x", "ÿ", "!!!!", "AAAA", "a" * 5000, base64.b64encode(b"\x92\xa1a\xa1b").decode()])
async def test_a_forged_page_token_is_400(token: str) -> None:
    with pytest.raises(InvalidPaginationToken):
        await Shelf([True]).page(token, 2)


async def test_a_page_token_with_nul_is_400_and_never_reaches_the_database() -> None:
    raw = msgspec.msgpack.encode(Position("a\x00b", UUID(int=1)))
    with pytest.raises(InvalidPaginationToken):
        await Shelf([True]).page(base64.urlsafe_b64encode(raw).decode(), 2)
