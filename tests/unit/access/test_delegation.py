# SPDX-License-Identifier: Apache-2.0
"""Engines that act for users: both are checked, and refusals to the engine hide the object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.authz_errors import DelegationForbidden
from gateway.access.nouns.relations import Can
from gateway.access.nouns.role import RoleRef
from gateway.access.nouns.server import ServerActionForbidden
from gateway.access.operation import OPERATIONS
from gateway.access.operations.credentials import ExchangeToken, Subject, VendCredentials
from gateway.access.operations.server import GetServerInfo
from gateway.access.operations.tables import DropTable, LoadTable
from gateway.access.operations.users import WhoAmI
from gateway.access.ports import Pin, Question
from gateway.iceberg.errors import NoSuchTableException, TableActionForbidden
from tests.support.door import world
from tests.support.door.examples import EXAMPLES
from tests.support.door.world import NOW, DoorFixture, Judge, request_context

ENGINE = "oidc~trino"
FOR_ALICE = Actor.user(world.ALICE.id, engine=ENGINE)


@dataclass
class ByActor(Judge):
    """Relationships that depend on the checked actor."""

    user_has: bool = True
    engine_has: bool = True
    pins: dict[str, list[Pin | None]] = field(default_factory=dict)
    questions: dict[str, list[Question]] = field(default_factory=dict)

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        self.pins.setdefault(actor.id, []).append(pin)
        self.questions.setdefault(actor.id, []).extend(questions)
        if actor.id == ENGINE:
            assert actor.engine is None
            return [self.engine_has] * len(questions)
        return [self.user_has or question.relation is Can.INCLUDE_IN_LIST for question in questions]


def door_fixture(judge: ByActor) -> DoorFixture:
    return DoorFixture(judge=judge)


async def test_user_and_engine_are_both_checked_and_must_both_be_allowed() -> None:
    judge = ByActor()
    permit = await door_fixture(judge).door.admit(request_context(FOR_ALICE), LoadTable(world.TABLE))
    assert permit.actor.engine == ENGINE
    assert [(each.relation, each.object) for each in judge.questions[ENGINE]] == [
        (Can.DELEGATE, world.warehouse_row.key)
    ]


async def test_an_engine_without_delegate_sees_nothing() -> None:
    messages = []
    for user_has in (True, False):
        here = door_fixture(ByActor(user_has=user_has, engine_has=False))
        with pytest.raises(NoSuchTableException) as refused:
            await here.door.admit(request_context(FOR_ALICE), DropTable(world.TABLE, purge=False))
        messages.append(refused.value.message)
        (record,) = here.audit.buffered
        assert (record.actor.id, record.actor.engine) == (world.ALICE.id, ENGINE)
        assert record.decisions[0].failure == "EngineLacksDelegate"
    assert messages[0] == messages[1]


async def test_an_engine_gets_no_right_that_its_user_lacks() -> None:
    with pytest.raises(TableActionForbidden):
        await door_fixture(ByActor(user_has=False)).door.admit(
            request_context(FOR_ALICE), DropTable(world.TABLE, purge=False)
        )


async def test_cached_answers_about_the_engine_follow_its_own_grant_expiry() -> None:
    judge, here = ByActor(), NOW
    validity = {"revision": uuid4(), "time_boxes": uuid4(), "next_expiry": None, "engine_next_expiry": here}
    where = door_fixture(judge)
    where.resolver.validity = validity
    await where.door.admit(request_context(FOR_ALICE), LoadTable(world.TABLE))
    assert [pin and pin.next_expiry for pin in judge.pins[ENGINE]] == [here]
    assert [pin and pin.next_expiry for pin in judge.pins[world.ALICE.id]] == [None]


async def test_a_credential_expires_with_the_grant_of_the_engine() -> None:

    end = NOW + timedelta(minutes=5)

    class ExpiringResolver(ByActor):
        async def check(
            self,
            actor: Actor,
            questions: Sequence[Question],
            *,
            now: datetime,
            pin: Pin | None = None,
            paced: bool = True,
        ) -> list[bool]:
            return [actor.id != ENGINE or now < end] * len(questions)

    where = door_fixture(ExpiringResolver())
    where.resolver.ends = (end,)
    door = where.door
    permit = await door.admit(request_context(FOR_ALICE), VendCredentials(world.TABLE))
    assert await door.first_expiry(permit, NOW + timedelta(hours=1)) == end
    own = await door.admit(request_context(), VendCredentials(world.TABLE))
    assert await door.first_expiry(own, NOW + timedelta(hours=1)) is None


async def test_management_and_token_exchange_are_refused_to_a_delegated_engine() -> None:
    for operation in (WhoAmI(), GetServerInfo()):
        with pytest.raises(DelegationForbidden):
            await door_fixture(ByActor()).door.admit(request_context(FOR_ALICE), operation)
    with pytest.raises(ServerActionForbidden):
        await door_fixture(ByActor()).door.admit(
            request_context(FOR_ALICE), ExchangeToken(Subject(user_id="oidc~bob"), proven=True)
        )


async def test_only_catalog_operations_are_open_to_delegated_engines() -> None:
    allowed = set()
    for example in EXAMPLES:
        if example.operation.is_public():
            continue
        try:
            await door_fixture(ByActor()).door.admit(request_context(FOR_ALICE), example.operation)
        except (DelegationForbidden, ServerActionForbidden):
            continue
        allowed.add(type(example.operation).__name__)
    catalog = {name for name, operation in OPERATIONS.items() if operation.is_of_catalog()}
    assert allowed == catalog - {"ExchangeToken"}


async def test_a_delegated_engine_may_assume_a_role_and_stays_an_engine() -> None:
    judge = ByActor()
    where, context = door_fixture(judge), request_context(FOR_ALICE)
    await where.door.assume(context, RoleRef(world.ROLE_ID))
    assert (context.actor.assumed_role, context.actor.engine) == (world.ROLE_ID, ENGINE)
    judge.engine_has = False
    with pytest.raises(NoSuchTableException):
        await where.door.admit(context, LoadTable(world.TABLE))


@pytest.mark.parametrize("case", ["missing role", "no member", "invisible role", "role of another project"])
async def test_a_refused_assumed_role_discloses_no_membership_to_an_engine(case: str) -> None:
    """For every fault of the role, the response equals that for a member of a role without rights."""

    class Members(ByActor):
        async def check(
            self,
            actor: Actor,
            questions: Sequence[Question],
            *,
            now: datetime,
            pin: Pin | None = None,
            paced: bool = True,
        ) -> list[bool]:
            if actor.assumed_role is not None:
                return [False] * len(questions)
            sees = {"no member": [Can.READ], "invisible role": []}.get(case, [Can.READ, Can.ASSUME])
            return [question.relation in sees or actor.id == ENGINE for question in questions]

    where, context = door_fixture(Members()), request_context(FOR_ALICE)
    role = RoleRef(uuid4() if case == "missing role" else world.ROLE_ID)
    await where.door.assume(context, role, project="another" if case == "role of another project" else None)
    assert context.assumption is None
    assert context.actor.assumed_role not in (None, world.ROLE_ID)
    with pytest.raises(NoSuchTableException) as refused:
        await where.door.admit(context, LoadTable(world.TABLE))
    member = request_context(FOR_ALICE)
    case = "in the role"
    await where.door.assume(member, RoleRef(world.ROLE_ID))
    assert member.actor.assumed_role == world.ROLE_ID
    with pytest.raises(NoSuchTableException) as empty:
        await where.door.admit(member, LoadTable(world.TABLE))
    assert (refused.value.message, refused.value.code) == (empty.value.message, empty.value.code)


def test_a_delegated_actor_is_no_instance_admin_and_has_its_own_cache_identity() -> None:
    assert not Actor.user("oidc~a", instance_admin=True, engine=ENGINE).instance_admin
    assert (
        len({Actor.user("oidc~a").acting_as, FOR_ALICE.acting_as, Actor.user("oidc~a", engine="oidc~x").acting_as}) == 3
    )


async def test_policies_receive_the_engine() -> None:
    where = door_fixture(ByActor())
    await where.door.admit(request_context(FOR_ALICE), LoadTable(world.TABLE))
    assert where.rules.calls[0].actor.engine == ENGINE
