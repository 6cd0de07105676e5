# SPDX-License-Identifier: Apache-2.0
"""Resolutions of concurrent requests that share a statement, on a real PostgreSQL: each gets what it gets alone."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest
from sqlalchemy import Integer, Text, bindparam, cast, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.access.nouns import refs
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.role import RoleRef
from gateway.access.nouns.server import ServerRef, UserRef
from gateway.db.engine.database import Database
from gateway.db.engine.list_pages import children, in_namespace
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.driver_pool import DriverPool, connect_like
from gateway.db.pools.shared_reads import SharedReads
from gateway.db.resolver.caller import COLUMNS, GRANT_EXPIRIES, ONLY_CLOCK, caller_of
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.db.resolver.resolver_statements import STATEMENTS, lookup_of, parameters_of
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from tests.support.rows.database_waits import wait_for_sleeping
from tests.support.rows.parts import Rows, add_role
from tests.support.servers.toxic import Toxic

_SERVER = [ServerRef()]
_WORD = DirectRead(select(func.upper(bindparam("word", type_=Text)).label("word"), func.now().label("at")))


@asynccontextmanager
async def _opened(url: str, **changed: Any) -> AsyncIterator[Database]:
    database = Database(url, **{"pool_size": 5, "acquire_timeout": 30.0, "unshared_reads": 1, **changed})
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def _shared(url: str, **changed: Any) -> AsyncIterator[SharedReads]:
    async with _opened(url) as database:
        pool = DriverPool(connect_like(database.engine, {}), size=3, acquire_timeout=30)
        try:
            yield SharedReads(pool, **{"unshared": 1, "wait": 30.0, **changed})
        finally:
            await pool.close()


@asynccontextmanager
async def _sent() -> AsyncIterator[list[list[Mapping[str, Any]]]]:
    """Collect the members of each shared statement."""
    batches: list[list[Mapping[str, Any]]] = []
    each = DirectRead.each

    async def collected(read: DirectRead[Any], pool: DriverPool, members: Sequence[Mapping[str, Any]]) -> list[Any]:
        batches.append(list(members))
        return await each(read, pool, members)

    with patch.object(DirectRead, "each", collected):
        yield batches


def _sleeper() -> DirectRead[Any]:
    """Return a read that sleeps for the parameter `seconds`."""
    return DirectRead(
        select(
            func.pg_sleep(func.length(bindparam("tenths", type_=Text)) / cast(10, Integer)).label("slept"),
            func.now().label("at"),
        )
    )


def _words(batches: list[list[Mapping[str, Any]]]) -> list[str]:
    return [" ".join(member["word"] for member in batch) for batch in batches]


async def _hold(shared: SharedReads, url: str, tenths: int = 10) -> asyncio.Task[Any]:
    """Return a read that is in flight in the only slot for that many tenths of a second."""
    held = asyncio.create_task(shared.one(_sleeper(), {"tenths": "x" * tenths}, "holder"))
    await wait_for_sleeping(url, 1)
    return held


# ---- the same answers -----------------------------------------------------------------------------------------------


async def _grants(connection: AsyncConnection, rows: Rows, dice: random.Random, roles: Sequence[UUID]) -> None:
    """Insert random grants: expired, expiring and endless ones, to users and roles, on objects, columns and roles."""
    principals = [("user", user) for user in rows.users] + [("role", str(role)) for role in roles]
    objects = [(key.type.value, key.id) for key in rows.objects.values()]
    objects += [("column", f"{rows.table}.{field}") for field in (1, 2, 3)]
    objects += [("role", str(role)) for role in roles] * 3
    statement = text(
        "insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by, "
        "expires_at) values (gen_random_uuid(), :privilege, :type, :principal, :on, :object, 'x', "
        "now() + make_interval(mins => :minutes)) on conflict do nothing"
    )
    for _ in range(60):
        (kind, principal), (on, object) = dice.choice(principals), dice.choice(objects)
        privilege = dice.choice(("assignee", "ownership")) if on == "role" else dice.choice(("select", "ownership"))
        values = {"privilege": privilege, "type": kind, "principal": principal, "on": on, "object": object}
        # Far from now on both sides, so that no grant ends while the answers are compared.
        await connection.execute(statement, {**values, "minutes": dice.choice((None, -60, 60, 120, 180))})


def _callers(rows: Rows, roles: Sequence[UUID]) -> list[Actor]:
    groups = tuple(str(role) for role in roles[:2])
    callers = [Actor.user(user) for user in (*rows.users, "oidc~unknown")]
    callers += [_changed(Actor.user(f"lakekeeper~{number}"), groups=groups[:number]) for number in range(3)]
    callers += [_changed(Actor.user(rows.users[0]), assumed_role=role) for role in roles]
    return callers


def _changed(actor: Actor, **changed: Any) -> Actor:
    """Return the actor with these fields changed."""
    return msgspec.structs.replace(actor, **changed)


def _references(rows: Rows, roles: Sequence[UUID]) -> list[refs.Ref]:
    first, second = rows.warehouses
    outer, inner = Namespace((str(rows.outer),)), Namespace((str(rows.outer), str(rows.inner)))
    found: list[refs.Ref] = [ServerRef(), ProjectRef(rows.project), ProjectRef("none")]
    for warehouse in (first, second, uuid4()):
        found += [refs.WarehouseRef(warehouse), refs.NamespaceRef(warehouse, outer)]
        found += [refs.NamespaceRef(warehouse, inner), refs.NamespaceIdRef(rows.inner, warehouse)]
        for id in (rows.table, rows.view, uuid4()):
            for key in (id, TableIdentifier(outer, str(id)), TableIdentifier(inner, str(id))):
                found += [refs.TabularRef(refs.Table, warehouse, key), refs.TabularRef(refs.View, warehouse, key)]
                found += [refs.TabularRef(refs.GenericTable, warehouse, key)]
    found += [refs.NamespaceIdRef(rows.inner), refs.NamespaceIdRef(uuid4())]
    found += [refs.WarehouseNameRef(rows.project, name) for name in ("w0", "W1", "none")]
    found += [UserRef(user) for user in (*rows.users, "oidc~nobody")]
    return found + [RoleRef(id) for id in (*roles, uuid4())]


@pytest.mark.generated
async def test_shared_resolutions_equal_single_ones(url: str) -> None:
    dice = random.Random(20_261_125)
    rows, roles = Rows(), [uuid4() for _ in range(4)]
    async with _opened(url) as database, _opened(url, unshared_reads=0) as alone, _sent() as batches:
        async with database.transaction() as connection:
            await rows.insert(connection)
            for role in roles:
                await add_role(connection, role, rows.project)
            await _grants(connection, rows, dice, roles)
            await connection.execute(
                text(
                    "insert into scim_users (id, user_id, provider_id, user_name, user_name_key, active, document) "
                    "values (gen_random_uuid(), :user, 'oidc', 'x', 'x', false, '')"
                ),
                {"user": rows.users[2]},
            )
        callers, references = _callers(rows, roles), _references(rows, roles)
        together, single = DatabaseResolver(database), DatabaseResolver(alone)
        seen: set[str] = set()
        for _ in range(40):
            asked = [([dice.choice(references)], dice.choice(callers)) for _ in range(dice.choice((2, 5, 40, 80)))]
            answers = await asyncio.gather(*(together.resolve(*each) for each in asked))
            for each, answer in zip(asked, answers, strict=True):
                expected = await single.resolve(*each)
                assert msgspec.structs.replace(answer, now=expected.now) == expected, each
                for name in ("caller_roles", "next_expiry", "deactivated", "group_roles", "absent", "rows"):
                    seen |= {name} if getattr(answer, name) else set()
    assert seen == {"caller_roles", "next_expiry", "deactivated", "group_roles", "absent", "rows"}
    assert sum(map(len, batches)) > 500
    assert max(map(len, batches)) > 4


async def test_read_sees_every_change_committed_before_it_began(url: str) -> None:
    async with _opened(url) as database, _sent() as batches:
        async with database.transaction() as connection:
            await Rows().insert(connection)
        resolver = DatabaseResolver(database)
        stop = asyncio.Event()

        async def load() -> None:
            while not stop.is_set():
                await resolver.resolve(_SERVER, Actor.user("oidc~other"))

        others = [asyncio.create_task(load()) for _ in range(8)]
        for _ in range(100):
            revision = uuid4()
            async with database.autocommit() as connection:
                await connection.execute(text("update server set revision = :revision"), {"revision": revision})
            resolutions = await asyncio.gather(*(resolver.resolve(_SERVER, Actor.user("oidc~me")) for _ in range(3)))
            assert {each.revision for each in resolutions} == {revision}
        stop.set()
        await asyncio.gather(*others)
    assert batches


# ---- when a statement is shared -------------------------------------------------------------------------------------


async def test_read_is_sent_alone_while_a_slot_is_free(url: str) -> None:
    async with _shared(url, unshared=2) as shared, _sent() as batches:
        for word in ("a", "b"):
            assert (await shared.one(_WORD, {"word": word}, "p")).word == word.upper()
        await asyncio.gather(*(shared.one(_WORD, {"word": word}, "p") for word in "cd"))
    assert batches == []


async def test_waiting_reads_leave_together_when_a_slot_is_free(url: str) -> None:
    async with _shared(url) as shared, _sent() as batches:
        held = await _hold(shared, url, tenths=3)
        rows = await asyncio.gather(*(shared.one(_WORD, {"word": word}, "p") for word in "abcde"))
        await held
    assert [row.word for row in rows] == list("ABCDE")
    assert len({row.at for row in rows}) == 1
    assert _words(batches) == ["a b c d e"]


async def test_statement_takes_one_member_of_each_principal_in_turn(url: str) -> None:
    async with _shared(url, largest=4) as shared, _sent() as batches:
        held = await _hold(shared, url, tenths=3)
        asked = [("busy", f"b{number}") for number in range(6)] + [("calm", "c"), ("other", "o")]
        waiting = [asyncio.create_task(shared.one(_WORD, {"word": word}, principal)) for principal, word in asked]
        await asyncio.gather(held, *waiting)
    assert _words(batches) == ["b0 c o b1", "b2 b3 b4 b5"]


async def test_reads_of_different_statements_take_turns(url: str) -> None:
    other = DirectRead(select(func.lower(bindparam("word", type_=Text)).label("word")))
    async with _shared(url, largest=2) as shared, _sent() as batches:
        held = await _hold(shared, url, tenths=3)
        asked = [(_WORD, word) for word in "abcd"] + [(other, word) for word in "XYZU"]
        rows = await asyncio.gather(*(shared.one(read, {"word": word}, "p") for read, word in asked), held)
    assert [row.word for row in rows[:8]] == list("ABCDxyzu")
    assert _words(batches) == ["a b", "X Y", "c d", "Z U"]


# ---- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["zero \x00 byte", 7], ids=["refused by the server", "refused by the driver"])
async def test_failing_member_does_not_fail_the_others(url: str, bad: object) -> None:
    async with _shared(url) as shared, _sent() as batches:
        held = await _hold(shared, url, tenths=3)
        asked = ["a", bad, "c"]
        answers = await asyncio.gather(
            *(shared.one(_WORD, {"word": word}, "p") for word in asked), return_exceptions=True
        )
        await held
        assert [len(batch) for batch in batches] == [3]
        assert [answers[0].word, answers[2].word] == ["A", "C"]  # type: ignore[union-attr]  # these two are rows
        assert isinstance(answers[1], (asyncpg.PostgresError, asyncpg.DataError))
        assert (await shared.one(_WORD, {"word": "later"}, "p")).word == "LATER"


async def test_member_without_its_row_gets_none_of_another_member(url: str) -> None:
    """The driver's rows are assigned by their number; a statement with missing rows is repeated member by member."""
    only_a = DirectRead(select(bindparam("word", type_=Text).label("word")).where(bindparam("word", type_=Text) == "a"))
    async with _shared(url) as shared:
        held = await _hold(shared, url, tenths=3)
        answers = await asyncio.gather(
            *(shared.one(only_a, {"word": word}, "p") for word in "bab"), return_exceptions=True
        )
        await held
    assert [getattr(each, "word", type(each)) for each in answers] == [ValueError, "a", ValueError]


