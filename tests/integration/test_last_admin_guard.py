# SPDX-License-Identifier: Apache-2.0
"""Two concurrent transactions remove the last two administrators of the server: one of them is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.management_errors import LastAdminRemoved
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Database, Deadlocked
from gateway.db.grants import grants
from gateway.db.principals.role_nesting import administers_server
from gateway.db.principals.users import guard_last_admin, has_administrator
from lakegate.local.ready import Ready

DIRECT = Principal(PrincipalType.USER, "oidc~direct")
MEMBER = Principal(PrincipalType.USER, "oidc~member")
ROLE = Principal(PrincipalType.ROLE, str(uuid4()))
ON_ROLE = ObjectKey(ObjectType.ROLE, ROLE.id)


class Ground:
    """Separate tables, so that no other test sees what is committed: a server whose only administrator is DIRECT, and a
    role without a grant on the server, with MEMBER in it.
    """

    def __init__(self, database: Database, schema: str) -> None:
        self.database = database
        self.schema = schema
        self.server = ObjectKey(ObjectType.SERVER, str(uuid4()))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        async with self.database.transaction() as connection:
            await connection.execute(text(f"set local search_path to {self.schema}, public"))
            yield connection

    async def make(self) -> None:
        async with self.database.transaction() as connection:
            await connection.execute(text(f"create schema {self.schema}"))
            for name in ("server", "grants", "grant_history"):
                made = f"create table {self.schema}.{name} (like public.{name} including all)"
                await connection.execute(text(made))
        async with self.transaction() as connection:
            added = text("insert into server (id, revision) values (cast(:id as uuid), gen_random_uuid())")
            await connection.execute(added, {"id": self.server.id})
            await give(connection, Privilege.ADMIN, DIRECT, self.server)
            await give(connection, Privilege.ASSIGNEE, MEMBER, ON_ROLE)

    async def swap(self, connection: AsyncConnection) -> None:
        """Grant the role `operator` on the server and revoke the administrator's right."""
        async with guard_last_admin(connection):
            await give(connection, Privilege.OPERATOR, ROLE, self.server)
            await take(connection, Privilege.ADMIN, DIRECT, self.server)

    async def has_admin(self) -> bool:
        async with self.transaction() as connection:
            return await has_administrator(connection)


async def give(connection: AsyncConnection, privilege: Privilege, to: Principal, on: ObjectKey) -> None:
    await grants.grant(connection, privilege=privilege, principal=to, on=on, by="test")


async def take(connection: AsyncConnection, privilege: Privilege, of: Principal, on: ObjectKey) -> None:
    assert await grants.revoke(connection, privilege=privilege, principal=of, on=on, by="test")


def leaving(connection: AsyncConnection) -> AbstractAsyncContextManager[None]:
    """Return the guard for removing a member of the role."""
    return guard_last_admin(connection, concerned=partial(administers_server, connection, ROLE.id))


async def leave(connection: AsyncConnection) -> None:
    async with leaving(connection):
        await take(connection, Privilege.ASSIGNEE, MEMBER, ON_ROLE)


@pytest.fixture
async def ground(stack: Ready) -> AsyncIterator[Ground]:
    url = stack.postgres.replace("postgresql://", "postgresql+asyncpg://", 1)
    database = Database(url, pool_size=3, acquire_timeout=30)
    made = Ground(database, f"offices_{uuid4().hex}")
    await made.make()
    yield made
    async with database.transaction() as connection:
        await connection.execute(text(f"drop schema {made.schema} cascade"))
    await database.close()


async def test_admin_replacement_by_a_role_waits_for_a_leaving_member(ground: Ground) -> None:
    async def swap() -> None:
        async with ground.transaction() as connection:
            await ground.swap(connection)

    async with ground.transaction() as connection:
        await leave(connection)
        swapping = asyncio.create_task(swap())
        await asyncio.wait([swapping], timeout=0.5)
        assert not swapping.done(), "the change must wait for the transaction that removes the last member"
    with pytest.raises(LastAdminRemoved):
        await swapping
    assert await ground.has_admin()


async def test_leaving_member_detects_a_concurrent_admin_grant_to_the_role(ground: Ground) -> None:
    async def go() -> None:
        async with ground.transaction() as connection:
            await leave(connection)

    async with ground.transaction() as connection:
        await ground.swap(connection)
        leaving_user = asyncio.create_task(go())
        await asyncio.wait([leaving_user], timeout=0.5)
        assert not leaving_user.done(), "the removal must wait for the transaction that grants server_admin to the role"
    with pytest.raises(Deadlocked):
        await leaving_user
    with pytest.raises(LastAdminRemoved):
        await go()
    assert await ground.has_admin()


async def test_leaving_roles_without_admin_rights_does_not_block(ground: Ground) -> None:
    async with ground.transaction() as one, ground.transaction() as other, leaving(one):
        await asyncio.wait_for(leaving(other).__aenter__(), 30)


async def test_one_of_two_mutually_revoking_administrators_stays(ground: Ground) -> None:
    async with ground.transaction() as connection:
        await give(connection, Privilege.OPERATOR, MEMBER, ground.server)

    async def end(privilege: Privilege, of: Principal) -> None:
        async with ground.transaction() as connection, guard_last_admin(connection):
            await take(connection, privilege, of, ground.server)

    ended = await asyncio.gather(end(Privilege.ADMIN, DIRECT), end(Privilege.OPERATOR, MEMBER), return_exceptions=True)
    assert sorted(type(each).__name__ for each in ended) == ["LastAdminRemoved", "NoneType"]
    assert await ground.has_admin()
