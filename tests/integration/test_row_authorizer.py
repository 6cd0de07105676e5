# SPDX-License-Identifier: Apache-2.0
"""The authorizer over PostgreSQL's rows answers as OpenFGA does: random grants, compared for every question.

Its answers alone are also those of the golden table. Only the tuples differ that no row requires: those the authorizer
refuses.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor, ActorKind
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType, column_key
from gateway.access.nouns.relations import Can
from gateway.access.ports import Question
from gateway.access.tuples import ALL_USERS, MANAGED_ACCESS, READ_COLUMNS, Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.tuples.held_tuples import HeldTuples
from gateway.fga.client import FgaClient
from gateway.fga.relationships import FgaRelationships
from gateway.fga.row_authorizer import FollowedModel, RowAuthorizer
from gateway.fga.wire import Condition, FgaTuple
from tests.support.goldens.golden_table import COLUMNS, ROWS, Row
from tests.support.rows.naive import the_model
from tests.support.rows.parts import Parts, Rows, add_role, add_table, add_user, all_desired, store

pytestmark = [pytest.mark.generated, pytest.mark.integration, pytest.mark.timeout(300)]

SEEDS = 3
GRANTS = 14
RELATIONS = {each["type"]: each.get("relations") or {} for each in the_model()["type_definitions"]}
FIELDS = (1, 2, 3)
LEAST_CHECKS = 10_000
AT_EXPIRY = (timedelta(hours=1, microseconds=-1), timedelta(hours=1))
"""The last moment of the grants that expire first, and the first moment without them."""


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database_url, pool_size=2, acquire_timeout=10)
    yield database
    await database.close()


class Grants:
    """Random grants on a set of rows."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.rows = Rows()
        self.generic = uuid4()
        self.now = datetime.now(UTC)
        of = self.rows.objects
        self.objects = [
            *of.values(),
            ObjectKey(ObjectType.GENERIC_TABLE, str(self.generic)),
            *(column_key(self.rows.table, field) for field in FIELDS),
        ]
        roles = [Principal(PrincipalType.ROLE, str(id)) for id in (self.rows.role, self.rows.role_above)]
        self.principals = [self.rows.ann, self.rows.ben, *roles]

    async def insert(self, connection: AsyncConnection) -> None:
        await self.rows.insert(connection)
        await connection.execute(text("delete from scim_users"))
        await add_table(connection, self.generic, self.rows.warehouses[0], self.rows.outer, kind="generic_table")
        # Cyclic roles are possible, so both directions may occur.
        for _ in range(GRANTS):
            await self._grant(connection)
        for kind, ids in (("warehouses", self.rows.warehouses), ("namespaces", [self.rows.outer, self.rows.inner])):
            for id in ids:
                statement = f"update {kind} set managed_access = :flag where id = :id"
                await connection.execute(text(statement), {"flag": self.chance.random() < 0.3, "id": id})
        if self.chance.random() < 0.25:
            await self._deactivate(connection, self.rows.users[1])

    async def _grant(self, connection: AsyncConnection) -> None:
        object_, principal = self.chance.choice(self.objects), self.chance.choice(self.principals)
        if self.chance.random() < 0.25:
            object_ = self.rows.objects[self.chance.choice(("role", "role_above"))]
        if (principal.type, principal.id) == (PrincipalType.ROLE, object_.id):
            return  # OpenFGA rejects a role that contains itself
        expires = self.chance.choice((None, None, timedelta(hours=-1), timedelta(hours=1), timedelta(hours=2)))
        if (principal.type, object_.type) == (PrincipalType.ROLE, ObjectType.ROLE):
            expires = None  # the model admits no expiry between roles
        privilege = self.chance.choice(GRANTABLE[object_.type])
        await self.add(connection, privilege, principal, object_, expires, by=f"oidc~{self.chance.randrange(2)}")

    async def add(
        self,
        connection: AsyncConnection,
        privilege: Privilege,
        principal: Principal,
        object_: ObjectKey,
        expires: timedelta | None = None,
        *,
        by: str = "oidc~granter",
    ) -> None:
        """Insert a grant that expires this long after `now`."""
        await connection.execute(
            text(
                "insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by, "
                "expires_at) values (:id, :privilege, :ptype, :pid, :otype, :oid, :by, :expires) on conflict do nothing"
            ),
            {
                "id": uuid4(),
                "privilege": privilege.value,
                "ptype": principal.type.value,
                "pid": principal.id,
                "otype": object_.type.value,
                "oid": object_.id,
                "by": by,
                "expires": None if expires is None else self.now + expires,
            },
        )

    async def _deactivate(self, connection: AsyncConnection, user: str) -> None:
        await connection.execute(
            text(
                "insert into scim_users (id, user_id, provider_id, user_name, user_name_key, active, document) "
                "values (:id, :user, 'oidc', 'x', 'x', false, '{}')"
            ),
            {"id": uuid4(), "user": user},
        )

    def extra(self) -> list[TupleKey]:
        """Return keys that `all_desired` does not try by itself: flags, and what follows from columns."""
        everyone = Principal(PrincipalType.USER, ALL_USERS)
        flagged = [key for key in self.objects if key.type in (ObjectType.WAREHOUSE, ObjectType.NAMESPACE)]
        table = self.rows.objects["table"]
        columns = [key for key in self.objects if key.type is ObjectType.COLUMN]
        return [
            *(TupleKey(everyone, MANAGED_ACCESS, key) for key in flagged),
            *(TupleKey(table, "parent", column) for column in columns),
            *(TupleKey(principal, READ_COLUMNS, table) for principal in self.principals),
        ]

    def actors(self) -> list[Actor]:
        ann, ben, cid = self.rows.users
        role, above = self.rows.role, self.rows.role_above
        return [
            *(Actor.user(user) for user in (ann, ben, cid)),
            Actor(kind=ActorKind.USER, id=ann, assumed_role=role),
            Actor(kind=ActorKind.USER, id=cid, assumed_role=above),
            Actor(kind=ActorKind.USER, id=cid, group_roles=(str(role),)),
            Actor(kind=ActorKind.USER, id=ben, group_roles=(str(role), str(above))),
        ]

    def questions(self) -> list[Question]:
        """Return every question about every object, and about an absent table in a namespace."""
        absent = ObjectKey(ObjectType.TABLE, str(uuid4()))
        inner = self.rows.objects["inner"]
        found = [Question(can, key) for key in self.objects for can in Can if can.value in RELATIONS[key.type.value]]
        found += [Question(can, absent, above=(inner,)) for can in Can if can.value in RELATIONS["table"]]
        return [*found, *(Question(can, absent) for can in (Can.READ_DATA, Can.GET_METADATA))]


