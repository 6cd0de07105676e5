# SPDX-License-Identifier: Apache-2.0
"""Groups in a token at the door: their roles, and the checks that include them."""

from __future__ import annotations

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.authz_errors import TooManyGroups
from gateway.access.operations.tables import LoadTable
from gateway.access.operations.users import WhoAmI
from tests.support.door import world
from tests.support.door.world import DoorFixture, request_context

GIL = Actor.user("corp~gil", groups=("readers", "writers"))
ROLES = tuple((f"00000000-0000-4000-8000-{number:012d}", world.PROJECT_ID) for number in range(101))


def _door_fixture(*by_group: tuple[str, str]) -> DoorFixture:
    door_fixture = DoorFixture()
    door_fixture.resolver.validity = {"group_roles": by_group}
    return door_fixture


async def test_the_permit_and_checks_include_the_roles_of_the_token_groups() -> None:
    door_fixture = _door_fixture(*ROLES[:2])
    permit = await door_fixture.door.admit(request_context(GIL), LoadTable(world.TABLE))
    assert permit.actor.group_roles == tuple(sorted(role for role, _ in ROLES[:2]))
    assert permit.actor.id == GIL.id


async def test_an_assumed_role_drops_groups_and_may_be_assumed_through_a_group() -> None:
    door_fixture = _door_fixture(*ROLES[:2])
    context = request_context(GIL)
    await door_fixture.door.assume(context, world.ROLE)
    assert context.actor.group_roles, "the actor must keep its group roles for the membership check"
    resolution = await door_fixture.resolver.resolve((), GIL)
    assert resolution.acting(context.actor) is context.actor
    assert context.actor.groups_digest == ""


async def test_more_than_one_hundred_group_roles_are_refused_and_audited() -> None:
    door_fixture = _door_fixture(*ROLES)
    with pytest.raises(TooManyGroups) as refused:
        await door_fixture.door.admit(request_context(GIL), LoadTable(world.TABLE))
    assert refused.value.code == 403
    [record] = door_fixture.audit.buffered
    assert record.decisions[0].failure == "TooManyGroups"
    assert door_fixture.judge.calls == [], "too many group roles must cause no check"
    assert (
        await _door_fixture(*ROLES[:100]).door.admit(request_context(GIL), LoadTable(world.TABLE))
    ).actor.group_roles


async def test_an_operation_without_demands_accepts_any_number_of_groups() -> None:
    assert (await _door_fixture(*ROLES).door.admit(request_context(GIL), WhoAmI())).actor.id == GIL.id


async def test_a_caller_without_groups_gets_no_group_roles() -> None:
    door_fixture = _door_fixture(*ROLES)
    permit = await door_fixture.door.admit(request_context(world.ALICE), LoadTable(world.TABLE))
    assert permit.actor.group_roles == ()


async def test_a_project_token_brings_only_the_group_roles_of_that_project() -> None:
    resolution = msgspec.structs.replace(
        await _door_fixture().resolver.resolve((), GIL), group_roles=(ROLES[0], (ROLES[1][0], "elsewhere"))
    )
    bound = msgspec.structs.replace(GIL, within=world.PROJECT_ID, project_token=True)
    assert resolution.seen_by(bound, ()).acting(bound).group_roles == (ROLES[0][0],)
