# SPDX-License-Identifier: Apache-2.0
"""Answers from confirmed grants equal plain checks of a real OpenFGA, over random grants, roles and expiries."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.cards import ACTIONS, GRANTABLE
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question
from gateway.access.tuples import ALL_USERS, MANAGED_ACCESS, Principal, PrincipalType, TupleKey
from gateway.fga.client import FgaClient
from gateway.fga.grant_checks import GrantCheckedRelationships
from gateway.fga.model import push_model
from gateway.fga.model_analysis import FollowedReaches
from gateway.fga.relationships import FgaRelationships, to_wire
from tests.support.servers.openfga_server import KEY, openfga_in_memory

pytestmark = [pytest.mark.integration, pytest.mark.generated]

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
PAST, FUTURE = NOW - timedelta(seconds=1), NOW + timedelta(hours=1)
T = ObjectType


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Run an OpenFGA with its tuples in memory."""
    with openfga_in_memory() as address:
        yield address


@pytest.fixture
async def client(endpoint: str) -> AsyncIterator[FgaClient]:
    pushed = await push_model(endpoint, KEY, f"grants-{uuid4()}")
    made = FgaClient(endpoint, KEY, pushed.store_id, pushed.model_id, timeout_s=30)
    yield made
    await made.aclose()


def key(type: ObjectType) -> ObjectKey:
    return ObjectKey(type, str(uuid4()))


