# SPDX-License-Identifier: Apache-2.0
"""Pages of filtered lists: complete for the reader, and silent about hidden rows."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.features.paging import Page, named, number, packed, place_of, principal, unpacked, visible_page
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
            self.fetch,
            self.keep,
            lambda row: (f"{row:05}", UUID(int=row)),
            after=place_of(token, named),
            page_size=size,
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
        _, id = named(token)
        assert shelf.seen[id.int]


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
        await visible_page(shelf.fetch, short, lambda row: ("", UUID(int=row)), after=None, page_size=None)


@pytest.mark.parametrize("token", ["x", "ÿ", "!!!!", "AAAA", "a" * 5000, base64.b64encode(b"\x92\xa1a\xa1b").decode()])
async def test_a_forged_page_token_is_400(token: str) -> None:
    with pytest.raises(InvalidPaginationToken):
        await Shelf([True]).page(token, 2)


async def test_a_page_token_with_nul_is_400_and_never_reaches_the_database() -> None:
    with pytest.raises(InvalidPaginationToken):
        await Shelf([True]).page(packed(("a\x00b", UUID(int=1))), 2)


_ID = UUID("0190a5c8-5f4e-7d2a-9c3b-4d5e6f708192")


def test_packed_tokens_of_earlier_versions_are_issued_and_read_as_before() -> None:
    """Clients hold tokens across upgrades. These were issued before the lists shared their tokens."""
    by_name = "kqdzdHJhw59l2SQwMTkwYTVjOC01ZjRlLTdkMmEtOWMzYi00ZDVlNmY3MDgxOTI"
    assert (packed(("straße", _ID)), named(by_name)) == (by_name, ("straße", _ID))
    task, at = (
        "ktf_HW8oAGn4DCnZJDAxOTBhNWM4LTVmNGUtN2QyYS05YzNiLTRkNWU2ZjcwODE5Mg",
        datetime(2026, 5, 4, 3, 2, 1, 123456),
    )
    place = (at.replace(tzinfo=UTC), _ID)
    assert (packed(place), unpacked(task, tuple[datetime, UUID])) == (task, place)
    assert (packed((1777863600, 86400)), unpacked("ks5p-AuwzgABUYA", tuple[int, int])) == (
        "ks5p-AuwzgABUYA",
        (1777863600, 86400),
    )


def test_a_page_has_a_token_only_if_a_further_row_was_read() -> None:
    page: Page[UUID] = Page(None, 2)
    assert page.limit == 3
    assert (page.rows([1, 2, 3]), page.next_token([1, 2, 3], lambda row: row)) == ([1, 2], "2")
    assert (page.rows([1, 2]), page.next_token([1, 2], lambda row: row)) == ([1, 2], None)


@pytest.mark.parametrize(
    ("read", "token", "place"),
    [(number(9), "123456789", 123456789), (principal, "user:oidc~a:b", ("user", "oidc~a:b")), (UUID, str(_ID), _ID)],
)
def test_a_token_as_text_names_the_place_of_the_last_row(read: Any, token: str, place: object) -> None:
    assert (place_of(token, read), place_of(None, read), place_of("", read)) == (place, None, None)


@pytest.mark.parametrize(
    ("read", "token"),
    [
        (number(9), "1234567890"),
        (number(9), "-1"),
        (number(9), "²"),
        (principal, "group:a"),
        (principal, "user"),
        (UUID, "x"),
    ],
)
def test_a_forged_token_as_text_is_400(read: Any, token: str) -> None:
    with pytest.raises(InvalidPaginationToken):
        place_of(token, read)
