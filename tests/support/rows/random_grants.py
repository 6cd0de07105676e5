# SPDX-License-Identifier: Apache-2.0
"""Random grants on a set of rows, and their tuples in OpenFGA."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from uuid import uuid4

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
from gateway.fga.client import FgaClient
from gateway.fga.wire import Condition, FgaTuple
from tests.support.rows.naive import the_model
from tests.support.rows.parts import Rows, add_table, all_desired

GRANTS = 14
RELATIONS = {each["type"]: each.get("relations") or {} for each in the_model()["type_definitions"]}
FIELDS = (1, 2, 3)


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
