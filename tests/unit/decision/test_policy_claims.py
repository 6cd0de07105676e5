# SPDX-License-Identifier: Apache-2.0
"""Decisions on row filters with claims: of which tokens they count, and that no answer is shared between tokens."""

from __future__ import annotations

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.idempotency import RepeatableRequest
from gateway.access.nouns.relations import Can
from gateway.access.operations.checks import BatchCheck, Check
from gateway.access.principals import actor_of
from gateway.features.tables.loads import load_representation
from gateway.obligations.data_policies import (
    Attribute,
    AttributeSource,
    ColumnReference,
    CompareTest,
    InTest,
    RowFilter,
)
from gateway.obligations.kinds import TableRestrictions
from lakegate.restrictions.predicates import NEVER, Comparison, In, Predicate
from tests.support.door import world
from tests.support.door.data_restrictions import ENGINE, LOAD, TRUSTED, People, fixture, policy
from tests.support.door.restricted_checks import BOB, ON, house
from tests.support.door.world import DoorFixture, request_context

Claims = tuple[tuple[str, tuple[str, ...]], ...]

REGION, ATTRIBUTE = ColumnReference(name="region"), Attribute(AttributeSource.CLAIM, "org.region")
AMONG = RowFilter(InTest(REGION, ATTRIBUTE))
EUROPE: Claims = (("org.region", ("EU",)),)
AMERICA: Claims = (("org.region", ("US",)),)
MANY: Claims = (("org.region", ("EU", "US")),)


def through_engine(claims: Claims = (), *, proven: bool = True) -> Actor:
    """Return a user for whom an engine acts, with these claims in the user's own token."""
    return Actor.user("oidc~alice", engine=ENGINE, subject_proven=proven, token_claims=claims)


def governed(row_filter: RowFilter = AMONG) -> DoorFixture:
    """Return a house with the row filter on the table, and a trusted engine."""
    return fixture(People(engine_has=TRUSTED), policy("p", row_filter))


async def filter_of(at: DoorFixture, actor: Actor, *, role: bool = False) -> Predicate:
    """Return the predicate that an engine receives for the caller."""
    context = request_context(actor)
    if role:
        await at.door.assume(context, world.ROLE)
    permit = await at.door.admit(context, LOAD)
    restrictions = permit.obligations.find(TableRestrictions, str(world.TABLE_ID))
    assert restrictions is not None
    return restrictions.row_filter


async def test_the_claims_of_the_users_token_are_the_values() -> None:
    at = governed()
    assert await filter_of(at, through_engine(EUROPE)) == In(2, "string", ("EU",))
    assert await filter_of(at, through_engine(AMERICA)) == In(2, "string", ("US",))
    assert await filter_of(at, through_engine(MANY)) == In(2, "string", ("EU", "US"))


TESTS = [
    InTest(REGION, ATTRIBUTE),
    InTest(REGION, ATTRIBUTE, negated=True),
    CompareTest(Comparison.EQ, REGION, ATTRIBUTE),
    CompareTest(Comparison.NOT_EQ, REGION, ATTRIBUTE),
]


@pytest.mark.threat("LG-AUT-18")
@pytest.mark.parametrize("stated", TESTS)
async def test_a_caller_whose_token_does_not_prove_the_claim_sees_no_rows(stated: InTest | CompareTest) -> None:
    """An assumed role and the owner of a view have no token here, even if the caller has one."""
    at = governed(RowFilter(stated))
    assert await filter_of(at, through_engine(EUROPE)) != NEVER
    without = [
        through_engine(),
        through_engine((("region", ("EU",)), ("org", ("EU",)))),
        through_engine(EUROPE).as_owner("oidc~alice"),
    ]
    for actor in without:
        assert await filter_of(at, actor) == NEVER, actor
    assert await filter_of(at, through_engine(EUROPE), role=True) == NEVER


async def test_a_comparison_with_several_values_of_a_claim_shows_no_rows() -> None:
    for operator in (Comparison.EQ, Comparison.NOT_EQ):
        assert (
            await filter_of(governed(RowFilter(CompareTest(operator, REGION, ATTRIBUTE))), through_engine(MANY))
            == NEVER
        )


@pytest.mark.threat("LG-AUT-18")
async def test_the_claims_of_the_caller_do_not_count_for_users_that_it_names() -> None:
    """Trino's bridge names users: a claim in the token of the bridge, or of its service user, is not theirs."""
    at = house(People(), policy("p", AMONG))
    caller = msgspec.structs.replace(world.ALICE, token_claims=EUROPE)
    about_bob = BatchCheck((Check(ON, Can.READ_COLUMNS, BOB, applies_restrictions=True),), delegated=True)
    permit = await at.door.admit(request_context(caller), about_bob)
    asked = [(who, ON, ()) for who in (caller, actor_of(BOB))]
    found = await at.door.hypothetical_checks.policy_verdicts(permit, asked)
    filters = [each.restrictions.row_filter for each in found if each is not None and each.restrictions is not None]
    assert filters == [In(2, "string", ("EU",)), NEVER]


@pytest.mark.threat("LG-AUT-18")
async def test_two_tokens_of_one_user_share_no_etag_and_no_cached_credential() -> None:
    at = governed()
    one, other = [await at.door.admit(request_context(through_engine(each)), LOAD) for each in (EUROPE, AMERICA)]
    tag = load_representation(one, None).tag(world.NOW, None)
    assert load_representation(other, None).confirmed([tag], world.NOW) is None
    digests = {each.token_digest for each in map(through_engine, ((), EUROPE, AMERICA, MANY))}
    assert len(digests) == 4


@pytest.mark.parametrize("proven", [True, False])
def test_callers_without_policy_claims_have_the_cache_keys_of_groups_alone(proven: bool) -> None:
    actor = msgspec.structs.replace(through_engine(proven=proven), group_roles=("r",))
    assert actor.token_digest == actor.groups_digest != ""
    asserted = msgspec.structs.replace(through_engine(EUROPE, proven=False), group_roles=("r",))
    assert asserted.token_digest == asserted.groups_digest


def test_a_retry_with_a_renewed_token_finds_the_recorded_success() -> None:
    """A change would otherwise be made twice when a claim changes. The retry is decided again with the new claims."""

    def scope(claims: Claims) -> bytes:
        return RepeatableRequest(
            actor=through_engine(claims), operation="o", method="POST", path="/p", key=world.TABLE_ID, digest=b""
        ).scope

    assert scope(EUROPE) == scope(AMERICA)
