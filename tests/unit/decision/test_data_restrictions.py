# SPDX-License-Identifier: Apache-2.0
"""Decisions on tables with data policies: who is restricted, trusted engines, refusals, and cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.decisions.authorizers import NarrowedRelationships
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operation import Operation
from gateway.access.operations.credentials import VendCreationCredentials
from gateway.access.operations.steps import AssumeRole
from gateway.access.operations.tables import CreateTable, DropTable
from gateway.access.ports import Question
from gateway.db.tables.documents import Document
from gateway.features.credentials.credential_terms import load_level
from gateway.features.tables.loads import load_representation, require_same_columns, shows_data
from gateway.iceberg.errors import CatalogError, ForbiddenException
from gateway.iceberg.wire import CreateTableRequest
from gateway.obligations.application import restrictions_for_load
from gateway.obligations.data_policies import (
    AnyOf,
    AppliesTo,
    Attribute,
    AttributeSource,
    ColumnReference,
    InTest,
    Mask,
    PolicyInputs,
    RoleTest,
    RowFilter,
)
from gateway.scope.credential import AccessLevel
from lakegate.restrictions.actions import Action
from tests.support.door import world
from tests.support.door.data_restrictions import (
    COMMIT,
    DOCUMENT,
    ENGINE,
    EUROPE,
    LOAD,
    MASKED,
    SIGN,
    TRUSTED,
    VEND,
    People,
    by_engine,
    fixture,
    policy,
    restrictions_of,
)
from tests.support.door.world import request_context


async def test_a_warehouse_without_data_policies_costs_no_read_and_no_check() -> None:
    judge = People()
    house = fixture(judge, policy("p"), governed=False)
    permit = await house.door.admit(request_context(), LOAD)
    assert (house.resolver.looked_for_policies, house.resolver.read_documents, judge.seen) == ([], [], [])
    assert not permit.restricted(world.TABLE)


@pytest.mark.parametrize("operation", [LOAD, VEND, SIGN, COMMIT])
async def test_a_restricted_caller_without_an_enforcer_is_refused_with_the_remedy(operation: Operation) -> None:
    for actor in (Actor.user("oidc~alice"), by_engine()):
        house = fixture(People(), policy("p"))
        with pytest.raises(ForbiddenException) as refused:
            await house.door.admit(request_context(actor), operation)
        assert refused.value.code == 403
        assert "enforcer" in refused.value.message
        assert "exempt" in refused.value.message
        assert "email" not in refused.value.message
        [record] = house.audit.buffered
        assert record.decisions[0].failure == "RestrictedWithoutEnforcer"


async def test_an_enforcer_receives_the_restrictions_and_read_only_credentials() -> None:
    house = fixture(People(engine_has=TRUSTED), policy("p"), policy("q", EUROPE))
    permit, keys = await house.door.admit_with(request_context(by_engine()), LOAD, VEND)
    assert keys is not None
    assert msgspec.json.decode(restrictions_for_load(permit.obligations, str(world.TABLE_ID))) == {
        **MASKED,
        "required-row-filter": {
            "type": "eq",
            "left": {"type": "reference", "id": 2},
            "right": {"type": "literal", "value": "EU"},
        },
    }
    assert keys.holds(Can.WRITE_DATA, world.TABLE)
    assert load_level(keys) is AccessLevel.READ
    assert keys.restricted(world.TABLE)
    assert permit.pending_audit.record.decisions[0].obligations == {"row_filters": 1, "column_masks": 1}


@pytest.mark.parametrize("operation", [SIGN, COMMIT])
async def test_an_enforcer_gets_no_signature_and_no_commit_for_a_restricted_caller(operation: Operation) -> None:
    house = fixture(People(engine_has=TRUSTED), policy("p"))
    with pytest.raises(ForbiddenException):
        await house.door.admit(request_context(by_engine()), operation)


async def test_an_exempt_caller_is_not_restricted_and_the_credentials_depend_on_the_exemption() -> None:
    house = fixture(People({"oidc~alice": {(Can.SKIP_POLICY, "p")}}), policy("p"))
    permit, keys = await house.door.admit_with(request_context(), LOAD, VEND)
    assert keys is not None
    assert not keys.restricted(world.TABLE)
    assert keys.exempt == {"p"}
    assert load_level(keys) is AccessLevel.READ_WRITE_DELETE
    assert await house.door.admit(request_context(), COMMIT) is not None


async def test_an_exemption_from_one_policy_leaves_the_others() -> None:
    house = fixture(
        People({"oidc~alice": {(Can.SKIP_POLICY, "q")}}, engine_has=TRUSTED), policy("p"), policy("q", EUROPE)
    )
    assert await restrictions_of(house) == MASKED


async def test_a_policy_for_subjects_applies_to_subjects_only() -> None:
    bound = policy("p", applies_to=AppliesTo.SUBJECTS)
    subject = {(Can.BE_SUBJECT, "p")}
    assert await restrictions_of(fixture(People(engine_has=TRUSTED), bound)) == {}
    assert await restrictions_of(fixture(People({"oidc~alice": subject}, engine_has=TRUSTED), bound)) == MASKED
    both = {"oidc~alice": subject | {(Can.SKIP_POLICY, "p")}}
    assert await restrictions_of(fixture(People(both, engine_has=TRUSTED), bound)) == {}


async def test_a_user_does_not_escape_a_policy_by_assuming_a_role() -> None:
    """Policies about the user apply while it acts as a role, and its own exemption does not count."""
    house = fixture(
        People({"oidc~alice": {(Can.BE_SUBJECT, "p"), (Can.SKIP_POLICY, "q")}}, engine_has=TRUSTED),
        policy("p", applies_to=AppliesTo.SUBJECTS),
        policy("q", EUROPE),
    )
    context = request_context(by_engine())
    await house.door.assume(context, world.ROLE)
    assert context.actor.assumed_role == world.ROLE_ID
    assert AssumeRole in context.admitted
    permit = await house.door.admit(context, LOAD)
    found = msgspec.json.decode(restrictions_for_load(permit.obligations, str(world.TABLE_ID)))
    assert set(found) == {"required-column-projections", "required-row-filter"}


@pytest.mark.parametrize("operation", [LOAD, VEND, SIGN, COMMIT])
@pytest.mark.parametrize("holds", [{(Can.SKIP_POLICY, "p")}, set()])
@pytest.mark.parametrize("applies_to", AppliesTo)
async def test_a_user_that_is_only_named_is_refused_whatever_its_exemptions(
    operation: Operation, holds: set[tuple[Can, str]], applies_to: AppliesTo
) -> None:
    judge = People({"oidc~alice": holds}, engine_has=TRUSTED)
    house = fixture(judge, policy("p", applies_to=applies_to))
    named = Actor.user("oidc~alice", engine=ENGINE, subject_proven=False)
    with pytest.raises(ForbiddenException) as refused:
        await house.door.admit(request_context(named), operation)
    assert "your own token" in refused.value.message
    if operation is LOAD and (holds or applies_to is AppliesTo.SUBJECTS):
        assert await restrictions_of(house) == {}, "the own token lifts the policy"


async def test_a_named_user_with_an_assumed_role_is_refused() -> None:
    house = fixture(People({str(world.ROLE_ID): {(Can.SKIP_POLICY, "p")}}, engine_has=TRUSTED), policy("p"))
    context = request_context(Actor.user("oidc~alice", engine=ENGINE, subject_proven=False))
    await house.door.assume(context, world.ROLE)
    with pytest.raises(ForbiddenException):
        await house.door.admit(context, LOAD)


@pytest.mark.parametrize("engine_has", [TRUSTED, frozenset({Can.DELEGATE})])
async def test_an_exempt_owner_of_a_view_lifts_nothing_for_an_engine_that_is_no_enforcer(
    engine_has: frozenset[Can],
) -> None:
    house = fixture(People({"oidc~owner": {(Can.SKIP_POLICY, "p")}}, engine_has=engine_has), policy("p"))
    owner = by_engine().as_owner("oidc~owner")
    if engine_has is TRUSTED:
        assert await restrictions_of(house, owner) == {}
    else:
        with pytest.raises(ForbiddenException):
            await house.door.admit(request_context(owner), LOAD)


async def test_the_owner_of_a_view_is_a_subject_if_a_group_can_make_it_one() -> None:
    """D31: the groups of the owner are unknown, because it has no token in this request."""
    house = fixture(People(engine_has=TRUSTED), policy("p", applies_to=AppliesTo.SUBJECTS))
    owner = by_engine().as_owner("oidc~owner")
    assert await restrictions_of(house, owner) == {}
    house.resolver.grouped = frozenset({"p"})
    assert await restrictions_of(house, owner) == MASKED
    assert await restrictions_of(house) == {}
    house = fixture(
        People({"oidc~owner": {(Can.SKIP_POLICY, "p")}}, engine_has=TRUSTED), policy("p", applies_to=AppliesTo.SUBJECTS)
    )
    house.resolver.grouped = frozenset({"p"})
    assert await restrictions_of(house, owner) == {}


async def test_values_that_groups_may_complete_do_not_widen_a_filter() -> None:
    """Without the groups, `blocked` lacks the values of their roles: the negated test would show more rows."""
    blocked = InTest(ColumnReference(name="region"), Attribute(AttributeSource.MAPPING, "blocked"), negated=True)
    house = fixture(People(engine_has=TRUSTED), policy("p", RowFilter(blocked)))
    house.resolver.values = {"blocked": {"oidc~alice": ("EU",)}}
    assert "EU" in str(await restrictions_of(house))
    owner = by_engine("oidc~bob").as_owner("oidc~alice")
    assert (await restrictions_of(house, owner))["required-row-filter"] is False


async def test_an_outage_of_openfga_is_no_yes() -> None:
    house = fixture(People(fails_on_policies=True, engine_has=TRUSTED), policy("p"))
    with pytest.raises(CatalogError) as refused:
        await house.door.admit(request_context(by_engine()), LOAD)
    assert refused.value.code == 503


@pytest.mark.parametrize("case", ["unreadable policy", "unreadable document", "no document"])
async def test_what_cannot_be_read_is_refused_also_for_enforcers(case: str) -> None:
    house = fixture(People(engine_has=TRUSTED), policy("p"))
    if case == "unreadable policy":
        house.resolver.policies[world.TABLE_ID] = None
    elif case == "unreadable document":
        house.resolver.documents[world.TABLE_ID] = b"{}"
    else:
        del house.resolver.documents[world.TABLE_ID]
    for operation in (LOAD, VEND):
        with pytest.raises(ForbiddenException):
            await house.door.admit(request_context(by_engine()), operation)


async def test_attributes_are_those_of_the_acting_principal() -> None:
    regions = InTest(ColumnReference(name="region"), Attribute(AttributeSource.MAPPING, "regions"))
    house = fixture(People(engine_has=TRUSTED), policy("p", RowFilter(regions)))
    house.resolver.values = {"regions": {"oidc~alice": ("EU",), str(world.ROLE_ID): ("US",)}}
    alice = await restrictions_of(house)
    assert "EU" in str(alice)
    assert "US" not in str(alice)
    context = request_context(by_engine())
    await house.door.assume(context, world.ROLE)
    house.resolver.roles = (str(world.ROLE_ID),)
    permit = await house.door.admit(context, LOAD)
    as_role = restrictions_for_load(permit.obligations, str(world.TABLE_ID)).decode()
    assert "US" in as_role
    assert "EU" not in as_role
    nobody = await restrictions_of(house, by_engine("oidc~bob"))
    assert nobody["required-row-filter"] is not None


async def test_a_role_test_holds_for_roles_of_the_assumed_role_only() -> None:
    house = fixture(People(engine_has=TRUSTED), policy("p", RowFilter(RoleTest("privileged"))))
    house.resolver.roles = ("privileged",)
    assert await restrictions_of(house) == {}
    context = request_context(by_engine())
    await house.door.assume(context, world.ROLE)
    house.resolver.roles = (str(world.ROLE_ID),)
    context.actor = msgspec.structs.replace(context.actor, group_roles=("privileged",))
    permit = await house.door.admit(context, LOAD)
    assert b"false" in restrictions_for_load(permit.obligations, str(world.TABLE_ID))


async def test_credentials_end_with_a_membership_that_shows_more_rows() -> None:
    """Raw credentials of a member of the tested role must not outlive the membership."""
    role = str(world.ROLE_ID)
    house = fixture(People(engine_has=TRUSTED), policy("p", RowFilter(AnyOf((RoleTest(role), EUROPE.test)))))
    house.resolver.roles = (role,)
    ends = world.NOW + timedelta(minutes=30)
    house.resolver.ends = (ends,)
    permit = await house.door.admit(request_context(), VEND)
    assert not permit.restricted(world.TABLE)
    judge = house.judge

    async def check(actor: Actor, questions: Sequence[Question], *, now: datetime, **_: object) -> list[bool]:
        return [not (each.relation is Can.ASSUME and now >= ends) for each in questions]

    judge.check = check  # type: ignore[method-assign]  # the membership ends
    assert await house.door.first_expiry(permit, world.NOW + timedelta(hours=1)) == ends
    other = fixture(People(engine_has=TRUSTED), policy("p", RowFilter(AnyOf((RoleTest("other"), EUROPE.test)))))
    other.resolver.roles, other.resolver.ends = (role,), (ends,)
    permit = await other.door.admit(request_context(by_engine()), VEND)
    assert await other.door.first_expiry(permit, world.NOW + timedelta(hours=1)) is None


async def test_a_load_of_a_later_document_with_another_column_is_refused_without_restrictions_too() -> None:
    """A commit adds the masked column between the decision and the read of the document."""
    house = fixture(People(engine_has=TRUSTED), policy("p", Mask(Action.MASK_ALPHANUM, (ColumnReference(name="ssn"),))))
    permit = await house.door.admit(request_context(), LOAD)
    assert not permit.restricted(world.TABLE)
    await require_same_columns(permit, Document("file", DOCUMENT))
    later = DOCUMENT.replace(b'"region"', b'"ssn"')
    with pytest.raises(CatalogError):
        await require_same_columns(permit, Document("later", later))


async def test_two_principals_never_share_a_representation() -> None:
    house = fixture(People({"oidc~bob": {(Can.SKIP_POLICY, "p")}}, engine_has=TRUSTED), policy("p"))
    alice = await house.door.admit(request_context(by_engine()), LOAD)
    bob = await house.door.admit(request_context(by_engine("oidc~bob")), LOAD)
    tags = [msgspec.json.encode(load_representation(each, None).obligations.hex()) for each in (alice, bob)]
    assert tags[0] != tags[1]
    assert load_representation(alice, None).restricted
    assert load_representation(alice, None).confirmed(None, world.NOW) is None
    await house.door.admit(request_context(by_engine()), LOAD)


async def test_a_new_policy_changes_the_etag() -> None:
    house = fixture(People(engine_has=TRUSTED), policy("p"))
    before = load_representation(await house.door.admit(request_context(by_engine()), LOAD), None)
    house.resolver.policies[world.TABLE_ID] = PolicyInputs(bound=(policy("p"), policy("q", EUROPE)))
    after = load_representation(await house.door.admit(request_context(by_engine()), LOAD), None)
    assert after.confirmed([before.tag(world.NOW, None)], world.NOW) is None


async def test_a_caller_that_may_only_describe_gets_metadata_without_data() -> None:
    lacks = frozenset({Can.READ_DATA, Can.READ_COLUMNS})
    house = fixture(People(lacks=lacks), policy("p"))
    permit = await house.door.admit(request_context(), LOAD)
    assert not shows_data(permit)
    unrestricted = fixture(People({"oidc~alice": {(Can.SKIP_POLICY, "p")}}, lacks=lacks), policy("p"))
    assert shows_data(await unrestricted.door.admit(request_context(), LOAD))
    house.resolver.policies[world.TABLE_ID] = None
    assert not shows_data(await house.door.admit(request_context(), LOAD))


async def test_drops_are_unaffected_and_new_tables_get_no_credentials() -> None:
    house = fixture(People(), policy("p"))
    await house.door.admit(request_context(), DropTable(world.TABLE))
    house.resolver.policies[world.INNER_ID] = PolicyInputs(bound=(policy("p"),))
    create = CreateTable(world.NAMESPACE, CreateTableRequest(name="n", schema=msgspec.Raw(b"{}")))
    permit, keys = await house.door.admit_with(request_context(), create, VendCreationCredentials(world.NAMESPACE, "n"))
    assert permit is not None
    assert keys is None


async def test_a_policy_bound_meanwhile_ends_a_permit() -> None:
    house = fixture(People(engine_has=TRUSTED), policy("p"))
    house.resolver.policies[world.TABLE_ID] = PolicyInputs()
    reader = await house.door.admit(request_context(by_engine()), VEND)
    writer = await house.door.admit(request_context(), COMMIT)
    house.resolver.policies[world.TABLE_ID] = PolicyInputs(bound=(policy("p"),))
    with pytest.raises(CatalogError) as changed:
        await reader.revalidate()
    assert changed.value.code == 503, "expected a retry, which gets the restrictions"
    with pytest.raises(ForbiddenException):
        await writer.revalidate()


async def test_an_authorizer_cannot_lift_a_policy() -> None:
    """An authorizer may only refuse. A refused `can_be_subject` would allow more."""

    class Refusing:
        name = "refusing"

        async def check(self, actor: Actor, questions: Sequence[Question], **_: object) -> list[bool]:
            return [False for _ in questions]

    class Allowing:
        async def check(self, actor: Actor, questions: Sequence[Question], **_: object) -> list[bool]:
            return [True for _ in questions]

    narrowed = NarrowedRelationships(Allowing(), [Refusing()])  # type: ignore[list-item]  # the methods that are used
    key = ObjectKey(ObjectType.DATA_POLICY, "p")
    asked = [Question(Can.BE_SUBJECT, key), Question(Can.SKIP_POLICY, key)]
    assert await narrowed.check(world.ALICE, asked, now=world.NOW) == [True, False]
