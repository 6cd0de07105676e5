# SPDX-License-Identifier: Apache-2.0
"""Assumed roles: the first check, the rights that apply, and their expiry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.authz_errors import AssumeRoleForbidden, InvalidAssumeRoleId
from gateway.access.nouns.relations import Can
from gateway.access.nouns.role import ResolvedRole
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.steps import AssumeRole
from gateway.access.operations.tables import LoadTable
from gateway.access.ports import Pin, Question
from gateway.iceberg.errors import CatalogError
from tests.support.door import world
from tests.support.door.world import DoorFixture, request_context

FAR = ResolvedRole(id=world.ROLE_ID, project_id="elsewhere", name="strangers")


async def test_the_assume_check_comes_first_and_then_only_the_role_counts() -> None:
    door_fixture = DoorFixture()
    context = request_context()
    await door_fixture.door.assume(context, world.ROLE)
    assert [question.relation for question in door_fixture.judge.calls[0]] == [Can.READ, Can.ASSUME]
    assert not context.may_answer(frozenset({LoadTable})), "the check of the role alone must not permit a response"
    permit = await door_fixture.door.admit(context, LoadTable(world.TABLE))
    assert (permit.actor.id, permit.actor.assumed_role) == (world.ALICE.id, world.ROLE_ID)
    assert [record.actor.assumed_role for record in door_fixture.audit.buffered] == [None, str(world.ROLE_ID)]
    assert door_fixture.audit.buffered[0].decisions[0].operation == "assume_role"


@pytest.mark.parametrize(("sees", "raised"), [(False, InvalidAssumeRoleId), (True, AssumeRoleForbidden)])
async def test_a_user_outside_the_role_cannot_assume_it(sees: bool, raised: type[CatalogError]) -> None:
    door_fixture = DoorFixture()
    door_fixture.judge.answer = lambda question: sees and question.relation is Can.READ
    context = request_context()
    with pytest.raises(raised):
        await door_fixture.door.assume(context, world.ROLE)
    assert context.actor == world.ALICE
    assert [record.outcome for record in door_fixture.audit.buffered] == ["forbidden" if sees else "hidden"]


async def test_policies_may_forbid_assuming_a_role() -> None:
    door_fixture = DoorFixture()
    door_fixture.rules.answer = world.DENIED
    with pytest.raises(AssumeRoleForbidden, match="The house is closed"):
        await door_fixture.door.assume(request_context(), world.ROLE)


async def test_policies_receive_all_roles_of_a_user_with_an_assumed_role() -> None:
    """Otherwise a user could evade a rule for members of one role by assuming another."""
    door_fixture = DoorFixture()
    door_fixture.resolver.roles = ("contractors", str(world.ROLE_ID))
    context = request_context()
    await door_fixture.door.assume(context, world.ROLE)
    door_fixture.resolver.roles = (str(world.ROLE_ID),)
    await door_fixture.door.admit(context, LoadTable(world.TABLE))
    assert set(door_fixture.rules.calls[-1].actor.roles) == {"contractors", str(world.ROLE_ID)}


async def test_an_assumed_role_sees_nothing_outside_its_project() -> None:
    door_fixture = DoorFixture()
    door_fixture.resolver.rows = {**world.ROWS, world.ROLE: FAR}
    context = request_context()
    await door_fixture.door.assume(context, world.ROLE)
    door_fixture.judge.answer = lambda question: question.object.id in {str(world.TABLE_ID)}
    with pytest.raises(CatalogError) as refused:
        await door_fixture.door.admit(context, LoadTable(world.TABLE))
    assert (refused.value.code, refused.value.type) == (404, "NoSuchTableException")


async def test_revalidation_refuses_a_former_member_of_the_assumed_role() -> None:
    door_fixture = DoorFixture()
    context = request_context()
    await door_fixture.door.assume(context, world.ROLE)
    permit = await door_fixture.door.admit(context, LoadTable(world.TABLE))
    await permit.revalidate()
    door_fixture.judge.answer = lambda question: question.relation is not Can.ASSUME
    with pytest.raises(CatalogError) as refused:
        await permit.revalidate()
    assert refused.value.code == 403


async def test_a_role_is_assumed_once_and_before_any_admission() -> None:
    door_fixture = DoorFixture()
    context = request_context()
    await door_fixture.door.assume(context, world.ROLE)
    with pytest.raises(TypeError, match="must be the first operation of a request"):
        await door_fixture.door.assume(context, world.ROLE)
    later = request_context()
    await door_fixture.door.admit(later, LoadTable(world.TABLE))
    with pytest.raises(TypeError, match="must be the first operation of a request"):
        await door_fixture.door.admit(later, AssumeRole(world.ROLE))


async def test_rights_of_an_assumed_role_end_with_its_membership() -> None:
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

    door_fixture = DoorFixture(judge=Leaving())
    door_fixture.resolver.ends = (leaves,)
    door_fixture.resolver.validity = {"revision": UUID(int=1), "time_boxes": UUID(int=2), "next_expiry": None}
    context = request_context()
    await door_fixture.door.assume(context, world.ROLE)
    permit = await door_fixture.door.admit(context, VendCredentials(world.TABLE))
    assert await door_fixture.door.first_expiry(permit, world.NOW + timedelta(hours=1)) == leaves
    assert await door_fixture.door.first_expiry(permit, world.NOW + timedelta(minutes=10)) is None