class ChosenGrants(Grants):
    """Grants that reach the cases which random ones rarely do: managed access, two expiries of one tuple, columns."""

    async def insert(self, connection: AsyncConnection) -> None:
        await self.rows.insert(connection)
        await connection.execute(text("delete from scim_users"))
        await add_table(connection, self.generic, self.rows.warehouses[0], self.rows.outer, kind="generic_table")
        of, (ann, ben, role, above) = self.rows.objects, self.principals
        # An owner may manage grants, except below managed access: that of the outer namespace reaches the table.
        await self.add(connection, Privilege.OWNERSHIP, ann, of["table"])
        await self.add(connection, Privilege.OWNERSHIP, ann, of["other"])
        await connection.execute(
            text("update namespaces set managed_access = true where id = :id"), {"id": self.rows.outer}
        )
        await self.add(connection, Privilege.SELECT, role, of["view"], timedelta(hours=1), by="oidc~1")
        await self.add(connection, Privilege.SELECT, role, of["view"], timedelta(hours=2), by="oidc~2")
        await self.add(connection, Privilege.SELECT, ben, column_key(self.rows.table, FIELDS[0]))
        await self.add(connection, Privilege.DESCRIBE, above, of["second"], timedelta(hours=1), by="oidc~1")
        await self.add(connection, Privilege.DESCRIBE, above, of["second"], by="oidc~2")
        await self.add(connection, Privilege.ASSIGNEE, role, of["role_above"])
        await self.add(connection, Privilege.ASSIGNEE, ben, of["role"], timedelta(hours=2))
        await self.add(connection, Privilege.SECURITY_ADMIN, above, of["project"])
        # `traverse` on the containers of both lasts as long as the later one.
        cid = Principal(PrincipalType.USER, self.rows.users[2])
        await self.add(connection, Privilege.SELECT, cid, of["view"], timedelta(hours=2))
        generic_table = ObjectKey(ObjectType.GENERIC_TABLE, str(self.generic))
        await self.add(connection, Privilege.SELECT, cid, generic_table, timedelta(hours=1))


async def written(client: FgaClient, database: Database, grants: Grants) -> None:
    """Write all tuples that the rows require to OpenFGA."""
    async with database.transaction() as connection:
        await grants.insert(connection)
        desired = await all_desired(connection, grants.rows, grants.extra())
    tuples = [
        FgaTuple(user, relation, on, None if end is None else Condition("unexpired", {"expires_at": end}))
        for user, relation, on, end in sorted(desired, key=str)
    ]
    for start in range(0, len(tuples), 100):
        await client.write(tuples[start : start + 100])


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
