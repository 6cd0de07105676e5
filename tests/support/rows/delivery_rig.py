# SPDX-License-Identifier: Apache-2.0
"""A deliverer of tuples between a real database and an OpenFGA whose answers a test controls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.privileges import TRAVERSE_REASONS, Privilege
from gateway.access.nouns.refs import ObjectKey
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.grants import grants
from gateway.db.tuples import outbox
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.tuples.desired_tuples import TRAVERSE, containers_of
from gateway.db.tuples.outbox import Pending
from gateway.fga.client import FgaClient
from tests.support.rows.parts import Parts, Rows, all_desired, delivery, store, tuples

Answer = TypeVar("Answer")
SETTLE = 60.0
"""Seconds within which OpenFGA may still apply a write that was sent; longer than any test takes."""


@dataclass
class Rig:
    """One database with fresh rows, one empty store, and a delivery between them."""

    parts: Parts
    database: Database
    client: FgaClient
    rows: Rows

    @property
    def delivery(self) -> TupleDelivery:
        return delivery(self.database, self.client)

    async def give(
        self,
        privilege: Privilege,
        who: Principal,
        on: str,
        *,
        until: datetime | None = None,
        by: str = "oidc~root",
    ) -> list[Pending]:
        """Commit a grant and its outbox rows, as governance does; return the pending deliveries."""
        key = self.rows.objects[on]
        async with self.database.transaction() as connection:
            change = await grants.grant(connection, privilege=privilege, principal=who, on=key, by=by, expires_at=until)
            shortened = change is grants.Change.SHORTENED
            return await outbox.enqueue_each(
                connection, await self._keys(connection, privilege, who, key), takes_away=shortened
            )

    async def take(self, privilege: Privilege, who: Principal, on: str) -> list[Pending]:
        """Commit a revocation and its outbox rows; return the pending deliveries."""
        key = self.rows.objects[on]
        async with self.database.transaction() as connection:
            await grants.revoke(connection, privilege=privilege, principal=who, on=key, by="oidc~root")
            return await outbox.enqueue_each(
                connection, await self._keys(connection, privilege, who, key), takes_away=True
            )

    @staticmethod
    async def _keys(
        connection: AsyncConnection, privilege: Privilege, who: Principal, key: ObjectKey
    ) -> list[tuple[TupleKey, UUID | None]]:
        place = (await containers_of(connection, [key]))[key]
        above = place.above if privilege in TRAVERSE_REASONS else ()
        keys = [TupleKey(who, privilege.value, key), *(TupleKey(who, TRAVERSE, each) for each in above)]
        return [(each, place.warehouse_id) for each in keys]

    async def of(self, who: Principal) -> dict[tuple[str, str], str | None]:
        """Return {(relation, object): expiry} of a principal's tuples."""
        name = f"role:{who.id}#assignee" if who.type is PrincipalType.ROLE else f"user:{who.id}"
        named = {f"{key.type.value}:{key.id}": name for name, key in self.rows.objects.items()}
        return {
            (relation, named.get(object, object)): end
            for user, relation, object, end in await tuples(self.client)
            if user == name
        }

    async def revisions(self) -> tuple[UUID, ...]:
        """Return the revisions of the server and of both warehouses."""
        async with self.database.read() as connection:
            found = await connection.execute(
                text(
                    "select revision, 0 as n from server union all select revision, array_position(:ids, id) "
                    "from warehouses order by n"
                ).bindparams(ids=self.rows.warehouses)
            )
            return tuple(row.revision for row in found)

    async def moved(self, pending: Sequence[Pending]) -> set[str]:
        """Deliver; return the names of the revisions that changed."""
        return (await self.changed(self.delivery.deliver(pending)))[0]

    async def changed(self, change: Awaitable[Answer]) -> tuple[set[str], Answer]:
        """Await a change; return (the names of the revisions that changed, its result)."""
        before = await self.revisions()
        answer = await change
        after = await self.revisions()
        names = ("server", "warehouse", "second")
        return {name for name, old, new in zip(names, before, after, strict=True) if old != new}, answer

    async def settle(self) -> None:
        """Shift all sends into the past, so that OpenFGA can no longer apply them."""
        async with self.database.transaction() as connection:
            await connection.execute(
                text("update outbox set sent_at = sent_at - make_interval(secs => :s)"), {"s": SETTLE}
            )

    async def waiting(self) -> list[TupleKey]:
        """Return the keys in the outbox."""
        async with self.database.read() as connection:
            return [each.key for each in await outbox.waiting(connection)]

    async def agree(self) -> None:
        """Check that OpenFGA holds exactly the desired tuples and that the outbox is empty."""
        async with self.database.read() as connection:
            expected = await all_desired(connection, self.rows)
        assert await tuples(self.client) == expected
        assert await self.waiting() == []


@pytest.fixture
async def rig(parts: Parts) -> AsyncIterator[Rig]:
    database = Database(parts.database_url, pool_size=5, acquire_timeout=30)
    async with store(parts) as client:
        made = Rig(parts, database, client, Rows())
        async with database.transaction() as connection:
            await made.rows.insert(connection)
            pending = await outbox.enqueue(connection, made.rows.edges, takes_away=False)
        await made.delivery.deliver(pending)
        yield made
    await database.close()
