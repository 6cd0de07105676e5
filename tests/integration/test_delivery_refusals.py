# SPDX-License-Identifier: Apache-2.0
"""A tuple that OpenFGA always rejects delays no other tuple, and in particular no revocation. On a real PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from uuid import uuid4

import pytest
from sqlalchemy import text

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.tuples import outbox
from gateway.db.tuples.delivery import TupleDelivery
from lakegate.local.ready import Ready


class Refused(Exception):
    """The error that the adapter raises for tuples that OpenFGA rejects."""


class Silent:
    """Metrics observer that discards everything."""

    def tuple_delivered(self, seconds: float) -> None:
        """Ignore it."""

    def outbox_counted(self, pending: int) -> None:
        """Ignore it."""


@pytest.fixture
async def database(stack: Ready) -> AsyncIterator[Database]:
    made = Database(
        stack.postgres.replace("postgresql://", "postgresql+asyncpg://", 1), pool_size=2, acquire_timeout=30
    )
    yield made
    await made.close()


def key(name: str) -> TupleKey:
    return TupleKey(Principal(PrincipalType.USER, f"oidc~{name}"), "select", ObjectKey(ObjectType.TABLE, str(uuid4())))


async def enqueued(database: Database, keys: Sequence[TupleKey], *, takes_away: bool) -> list[outbox.Pending]:
    async with database.transaction() as connection:
        pending = await outbox.enqueue(connection, keys, takes_away=takes_away)
        # Postpone the rows, because the running gateway would deliver them too.
        await outbox.postpone(connection, [row.id for row in pending], seconds=600)
    return pending


async def waiting(database: Database, pending: Sequence[outbox.Pending]) -> set[int]:
    async with database.read() as connection:
        found = await connection.execute(
            text("select id from outbox where id = any(:ids)"), {"ids": [row.id for row in pending]}
        )
        return {row.id for row in found}


async def remove(database: Database, pending: Sequence[outbox.Pending]) -> None:
    async with database.transaction() as connection:
        await outbox.done(connection, [row.id for row in pending])


@pytest.mark.generated
async def test_permanently_refused_key_does_not_block_a_revocation(
    database: Database,
) -> None:
    poison = key("poison")
    delivered: list[TupleKey] = []

    async def write(writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        if poison in (*writes, *deletes):
            raise Refused
        delivered.extend((*writes, *deletes))

    bad = await enqueued(database, [poison], takes_away=False)
    good = await enqueued(database, [key("revoked")], takes_away=True)
    try:
        await TupleDelivery(database, write, Silent()).deliver([*bad, *good])
        assert delivered == [good[0].key]
        assert await waiting(database, [*bad, *good]) == {bad[0].id}
    finally:
        await remove(database, [*bad, *good])


async def test_refused_revocation_is_not_reported_as_done(database: Database) -> None:
    async def write(writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        raise Refused

    pending = await enqueued(database, [key("revoked")], takes_away=True)
    try:
        with pytest.raises(DecisionEngineUnavailable):
            await TupleDelivery(database, write, Silent()).deliver(pending)
        assert await waiting(database, pending) == {pending[0].id}
    finally:
        await remove(database, pending)
