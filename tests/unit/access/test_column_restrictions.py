# SPDX-License-Identifier: Apache-2.0
"""Decisions on tables with column grants: trusted engines, restrictions and cost."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.relations import Can
from gateway.access.operations.credentials import SignRequest, VendCredentials
from gateway.access.operations.tables import DropTable, LoadTable
from gateway.iceberg.errors import CatalogError, ForbiddenException
from gateway.obligations.application import restrictions_for_load
from tests.support.door import world
from tests.support.door.column_restrictions import ENGINE, LOAD, SIGN, VEND, Restricted, by_engine, door_fixture
from tests.support.door.world import request_context


@pytest.mark.parametrize("operation", [LOAD, VEND, SIGN])
async def test_a_refusal_without_an_engine_names_the_remedy_and_not_the_policy(
    operation: LoadTable | VendCredentials | SignRequest,
) -> None:
    judge = Restricted()
    door_fixture_ = door_fixture(judge)
    with pytest.raises(ForbiddenException) as refused:
        await door_fixture_.door.admit(request_context(), operation)
    assert (refused.value.code, refused.value.type) == (403, "ForbiddenException")
    assert "enforcer" in refused.value.message
    assert "select" in refused.value.message
    assert "c2" not in refused.value.message
    [record] = door_fixture_.audit.buffered
    assert record.decisions[0].failure == "RestrictedWithoutEnforcer"
    assert (judge.calls, door_fixture_.resolver.looked_for_columns) == (["oidc~alice"], []), (
        "expected one call, as for a table without restrictions"
    )


@pytest.mark.parametrize("held", [set(), {Can.DELEGATE}, {Can.ENFORCE}])
async def test_an_engine_that_is_not_enforcer_and_delegate_gets_nothing(held: set[Can]) -> None:
    door_fixture_ = door_fixture(Restricted(engine_has=frozenset(held)))
    for operation in (LOAD, VEND):
        with pytest.raises(CatalogError) as refused:
            await door_fixture_.door.admit(request_context(by_engine()), operation)
        assert refused.value.code == (403 if Can.DELEGATE in held else 404)


async def test_a_trusted_engine_receives_the_column_restrictions() -> None:
    judge = Restricted()
    door_fixture_ = door_fixture(judge)
    permit, keys = await door_fixture_.door.admit_with(request_context(by_engine()), LOAD, VEND)
    restriction = permit.restriction(world.TABLE)
    assert restriction is not None
    assert restriction.fields == {2}
    assert json.loads(restrictions_for_load(permit.obligations, str(world.TABLE_ID))) == {
        "required-column-projections": [
            {"field-id": 1, "action": "replace-with-null"},
            {"field-id": 3, "action": "mask-to-fixed-value"},
            {"field-id": 4, "action": "replace-with-null"},
        ]
    }
    assert keys is not None
    assert keys.restriction(world.TABLE) == restriction
    assert not permit.holds(Can.READ_DATA, world.TABLE)
    assert not keys.holds(Can.WRITE_DATA, world.TABLE)
    assert judge.calls.count(ENGINE) == 2, "expected checks of delegate and of enforcer"
    assert judge.calls.count("oidc~alice") == 2, "expected checks of the table and of its columns"
    assert door_fixture_.resolver.looked_for_columns == [(world.TABLE_ID,)]
    assert permit.pending_audit.record.decisions[0].obligations == {"readable_columns": 1}


@pytest.mark.parametrize(
    ("columns", "granted"),
    [({9}, (9,)), (set(), (2,)), ({2}, (1,)), ({4}, (4,))],
    ids=["column of no schema", "denied by OpenFGA", "no grant in PostgreSQL", "dropped"],
)
async def test_a_load_without_readable_columns_is_refused(columns: set[int], granted: tuple[int, ...]) -> None:
    door_fixture_ = door_fixture(Restricted(columns=frozenset(columns)), *granted)
    with pytest.raises(ForbiddenException):
        await door_fixture_.door.admit(request_context(by_engine()), LOAD)


@pytest.mark.threat("LG-DEC-23")
async def test_a_table_with_unreadable_schemas_is_refused() -> None:
    door_fixture_ = door_fixture(Restricted())
    door_fixture_.resolver.documents[world.TABLE_ID] = b"{}"
    with pytest.raises(ForbiddenException):
        await door_fixture_.door.admit(request_context(by_engine()), LOAD)


async def test_describe_gives_metadata_and_keys_only_through_a_trusted_engine() -> None:
    door_fixture_ = door_fixture(Restricted(describes=True))
    permit, keys = await door_fixture_.door.admit_with(request_context(), LOAD, VEND)
    assert (permit.restriction(world.TABLE), keys) == (None, None)
    assert not permit.holds(Can.READ_DATA, world.TABLE)
    permit, keys = await door_fixture_.door.admit_with(request_context(by_engine()), LOAD, VEND)
    assert permit.restriction(world.TABLE) is not None
    assert keys is not None


async def test_a_reader_of_some_columns_cannot_change_the_table() -> None:
    with pytest.raises(CatalogError) as refused:
        await door_fixture(Restricted()).door.admit(request_context(by_engine()), DropTable(world.TABLE))
    assert refused.value.code == 403


@pytest.mark.parametrize("change", ["columns", "enforcer", "more"])
async def test_changed_restrictions_are_detected_by_revalidation(change: str) -> None:
    judge = Restricted(columns=frozenset({1, 2}))
    door_fixture_ = door_fixture(judge, 1, 2, 3)
    permit = await door_fixture_.door.admit(request_context(by_engine()), VEND)
    assert (await permit.revalidate()).rows == permit.resolution.rows
    if change == "columns":
        judge.columns = frozenset({2})
    elif change == "more":
        judge.columns = frozenset({1, 2, 3})
    else:
        judge.engine_has = frozenset({Can.DELEGATE})
    with pytest.raises(CatalogError) as refused:
        await permit.revalidate()
    assert refused.value.code == (403 if change == "enforcer" else 503)


async def test_keys_expire_with_the_first_column_grant() -> None:
    judge = Restricted()
    door_fixture_ = door_fixture(judge)
    end = world.NOW + timedelta(minutes=20)
    door_fixture_.resolver.ends = (end,)
    door_fixture_.resolver.validity = {"revision": UUID(int=1), "time_boxes": UUID(int=2), "next_expiry": end}
    permit = await door_fixture_.door.admit(request_context(by_engine()), VEND)
    until = world.NOW + timedelta(hours=1)
    assert await door_fixture_.door.first_expiry(permit, until) is None
    judge.until = end
    assert await door_fixture_.door.first_expiry(permit, until) == end


async def test_keys_expire_when_the_trust_in_the_engine_ends() -> None:
    judge = Restricted()
    door_fixture_ = door_fixture(judge)
    end = world.NOW + timedelta(minutes=20)
    door_fixture_.resolver.ends = (end,)
    permit = await door_fixture_.door.admit(request_context(by_engine()), VEND)
    until = world.NOW + timedelta(hours=1)
    assert await door_fixture_.door.first_expiry(permit, until) is None
    judge.enforces_until = end
    assert await door_fixture_.door.first_expiry(permit, until) == end


@pytest.mark.threat("LG-DEC-26")
async def test_an_engine_named_by_a_header_or_the_settings_is_not_trusted() -> None:
    """Other marks of the engine (audience, user agent) count for views and not for column restrictions."""
    actor = msgspec.structs.replace(Actor.user("oidc~alice"), owner_properties=("trino.run-as-owner",))
    coming = replace(request_context(actor), user_agent="Trino/476 enforcer")
    with pytest.raises(ForbiddenException):
        await door_fixture(Restricted()).door.admit(coming, LOAD)
