# SPDX-License-Identifier: Apache-2.0
"""Decisions about tickets: refused for the requester, and for a caller whose identity only an engine asserts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.management_errors import OwnChangeForbidden
from gateway.access.nouns.authz_errors import DelegationForbidden
from gateway.access.operations.change_tickets import ApproveChange, DecideChangeRequest, FoundTicket
from gateway.features.approvals.change_tickets import ChangeTickets
from tests.support.door import world
from tests.support.door.world import DoorFixture, request_context
from tests.support.kits import kit_of


class Reached(Exception):
    """The use case reached its transaction."""


class Database:
    def change(self, _: object) -> Any:
        raise Reached


async def _approve(actor: Actor) -> None:
    ticket = FoundTicket(UUID(int=1), "oidc~ann", world.TABLE)
    operation = ApproveChange(world.WAREHOUSE, ticket, DecideChangeRequest())
    permit = await DoorFixture().door.admit(request_context(actor), operation)
    tickets = ChangeTickets(kit_of(database=Database(), door=DoorFixture().door, page_size=1, ticket_lifetime=1.0))
    await tickets.approve(permit)


async def test_another_proven_caller_decides() -> None:
    with pytest.raises(Reached):
        await _approve(world.ALICE)


async def test_the_requester_cannot_decide() -> None:
    with pytest.raises(OwnChangeForbidden, match="Another approver"):
        await _approve(Actor.user("oidc~ann"))


async def test_an_engine_cannot_decide_for_a_caller_that_it_only_asserts() -> None:
    """It could have requested the change for another one of its users. The door refuses it."""
    asserted = msgspec.structs.replace(world.ALICE, engine="oidc~trino", subject_proven=False)
    with pytest.raises(DelegationForbidden):
        await _approve(asserted)
