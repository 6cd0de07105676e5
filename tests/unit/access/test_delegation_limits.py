# SPDX-License-Identifier: Apache-2.0
"""Limits of `delegate`: an engine acts for a caller only by a live grant that includes the caller."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from msgspec import UNSET

from gateway.access.actor import Actor
from gateway.access.decisions.delegation import delegation_refusals, limits_end
from gateway.access.delegate_grants import (
    DEFAULT_LIMITS,
    ActsFor,
    DelegateGrant,
    delegate_grants,
    in_networks,
    limits_of,
    limits_text,
)
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution
from gateway.access.operations.tables import LoadTable
from gateway.access.ports import Pin, Question
from tests.support.door import world

WAREHOUSE, PROJECT = world.warehouse_row.key, ObjectKey(ObjectType.PROJECT, world.PROJECT_ID)
ELSEWHERE = ObjectKey(ObjectType.WAREHOUSE, str(UUID(int=9)))
USERS = ("oidc~alice", "oidc~bob", "oidc~carol")
ROLES = (UUID(int=21), UUID(int=22))
NETWORKS = ("10.0.0.0/8", "192.0.2.0/24", "2001:db8::/32")
ADDRESSES = ("10.1.2.3", "::ffff:192.0.2.7", "2001:db8::1", "203.0.113.1", "", None)


@dataclass
class OpenFga:
    """OpenFGA with the engine's delegate relation, and the users that administer the warehouse."""

    delegate: bool = True
    administrators: frozenset[str] = frozenset()

    async def check(self, actor: Actor, questions: Sequence[Question], now: datetime, pin: Pin | None) -> list[bool]:
        """Return the answers about an engine or a user."""
        return [
            self.delegate and actor.id == "oidc~engine"
            if each.relation is Can.DELEGATE
            else actor.assumed_role is None and actor.id in self.administrators
            for each in questions
        ]


def decide(
    fga: OpenFga, grants: Sequence[DelegateGrant], user: str, roles: Sequence[str], address: str | None
) -> str | None:
    """Return why the engine may not load the table for the user; None if it may."""
    context = RequestContext(Actor.user(user, engine="oidc~engine"), "r", client_address=address)
    resolution = Resolution(rows=dict(world.ROWS), now=world.NOW, caller_roles=tuple(roles), delegations=tuple(grants))
    [refusal] = asyncio.run(delegation_refusals(fga.check, context, [LoadTable(world.TABLE)], resolution))
    return None if refusal is None else f"{refusal.failure}: {refusal.limit}"


def some(chance: random.Random, values: Sequence[Any]) -> Any:
    """Return UNSET, or a part of the values that is not empty."""
    return UNSET if chance.random() < 0.5 else tuple(chance.sample(list(values), chance.randint(1, len(values))))


def a_grant(chance: random.Random) -> DelegateGrant:
    """Return a grant with random limits, some of them unreadable."""
    limits = ActsFor(
        users=some(chance, USERS),
        roles=some(chance, ROLES),
        administrators=chance.random() < 0.4,
        networks=some(chance, NETWORKS),
    )
    return DelegateGrant(
        on=chance.choice((WAREHOUSE, PROJECT, ELSEWHERE)),
        limits=None if chance.random() < 0.1 else limits,
        expires_at=None,
        direct=chance.random() < 0.5,
    )


def includes(grant: DelegateGrant, user: str, roles: Sequence[str], address: str | None, administrator: bool) -> bool:
    """Return True if the grant includes the user and the address, written down a second time for the test."""
    limits = grant.limits
    if limits is None or grant.on == ELSEWHERE or (administrator and not limits.administrators):
        return False
    everyone = limits.users is UNSET and limits.roles is UNSET
    named = limits.users is not UNSET and user in limits.users
    member = limits.roles is not UNSET and bool({str(role) for role in limits.roles} & set(roles))
    known = {"10.1.2.3": NETWORKS[0], "::ffff:192.0.2.7": NETWORKS[1], "2001:db8::1": NETWORKS[2]}.get(address or "")
    there = limits.networks is UNSET or known in limits.networks
    return (everyone or named or member) and there


