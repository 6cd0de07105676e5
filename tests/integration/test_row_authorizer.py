# SPDX-License-Identifier: Apache-2.0
"""The authorizer over PostgreSQL's rows answers as OpenFGA does: random grants, compared for every question.

Its answers alone are also those of the golden table. Only the tuples differ that no row requires: those the authorizer
refuses.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Question
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Database
from gateway.db.tuples.held_tuples import HeldTuples
from gateway.fga.relationships import FgaRelationships
from gateway.fga.row_authorizer import FollowedModel, RowAuthorizer
from gateway.fga.wire import FgaTuple
from tests.support.goldens.golden_table import COLUMNS, ROWS, Row
from tests.support.rows.parts import Parts, add_role, add_table, add_user, all_desired, store
from tests.support.rows.random_grants import ChosenGrants, Grants, written

pytestmark = [pytest.mark.generated, pytest.mark.integration, pytest.mark.timeout(300)]

SEEDS = 3
LEAST_CHECKS = 10_000
AT_EXPIRY = (timedelta(hours=1, microseconds=-1), timedelta(hours=1))
"""The last moment of the grants that expire first, and the first moment without them."""


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database_url, pool_size=2, acquire_timeout=10)
    yield database
    await database.close()


async def compare(parts: Parts, database: Database, grants: Grants, name: str) -> tuple[int, int]:
    """Compare all answers right before and at an expiry; return the numbers of allowed and of all questions."""
    allowed = asked = 0
    async with store(parts) as client:
        await written(client, database, grants)
        openfga, rows = FgaRelationships(client), RowAuthorizer(FollowedModel(client), HeldTuples(database))
        questions = grants.questions()
        for moment in (grants.now + each for each in AT_EXPIRY):
            for actor in grants.actors():
                expected = await openfga.check(actor, questions, now=moment, paced=False)
                found = await rows.check(actor, questions, now=moment)
                differing = [
                    (question.relation, question.object, answer)
                    for question, answer, other in zip(questions, expected, found, strict=True)
                    if answer != other
                ]
                assert not differing, f"{name}, {actor}: OpenFGA answers {differing[:5]}"
                allowed, asked = allowed + sum(expected), asked + len(expected)
    return allowed, asked


async def test_answers_equal_those_of_openfga_for_chosen_grants(parts: Parts, database: Database) -> None:
    allowed, asked = await compare(parts, database, ChosenGrants(0), "chosen")
    assert asked > allowed > 0


async def test_answers_equal_those_of_openfga_for_random_grants(parts: Parts, database: Database) -> None:
    allowed = asked = 0
    for seed in range(SEEDS):
        more, all_ = await compare(parts, database, Grants(seed), f"seed {seed}")
        allowed, asked = allowed + more, asked + all_
    assert allowed > asked / 50, "the random cases contain too few allows"
    assert asked >= LEAST_CHECKS, f"docs/extensions.md promises more checks than {asked}"


class GoldenGrants(Grants):
    """The grants of the golden table: each row is held by a user, and by a role that has a role within it."""

    async def insert(self, connection: AsyncConnection) -> None:
        await self.rows.insert(connection)
        await connection.execute(text("delete from scim_users"))
        self.beside = uuid4()
        await add_table(connection, self.beside, self.rows.warehouses[0], self.rows.inner)
        named = self.rows.objects
        self.letters = {
            "S": named["server"],
            "P": named["project"],
            "W": named["warehouse"],
            "N": named["inner"],
            "T": named["table"],
            "T2": ObjectKey(ObjectType.TABLE, str(self.beside)),
        }
        self.holders = {row: await self._held(connection, row) for row in ROWS}

    async def _held(self, connection: AsyncConnection, row: Row) -> list[Actor]:
        """Insert the grants of a row. Return its holder, a member of the role within, and the owner of the role."""
        users = [f"oidc~{row.user}{suffix}" for suffix in ("", ".nested", ".owner")]
        holder, nested, owner = [Principal(PrincipalType.USER, user) for user in users]
        ids = [uuid4(), uuid4()]
        for user in users:
            await add_user(connection, user)
        for id in ids:
            await add_role(connection, id, self.rows.project)
        role, inner = [Principal(PrincipalType.ROLE, str(id)) for id in ids]
        of_role, of_inner = [ObjectKey(ObjectType.ROLE, str(id)) for id in ids]
        await self.add(connection, Privilege.ASSIGNEE, inner, of_role)
        await self.add(connection, Privilege.ASSIGNEE, nested, of_inner)
        await self.add(connection, Privilege.OWNERSHIP, owner, of_role)
        for privilege in row.privileges:
            for principal in (holder, role):
                await self.add(connection, Privilege(privilege), principal, self.letters[row.on])
        return [Actor.user(user) for user in users]


async def test_answers_without_openfga_are_those_of_the_golden_table(parts: Parts, database: Database) -> None:
    grants = GoldenGrants(0)
    async with database.transaction() as connection:
        await grants.insert(connection)
    async with store(parts) as client:
        rows = RowAuthorizer(FollowedModel(client), HeldTuples(database))
        for row in ROWS:
            cells = {each: row.holds(column) for column in COLUMNS for each in row.questions(column)}
            questions = [Question(Can(action), grants.letters[letter]) for letter, action in cells]
            for actor in grants.holders[row]:
                found = await rows.check(actor, questions, now=grants.now)
                assert dict(zip(cells, found, strict=True)) == cells, f"{row.title}, {actor.id}"


async def test_a_tuple_without_a_row_gives_no_right(parts: Parts, database: Database) -> None:
    grants = Grants(0)
    async with store(parts) as client:
        async with database.transaction() as connection:
            await grants.rows.insert(connection)
        table, cid = grants.rows.objects["table"], Actor.user(grants.rows.users[2])
        edges = await _all_edges(database, grants)
        await client.write([*edges, FgaTuple(f"user:{cid.id}", "select", f"table:{table.id}")])
        question = [Question(Can.READ_DATA, table)]
        openfga, rows = FgaRelationships(client), RowAuthorizer(FollowedModel(client), HeldTuples(database))
        assert await openfga.check(cid, question, now=grants.now) == [True]
        assert await rows.check(cid, question, now=grants.now) == [False]


async def _all_edges(database: Database, grants: Grants) -> list[FgaTuple]:
    async with database.read() as connection:
        return [FgaTuple(user, relation, on) for user, relation, on, _ in await all_desired(connection, grants.rows)]
