# SPDX-License-Identifier: Apache-2.0
"""Rights below definer views, and protection of their owner."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import uuid4

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.decisions.definer_views import AmbiguousViewOwner, owner_of
from gateway.access.nouns.authz_errors import unavailable
from gateway.access.nouns.refs import TabularRef, View, ViewRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Excerpt
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.tables import LoadTable
from gateway.access.ports import Pin, Question
from gateway.features.views.views import ProtectedPropertyModification, require_owner_kept
from gateway.iceberg.errors import CatalogError, ForbiddenException, NoSuchViewException, ViewActionForbidden
from gateway.iceberg.identifiers import TableIdentifier
from tests.support.door import world
from tests.support.door.world import NOW, DoorFixture, Judge, request_context

PROPERTY = "trino.run-as-owner"
CAROL = msgspec.structs.replace(Actor.user("oidc~carol", engine="oidc~trino"), owner_properties=(PROPERTY,))


def view(**properties: str) -> bytes:
    return json.dumps({"properties": properties}).encode()


def owned(by: str, name: str = PROPERTY) -> bytes:
    return view(**{name: by})


def door_fixture(view: bytes, judge: Judge | None = None) -> DoorFixture:
    where = DoorFixture(judge=judge or Judge())
    where.resolver.documents[world.VIEW_ID] = view
    return where


def named(view: bytes, caller: Actor = CAROL) -> str | None:
    return owner_of(world.view_row, Excerpt("file", view), caller)


class CountingJudge(Judge):
    """Relationships that record the checked actors."""

    def __init__(self, no: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.no = no
        self.actors: list[str] = []

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        self.actors.append(actor.id)
        return [actor.id not in self.no] * len(questions)


@pytest.mark.parametrize("name", [PROPERTY, PROPERTY.upper()])
def test_the_view_owner_belongs_to_the_identity_provider_of_the_reader(name: str) -> None:
    assert named(owned("alice", name)) == "oidc~alice"
    assert named(owned("alice", name), Actor.user("oidc~carol")) is None, (
        "without a trusted engine the owner must be ignored"
    )
    assert named(view(comment="x")) is None


@pytest.mark.parametrize("name", ["", " alice", "a\nb", "a\u200bb", "x" * 600])
def test_an_invalid_view_owner_is_an_error(name: str) -> None:
    with pytest.raises(AmbiguousViewOwner):
        named(owned(name))


def test_two_view_owners_are_an_error() -> None:
    both = view(**{PROPERTY: "alice", PROPERTY.upper(): "bob"})
    with pytest.raises(AmbiguousViewOwner):
        named(both)


async def test_objects_below_a_view_are_checked_for_its_owner_and_both_are_audited() -> None:
    judge = CountingJudge()
    where, context = door_fixture(owned("alice"), judge), request_context(CAROL)
    await where.door.pass_through(context, [world.VIEW])
    assert set(judge.actors) == {"oidc~carol", "oidc~trino"}
    judge.actors.clear()
    permit = await where.door.admit(context, LoadTable(world.TABLE))
    assert set(judge.actors) == {"oidc~alice", "oidc~trino"}
    assert (permit.actor.id, permit.actor.asked_by, permit.actor.engine) == ("oidc~alice", "oidc~carol", "oidc~trino")
    actor = where.audit.buffered[-1].actor
    assert (actor.id, actor.asked_by, actor.engine) == ("oidc~alice", "oidc~carol", "oidc~trino")
    assert permit.actor.acting_as != CAROL.acting_as


async def test_a_view_without_owner_keeps_the_caller_for_the_next_view() -> None:
    judge = CountingJudge()
    where, context = door_fixture(view(), judge), request_context(CAROL)
    await where.door.pass_through(context, [world.VIEW, world.VIEW])
    assert context.actor == CAROL
    where.resolver.documents[world.VIEW_ID] = owned("alice")
    await where.door.pass_through(context, [world.VIEW, world.VIEW])
    assert (context.actor.id, context.actor.asked_by) == ("oidc~alice", "oidc~carol")
    assert judge.actors.count("oidc~alice") == 1


INNER = TabularRef(View, world.WAREHOUSE_ID, TableIdentifier(world.INNER, "inner"))
LAST = TabularRef(View, world.WAREHOUSE_ID, TableIdentifier(world.INNER, "last"))


def add(where: DoorFixture, ref: ViewRef, properties: bytes) -> None:
    """Add another view with these properties."""
    id = uuid4()
    where.resolver.rows[ref] = msgspec.structs.replace(world.view_row, id=id)
    where.resolver.documents[id] = properties


async def test_an_ownerless_view_below_an_owned_one_falls_back_to_the_caller() -> None:
    judge = CountingJudge()
    where, context = door_fixture(owned("alice"), judge), request_context(CAROL)
    add(where, INNER, view())
    add(where, LAST, owned("bob"))
    await where.door.pass_through(context, [world.VIEW, INNER, LAST])
    people = [actor for actor in judge.actors if actor != "oidc~trino"]
    assert people == ["oidc~carol", "oidc~alice", "oidc~carol"], (
        "each view must be checked with the rights of the view above it"
    )
    assert (context.actor.id, context.actor.asked_by) == ("oidc~bob", "oidc~carol")
    again = request_context(CAROL)
    await where.door.pass_through(again, [world.VIEW, INNER])
    assert again.actor == CAROL


async def test_an_ownerless_view_falls_back_to_the_assumed_role() -> None:
    where, context = door_fixture(owned("alice")), request_context(CAROL)
    add(where, INNER, view())
    await where.door.assume(context, world.ROLE)
    acting = context.actor
    await where.door.pass_through(context, [world.VIEW, INNER])
    assert acting.assumed_role is not None
    assert context.actor == acting
    assert context.assumption is not None


async def test_revalidation_includes_the_role_membership_of_the_view_reader() -> None:
    judge = Judge()
    where, context = door_fixture(owned("alice"), judge), request_context(CAROL)
    await where.door.assume(context, world.ROLE)
    await where.door.pass_through(context, [world.VIEW])
    permit = await where.door.admit(context, VendCredentials(world.TABLE))
    await permit.revalidate()
    judge.answer = lambda question: question.relation is not Can.ASSUME
    with pytest.raises(CatalogError) as refused:
        await permit.revalidate()
    assert refused.value.code in (403, 404)


async def test_a_credential_ends_with_the_role_membership_of_the_reader_of_an_owned_view() -> None:
    end = NOW + timedelta(minutes=5)

    class ExpiringResolver(CountingJudge):
        async def check(
            self,
            actor: Actor,
            questions: Sequence[Question],
            *,
            now: datetime,
            pin: Pin | None = None,
            paced: bool = True,
        ) -> list[bool]:
            return [question.relation is not Can.ASSUME or now < end for question in questions]

    where, context = door_fixture(owned("alice"), ExpiringResolver()), request_context(CAROL)
    where.resolver.ends = (end,)
    await where.door.assume(context, world.ROLE)
    await where.door.pass_through(context, [world.VIEW])
    permit = await where.door.admit(context, VendCredentials(world.TABLE))
    assert permit.actor.assumed_role is None
    assert await where.door.first_expiry(permit, NOW + timedelta(hours=1)) == end


async def test_an_unreadable_view_in_the_chain_is_refused() -> None:
    with pytest.raises(NoSuchViewException):
        await door_fixture(owned("alice"), CountingJudge(frozenset({"oidc~carol"}))).door.pass_through(
            request_context(CAROL), [world.VIEW]
        )
    seen = Judge(answer=lambda question: "select" not in question.relation)
    with pytest.raises(ViewActionForbidden):
        await door_fixture(owned("alice"), seen).door.pass_through(request_context(CAROL), [world.VIEW])


@pytest.mark.parametrize("lacking", [{"can_read_data"}, {"can_read_data", "can_read_columns"}])
async def test_a_refusal_below_a_view_hides_its_owner_and_the_audit_records_it(lacking: set[str]) -> None:
    """The reader of an outer view need not know the inner view or its owner."""
    where = door_fixture(owned("alice"), Judge(answer=lambda question: question.relation not in lacking))
    context = request_context(CAROL)
    await where.door.pass_through(context, [world.VIEW])
    with pytest.raises(ForbiddenException, match="not allowed for the owner of the view") as refused:
        await where.door.admit(context, VendCredentials(world.TABLE))
    assert "alice" not in refused.value.message
    assert where.audit.buffered[-1].actor.id == "oidc~alice"
    own = request_context(Actor.user("oidc~carol"))
    with pytest.raises(ForbiddenException, match="is not allowed for oidc~carol"):
        await where.door.admit(own, VendCredentials(world.TABLE))


async def test_a_view_chain_must_be_entered_before_the_first_admission() -> None:
    where, context = door_fixture(owned("alice")), request_context(CAROL)
    await where.door.admit(context, LoadTable(world.TABLE))
    with pytest.raises(TypeError, match="before the operation that reads through the view"):
        await where.door.pass_through(context, [world.VIEW])


async def test_revalidation_traverses_the_view_chain_again() -> None:
    judge = CountingJudge()
    where, context = door_fixture(owned("alice"), judge), request_context(CAROL)
    await where.door.pass_through(context, [world.VIEW])
    permit = await where.door.admit(context, VendCredentials(world.TABLE))
    await permit.revalidate()
    judge.no = frozenset({"oidc~carol"})
    with pytest.raises(NoSuchViewException):
        await permit.revalidate()
    judge.no = frozenset()
    where.resolver.documents[world.VIEW_ID] = owned("mallory")
    with pytest.raises(CatalogError) as changed:
        await permit.revalidate()
    assert type(changed.value) is type(unavailable(False)), "a changed owner must be reported as a temporary error"


async def test_a_credential_ends_when_the_reader_loses_the_view() -> None:
    end = NOW + timedelta(minutes=5)

    class ExpiringResolver(CountingJudge):
        async def check(
            self,
            actor: Actor,
            questions: Sequence[Question],
            *,
            now: datetime,
            pin: Pin | None = None,
            paced: bool = True,
        ) -> list[bool]:
            return [actor.id != "oidc~carol" or now < end] * len(questions)

    where, context = door_fixture(owned("alice"), ExpiringResolver()), request_context(CAROL)
    where.resolver.ends = (end,)
    door = where.door
    await door.pass_through(context, [world.VIEW])
    permit = await door.admit(context, VendCredentials(world.TABLE))
    assert await door.first_expiry(permit, NOW + timedelta(hours=1)) == end


def test_a_view_owner_keeps_only_the_project_and_the_engine_of_the_reader() -> None:
    bound = Actor.user("oidc~carol", project="p", engine="oidc~trino", name="Carol", application=True)
    owner = bound.as_owner("oidc~alice")
    assert (owner.within, owner.project_token, owner.engine) == ("p", True, "oidc~trino")
    assert (owner.name, owner.application, owner.instance_admin) == (None, False, False)


# ---- changes of the owner ----

THE_ENGINE = msgspec.structs.replace(Actor.user("oidc~trino"), owner_properties=(PROPERTY,))
NAMED = frozenset({PROPERTY})
OWNERLESS: Mapping[str, str] = {}
ALICES = {PROPERTY: "alice"}
CAROLS = {PROPERTY: "carol"}


@pytest.mark.parametrize(
    ("actor", "before", "after", "redefined", "allowed"),
    [
        (THE_ENGINE, OWNERLESS, ALICES, True, True),
        (THE_ENGINE, ALICES, ALICES, True, True),
        (CAROL, OWNERLESS, CAROLS, True, True),
        (CAROL, OWNERLESS, ALICES, True, False),
        (CAROL, ALICES, CAROLS, True, True),
        (CAROL, CAROLS, ALICES, False, False),
        (CAROL, ALICES, OWNERLESS, False, True),
        (CAROL, ALICES, ALICES, True, False),
        (CAROL, ALICES, ALICES, False, True),
        (Actor.user("oidc~carol"), OWNERLESS, CAROLS, True, False),
        (Actor.user("oidc~carol"), CAROLS, CAROLS, True, True),
        (Actor.user("oidc~carol"), CAROLS, OWNERLESS, False, False),
        (Actor.user("oidc~carol"), ALICES, ALICES, True, False),
        (Actor.user("oidc~carol"), ALICES, {**ALICES, "comment": "x"}, False, True),
        (Actor.user("oidc~carol"), OWNERLESS, {PROPERTY.title(): "carol"}, True, False),
        (Actor.user("oidc~carol"), OWNERLESS, {"comment": "x"}, True, True),
    ],
)
def test_the_owner_and_definition_of_an_owned_view_are_protected(
    actor: Actor, before: Mapping[str, str], after: Mapping[str, str], redefined: bool, allowed: bool
) -> None:
    def tried() -> None:
        require_owner_kept(actor, NAMED, before, after, redefined=redefined)

    if allowed:
        tried()
    else:
        with pytest.raises(ProtectedPropertyModification):
            tried()