@pytest.mark.parametrize("seed", range(6))
def test_engine_acts_for_a_user_if_and_only_if_one_live_grant_includes_it(seed: int) -> None:
    chance = random.Random(seed)
    outcomes = set()
    for _ in range(300):
        grants = [a_grant(chance) for _ in range(chance.randint(0, 4))]
        user, address = chance.choice(USERS), chance.choice(ADDRESSES)
        roles = [str(role) for role in ROLES if chance.random() < 0.4]
        fga = OpenFga(chance.random() < 0.9, frozenset(each for each in USERS if chance.random() < 0.4))
        allowed = decide(fga, grants, user, roles, address) is None
        administrator = user in fga.administrators
        expected = fga.delegate and any(includes(each, user, roles, address, administrator) for each in grants)
        assert allowed == expected, (grants, user, roles, address, fga)
        outcomes.add(allowed)
    assert outcomes == {True, False}


def test_refusal_names_the_limit_for_the_audit_record() -> None:
    def on(limits: ActsFor) -> list[DelegateGrant]:
        return [DelegateGrant(on=WAREHOUSE, limits=limits, expires_at=None, direct=True)]

    alice, admins = USERS[0], OpenFga(administrators=frozenset(USERS))
    assert decide(admins, on(DEFAULT_LIMITS), alice, (), None) == (
        "OutsideDelegateLimits: delegate: the user is an administrator, and no grant includes administrators"
    )
    assert "names the user" in (decide(OpenFga(), on(ActsFor(users=(USERS[1],))), alice, (), None) or "")
    assert "network" in (decide(OpenFga(), on(ActsFor(networks=(NETWORKS[0],))), alice, (), "203.0.113.1") or "")
    assert "no grant is recorded" in (decide(OpenFga(), [], alice, (), None) or "")
    assert decide(OpenFga(delegate=False), on(DEFAULT_LIMITS), alice, (), None) == "EngineLacksDelegate: None"


def test_credentials_end_with_the_grant_that_includes_the_user() -> None:
    """Another grant of the engine lasts longer, and does not include the user."""
    soon, later = world.NOW + timedelta(minutes=20), world.NOW + timedelta(minutes=40)
    grants = (
        DelegateGrant(on=WAREHOUSE, limits=ActsFor(users=(USERS[0],)), expires_at=soon, direct=True),
        DelegateGrant(on=PROJECT, limits=ActsFor(users=(USERS[1],)), expires_at=None, direct=True),
        DelegateGrant(on=PROJECT, limits=ActsFor(users=(USERS[2],)), expires_at=None, direct=False),
    )
    resolution = Resolution(rows=dict(world.ROWS), now=world.NOW, delegations=grants, engine_next_expiry=later)
    ends = [limits_end(Actor.user(user, engine="oidc~engine"), resolution) for user in USERS]
    assert ends == [soon, None, later]


def test_equal_limits_have_equal_texts_and_unknown_ones_are_not_read() -> None:
    one, other = ActsFor(users=("oidc~b", "oidc~a")), ActsFor(users=("oidc~a", "oidc~b", "oidc~a"))
    assert limits_text(one) == limits_text(other)
    assert limits_of(limits_text(one)) == ActsFor(users=("oidc~a", "oidc~b"))
    assert limits_text(DEFAULT_LIMITS) is None
    assert limits_of('{"administrators":true,"later":1}') is None
    row = ["warehouse", "w", "role", "2026-01-01T00:00:00+00:00", None]
    [read] = delegate_grants([row])
    assert (read.direct, read.limits, read.expires_at) == (False, DEFAULT_LIMITS, datetime(2026, 1, 1, tzinfo=UTC))
    assert delegate_grants(None) == ()
    assert not in_networks("not an address", NETWORKS)


def test_limits_for_a_user_name_no_other_user_and_no_role_of_others() -> None:
    def limits(**fields: Any) -> ActsFor | None:
        grant = DelegateGrant(on=WAREHOUSE, limits=ActsFor(**fields), expires_at=None, direct=True)
        return grant.limits_for(USERS[0], (str(ROLES[0]),))

    networks = NETWORKS[:1]
    assert limits(users=USERS, roles=ROLES, networks=networks) == ActsFor(
        users=USERS[:1], roles=ROLES[:1], networks=networks
    )
    assert limits(users=USERS[1:], roles=ROLES) == ActsFor(roles=ROLES[:1])
    assert limits(users=USERS[1:], roles=ROLES[1:]) is None
    assert limits(administrators=True) == ActsFor(administrators=True)
    unreadable = DelegateGrant(on=WAREHOUSE, limits=None, expires_at=None, direct=True)
    assert unreadable.limits_for(USERS[0], ()) is None
