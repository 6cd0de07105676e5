# SPDX-License-Identifier: Apache-2.0
"""Random grants, nested roles and models, with the answers that plain recursion over all tuples gives."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.refs import ObjectKey, ObjectType, column_key
from gateway.access.tuples import ALL_USERS, MANAGED_ACCESS, READ_COLUMNS, Principal, PrincipalType, TupleKey
from gateway.fga.names import user_object
from gateway.fga.relationships import object_name
from tests.support.model_edits import Edited, above, computed
from tests.support.rows.naive import Naive
from tests.support.rows.parts import Rows, add_role, all_desired

_ROLES = 2
_USERS = ("oidc~ann", "oidc~ben", "oidc~cid", "oidc~dan", "oidc~eve")


def _both(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    return {"intersection": {"child": [left, right]}}


def _but_not(base: Mapping[str, Any], subtract: Mapping[str, Any]) -> dict[str, Any]:
    return {"difference": {"base": base, "subtract": subtract}}


def model_variants() -> dict[str, dict[str, Any]]:
    """Return models by name: the shipped one, and ones with intersections and exclusions."""
    return {
        "shipped": Edited().model,
        "two reasons": Edited().rule("table", "can_read_data", _both(computed("selects"), computed("describe"))).model,
        "excluded": Edited().rule("table", "can_read_data", _but_not(computed("selects"), computed("describe"))).model,
        "excluded above": Edited()
        .rule("table", "can_read_data", _but_not(computed("selects"), above("approves")))
        .rule("namespace", "can_get_metadata", _both(computed("describes"), computed("traverse")))
        .model,
        "excluded from an exclusion": Edited()
        .rule(
            "table",
            "can_read_data",
            _but_not(computed("selects"), _but_not(computed("describe"), computed("modifies"))),
        )
        .model,
        "managed": Edited()
        .rule("table", "can_read_data", _but_not(computed("selects"), above("managed_access_inheritance")))
        .model,
    }


@dataclass
class AccessWorld:
    """Random rows, from a seed."""

    seed: int
    rows: Rows = field(default_factory=lambda: Rows(users=_USERS))
    roles: list[UUID] = field(default_factory=lambda: [uuid4() for _ in range(_ROLES)])
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        own = [ObjectKey(ObjectType.ROLE, str(id)) for id in self.roles]
        self.role_keys = [self.rows.objects["role"], self.rows.objects["role_above"], *own]
        users = [Principal(PrincipalType.USER, id) for id in _USERS]
        self.principals = [*users, *(Principal(PrincipalType.ROLE, key.id) for key in self.role_keys)]
        self.objects = [*self.rows.objects.values(), column_key(self.rows.table, 1)]

    async def insert(self, connection: AsyncConnection, grants: int = 30) -> None:
        """Replace all rows of the database."""
        await self.rows.insert(connection)
        await connection.execute(text("delete from scim_users"))
        for id in self.roles:
            await add_role(connection, id, self.rows.project)
        for _ in range(grants):
            await self._grant(connection)
        for kind, ids in (("warehouses", self.rows.warehouses[:1]), ("namespaces", [self.rows.outer, self.rows.inner])):
            for id in ids:
                statement = f"update {kind} set managed_access = :flag where id = :id"
                await connection.execute(text(statement), {"flag": self.chance.random() < 0.4, "id": id})
        if self.chance.random() < 0.25:
            statement = """
                insert into scim_users (id, user_id, provider_id, user_name, user_name_key, active, document)
                values (gen_random_uuid(), :user, 'oidc', :user, :user, false, '{}')
            """
            await connection.execute(text(statement), {"user": _USERS[-1]})

    async def _grant(self, connection: AsyncConnection) -> None:
        principal = self.chance.choice(self.principals)
        near = [self.rows.objects[name] for name in ("table", "inner", "outer", "warehouse")]
        object = self.chance.choice([*near, *self.objects])
        if self.chance.random() < 0.3:
            object = self.chance.choice(self.role_keys)
        if (principal.type, principal.id) == (PrincipalType.ROLE, object.id):
            return  # a role cannot contain itself
        expires = self.chance.choice((None, None, timedelta(hours=-1), timedelta(hours=1)))
        if (principal.type, object.type) == (PrincipalType.ROLE, ObjectType.ROLE):
            expires = None  # the model has no expiry between roles
        await self.add(connection, self.chance.choice(GRANTABLE[object.type]), principal, object, expires)

    async def add(
        self,
        connection: AsyncConnection,
        privilege: str,
        principal: Principal,
        object: ObjectKey,
        expires: timedelta | None = None,
    ) -> None:
        """Insert a grant that expires this long after `now`."""
        statement = """
            insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by,
                expires_at) values (:id, :privilege, :ptype, :pid, :otype, :oid, :by, :expires) on conflict do nothing
        """
        values = {
            "id": uuid4(),
            "privilege": str(privilege),
            "ptype": principal.type.value,
            "pid": principal.id,
            "otype": object.type.value,
            "oid": object.id,
            "by": f"oidc~{self.chance.randrange(2)}",
            "expires": None if expires is None else self.now + expires,
        }
        await connection.execute(text(statement), values)

    async def naive(self, connection: AsyncConnection, model: Mapping[str, Any]) -> Naive:
        """Return plain recursion over all tuples that the rows require. The user `user:in=<role>` is only in a role."""
        table = self.rows.objects["table"]
        further = [TupleKey(each, READ_COLUMNS, table) for each in self.principals]
        further += [
            TupleKey(Principal(PrincipalType.USER, ALL_USERS), MANAGED_ACCESS, self.rows.objects[name])
            for name in ("warehouse", "outer", "inner")
        ]
        edges = [TupleKey(self.rows.objects["project"], "project", key) for key in self.role_keys]
        tuples: dict[tuple[str, str, str], datetime | None] = {
            each[:3]: None if each[3] is None else datetime.fromisoformat(each[3])
            for each in await all_desired(connection, self.rows, [*further, *edges])
        }
        tuples |= {(f"user:in={key.id}", "assignee", object_name(key)): None for key in self.role_keys}
        return Naive(model, tuples, self.now)


def name_of(principal: Principal) -> str:
    """Return the user that plain recursion evaluates for a principal."""
    return f"user:in={principal.id}" if principal.type is PrincipalType.ROLE else user_object(principal.id)