@pytest.mark.parametrize("when", ["waiting", "in flight"])
async def test_cancelled_member_does_not_cancel_the_others(url: str, when: str) -> None:
    slow = _sleeper()
    async with _shared(url) as shared, _sent() as batches:
        held = await _hold(shared, url, tenths=5)
        members = [asyncio.create_task(shared.one(slow, {"tenths": "x" * 4}, "p")) for _ in range(3)]
        await asyncio.sleep(0)
        if when == "in flight":
            await held
            await wait_for_sleeping(url, 1)
        members[1].cancel()
        await asyncio.gather(held, *members, return_exceptions=True)
        assert [member.cancelled() for member in members] == [False, True, False]
        assert all(member.result() for member in (members[0], members[2]))
        assert [len(batch) for batch in batches] == [3 if when == "in flight" else 2]
        assert (await shared.one(_WORD, {"word": "later"}, "p")).word == "LATER"


async def test_cancelled_holder_of_the_slot_lets_the_waiting_reads_leave(url: str) -> None:
    async with _shared(url) as shared:
        held = await _hold(shared, url, tenths=50)
        waiting = [asyncio.create_task(shared.one(_WORD, {"word": word}, "p")) for word in "ab"]
        await asyncio.sleep(0)
        held.cancel()
        async with asyncio.timeout(4):
            assert [row.word for row in await asyncio.gather(*waiting)] == ["A", "B"]


