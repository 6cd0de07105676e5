# SPDX-License-Identifier: Apache-2.0
"""Chosen locations and the folders of namespaces: the rule, compared with a second description of it."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.db.tables.namespaces import NamespacePlace
from gateway.features.tables.chosen_locations import ids_by_segment, require_creatable
from gateway.iceberg.errors import InvalidLocation
from gateway.scope.location import BaseLocation, Location
from gateway.storage.s3.profile import SCHEME

HERE, ELSEWHERE = UUID(int=1), UUID(int=2)
BASE = BaseLocation(SCHEME, "bucket", ())
IDS = [UUID(f"0190abcd-0000-7000-8000-{number:012x}") for number in range(6)]
# A tree: 0 contains 1, which contains 2; 3 contains 4; 5 is in another warehouse.
ANCESTORS: dict[int, tuple[int, ...]] = {0: (), 1: (0,), 2: (0, 1), 3: (), 4: (3,), 5: ()}
PLACES = {
    IDS[number]: NamespacePlace(
        id=IDS[number], warehouse_id=ELSEWHERE if number == 5 else HERE, ancestors=tuple(IDS[each] for each in above)
    )
    for number, above in ANCESTORS.items()
}


def refused(segments: tuple[str, ...], creatable: set[int]) -> bool:
    location = Location(SCHEME, "bucket", segments)
    folders = [[PLACES[id] for id in named if id in PLACES] for named in ids_by_segment(BASE, location)]
    try:
        require_creatable(location, folders, {IDS[number] for number in creatable}, warehouse_id=HERE)
    except InvalidLocation:
        return True
    return False


def folder(number: int) -> str:
    return f"n{number}-{IDS[number]}"


@pytest.mark.parametrize(
    ("segments", "creatable", "expected"),
    [
        (("t",), set(), False),
        (("x", "t"), set(), False),
        ((folder(0),), {0}, True),
        ((folder(0).upper(),), {0}, True),
        ((folder(0), "t"), {0}, False),
        ((folder(0), "t"), {3}, True),
        ((folder(0).upper(), "t"), {3}, True),
        ((folder(0), folder(1), "t"), {1}, False),
        ((folder(0), folder(1), "t"), {0}, True),
        ((folder(0), "t"), {1}, True),
        ((folder(3), folder(1), "t"), {1}, True),
        ((folder(5), "t"), {5}, True),
        ((f"x{IDS[0]}y{IDS[3]}", "t"), {0}, True),
    ],
)
def test_a_location_inside_a_namespace_folder_needs_the_right_to_create_there(
    segments: tuple[str, ...], creatable: set[int], expected: bool
) -> None:
    assert refused(segments, creatable) is expected


@given(
    st.lists(st.one_of(st.integers(0, 5), st.sampled_from("abc")), min_size=1, max_size=5),
    st.sets(st.integers(0, 5)),
)
def test_no_accepted_location_is_below_a_folder_without_right(path: list[int | str], creatable: set[int]) -> None:
    segments = tuple(folder(part) if isinstance(part, int) else part for part in path)
    if refused(segments, creatable):
        return
    assert not isinstance(path[-1], int)
    named = [part for part in path if isinstance(part, int)]
    for position, part in enumerate(named):
        below = named[position + 1 :]
        assert part != 5
        assert part in creatable or any(
            part in ANCESTORS[deeper] and deeper in (*creatable, *below) for deeper in below
        )
    # The innermost folder decides: the caller may create in its namespace.
    assert not named or named[-1] in creatable


def test_ids_are_found_next_to_other_text() -> None:
    first, second = IDS[:2]
    location = Location(SCHEME, "bucket", (f"abc{first}", f"{first}-{second}", "t"))
    found = ids_by_segment(BASE, location)
    assert found[0] == [first] and {first, second} <= set(found[1]) and found[2] == []


def test_ids_of_the_base_location_are_not_folders() -> None:
    base = Location(SCHEME, "bucket", (folder(0),))
    assert ids_by_segment(base, Location(SCHEME, "bucket", (folder(0), "t"))) == [[]]
