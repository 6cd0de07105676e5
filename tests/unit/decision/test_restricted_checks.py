# SPDX-License-Identifier: Apache-2.0
"""Permission checks about the data of tables with data policies: what a bridge of an engine receives."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.relations import Can
from gateway.access.operations.checks import BatchCheck, BatchCheckAnswer, Check, CheckPermission
from gateway.access.restrictions.bound_restrictions import PolicyVerdict
from gateway.access.tuples import Principal, PrincipalType
from gateway.features.grants.checks import Checks
from gateway.features.grants.partial_checks import restricted_answer
from gateway.obligations.data_policies import (
    AppliesTo,
    Attribute,
    AttributeSource,
    ColumnReference,
    InTest,
    Mask,
    PolicyInputs,
    RowFilter,
)
from gateway.obligations.kinds import TableRestrictions
from gateway.obligations.projections import Columns
from lakegate.restrictions.actions import Action, Projection
from lakegate.restrictions.literals import NestedField
from lakegate.restrictions.predicates import ALWAYS
from tests.support.door import world
from tests.support.door.data_restrictions import DOCUMENT, EUROPE, People, policy
from tests.support.door.restricted_checks import BOB, ON, house
from tests.support.door.world import DoorFixture, request_context
from tests.support.kits import kit_of

ROLE = Principal(PrincipalType.ROLE, str(world.ROLE_ID))


async def answered(
    at: DoorFixture, *checks: Check, caller: Actor = world.ALICE, delegated: bool = False
) -> list[dict[str, Any]]:
    """Return the results of a batch as JSON."""
    permit = await at.door.admit(request_context(caller), BatchCheck(checks, delegated=delegated))
    answer: BatchCheckAnswer = await Checks(kit_of(door=at.door)).batch(permit)
    results: list[dict[str, Any]] = msgspec.to_builtins(answer)["results"]
    return results


READ = Check(ON, Can.READ_DATA)
COLUMNS = Check(ON, Can.READ_COLUMNS)
FOR_TRINO = Check(ON, Can.READ_COLUMNS, applies_restrictions=True)
WRITE, COMMIT = Check(ON, Can.WRITE_DATA), Check(ON, Can.COMMIT)
APPEND = Check(ON, Can.WRITE_DATA, append=True)


async def test_a_bridge_that_asks_for_no_restrictions_is_denied() -> None:
    at = house(People(), policy("p"))
    describe = Check(ON, Can.GET_METADATA)
    results = await answered(at, READ, COLUMNS, WRITE, COMMIT, APPEND, describe, Check(ON, Can.DROP))
    assert [each["allowed"] for each in results] == [False, False, False, False, False, True, True]
    unbound = house(People())
    assert [each["allowed"] for each in await answered(unbound, READ, COLUMNS, WRITE, COMMIT)] == [True] * 4


async def test_a_bridge_receives_the_filter_the_masks_and_the_columns() -> None:
    [result] = await answered(house(People(), policy("p"), policy("q", EUROPE)), FOR_TRINO)
    assert result["allowed"] is True
    assert result["columns"] == ["email", "region"]
    assert result["restrictions"]["row-filter"]
    [mask] = result["restrictions"]["column-masks"]
    assert mask["column"] == "email"
    assert "email" in mask["expression"]


async def test_expressions_are_shown_only_to_engines_and_managers_of_the_policies() -> None:
    """A restricted user could otherwise read the literals of the policies that restrict it."""
    judge = People()
    at = house(judge, policy("p", EUROPE), policy("q"))
    about_bob = Check(ON, Can.READ_COLUMNS, BOB, applies_restrictions=True)
    judge.holds[world.ALICE.id] = {(Can.READ, "p"), (Can.READ, "q"), (Can.UPDATE, "q")}
    refused = [{"allowed": False, "restricted": True}]
    for check in (FOR_TRINO, about_bob):
        assert await answered(at, check) == refused
    assert await answered(at, FOR_TRINO, delegated=True) == refused, "any caller may send `delegated`"
    [enforcing] = await answered(at, about_bob, delegated=True)
    assert enforcing["restrictions"]["row-filter"], "the bridge of an enforcing engine"
    judge.lacks = frozenset({Can.ENFORCE})
    assert await answered(at, about_bob, delegated=True) == refused, "an inspector is no manager of policies"
    judge.holds[world.ALICE.id] = {(Can.READ, "q"), (Can.UPDATE, "q"), (Can.SKIP_POLICY, "p")}
    [rest] = await answered(at, FOR_TRINO)
    assert set(rest["restrictions"]) == {"column-masks"}, "a policy that does not apply is not in the expressions"


def test_masked_and_readable_columns_are_named_alike() -> None:
    """The bridge converts both to lower case. Python does it by other rules, so that a mask could miss its column."""
    field = NestedField(id=1, name="E\ua7cbMail", required=False, type="string")
    restrictions = TableRestrictions("t", ALWAYS, (Projection(1, Action.MASK_ALPHANUM),), False, "m")
    columns = Columns((field,), ((field,),))
    verdict = PolicyVerdict("t", restrictions, columns=columns, inputs=PolicyInputs(bound=()))
    answer = restricted_answer(FOR_TRINO, verdict)
    assert answer.columns == [field.name]
    assert answer.restrictions is not None
    assert [each.column for each in answer.restrictions.column_masks] == [field.name]


async def test_members_are_absent_without_restrictions() -> None:
    [result] = await answered(house(People({"oidc~alice": {(Can.SKIP_POLICY, "p")}}), policy("p")), FOR_TRINO)
    assert result == {"allowed": True}
    [result] = await answered(house(People(), policy("p")), FOR_TRINO)
    assert set(result["restrictions"]) == {"column-masks"}


async def test_a_name_that_another_column_had_is_neither_shown_nor_filtered() -> None:
    """Trino reads old snapshots by the names of that time."""
    at = house(People(), policy("p", EUROPE))
    at.resolver.policies[world.TABLE_ID] = PolicyInputs(bound=(policy("p", EUROPE),), former_columns=((9, "Region"),))
    [result] = await answered(at, FOR_TRINO)
    assert result["columns"] == ["email"]
    assert result["restrictions"]["row-filter"] == "false"


async def test_checks_about_another_principal_use_the_policies_of_that_principal() -> None:
    exempt = {"oidc~alice": {(Can.SKIP_POLICY, "p")}}
    at = house(People(exempt), policy("p"))
    mine, of_bob = await answered(at, READ, Check(ON, Can.READ_DATA, BOB))
    assert (mine["allowed"], of_bob["allowed"]) == (True, False)
    other_way = house(People({world.BOB_ID: {(Can.SKIP_POLICY, "p")}}), policy("p"))
    mine, of_bob = await answered(other_way, READ, Check(ON, Can.READ_DATA, BOB))
    assert (mine["allowed"], of_bob["allowed"]) == (False, True)


async def test_attributes_are_those_of_the_named_principal() -> None:
    regions = RowFilter(InTest(ColumnReference(name="region"), Attribute(AttributeSource.MAPPING, "regions")))
    at = house(People(), policy("p", regions))
    at.resolver.values = {"regions": {"oidc~alice": ("EU",), world.BOB_ID: ("US",), str(world.ROLE_ID): ("AS",)}}
    asked = [FOR_TRINO, *(Check(ON, Can.READ_COLUMNS, who, applies_restrictions=True) for who in (BOB,))]
    mine, of_bob = (each["restrictions"]["row-filter"] for each in await answered(at, *asked))
    assert "EU" in mine
    assert "US" in of_bob
    assert "EU" not in of_bob


async def test_a_role_without_a_user_is_checked_by_itself() -> None:
    subject = {str(world.ROLE_ID): {(Can.BE_SUBJECT, "p")}}
    bound = policy("p", applies_to=AppliesTo.SUBJECTS)
    assert not (await answered(house(People(subject), bound), Check(ON, Can.READ_DATA, ROLE)))[0]["allowed"]
    assert (await answered(house(People(), bound), Check(ON, Can.READ_DATA, ROLE)))[0]["allowed"]


async def test_appends_are_allowed_only_where_every_policy_allows_them() -> None:
    at = house(People(), policy("p", allow_append=True))
    assert [each["allowed"] for each in await answered(at, APPEND, WRITE, Check(ON, Can.COMMIT, append=True))] == [
        True,
        False,
        True,
    ]
    both = house(People(), policy("p", allow_append=True), policy("q"))
    assert [each["allowed"] for each in await answered(both, APPEND)] == [False]


async def test_what_no_engine_can_enforce_is_denied() -> None:
    at = house(People(), policy("p"))
    at.resolver.policies[world.TABLE_ID] = None
    assert [each["allowed"] for each in await answered(at, FOR_TRINO, READ, APPEND)] == [False] * 3


async def test_a_hash_with_a_salt_reveals_nothing_in_trino() -> None:
    local = Mask(Action.SHA_256_QUERY_LOCAL, (ColumnReference(name="email"),))
    [result] = await answered(house(People(), policy("p", local)), FOR_TRINO)
    [mask] = result["restrictions"]["column-masks"]
    assert "sha256" not in mask["expression"].lower()


@pytest.mark.parametrize("check", [READ, COLUMNS, WRITE, FOR_TRINO])
async def test_a_single_check_has_no_place_for_restrictions_and_denies_reads(check: Check) -> None:
    at = house(People(), policy("p"))
    permit = await at.door.admit(request_context(), CheckPermission(check))
    assert not (await Checks(kit_of(door=at.door)).check(permit)).allowed
    unbound = house(People())
    permit = await unbound.door.admit(request_context(), CheckPermission(check))
    assert (await Checks(kit_of(door=unbound.door)).check(permit)).allowed


async def test_tables_of_warehouses_without_policies_cost_no_statement() -> None:
    at = DoorFixture(judge=People())  # type: ignore[arg-type]  # the same port
    at.resolver.documents[world.TABLE_ID] = DOCUMENT
    results = await answered(at, READ, COLUMNS)
    assert [each["allowed"] for each in results] == [True, True]
    assert at.resolver.looked_for_policies == []