async def test_read_that_waits_too_long_for_its_statement_is_unavailable(url: str) -> None:
    async with _shared(url, wait=0.2) as shared:
        held = await _hold(shared, url, tenths=15)
        with pytest.raises(DatabaseUnavailable):
            await shared.one(_WORD, {"word": "a"}, "p")
        assert not held.done()
        await held
        assert (await shared.one(_WORD, {"word": "later"}, "p")).word == "LATER"


async def test_restart_of_the_database_fails_no_shared_read(url: str) -> None:
    between = Toxic(urlsplit(url).port or 0)
    there = url.replace(f":{between.target}", f":{between.port}")
    try:
        async with _opened(there) as database, _sent() as batches:
            async with database.transaction() as connection:
                await Rows().insert(connection)
            resolver, caller = DatabaseResolver(database), Actor.user("oidc~a")
            await asyncio.gather(*(resolver.resolve(_SERVER, caller) for _ in range(9)))
            await asyncio.to_thread(between.become, "gone")
            during = await asyncio.gather(
                *(resolver.resolve(_SERVER, caller) for _ in range(9)), return_exceptions=True
            )
            assert {type(each) for each in during} == {DatabaseUnavailable}
            await asyncio.to_thread(between.become, "well")
            after = await asyncio.gather(*(resolver.resolve(_SERVER, caller) for _ in range(9)))
            assert all(_SERVER[0] in each.rows for each in after)
            # Connections that broke since their last use, without an error in between.
            await asyncio.to_thread(between.become, "gone")
            await asyncio.to_thread(between.become, "well")
            again = await asyncio.gather(*(resolver.resolve(_SERVER, caller) for _ in range(9)))
            assert all(_SERVER[0] in each.rows for each in again)
        assert batches
    finally:
        await asyncio.to_thread(between.close)


