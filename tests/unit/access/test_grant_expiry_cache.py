# SPDX-License-Identifier: Apache-2.0
"""The cached expiry of the grants behind credentials: shared under equal state only, and never too late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.actor import Actor
from gateway.access.decisions.grant_expiry import ExpiryCache
from gateway.access.door.door import Door
from gateway.access.door.permit import Permit
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution
from gateway.access.operations.credentials import VendCredentials
from gateway.access.ports import Pin, Question
from tests.support.door import world
from tests.support.door.world import NOW, DoorFixture, request_context

HOUR = timedelta(hours=1)
VEND = VendCredentials(world.TABLE)


@dataclass
class Judge(world.Judge):
    """OpenFGA: `lost` is the time from which write access is missing. `searched` counts checks of later times."""

    lost: datetime = NOW + timedelta(minutes=50)
    now: datetime = NOW
    searched: int = 0
    during: Callable[[], None] = lambda: None
    answer: Callable[[Question], bool] = lambda _: True

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        if now != self.now:
            self.searched += 1
            self.during()
        gone = (Can.WRITE_DATA, Can.ASSUME, Can.DELEGATE)
        return [self.answer(each) and (each.relation not in gone or now < self.lost) for each in questions]


def rows_of(revision: UUID) -> dict[Any, Resolved]:
    """Return the row of the table in a warehouse with this revision."""
    warehouse = msgspec.structs.replace(world.warehouse_row, revision=revision)
    namespace = msgspec.structs.replace(world.inner_row, warehouse=warehouse)
    return {**world.ROWS, world.TABLE: msgspec.structs.replace(world.table_row, namespace=namespace)}


@dataclass
class House:
    """A door with a cache of expiries, and the state that the cache depends on."""

    judge: Judge = field(default_factory=Judge)
    ends: tuple[datetime, ...] = (NOW + timedelta(minutes=50),)
    seconds: float = 60.0
    clock: float = 0.0
    model: str = "m"
    fixture: DoorFixture = field(init=False)
    door: Door = field(init=False)

    def __post_init__(self) -> None:
        self.fixture = DoorFixture(judge=self.judge)
        self.fixture.resolver.rows = rows_of(UUID(int=3))
        self.fixture.resolver.ends = self.ends
        self.fixture.resolver.validity = {
            "revision": UUID(int=1),
            "time_boxes": UUID(int=2),
            "next_expiry": min(self.ends, default=None),
        }
        cache = ExpiryCache(model_id=lambda: self.model, entries=10, seconds=self.seconds, clock=lambda: self.clock)
        self.door = Door(
            resolver=self.fixture.resolver,
            relationships=self.judge,
            policies=self.fixture.rules,
            audit=self.fixture.audit,
            observer=self.fixture.watcher,
            expiries=cache,
        )

    async def permit(self, actor: Actor = world.ALICE, *, as_role: bool = False) -> Permit[VendCredentials]:
        context = request_context(actor)
        if as_role:
            await self.door.assume(context, world.ROLE)
        return await self.door.admit(context, VEND)

    async def first(self, until: timedelta = HOUR, actor: Actor = world.ALICE, *, as_role: bool = False) -> Any:
        permit = await self.permit(actor, as_role=as_role)
        return await self.at(permit, permit.resolution, until)

    async def at(self, permit: Permit[VendCredentials], resolution: Resolution, until: timedelta) -> Any:
        self.judge.now = resolution.now
        return await self.door.first_expiry(permit, resolution.now + until, last_resolution=resolution)


async def test_the_expiry_is_searched_once_under_equal_state() -> None:
    house = House()
    assert await house.first() == house.judge.lost
    searched = house.judge.searched
    assert searched
    assert await house.first() == house.judge.lost
    assert house.judge.searched == searched


def _warehouse(house: House) -> None:
    house.fixture.resolver.rows = rows_of(uuid4())


def _validity(name: str) -> Callable[[House], None]:
    def change(house: House) -> None:
        house.fixture.resolver.validity = {**house.fixture.resolver.validity, name: uuid4()}

    return change


def _model(house: House) -> None:
    house.model = "n"


def _object(house: House) -> None:
    house.fixture.resolver.rows = rows_of(UUID(int=3)) | {world.TABLE: _other_table()}


def _other_table() -> Resolved:
    row = rows_of(UUID(int=3))[world.TABLE]
    return msgspec.structs.replace(row, id=uuid4())


@pytest.mark.parametrize(
    "change",
    [_warehouse, _validity("revision"), _validity("time_boxes"), _model, _object],
    ids=["warehouse", "revision", "time boxes", "model", "object"],
)
async def test_a_change_of_any_state_causes_a_new_search(change: Callable[[House], None]) -> None:
    house = House()
    await house.first()
    searched = house.judge.searched
    change(house)
    await house.first()
    assert house.judge.searched > searched


@pytest.mark.threat("LG-DEC-14")
@pytest.mark.parametrize(
    "actor",
    [
        Actor.user(world.BOB_ID),
        Actor.user(world.ALICE.id, name="Alice", engine="oidc~trino"),
        Actor.user(world.ALICE.id, name="Alice", groups=("a",)),
    ],
    ids=["another user", "by an engine", "groups"],
)
async def test_two_callers_never_share_an_expiry(actor: Actor) -> None:
    house = House()
    await house.first()
    searched = house.judge.searched
    await house.first(actor=actor)
    assert house.judge.searched > searched


async def test_a_caller_as_a_role_shares_no_expiry_with_itself() -> None:
    house = House()
    await house.first()
    searched = house.judge.searched
    assert await house.first(as_role=True) == house.judge.lost
    assert house.judge.searched > searched


async def test_an_expiry_after_the_requested_time_is_none() -> None:
    house = House()
    assert await house.first() == house.judge.lost
    assert await house.first(timedelta(minutes=30)) is None
    assert await house.first(timedelta(minutes=50)) == house.judge.lost


async def test_a_search_covers_the_time_in_the_cache_and_no_more() -> None:
    house = House(judge=Judge(lost=NOW + timedelta(hours=2)), ends=(NOW + timedelta(minutes=40), NOW + 2 * HOUR))
    assert await house.first() is None
    searched = house.judge.searched
    assert await house.first(HOUR + timedelta(seconds=60)) is None
    assert house.judge.searched == searched
    assert await house.first(2 * HOUR) == NOW + 2 * HOUR


async def test_a_near_expiry_is_searched_by_each_request() -> None:
    """A grant without an expiry may have been made: the caller would be refused credentials by the earlier one."""
    end = NOW + timedelta(minutes=20)
    house = House(judge=Judge(lost=end), ends=(end,))
    assert await house.first() == end
    house.judge.lost = NOW + timedelta(days=1)
    assert await house.first() is None


async def test_an_entry_ends_after_the_seconds_of_the_setting() -> None:
    house = House()
    await house.first()
    searched = house.judge.searched
    house.clock = 59.9
    await house.first()
    assert house.judge.searched == searched
    house.clock = 60.0
    await house.first()
    assert house.judge.searched > searched


async def test_nothing_is_cached_with_zero_seconds() -> None:
    house = House(seconds=0)
    await house.first()
    searched = house.judge.searched
    await house.first()
    assert house.judge.searched == 2 * searched


async def test_nothing_is_cached_without_a_revision_of_the_warehouse() -> None:
    house = House()
    house.fixture.resolver.rows = dict(world.ROWS)
    await house.first()
    searched = house.judge.searched
    await house.first()
    assert house.judge.searched == 2 * searched


async def test_a_search_during_a_change_of_the_model_is_not_cached() -> None:
    house = House()
    house.judge.during = lambda: setattr(house, "model", "n")
    await house.first()
    house.judge.during = lambda: None
    house.model = "m"
    searched = house.judge.searched
    await house.first()
    assert house.judge.searched > searched
    house.model = "n"
    searched = house.judge.searched
    await house.first()
    assert house.judge.searched > searched


async def test_nothing_is_cached_below_a_definer_view() -> None:
    """The view may be in a warehouse whose revision is not in the permit's resolution."""
    house = House()
    searched = []
    for _ in range(2):
        context = request_context()
        await house.door.pass_through(context, [world.VIEW])
        permit = await house.door.admit(context, VEND)
        await house.at(permit, permit.resolution, HOUR)
        searched.append(house.judge.searched)
    assert searched[1] == 2 * searched[0]


