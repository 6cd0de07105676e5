# SPDX-License-Identifier: Apache-2.0
"""Decisions on generic tables with data policies: no engine can apply a policy, so the data is refused."""

from __future__ import annotations

from uuid import UUID

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.relations import Can
from gateway.access.operation import Operation
from gateway.access.operations.generic_tables import (
    DropGenericTable,
    GenericTableExists,
    LoadGenericTable,
    VendGenericTableCredentials,
)
from gateway.iceberg.errors import ForbiddenException
from gateway.obligations.data_policies import AppliesTo, BoundPolicy, PolicyInputs
from tests.support.door import world
from tests.support.door.data_restrictions import EUROPE, TRUSTED, People, by_engine, policy
from tests.support.door.world import DoorFixture, request_context

LOAD, VEND = LoadGenericTable(world.GENERIC_TABLE), VendGenericTableCredentials(world.GENERIC_TABLE)
DESCRIPTION = LoadGenericTable(world.GENERIC_TABLE, credentials=False)


def fixture(judge: People, *bound: BoundPolicy, governed: bool = True) -> DoorFixture:
    """Return a house in which these policies are bound above the generic table."""
    found = DoorFixture(judge=judge)  # type: ignore[arg-type]  # the same port
    if governed:
        warehouse = msgspec.structs.replace(world.warehouse_row, data_policy_revision=UUID(int=1))
        inner = msgspec.structs.replace(world.generic_table_row.namespace, warehouse=warehouse)
        found.resolver.rows |= {world.GENERIC_TABLE: msgspec.structs.replace(world.generic_table_row, namespace=inner)}
    found.resolver.policies[world.generic_table_row.id] = PolicyInputs(bound=bound)
    return found


async def test_a_generic_table_of_a_warehouse_without_data_policies_costs_nothing() -> None:
    judge = People()
    house = fixture(judge, policy("p"), governed=False)
    _, keys = await house.door.admit_with(request_context(), LOAD, VEND)
    assert keys is not None
    assert (house.resolver.looked_for_policies, house.resolver.read_documents, judge.seen) == ([], [], [])


@pytest.mark.parametrize("operation", [LOAD, VEND])
@pytest.mark.parametrize("definition", [policy("p"), policy("p", EUROPE, allow_append=True)], ids=["mask", "filter"])
@pytest.mark.parametrize("actor", [Actor.user("oidc~alice"), by_engine()], ids=["user", "engine"])
async def test_a_restricted_caller_is_refused_with_the_remedy_also_through_an_enforcer(
    operation: Operation, definition: BoundPolicy, actor: Actor
) -> None:
    house = fixture(People(engine_has=TRUSTED), definition)
    with pytest.raises(ForbiddenException) as refused:
        await house.door.admit(request_context(actor), operation)
    assert "generic table" in refused.value.message
    assert "`exempt`" in refused.value.message
    [record] = house.audit.buffered
    assert record.decisions[0].failure == "ObligationWithoutEnforcer"
    assert house.resolver.read_documents == []


async def test_a_restricted_caller_may_describe_and_drop_a_generic_table() -> None:
    for operation in (DESCRIPTION, GenericTableExists(world.GENERIC_TABLE), DropGenericTable(world.GENERIC_TABLE)):
        permit = await fixture(People(), policy("p")).door.admit(request_context(), operation)
        assert permit is not None
    permit, keys = await fixture(People(), policy("p")).door.admit_with(request_context(), DESCRIPTION, VEND)
    assert keys is None
    assert permit.restricted(world.GENERIC_TABLE)


async def test_a_caller_that_may_only_describe_loads_without_credentials() -> None:
    house = fixture(People(lacks=frozenset({Can.READ_DATA, Can.WRITE_DATA})), policy("p"))
    permit, keys = await house.door.admit_with(request_context(), LOAD, VEND)
    assert keys is None
    assert permit.restricted(world.GENERIC_TABLE)


async def test_an_exempt_caller_and_one_that_is_no_subject_get_credentials() -> None:
    exempt = fixture(People({"oidc~alice": {(Can.SKIP_POLICY, "p")}}), policy("p"))
    subjects = policy("p", applies_to=AppliesTo.SUBJECTS)
    for house in (exempt, fixture(People(), subjects)):
        permit, keys = await house.door.admit_with(request_context(), LOAD, VEND)
        assert keys is not None
        assert not permit.restricted(world.GENERIC_TABLE)
    subject = fixture(People({"oidc~alice": {(Can.BE_SUBJECT, "p")}}), subjects)
    with pytest.raises(ForbiddenException):
        await subject.door.admit(request_context(), VEND)


async def test_policies_that_cannot_be_read_refuse_the_data() -> None:
    house = fixture(People())
    house.resolver.policies[world.generic_table_row.id] = None
    with pytest.raises(ForbiddenException):
        await house.door.admit(request_context(), VEND)
