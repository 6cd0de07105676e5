# SPDX-License-Identifier: Apache-2.0
"""No cached allow decision outlives the grant behind it, whatever changes during the decision."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from gateway.access.actor import Actor
from gateway.access.nouns.refs import ObjectKey, ObjectType, Table, TabularRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution, ResolvedTable
from gateway.access.ports import Pin, Question
from gateway.db.engine.database import Database
from gateway.db.resolver.caller import CLOCK, caller_of
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.fga.cache import CachedRelationships
from tests.support.stack.revocation import assign, make_role
from tests.support.stack.world import World

pytestmark = pytest.mark.chaos


class Counted:
    """A cache observer that ignores its events."""

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Ignore the event."""


class RecordedRelationships:
    """An authorization engine on the real OpenFGA that runs a callback before the first check."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.first = [lambda: None]

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Run the pending callbacks, then return the decisions of OpenFGA at time `now`."""
        for happens in self.first:
            await asyncio.to_thread(happens)
        self.first = []
        answers = []
        for question in questions:
            requested = {"user": f"user:{actor.id}", "relation": question.relation.value}
            found = await asyncio.to_thread(
                self.world._openfga.post,
                "/check",
                json={
                    "tuple_key": {**requested, "object": f"{question.object.type}:{question.object.id}"},
                    "context": {"current_time": now.isoformat().replace("+00:00", "Z")},
                    "consistency": "HIGHER_CONSISTENCY",
                },
            )
            answers.append(bool(found.json()["allowed"]))
        return answers


def _database(world: World) -> Database:
    url = world.ready.postgres.replace("postgresql://", "postgresql+asyncpg://", 1)
    return Database(url, pool_size=2, acquire_timeout=10, statement_timeout=60)


def test_cached_allow_by_a_concurrent_membership_ends_with_the_roles_grant(world: World, ns: str) -> None:
    bob = world.bob
    world.strip(bob)
    role, table = make_role(world), world.table(ns)
    [row] = world.sql("select id::text from tables where table_uuid = $1::text::uuid", table.uuid)
    ends = datetime.now(UTC) + timedelta(seconds=6)
    given = world.admin.post(
        f"/management/v1/warehouse/{world.warehouse}/table/{row['id']}/grants",
        {"writes": [{"privilege": "select", "principal": {"role": role}, "expires-at": ends.isoformat()}]},
    )
    assert given.status_code == 204, given.text

    async def decide() -> tuple[bool, bool]:
        database, requested = _database(world), RecordedRelationships(world)
        resolver = DatabaseResolver(database)
        cache = CachedRelationships(requested, model_id=lambda: "model", entries=100, seconds=60, observer=Counted())
        ref, actor = TabularRef(Table, UUID(world.warehouse), UUID(row["id"])), Actor.user(bob.id)

        async def once() -> bool:
            found: Resolution = await resolver.resolve([ref], actor)
            held = found.get(ref)
            assert isinstance(held, ResolvedTable)
            assert found.revision is not None
            assert found.time_boxes is not None
            pin = Pin(found.revision, found.time_boxes, found.next_expiry)
            question = Question(Can.READ_DATA, ObjectKey(ObjectType.TABLE, row["id"]), held.warehouse.revision)
            [answer] = await cache.check(actor, [question], now=found.now, pin=pin)
            return answer

        try:
            # A membership without expiry is granted after the request was resolved and before the OpenFGA check.
            requested.first = [lambda: assign(world, "writes", role, {"user": bob.id})]
            before = await once()
            await asyncio.sleep(max(0.0, (ends - datetime.now(UTC)).total_seconds()) + 0.5)
            return before, await once()
        finally:
            await database.close()

    try:
        before, after = asyncio.run(decide())
    finally:
        world.strip(bob)
    assert before, "the race did not occur, so the test proves nothing"
    assert not after


def test_next_expiry_is_the_first_after_the_decision_time(world: World, ns: str) -> None:
    """A grant that expires between the two readings of the clock counts as live and not as the next expiry."""
    table = world.table(ns)
    [row] = world.sql("select id::text from tables where table_uuid = $1::text::uuid", table.uuid)
    asked_by = caller_of(Actor.user("oidc~ghost"))

    async def widest() -> float:
        database = _database(world)
        passed = []
        try:
            async with database.engine.connect() as connection:
                await connection.begin()
                await connection.execute(
                    text(
                        "insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, "
                        "granted_by, expires_at) select gen_random_uuid(), 'select', 'user', 'oidc~ghost', 'table', "
                        ":id, 'x' || i, clock_timestamp() + interval '1 s' + i * interval '20 us' "
                        "from generate_series(1, 30000) i"
                    ),
                    {"id": row["id"]},
                )
                await connection.execute(text("analyze grants"))
                for _ in range(100):
                    found = (await connection.execute(CLOCK, asked_by)).one()
                    first = await connection.execute(
                        text(
                            "select min(expires_at) from grants where principal_id = 'oidc~ghost' and expires_at > :n"
                        ),
                        {"n": found.now},
                    )
                    if found.next_expiry != first.scalar_one():
                        passed.append((found.next_expiry - found.now).total_seconds() * 1e6)
                await connection.rollback()
        finally:
            await database.close()
        return max(passed, default=0.0)

    skipped = asyncio.run(widest())
    assert skipped == 0.0, f"grants that end up to {skipped:.0f} us after `now` were omitted"
