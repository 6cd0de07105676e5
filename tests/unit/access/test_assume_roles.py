# SPDX-License-Identifier: Apache-2.0
"""Acting as a role: what is asked first, what counts afterwards, and when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from gateway.access.actor import Actor
from gateway.access.authz_errors import AssumeRoleForbidden, InvalidAssumeRoleId
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.steps import AssumeRole
from gateway.access.operations.tables import LoadTable
from gateway.access.ports import Pin, Question
from gateway.access.relations import Can
from gateway.access.resolved import ResolvedRole
from gateway.iceberg.errors import CatalogError
from tests.access import world
from tests.access.world import House, request_context

FAR = ResolvedRole(id=world.ROLE_ID, project_id="elsewhere", name="strangers")


async def test_the_role_is_asked_for_first_and_alone_counts_afterwards() -> None:
    house = House()
    visit = request_context()
    await house.door.assume(visit, world.ROLE)
    assert [question.relation for question in house.judge.asked[0]] == [Can.READ, Can.ASSUME]
    assert not visit.may_answer(frozenset({LoadTable})), "being allowed to act as a role answers nothing"
    permit = await house.door.admit(visit, LoadTable(world.TABLE))
    assert (permit.actor.id, permit.actor.assumed_role) == (world.ALICE.id, world.ROLE_ID)
    assert [record.actor.assumed_role for record in house.audit.buffered] == [None, str(world.ROLE_ID)]
    assert house.audit.buffered[0].decisions[0].operation == "assume_role"


@pytest.mark.parametrize(("sees", "raised"), [(False, InvalidAssumeRoleId), (True, AssumeRoleForbidden)])
async def test_who_is_not_in_the_role_does_not_act_as_it(sees: bool, raised: type[CatalogError]) -> None:
    house = House()
    house.judge.answer = lambda question: sees and question.relation is Can.READ
    visit = request_context()
    with pytest.raises(raised):
        await house.door.assume(visit, world.ROLE)
    assert visit.actor == world.ALICE
    assert [record.outcome for record in house.audit.buffered] == ["forbidden" if sees else "hidden"]


async def test_policies_may_forbid_to_act_as_a_role() -> None:
    house = House()
    house.rules.answer = world.DENIED
    with pytest.raises(AssumeRoleForbidden, match="The house is closed"):
        await house.door.assume(request_context(), world.ROLE)


async def test_policies_are_told_all_roles_of_who_acts_as_one_of_them() -> None:
    """Else a rule that binds the members of one role would be shed by acting as another."""
    house = House()
    house.resolver.roles = ("contractors", str(world.ROLE_ID))
    visit = request_context()
    await house.door.assume(visit, world.ROLE)
    house.resolver.roles = (str(world.ROLE_ID),)
    await house.door.admit(visit, LoadTable(world.TABLE))
    assert set(house.rules.asked[-1].actor.roles) == {"contractors", str(world.ROLE_ID)}


async def test_outside_the_roles_project_nothing_exists() -> None:
    house = House()
    house.resolver.rows = {**world.ROWS, world.ROLE: FAR}
    visit = request_context()
    await house.door.assume(visit, world.ROLE)
    house.judge.answer = lambda question: question.object.id in {str(world.TABLE_ID)}
    with pytest.raises(CatalogError) as refused:
        await house.door.admit(visit, LoadTable(world.TABLE))
    assert (refused.value.code, refused.value.type) == (404, "NoSuchTableException")


async def test_a_permit_is_not_decided_again_for_who_is_no_longer_in_the_role() -> None:
    house = House()
    visit = request_context()
    await house.door.assume(visit, world.ROLE)
    permit = await house.door.admit(visit, LoadTable(world.TABLE))
    await permit.decide_again()
    house.judge.answer = lambda question: question.relation is not Can.ASSUME
    with pytest.raises(CatalogError) as refused:
        await permit.decide_again()
    assert refused.value.code == 403


async def test_a_role_is_assumed_once_and_before_anything_else() -> None:
    house = House()
    visit = request_context()
    await house.door.assume(visit, world.ROLE)
    with pytest.raises(TypeError, match="comes first, and once"):
        await house.door.assume(visit, world.ROLE)
    later = request_context()
    await house.door.admit(later, LoadTable(world.TABLE))
    with pytest.raises(TypeError, match="comes first, and once"):
        await house.door.admit(later, AssumeRole(world.ROLE))


async def test_what_is_held_as_a_role_ends_with_being_in_it() -> None:
    leaves = world.NOW + timedelta(minutes=20)

    class Leaving(world.Judge):
        async def check(
            self,
            actor: Actor,
            questions: Sequence[Question],
            *,
            now: datetime,
            pin: Pin | None = None,
            paced: bool = True,
        ) -> list[bool]:
            return [question.relation is not Can.ASSUME or now < leaves for question in questions]

    house = House(judge=Leaving())
    house.resolver.ends = (leaves,)
    house.resolver.standing = {"revision": UUID(int=1), "time_boxes": UUID(int=2), "next_expiry": None}
    visit = request_context()
    await house.door.assume(visit, world.ROLE)
    permit = await house.door.admit(visit, VendCredentials(world.TABLE))
    assert await house.door.held_until(permit, world.NOW + timedelta(hours=1)) == leaves
    assert await house.door.held_until(permit, world.NOW + timedelta(minutes=10)) is None
