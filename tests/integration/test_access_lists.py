# SPDX-License-Identifier: Apache-2.0
"""Lists of access equal single checks: random grants, nested roles, expiries, flags and models, in PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.cards import ACTIONS
from gateway.access.nouns.refs import TABULARS, ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.answers.held_objects import objects_within
from gateway.db.answers.path_grants import holders, roles_below
from gateway.db.engine.database import Database
from gateway.features.answers.listed_objects import AskedPrincipal, ObjectListing, ObjectRow
from gateway.features.answers.listed_principals import AskedObject, Asker, Listing, holding
from gateway.features.answers.what_can import listed as listed_objects
from gateway.features.answers.who_can import listed
from gateway.fga.answer_checks import ActiveModel, AnswerCheck
from gateway.fga.evaluation import ModelRules
from gateway.fga.model_analysis import ParsedModel
from gateway.fga.relationships import object_name
from tests.support.rows.access_worlds import AccessWorld, model_variants, name_of
from tests.support.rows.parts import Parts

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SEEDS = 4
CONTAINERS = (ObjectType.PROJECT, ObjectType.WAREHOUSE, ObjectType.NAMESPACE, ObjectType.ROLE)
VARIANTS = model_variants()


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database_url, pool_size=2, acquire_timeout=10)
    yield database
    await database.close()


class Questions:
    """The questions of one caller about a world, which may read the assignments of some objects only."""

    def __init__(
        self, connection: AsyncConnection, world: AccessWorld, model: dict[str, Any], readable: frozenset[ObjectKey]
    ) -> None:
        self._connection = connection
        self._world = world
        self._model = ActiveModel("model", ModelRules(model), ParsedModel(model))
        self._readable = readable
        self.checks: dict[AnswerCheck, bool] = {}

    async def rows(
        self, key: ObjectKey, relation: str, *, expand: str | None = None, page_size: int = 3
    ) -> dict[Principal, object]:
        """Return the rows of all pages, each with its reason."""
        connection, token = self._connection, None
        found: dict[Principal, object] = {}
        while True:
            asked = await AskedObject.read(connection, key, relation, self._model, self._world.now)
            below = await roles_below(connection, asked.candidates(), now=self._world.now)
            roles = [ObjectKey(ObjectType.ROLE, each) for each in below]
            opaque = [each.id for each in roles if each not in self._readable]
            asker = Asker(self._readable, frozenset(each for each in roles if each in self._readable))
            listing = Listing(asked, asker, expanded=expand is not None)
            role = None if expand is None else UUID(expand)
            candidates = asked.candidates(below, opaque)
            page, token = await listed(
                connection, listing, candidates, expand=role, page_token=token, page_size=page_size
            )
            assert len(page) <= page_size
            self.checks |= listing.checks()
            for each in page:
                assert each not in found, "a principal is on two pages"
                reason, _ = listing.rows[each]
                found[each] = (reason.object, reason.end, reason.end_unknown, reason.holdings)
            if token is None:
                return found

    async def users(self, key: ObjectKey, relation: str) -> set[Principal]:
        """Return the users of the rows and of all roles that the caller can expand."""
        left, seen, users = [*await self.rows(key, relation)], set[Principal](), set[Principal]()
        while left:
            each = left.pop()
            if each.type is PrincipalType.USER:
                users.add(each)
            elif each not in seen and ObjectKey(ObjectType.ROLE, each.id) in self._readable:
                seen.add(each)
                left += await self.rows(key, relation, expand=each.id)
        return users


def _questions(world: AccessWorld, variant: str) -> list[tuple[ObjectKey, str]]:
    """Return some questions: always the ones that the variants of the model change."""
    table, inner = world.rows.objects["table"], world.rows.objects["inner"]
    some = [(table, "can_read_data"), (inner, "can_get_metadata"), (table, "can_read_columns")]
    if variant == "shipped":
        for name in ("table", "inner", "warehouse", "project", "server", "role"):
            key = world.rows.objects[name]
            some += [(key, each.value) for each in world.chance.sample(sorted(ACTIONS[key.type]), 3)]
    return some


@pytest.mark.parametrize("variant", VARIANTS)
async def test_listed_users_and_roles_are_those_of_single_checks(database: Database, variant: str) -> None:
    yes = 0
    for seed in range(SEEDS):
        world = AccessWorld(seed)
        async with database.transaction() as connection:
            await world.insert(connection)
            naive = await world.naive(connection, VARIANTS[variant])
            everything = frozenset([*world.objects, *world.role_keys])
            some = frozenset(each for each in everything if world.chance.random() < 0.5)
            for key, relation in _questions(world, variant):
                holding = {each for each in world.principals if naive.holds(name_of(each), relation, object_name(key))}
                for readable in (everything, some):
                    asked = Questions(connection, world, VARIANTS[variant], readable)
                    rows = await asked.rows(key, relation)
                    assert set(rows) <= holding, (seed, key, relation)
                    users = await asked.users(key, relation)
                    expected = {each for each in holding if each.type is PrincipalType.USER}
                    # A role whose members the caller may not read has rows for its members instead.
                    assert users == expected, (seed, key, relation, readable == everything)
                    for check, holds in asked.checks.items():
                        found = naive.holds(name_of(check.principal), check.relation, object_name(check.object))
                        assert found == holds, (seed, check)
                    yes += len(users)
    assert yes > SEEDS


async def test_user_with_the_right_by_two_roles_together_is_listed(database: Database) -> None:
    world = AccessWorld(0)
    table, (left, right) = world.rows.objects["table"], world.role_keys[-2:]
    outer, inner = (Principal(PrincipalType.ROLE, key.id) for key in world.role_keys[:2])
    ann, ben = world.principals[:2]
    async with database.transaction() as connection:
        await world.insert(connection, grants=0)
        await world.add(connection, "select", Principal(PrincipalType.ROLE, left.id), table)
        await world.add(connection, "describe", Principal(PrincipalType.ROLE, right.id), table)
        for member, role in ((ann, left), (ann, right), (ben, right), (inner, left), (outer, right)):
            await world.add(connection, "assignee", member, role)
        for role in world.role_keys[:2]:
            await world.add(connection, "assignee", world.principals[2], role)
        everything = frozenset([*world.objects, *world.role_keys])
        asked = Questions(connection, world, VARIANTS["two reasons"], everything)
        assert set(await asked.rows(table, "can_read_data")) == {ann, world.principals[2]}


async def what_can(
    connection: AsyncConnection, world: AccessWorld, model: dict[str, Any], principal: Principal, root: ObjectKey
) -> dict[ObjectKey, ObjectRow]:
    """Return the rows of all pages about a principal."""
    active = ActiveModel("model", ModelRules(model), ParsedModel(model))
    asked = AskedPrincipal(principal=principal, model=active, now=world.now)
    found: dict[ObjectKey, ObjectRow] = {}
    token: str | None = None
    depth = 1 if root == world.rows.objects["inner"] else 0
    while True:
        listing = ObjectListing(asked, root, lambda _: True)
        page, token = await listed_objects(connection, listing, depth=depth, page_token=token, page_size=3)
        for each in page:
            assert each.key not in found, "an object is on two pages"
            found[each.key] = listing.rows[each.key]
        if token is None:
            return found


def _stated(rows: dict[ObjectKey, ObjectRow], path: list[ObjectKey]) -> frozenset[Can]:
    """Return the actions that rows state for an object: its own row, or the contents of the next row above."""
    if path[0] in rows:
        return rows[path[0]].held.actions
    above = next((rows[each] for each in path if each in rows), None)
    return frozenset() if above is None else above.held.contents.get(path[0].type, frozenset())


@pytest.mark.parametrize("variant", VARIANTS)
async def test_listed_actions_are_those_of_single_checks(database: Database, variant: str) -> None:
    yes = 0
    for seed in range(SEEDS):
        world = AccessWorld(seed)
        of = world.rows.objects
        chain = ["table", "inner", "outer", "warehouse", "project", "server"]
        paths = [[of[name] for name in chain[first:]] for first in range(len(chain))]
        paths += [[of["view"], *paths[1]], [of["other"], of["second"], *paths[4]], [of["second"], *paths[4]]]
        paths += [[key, *paths[4]] for key in world.role_keys]
        async with database.transaction() as connection:
            await world.insert(connection)
            naive = await world.naive(connection, VARIANTS[variant])
            for principal in world.chance.sample(world.principals, 3):
                name = world.chance.choice(chain)
                rows = await what_can(connection, world, VARIANTS[variant], principal, of[name])
                for path in paths:
                    if of[name] not in path:
                        assert path[0] not in rows
                        continue
                    within = path[: path.index(of[name]) + 1]
                    expected = {
                        action
                        for action in ACTIONS[path[0].type]
                        if naive.holds(name_of(principal), action.value, object_name(path[0]))
                    }
                    assert _stated(rows, within) == expected, (seed, principal, name, path[0])
                    yes += len(expected)
    assert yes > SEEDS


async def test_searched_subjects_and_objects_contain_those_of_single_checks(database: Database) -> None:
    yes = 0
    for seed in range(SEEDS):
        world = AccessWorld(seed)
        model = VARIANTS["shipped"]
        async with database.transaction() as connection:
            await world.insert(connection)
            naive = await world.naive(connection, model)
            for key, relation in _questions(world, "shipped"):
                active = ActiveModel("model", ModelRules(model), ParsedModel(model))
                asked = await AskedObject.read(connection, key, relation, active, world.now)
                roles = await roles_below(connection, asked.candidates(), now=world.now)
                for type in PrincipalType:
                    expected = {
                        each
                        for each in world.principals
                        if each.type is type and naive.holds(name_of(each), relation, object_name(key))
                    }
                    found: list[Principal] = []
                    while page := await holders(
                        connection,
                        asked.every_candidate(roles),
                        now=world.now,
                        after=found[-1] if found else None,
                        limit=2,
                        of_type=type,
                    ):
                        found += page
                    assert len(found) == len(set(found)) and all(each.type is type for each in found)
                    holds = await holding(connection, found, asked)
                    assert {each for each, yes in zip(found, holds, strict=True) if yes} == expected, (seed, relation)
                    yes += len(expected)
            for principal in world.principals:
                for key in (key for key in world.objects if key.type in (*TABULARS, *CONTAINERS)):
                    actions = (each.value for each in ACTIONS[key.type])
                    if any(naive.holds(name_of(principal), each, object_name(key)) for each in actions):
                        some = await objects_within(
                            connection, [principal], key.type, now=world.now, within=None, after="", limit=100
                        )
                        assert key.id in [each.id for each in some], (seed, principal, key)
                        yes += 1
    assert yes > SEEDS
