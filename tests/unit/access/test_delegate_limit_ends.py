# SPDX-License-Identifier: Apache-2.0
"""Credentials of an engine end when the limits of its grants no longer include a user of the request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from gateway.access.actor import Actor
from gateway.access.delegate_grants import ActsFor, DelegateGrant
from gateway.access.nouns.relations import Can
from gateway.access.operations.credentials import VendCredentials
from gateway.access.ports import Pin, Question
from tests.support.door import world
from tests.support.door.world import NOW, DoorFixture, request_context

SOON, LATER = NOW + timedelta(minutes=20), NOW + timedelta(minutes=50)
ALICE = msgspec.structs.replace(
    Actor.user(world.ALICE.id, engine="oidc~trino"), owner_properties=("trino.run-as-owner",)
)


@dataclass
class Judge(world.Judge):
    """OpenFGA, in which no user is an administrator and all memberships in roles end soon."""

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return the answers at a time."""
        administering = (Can.GRANT_DELEGATE, Can.GRANT_MANAGE_GRANTS)
        return [
            each.relation not in administering and (each.relation is not Can.ASSUME or now < SOON) for each in questions
        ]


def fixture_with(*grants: tuple[ActsFor, datetime | None]) -> DoorFixture:
    """Return a door with these grants of `delegate` to the engine, and a caller with a role."""
    fixture = DoorFixture(judge=Judge())
    fixture.resolver.roles, fixture.resolver.ends = (str(world.ROLE_ID),), (SOON, LATER)
    fixture.resolver.delegations = tuple(
        DelegateGrant(on=world.warehouse_row.key, limits=limits, expires_at=ends, direct=True)
        for limits, ends in grants
    )
    return fixture


async def first(fixture: DoorFixture, *, through_view: bool = False) -> datetime | None:
    """Return the end of credentials for the table."""
    context = request_context(ALICE)
    if through_view:
        await fixture.door.pass_through(context, [world.VIEW])
    permit = await fixture.door.admit(context, VendCredentials(world.TABLE))
    return await fixture.door.first_expiry(permit, NOW + timedelta(hours=1), last_resolution=permit.resolution)


async def test_credentials_end_with_the_membership_by_which_a_limit_includes_the_user() -> None:
    """OpenFGA knows the membership, and not that the engine's right for this user depends on it."""
    assert await first(fixture_with((ActsFor(roles=(world.ROLE_ID,)), None))) == SOON
    assert await first(fixture_with((ActsFor(roles=(world.ROLE_ID,), users=(ALICE.id,)), None))) is None
    assert await first(fixture_with((ActsFor(), None))) is None


async def test_credentials_below_a_view_end_with_the_grant_that_includes_its_reader() -> None:
    """Another grant of the engine includes the view's owner, and lasts longer."""
    owner = f"{ALICE.id.partition('~')[0]}~ann"
    fixture = fixture_with((ActsFor(users=(ALICE.id,)), LATER), (ActsFor(users=(owner,)), None))
    fixture.resolver.documents[world.VIEW_ID] = b'{"properties":{"trino.run-as-owner":"ann"}}'
    assert await first(fixture, through_view=True) == LATER