# ---- plans ----------------------------------------------------------------------------------------------------------

_MANY = 100_000
_LARGE = {"tables", "namespaces", "grants", "roles", "users", "scim_users"}


async def _fill(connection: AsyncConnection, rows: Rows) -> None:
    """Insert 100,000 tables in 1,000 namespaces, and as many grants, users and roles as a large installation has."""
    await rows.insert(connection)
    values = {"many": _MANY, "warehouse": rows.warehouses[0], "project": rows.project}
    for statement in (
        "insert into users (id, name, user_type, last_updated_with) "
        "select 'oidc~' || i, 'x', 'human', 'test' from generate_series(1, 10000) i",
        "insert into scim_users (id, user_id, provider_id, user_name, user_name_key, active, document) "
        "select gen_random_uuid(), 'oidc~' || i, 'oidc', i, i, true, '' from generate_series(1, 10000) i",
        "insert into roles (id, project_id, name, name_key, provider_id, source_id) "
        "select gen_random_uuid(), :project, i, i, 'lakekeeper', i from generate_series(1, 10000) i",
        "insert into namespaces (id, warehouse_id, parent_id, ancestors, levels, path_key, properties) "
        "select gen_random_uuid(), :warehouse, null, '{}', array['n' || i], 'n' || i, '{}' "
        "from generate_series(1, 1000) i",
        "insert into tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, location_key, "
        "metadata) select gen_random_uuid(), n.warehouse_id, n.id, 'table', 't' || i, 't' || i, gen_random_uuid(), "
        "n.path_key || '/' || i, n.path_key || '/' || i, '{}' "
        "from namespaces n, generate_series(1, :many / 1000) i where n.path_key like 'n%'",
        "insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by, "
        "expires_at) select gen_random_uuid(), 'select', 'user', 'oidc~' || (row_number() over () % 10000), 'table', "
        "t.id, 'x', case when row_number() over () % 10 = 0 then now() + interval '1 day' end from tables t",
        "insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by) "
        "select gen_random_uuid(), 'assignee', 'user', 'oidc~' || (row_number() over () % 10000), 'role', r.id, 'x' "
        "from roles r",
    ):
        used = {name: value for name, value in values.items() if f":{name}" in statement}
        await connection.execute(text(statement.replace("' || i", "' || cast(i as text)")), used)


