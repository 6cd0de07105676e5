# SPDX-License-Identifier: Apache-2.0
"""Grants as rows on a real PostgreSQL: several grantors, expiry, and the history of ended grants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Database
from gateway.db.grants import grant_ends, grants
from gateway.db.grants.grants import Change
from lakegate.local.ready import Ready

SELECT, MODIFY = Privilege.SELECT, Privilege.MODIFY


@pytest.fixture
async def database(stack: Ready) -> AsyncIterator[Database]:
    made = Database(
        stack.postgres.replace("postgresql://", "postgresql+asyncpg://", 1), pool_size=4, acquire_timeout=30
    )
    yield made
    await made.close()


class Undo(Exception):
    """Raised to roll back a transaction."""


@asynccontextmanager
async def rolled_back(database: Database) -> AsyncIterator[AsyncConnection]:
    """Yield a transaction that is rolled back at the end, so that no delivery sees its rows."""
    try:
        async with database.transaction() as connection:
            yield connection
            raise Undo
    except Undo:
        pass


def random_principal() -> Principal:
    return Principal(PrincipalType.USER, f"oidc~{uuid4()}")


def random_object(type: ObjectType = ObjectType.TABLE) -> ObjectKey:
    return ObjectKey(type, str(uuid4()))


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def test_grant_rows_are_kept_per_grantor_and_replaced_by_the_same_one(database: Database) -> None:
    who, what = random_principal(), random_object()
    async with rolled_back(database) as connection:
        assert await grants.grant(connection, privilege=SELECT, principal=who, on=what, by="a") is Change.GIVEN
        assert await grants.grant(connection, privilege=SELECT, principal=who, on=what, by="a") is Change.NOTHING
        assert await grants.grant(connection, privilege=SELECT, principal=who, on=what, by="b") is Change.GIVEN
        granted = await grants.grant(connection, privilege=SELECT, principal=who, on=what, by="b", reason="audit")
        assert granted is Change.GIVEN
        rows = await grants.on_object(connection, what)
        assert [(row.granted_by, row.reason) for row in rows] == [("a", None), ("b", "audit")]
        [over] = await grants.history(connection, on=what, limit=10)
        assert (over.granted_by, over.reason, over.ended_because, over.ended_by) == ("b", None, "replaced", "b")
        assert over.granted_at <= over.ended_at


async def test_earlier_expiry_revokes_rights_and_a_later_one_does_not(database: Database) -> None:
    who, what = random_principal(), random_object()
    early, late = in_seconds(600), in_seconds(1200)
    async with rolled_back(database) as connection:

        async def ends(at: datetime | None) -> Change:
            return await grants.grant(connection, privilege=SELECT, principal=who, on=what, by="a", expires_at=at)

        assert await ends(early) is Change.GIVEN
        assert await ends(late) is Change.GIVEN
        assert await ends(None) is Change.GIVEN
        assert await ends(late) is Change.SHORTENED
        assert await ends(early) is Change.SHORTENED
        assert await ends(early) is Change.NOTHING
        assert [row.expires_at for row in await grants.on_object(connection, what)] == [early]
        assert await ends(in_seconds(-1)) is Change.SHORTENED
        assert await grants.on_object(connection, what) == []
        assert await ends(in_seconds(-2)) is Change.GIVEN, "a grant that had expired must count as new"
        end_reasons = [row.ended_because for row in await grants.history(connection, principal=who, limit=10)]
        assert end_reasons == ["expired", *["replaced"] * 5]


async def test_revocation_ends_rows_of_all_grantors_and_reports_a_live_one(database: Database) -> None:
    who, other, what = random_principal(), random_principal(), random_object()
    async with rolled_back(database) as connection:
        for by in ("a", "b"):
            await grants.grant(connection, privilege=SELECT, principal=who, on=what, by=by)
        await grants.grant(connection, privilege=MODIFY, principal=who, on=what, by="a")
        await grants.grant(connection, privilege=SELECT, principal=other, on=what, by="a")
        assert await grants.revoke(connection, privilege=SELECT, principal=who, on=what, by="c")
        assert not await grants.revoke(connection, privilege=SELECT, principal=who, on=what, by="c")
        left = {(row.privilege, row.principal_id) for row in await grants.on_object(connection, what)}
        assert left == {("modify", who.id), ("select", other.id)}
        over = await grants.history(connection, on=what, limit=10)
        assert {(row.granted_by, row.ended_by, row.ended_because) for row in over} == {
            ("a", "c", "revoked"),
            ("b", "c", "revoked"),
        }
        past = in_seconds(-60)
        await grants.grant(connection, privilege=SELECT, principal=who, on=what, by="a", expires_at=past)
        assert not await grants.revoke(connection, privilege=SELECT, principal=who, on=what, by="c")
        [latest] = await grants.history(connection, on=what, limit=1)
        assert (latest.ended_because, latest.ended_by, latest.ended_at) == ("expired", None, past)


async def test_grants_of_a_principal_are_paged_for_one_project_and_the_server(database: Database) -> None:
    who = random_principal()
    async with rolled_back(database) as connection:
        found = await connection.execute(
            text("select s.id as server, w.id as warehouse, w.project_id from server s, warehouses w limit 1")
        )
        here = found.one()
        await connection.execute(text("insert into projects (id, name, name_key) values ('else', 'else', 'else~~')"))
        role = str(uuid4())
        await connection.execute(
            text(
                "insert into roles (id, project_id, name, name_key, provider_id, source_id) "
                "values (cast(:id as uuid), 'else', 'r', 'r', 'lakekeeper', 'r')"
            ).bindparams(id=role)
        )
        held = [
            (Privilege.OPERATOR, ObjectKey(ObjectType.SERVER, str(here.server))),
            (SELECT, ObjectKey(ObjectType.PROJECT, here.project_id)),
            (SELECT, ObjectKey(ObjectType.WAREHOUSE, str(here.warehouse))),
            (MODIFY, ObjectKey(ObjectType.WAREHOUSE, str(here.warehouse))),
        ]
        elsewhere = [
            (SELECT, ObjectKey(ObjectType.PROJECT, "else")),
            (Privilege.ASSIGNEE, ObjectKey(ObjectType.ROLE, role)),
        ]
        for privilege, on in (*held, *elsewhere):
            await grants.grant(connection, privilege=privilege, principal=who, on=on, by="a")
        await grants.grant(
            connection, privilege=Privilege.CREATE, principal=who, on=held[1][1], by="a", expires_at=in_seconds(-1)
        )
        await grants.grant(connection, privilege=SELECT, principal=random_principal(), on=held[1][1], by="a")
        pages, after = [], None
        while page := await grants.of_principal(connection, who, project_id=here.project_id, after=after, limit=3):
            pages.append([(row.privilege, row.object_type, row.object_id) for row in page])
            after = page[-1].id
        assert [len(page) for page in pages] == [3, 1]
        assert sorted(sum(pages, [])) == sorted((p.value, on.type.value, on.id) for p, on in held)
        there = await grants.of_principal(connection, who, project_id="else", after=None, limit=9)
        assert [row.object_type for row in there] == ["server", "project", "role"]


async def test_history_is_paged_latest_first(database: Database) -> None:
    who = random_principal()
    things = [random_object() for _ in range(5)]
    async with rolled_back(database) as connection:
        for what in things:
            await grants.grant(connection, privilege=SELECT, principal=who, on=what, by="a")
            await grants.revoke(connection, privilege=SELECT, principal=who, on=what, by="a")
        first = await grants.history(connection, principal=who, limit=3)
        rest = await grants.history(connection, principal=who, after=first[-1].id, limit=3)
        assert [row.object_id for row in (*first, *rest)] == [what.id for what in reversed(things)]
        [one] = await grants.history(connection, principal=who, on=things[2], limit=3)
        assert one.object_id == things[2].id
        with pytest.raises(ValueError, match="needs an object or a principal"):
            await grants.history(connection, limit=3)


async def test_expiry_cleanup_records_its_reason(database: Database) -> None:
    who, what = random_principal(), random_object()
    async with rolled_back(database) as connection:
        for on in (what, random_object()):
            await grants.grant(connection, privilege=SELECT, principal=who, on=on, by="a")
        assert len(await grant_ends.sweep(connection, [what, random_object()])) == 1
        assert len(await grant_ends.sweep_principal(connection, who, by="c")) == 1
        ended = [(row.ended_because, row.ended_by) for row in await grants.history(connection, principal=who, limit=9)]
        assert ended == [("principal deleted", "c"), ("object deleted", None)]


async def test_only_ended_grants_are_removed_as_expired(database: Database) -> None:
    who = random_principal()
    async with rolled_back(database) as connection:
        ends = [in_seconds(-100), in_seconds(600), None]
        for end in ends:
            await grants.grant(connection, privilege=SELECT, principal=who, on=random_object(), by="a", expires_at=end)
        swept = [row for row in await grant_ends.sweep_expired(connection, limit=1000) if row.principal_id == who.id]
        assert [row.expires_at for row in swept] == ends[:1]
        [over] = await grants.history(connection, principal=who, limit=9)
        assert (over.ended_because, over.ended_at) == ("expired", ends[0])


async def test_a_membership_of_a_role_in_a_role_has_no_end(database: Database) -> None:
    role = Principal(PrincipalType.ROLE, str(uuid4()))
    async with rolled_back(database) as connection:
        with pytest.raises(ValueError, match="role in a role"):
            await grants.grant(
                connection,
                privilege=Privilege.ASSIGNEE,
                principal=role,
                on=random_object(ObjectType.ROLE),
                by="a",
                expires_at=in_seconds(60),
            )
        with pytest.raises(ValueError, match="without a zone"):
            naive = datetime(2030, 1, 1)
            await grants.grant(
                connection, privilege=SELECT, principal=role, on=random_object(), by="a", expires_at=naive
            )


async def test_concurrent_identical_grants_of_one_grantor_make_one_change(database: Database) -> None:
    who, what = random_principal(), random_object()

    async def give() -> Change:
        async with database.transaction() as connection:
            return await grants.grant(connection, privilege=SELECT, principal=who, on=what, by="a")

    try:
        granted = await asyncio.gather(*(give() for _ in range(4)))
        assert sorted(granted) == [Change.NOTHING] * 3 + [Change.GIVEN]
    finally:
        async with database.transaction() as connection:
            await grant_ends.sweep(connection, [what])
            await connection.execute(text("delete from grant_history where object_id = :id").bindparams(id=what.id))