@dataclass
class World:
    """A tree of objects, users and nested roles, with random grants. `grants` have the expiry of each tuple."""

    random: random.Random
    users: list[str] = field(default_factory=lambda: [f"oidc~{uuid4()}" for _ in range(4)])
    roles: list[str] = field(default_factory=lambda: [str(uuid4()) for _ in range(4)])
    edges: dict[ObjectKey, ObjectKey] = field(default_factory=dict)
    grants: dict[TupleKey, datetime | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        server, project, warehouse, top, low = map(key, (T.SERVER, T.PROJECT, T.WAREHOUSE, T.NAMESPACE, T.NAMESPACE))
        self.edges = {project: server, warehouse: project, top: warehouse, low: top}
        self.edges |= {key(type): space for space in (top, low) for type in (T.TABLE, T.VIEW, T.GENERIC_TABLE)}
        self.server = server
        principals = [Principal(PrincipalType.USER, user) for user in self.users]
        principals += [Principal(PrincipalType.ROLE, role) for role in self.roles]
        for role_number, role in enumerate(self.roles):
            at = ObjectKey(T.ROLE, role)
            for member in principals[: len(self.users) + role_number]:
                if self.random.random() < 0.3:
                    is_user = member.type is PrincipalType.USER
                    end = self.random.choice([None, None, PAST, FUTURE]) if is_user else None
                    self.grants[TupleKey(member, "assignee", at)] = end
        objects = [server, *self.edges]
        for _ in range(self.random.randrange(3, 16)):
            on = self.random.choice(objects)
            privilege = (
                self.random.choice([*GRANTABLE[on.type], "traverse"])
                if self.can_be_traversed(on)
                else (self.random.choice(GRANTABLE[on.type]))
            )
            given = TupleKey(self.random.choice(principals), str(privilege), on)
            self.grants[given] = self.random.choice([None, None, PAST, FUTURE])
        self.flags = [
            TupleKey(Principal(type, ALL_USERS), MANAGED_ACCESS, on)
            for on in (warehouse, top)
            if self.random.random() < 0.3
            for type in PrincipalType
        ]

    @staticmethod
    def can_be_traversed(on: ObjectKey) -> bool:
        return on.type in (T.PROJECT, T.WAREHOUSE, T.NAMESPACE)

    def above(self, on: ObjectKey) -> tuple[ObjectKey, ...]:
        found = []
        while on in self.edges and self.edges[on].type is not T.SERVER:
            on = self.edges[on]
            found.append(on)
        return tuple(found)

    def roles_of(self, user: str) -> tuple[str, ...]:
        held: set[str] = set()
        open_ones = [Principal(PrincipalType.USER, user)]
        while open_ones:
            member = open_ones.pop()
            for given, end in self.grants.items():
                new = given.object.id not in held and (end is None or end > NOW)
                if given.subject == member and given.object.type is T.ROLE and new:
                    held.add(given.object.id)
                    open_ones.append(Principal(PrincipalType.ROLE, given.object.id))
        return tuple(sorted(held))

    async def write(self, client: FgaClient, without: Set[TupleKey] = frozenset()) -> None:
        tuples = [to_wire(TupleKey(above, _EDGE[above.type], below)) for below, above in self.edges.items()]
        tuples += [to_wire(given, expires_at=end) for given, end in self.grants.items() if given not in without]
        await client.write([*tuples, *map(to_wire, self.flags)])


_EDGE = {T.SERVER: "server", T.PROJECT: "project", T.WAREHOUSE: "parent", T.NAMESPACE: "parent"}


@dataclass
class Rows:
    """Recorded grants, without those that expired and without derived tuples."""

    world: World
    further: frozenset[TupleKey] = frozenset()

    async def recorded(self, keys: Sequence[TupleKey]) -> Set[TupleKey]:
        live = {each for each, end in self.world.grants.items() if end is None or end > NOW}
        assert all(each.relation != "traverse" for each in keys)
        return set(keys) & (live | self.further)


class Counts:
    """An observer of the cache."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        self.counted.update(hits=hits, misses=misses)


def checked(client: FgaClient, world: World, rows: Rows, counts: Counts) -> GrantCheckedRelationships:
    followed = FollowedReaches(client)
    return GrantCheckedRelationships(
        FgaRelationships(client, followed),
        followed,
        rows,
        model_id=lambda: client.model_id,
        server_id=world.server.id,
        complete=True,
        entries=10_000,
        seconds=60,
        observer=counts,
    )


def questions(world: World, within: UUID, *, seen: bool) -> list[list[Question]]:
    """Return the questions about each object in a warehouse, at most 12 in one list."""
    found = []
    for on in world.random.sample(list(world.edges), 6):
        if not (above := world.above(on)):
            continue
        rights = sorted(ACTIONS[on.type])
        world.random.shuffle(rights)
        some = [Question(Can(right), on, within, inside=above, seen=seen) for right in rights]
        found += [some[start : start + 12] for start in range(0, len(some), 12)]
    return found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("worlds", [3, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize("seen", [True, False])
async def test_answers_from_confirmed_grants_equal_plain_checks(client: FgaClient, seen: bool, worlds: int) -> None:
    draw = random.Random(random.random())  # seeded with the id of the test
    counts, allowed, asked = Counts(), 0, 0
    for turn in range(4 * worlds):
        # A new action changes all draws of this test: worlds without grants are followed by others.
        if turn >= worlds and allowed / 3 > asked / 100:
            break
        world = World(draw)
        await world.write(client)
        plain, within = FgaRelationships(client), uuid4()
        asking = checked(client, world, Rows(world), counts)
        pin = Pin(uuid4(), uuid4(), None)
        for user in world.users[:2]:
            actor, of_user = Actor.user(user), replace(pin, roles=world.roles_of(user))
            for some in questions(world, within, seen=seen):
                expected = await plain.check(actor, some, now=NOW)
                assert await asking.check(actor, some, now=NOW, pin=of_user) == expected, (some, world.grants)
                allowed, asked = allowed + sum(expected), asked + len(expected)
    assert counts.counted["hits"] > allowed / 3 > asked / 100, "the random grants give too few allows"


@pytest.mark.timeout(300)
async def test_rows_without_a_tuple_allow_nothing(client: FgaClient) -> None:
    """OpenFGA judges: a grant that only PostgreSQL has, or that is to be removed, gives no right."""
    draw = random.Random(random.random())  # seeded with the id of the test
    for _ in range(3):
        world = World(draw)
        undelivered = {each for each in world.grants if draw.random() < 0.4}
        await world.write(client, undelivered)
        plain, within, pin = FgaRelationships(client), uuid4(), Pin(uuid4(), uuid4(), None)
        asking = checked(client, world, Rows(world), Counts())
        for user in world.users[:2]:
            actor, of_user = Actor.user(user), replace(pin, roles=world.roles_of(user))
            for some in questions(world, within, seen=True):
                expected = await plain.check(actor, some, now=NOW)
                assert await asking.check(actor, some, now=NOW, pin=of_user) == expected, (some, world.grants)


async def test_members_of_a_role_and_siblings_share_one_confirmed_grant(client: FgaClient) -> None:
    world = World(random.Random(1), users=[f"oidc~{uuid4()}" for _ in range(10)], roles=[str(uuid4())])
    role = Principal(PrincipalType.ROLE, world.roles[0])
    space = next(on for on, above in world.edges.items() if on.type is T.NAMESPACE and above.type is T.WAREHOUSE)
    tables = [key(T.TABLE) for _ in range(10)]
    world.edges |= dict.fromkeys(tables, space)
    world.grants = {
        TupleKey(Principal(PrincipalType.USER, user), "assignee", ObjectKey(T.ROLE, role.id)): None
        for user in world.users
    }
    world.grants[TupleKey(role, "select", space)] = None
    await world.write(client)
    asking, within, pin = (
        checked(client, world, Rows(world), Counts()),
        uuid4(),
        Pin(uuid4(), uuid4(), None, (role.id,)),
    )
    sent = 0
    batch_check = client.batch_check

    async def counted(checks, **options):  # type: ignore[no-untyped-def]  # passes everything on
        nonlocal sent
        sent += len(checks)
        return await batch_check(checks, **options)

    client.batch_check = counted  # type: ignore[method-assign]
    for user in world.users:
        for table in tables:
            some = [
                Question(right, table, within, inside=world.above(table)) for right in (Can.READ_DATA, Can.GET_METADATA)
            ]
            assert await asking.check(Actor.user(user), some, now=NOW, pin=pin) == [True, True]
    assert sent == 1 + len(world.users)