def _scanned(plan: Any) -> set[str]:
    """Return the tables that a plan reads as a whole."""
    found = {plan["Relation Name"]} if plan.get("Node Type") == "Seq Scan" else set()
    return found.union(*(_scanned(each) for each in plan.get("Plans", ())))


@pytest.mark.generated
async def test_reads_use_indexes_with_many_tables_and_grants(url: str) -> None:
    """Also those of several members. The plans are the generic ones, which the connections are set to use."""
    rows = Rows()
    async with _opened(url, statement_timeout=120) as database:
        async with database.transaction() as connection:
            await _fill(connection, rows)
        async with database.autocommit() as connection:
            await connection.execute(text("analyze"))
        namespace = Namespace(("n7",))
        named = TableIdentifier(namespace, "t7")
        requested = [*_references(rows, [rows.role]), refs.TabularRef(refs.Table, rows.warehouses[0], named)]
        caller = caller_of(Actor.user("oidc~7"))
        about = {lookup_of(ref): {**parameters_of(ref), **caller} for ref in requested}
        reads = [(STATEMENTS[lookup], parameters) for lookup, parameters in about.items()] + [(ONLY_CLOCK, caller)]
        now = datetime.now(UTC)
        alone = [
            (COLUMNS, {**caller, "tables": str(rows.table)}),
            (GRANT_EXPIRIES, {**caller, "after": now, "until": now}),
            in_namespace(namespace_id=rows.outer, kind="table", after=None, limit=100),
            in_namespace(namespace_id=rows.outer, kind="table", after=("t1", rows.table), limit=100),
            children(warehouse_id=rows.warehouses[0], parent_id=rows.outer, after=None, limit=100),
        ]
        connect = connect_like(database.engine, {})
        driver = await connect()
        try:
            for number, (read, _) in enumerate([*reads, *alone]):
                read._compile_batch()
                for kind, sql in enumerate((read._sql, read._batch_sql)[: 2 if number < len(reads) else 1]):
                    nulls = ", ".join(["null"] * len(set(re.findall(r"\$\d+", sql))))
                    await driver.execute(f"prepare p{number}_{kind} as {sql}")
                    [plan] = await driver.fetchval(f"explain (format json) execute p{number}_{kind}({nulls})")
                    assert _scanned(plan["Plan"]) & _LARGE == set(), sql
        finally:
            await driver.close()
