# SPDX-License-Identifier: Apache-2.0
"""The views of a past moment show the rows that existed then, after random changes of everything that decides."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.answers.past import go_back, go_forward
from gateway.db.answers.path_facts import PathFacts, read_path_facts
from gateway.db.engine.database import Database
from gateway.db.grants.grant_ends import Ended, end, sweep_expired
from tests.support.rows.parts import Parts, Rows

pytestmark = pytest.mark.integration

SEEDS = 6
STEPS = 30
#: A snapshot of the present is not taken while a grant is about to expire.
_NEAR = timedelta(milliseconds=150)

_CONTENT = {
    "warehouses": "id, project_id, managed_access",
    "namespaces": "id, warehouse_id, parent_id, ancestors, managed_access",
    "tables": "id, warehouse_id, namespace_id, kind",
    "scim_users": "user_id, active",
    "grants": "id, privilege, principal_type, principal_id, object_type, object_id, granted_by, granted_at, expires_at",
}
_LIVE = {"grants": " where expires_at is null or expires_at > clock_timestamp()"}

_OVERLAPPING = text(
    """
    select 1 from former_placements a join former_placements b on a.object_id = b.object_id and a.id < b.id
    where a.valid_until > b.valid_from
    union all select 1 from former_placements where valid_from > valid_until
    """
)

Content = dict[str, list[tuple[object, ...]]]


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database_url, pool_size=2, acquire_timeout=10)
    yield database
    await database.close()


async def content(connection: AsyncConnection) -> Content:
    """Return the rows of each table, or of each view of a past moment."""
    return {
        name: sorted(
            map(tuple, await connection.execute(text(f"select {columns} from {name}{_LIVE.get(name, '')}"))), key=str
        )
        for name, columns in _CONTENT.items()
    }


@dataclass
class Changing:
    """Rows that change at random. `taken` has each moment with the rows, and with the facts of a decision, of then."""

    database: Database
    random: random.Random
    rows: Rows = field(default_factory=Rows)
    ends: list[datetime] = field(default_factory=list)
    taken: list[tuple[datetime, Content, PathFacts]] = field(default_factory=list)

    async def run(self, steps: int) -> None:
        """Insert the rows, and change them `steps` times."""
        async with self.database.transaction() as connection:
            await self.rows.insert(connection)
            await connection.execute(text("truncate former_placements"))
        changes: list[Callable[[AsyncConnection], Awaitable[None]]] = [
            self._move_table, self._move_namespace, self._flag, self._flag, self._deactivate, self._grant, self._grant,
            self._end, self._expire, self._delete,
        ]  # fmt: skip
        await self._take()
        for _ in range(steps):
            async with self.database.transaction() as connection:
                await self.random.choice(changes)(connection)
            await self._take()

    async def facts(self, connection: AsyncConnection, now: datetime) -> PathFacts:
        """Return the facts that decide about the first user and the table."""
        return await read_path_facts(connection, [self.rows.ann], self.rows.objects["table"], now=now)

    async def _take(self) -> None:
        while True:
            async with self.database.transaction() as connection:
                now = await self._now(connection)
                if not any(now - _NEAR < each < now + _NEAR for each in self.ends):
                    self.taken.append((now, await content(connection), await self.facts(connection, now)))
                    return
            await asyncio.sleep(0.05)

    @staticmethod
    async def _now(connection: AsyncConnection) -> datetime:
        found: datetime = (await connection.execute(text("select clock_timestamp()"))).scalar_one()
        return found

    async def _move_table(self, connection: AsyncConnection) -> None:
        to = self.random.choice([self.rows.outer, self.rows.inner, self.rows.other])
        statement = (
            "update tables t set namespace_id = n.id, warehouse_id = n.warehouse_id from namespaces n "
            "where n.id = :to and t.id = :table"
        )
        await connection.execute(text(statement), {"to": to, "table": self.rows.table})

    async def _move_namespace(self, connection: AsyncConnection) -> None:
        above = self.random.choice([[], [self.rows.outer]])
        statement = "update namespaces set parent_id = :parent, ancestors = :above where id = :id"
        values = {"parent": above[0] if above else None, "above": above, "id": self.rows.inner}
        await connection.execute(text(statement), values)

    async def _flag(self, connection: AsyncConnection) -> None:
        table, id = self.random.choice([("warehouses", self.rows.warehouses[0]), ("namespaces", self.rows.inner)])
        await connection.execute(
            text(f"update {table} set managed_access = not managed_access where id = :id"), {"id": id}
        )

    async def _deactivate(self, connection: AsyncConnection) -> None:
        user = {"id": self.rows.users[0]}
        if not (await connection.execute(text("select 1 from scim_users where user_id = :id"), user)).all():
            await connection.execute(
                text(
                    "insert into scim_users (id, user_id, provider_id, user_name, user_name_key, active, document) "
                    "values (gen_random_uuid(), :id, 'p', :id, :id, :active, '')"
                ),
                {**user, "active": self.random.random() < 0.5},
            )
        elif self.random.random() < 0.3:
            await connection.execute(text("delete from scim_users where user_id = :id"), user)
        else:
            await connection.execute(text("update scim_users set active = not active where user_id = :id"), user)

    async def _grant(self, connection: AsyncConnection) -> None:
        role = str(self.rows.role)
        type, holder = self.random.choice([("user", self.rows.users[0]), ("role", role)])
        on = self.random.choice(["warehouse", "outer", "inner", "other", "table", "view", "role"])
        key = self.rows.objects[on]
        expires = None
        if self.random.random() < 0.3:
            expires = await self._now(connection) + timedelta(seconds=0.4)
            self.ends.append(expires)
        await connection.execute(
            text(
                "insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by, "
                "expires_at) values (:id, :privilege, :type, :holder, :on_type, :on, 'a test', :expires) "
                "on conflict do nothing"
            ),
            {
                "id": uuid4(), "privilege": "assignee" if on == "role" else self.random.choice(["select", "describe"]),
                "type": "user" if on == "role" else type, "holder": self.rows.users[0] if on == "role" else holder,
                "on_type": key.type.value, "on": key.id, "expires": expires,
            },
        )  # fmt: skip

    async def _end(self, connection: AsyncConnection) -> None:
        ids: list[UUID] = list((await connection.execute(text("select id from grants"))).scalars())
        if ids:
            some = self.random.sample(ids, 1)
            await end(connection, "g.id = any(:ids)", {"ids": some}, end_reason=Ended.REVOKED, by="a test")

    async def _expire(self, connection: AsyncConnection) -> None:
        await asyncio.sleep(0.3)
        await sweep_expired(connection, limit=10)

    async def _delete(self, connection: AsyncConnection) -> None:
        await connection.execute(text("delete from tables where id = :id"), {"id": self.rows.view})


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_each_moment_is_read_as_it_was(database: Database, seed: int) -> None:
    changing = Changing(database, random.Random(seed))
    await changing.run(STEPS)
    async with database.transaction() as connection:
        [left] = await connection.execute(text("select count(*) from former_placements"))
        assert left[0] > 3, "the changes leave no history"
        for at, rows, facts in changing.taken:
            await go_back(connection, at)
            assert await content(connection) == rows
            assert await changing.facts(connection, at) == facts
            await go_forward(connection)
        overlapping = await connection.execute(_OVERLAPPING)
        assert overlapping.all() == []


async def test_changes_that_keep_the_placement_write_no_history(database: Database) -> None:
    rows = Rows()
    async with database.transaction() as connection:
        await rows.insert(connection)
        await connection.execute(text("truncate former_placements"))
        for statement in (
            "update tables set name = name || 'x', version = version + 1, namespace_id = namespace_id",
            "update namespaces set properties = '{\"a\": 1}', managed_access = managed_access",
            "update warehouses set name = name || 'x', managed_access = managed_access, project_id = project_id",
        ):
            await connection.execute(text(statement))
        assert (await connection.execute(text("select count(*) from former_placements"))).scalar_one() == 0