async def test_a_decision_about_grants_is_never_cached() -> None:
    house = House()
    permit = await house.permit()
    house.judge.now = NOW
    assert await house.door.first_expiry(permit, NOW + HOUR) == house.judge.lost
    searched = house.judge.searched
    assert await house.door.first_expiry(permit, NOW + HOUR) == house.judge.lost
    assert house.judge.searched == 2 * searched


@given(
    st.sets(st.integers(1, 120), max_size=8),
    st.integers(1, 130),
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 90)), min_size=1, max_size=6),
)
async def test_a_cached_expiry_equals_that_of_a_search(
    ends: set[int], lost: int, requests: list[tuple[int, int]]
) -> None:
    """Requests at (seconds since the first one, minutes until the end of the credential), in order of time."""
    moments = tuple(NOW + timedelta(minutes=each) for each in sorted(ends))
    house = House(judge=Judge(lost=NOW + timedelta(minutes=lost)), ends=moments)
    permit = await house.permit()
    for seconds, minutes in sorted(requests):
        now = NOW + timedelta(seconds=seconds)
        house.clock = float(seconds)
        resolution = msgspec.structs.replace(permit.resolution, now=now)
        until = now + timedelta(minutes=minutes)
        expected = next((each for each in moments if house.judge.lost <= each <= until), None)
        assert await house.at(permit, resolution, timedelta(minutes=minutes)) == expected
