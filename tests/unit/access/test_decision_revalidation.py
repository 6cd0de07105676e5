# SPDX-License-Identifier: Apache-2.0
"""Revalidation of permits, and the cache inputs of the door's checks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.actor import Actor
from gateway.access.decisions.policy import PolicyAnswer
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.tables import DropTable, ListTables
from gateway.access.operations.warehouses import GetWarehouse
from gateway.access.ports import Pin, Question
from gateway.iceberg.errors import CatalogError
from gateway.obligations.kinds import AppendOnly
from gateway.obligations.merging import Obligations
from tests.support.door import world
from tests.support.door.world import DoorFixture, request_context

VEND, DROP = VendCredentials(world.TABLE), DropTable(world.TABLE)


async def test_revalidation_repeats_all_checks_and_returns_the_same_objects() -> None:
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), DROP)
    assert (await permit.revalidate()).rows == permit.resolution.rows
    assert len(door_fixture.resolver.calls) == len(door_fixture.judge.calls) == len(door_fixture.rules.calls) == 2


async def test_revalidation_refuses_a_revoked_right_and_records_it() -> None:
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), DROP)
    door_fixture.judge.answer = lambda question: question.relation is Can.INCLUDE_IN_LIST
    with pytest.raises(CatalogError) as refused:
        await permit.revalidate()
    assert refused.value.code == 403
    [record] = door_fixture.audit.buffered
    assert record.outcome == "forbidden"


async def test_revalidation_refuses_a_new_policy_denial() -> None:
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), DROP)
    door_fixture.rules.answer = world.DENIED
    with pytest.raises(CatalogError) as refused:
        await permit.revalidate()
    assert refused.value.code == 403


def down(_: Question) -> bool:
    raise DecisionEngineUnavailable("down")


async def test_an_outage_during_revalidation_is_not_an_allow() -> None:
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), DROP)
    door_fixture.judge.answer = down
    with pytest.raises(CatalogError) as refused:
        await permit.revalidate()
    assert refused.value.code == 429


async def test_revalidation_fails_if_the_name_now_denotes_another_object() -> None:
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), DROP)
    moved = msgspec.structs.replace(world.table_row, id=world.VIEW_ID)
    door_fixture.resolver.rows = {**world.ROWS, world.TABLE: moved}
    with pytest.raises(CatalogError) as refused:
        await permit.revalidate()
    assert refused.value.code == 429


async def test_revalidation_fails_if_fewer_rights_are_held_than_before() -> None:
    """A caller reduced from writer to reader does not get keys with the level of a writer."""
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), VEND)
    assert permit.holds(Can.WRITE_DATA, world.TABLE)
    door_fixture.judge.answer = lambda question: question.relation is not Can.WRITE_DATA
    with pytest.raises(CatalogError) as refused:
        await permit.revalidate()
    assert refused.value.code == 503


async def test_revalidation_fails_if_the_obligations_changed() -> None:
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), VEND)
    door_fixture.rules.answer = PolicyAnswer(allow=True, obligations=Obligations.of(AppendOnly()))
    with pytest.raises(CatalogError) as refused:
        await permit.revalidate()
    assert refused.value.code == 503


# ---- cache inputs ----


async def test_checks_carry_the_warehouse_revision_and_the_server_revision() -> None:
    pins: list[Any] = []

    class Pinned(world.Judge):
        async def check(
            self,
            actor: Actor,
            questions: Sequence[Question],
            *,
            now: datetime,
            pin: Pin | None = None,
            paced: bool = True,
        ) -> list[bool]:
            pins.append(pin)
            return await super().check(actor, questions, now=now)

    door_fixture = DoorFixture(judge=Pinned())
    warehouse = msgspec.structs.replace(world.warehouse_row, revision=UUID(int=7))
    namespace = msgspec.structs.replace(world.inner_row, warehouse=warehouse)
    door_fixture.resolver.rows = {**world.ROWS, world.NAMESPACE: namespace}
    door_fixture.resolver.validity = {"revision": UUID(int=1), "time_boxes": UUID(int=2), "next_expiry": world.NOW}
    permit = await door_fixture.door.admit(request_context(), ListTables(world.NAMESPACE))
    tables = [ObjectKey(ObjectType.TABLE, "t")]
    await door_fixture.door.visible(permit, Can.INCLUDE_IN_LIST, tables)
    assert pins == [Pin(UUID(int=1), UUID(int=2), world.NOW)] * 2
    assert {question.within for requested in door_fixture.judge.calls for question in requested} == {UUID(int=7)}
    await door_fixture.door.hypothetical_checks.related(permit, Actor.user("oidc~bob"), Can.INCLUDE_IN_LIST, tables)
    assert pins[2] is None


async def test_a_list_of_warehouses_carries_no_warehouse_revision() -> None:
    door_fixture = DoorFixture()
    door_fixture.resolver.rows = {
        **world.ROWS,
        world.WAREHOUSE: msgspec.structs.replace(world.warehouse_row, revision=UUID(int=7)),
    }
    permit = await door_fixture.door.admit(request_context(), GetWarehouse(world.WAREHOUSE))
    await door_fixture.door.visible(permit, Can.INCLUDE_IN_LIST, [ObjectKey(ObjectType.WAREHOUSE, "other")])
    assert {question.within for question in door_fixture.judge.calls[-1]} == {None}


# ---- expiry of rights ----


@given(st.sets(st.integers(1, 50)), st.integers(1, 60), st.integers(0, 60))
async def test_rights_expire_with_the_first_grant_expiry_that_removes_one(
    ends: set[int], first_loss: int, horizon: int
) -> None:
    """Grants expire at `ends` (seconds from now); from `first_loss` on, a right is missing."""
    lost = world.NOW + timedelta(seconds=first_loss)

    class ExpiringResolver(world.Judge):
        async def check(
            self,
            actor: Actor,
            questions: Sequence[Question],
            *,
            now: datetime,
            pin: Pin | None = None,
            paced: bool = True,
        ) -> list[bool]:
            assert pin is None or now == world.NOW
            return [question.relation is Can.GET_METADATA or now < lost for question in questions]

    moments = sorted(world.NOW + timedelta(seconds=each) for each in ends)
    door_fixture = DoorFixture(judge=ExpiringResolver())
    door_fixture.resolver.ends = tuple(moments)
    door_fixture.resolver.validity = {
        "revision": UUID(int=1),
        "time_boxes": UUID(int=2),
        "next_expiry": moments[0] if moments else None,
    }
    permit = await door_fixture.door.admit(request_context(), VEND)
    until = world.NOW + timedelta(seconds=horizon)
    expected = next((moment for moment in moments if lost <= moment <= until), None)
    assert await door_fixture.door.first_expiry(permit, until) == expected


async def test_a_permit_without_a_grant_expiry_causes_no_expiry_checks() -> None:
    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(request_context(), VEND)
    before = len(door_fixture.judge.calls)
    assert await door_fixture.door.first_expiry(permit, world.NOW + timedelta(days=1)) is None
    assert len(door_fixture.judge.calls) == before
