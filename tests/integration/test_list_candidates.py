# SPDX-License-Identifier: Apache-2.0
"""Invariant 8 on a real PostgreSQL: the candidate rows of a list include every object that its reader can see.

The grants are random: to users and roles, nested roles, nested namespaces, expired grants. The expected result comes
from plain recursion over the compiled model and the desired tuples, one object at a time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from gateway.access.actor import Actor, ActorKind
from gateway.access.door.list_visibility import Holders, Reach, holders_of
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import TABULARS as KINDS
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine import list_candidates
from gateway.db.engine.database import Connection, Database
from gateway.db.grants import grants
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.db.tasks import task_lists
from gateway.fga.model_analysis import reaches_of
from tests.support.rows.naive import Naive, Tuple, the_model
from tests.support.rows.parts import Rows, add_table, all_desired

pytestmark = pytest.mark.generated

MODEL = the_model()
REACHES = reaches_of(MODEL)
NO_USER_OBJECT = "user:in-the-assumed-role-and-nothing-else"
PRINCIPALS = ("ann", "ben", "role", "role_above")
OBJECTS = ("server", "project", "warehouse", "second", "outer", "inner", "other", "role", "role_above")
TABULARS = (
    ("table", "outer"),
    ("table", "inner"),
    ("table", "other"),
    ("view", "outer"),
    ("view", "inner"),
    ("generic_table", "outer"),
    ("generic_table", "inner"),
    ("generic_table", "other"),
)
_TASK = (
    "insert into tasks (id, queue, warehouse_id, entity_type, entity_id, payload) "
    "values (:id, 'soft_deletion', :warehouse, :kind, :about, '{}')"
)
EXPIRY = {"over": -60.0, "later": 600.0}

Grant = tuple[str, str, Privilege, str | None]


def _possible() -> list[Grant]:
    """Return (principal, object, privilege, expiry) of every kind, without cyclic roles."""
    named = {**{name: name for name in OBJECTS}, **{f"{kind} in {space}": kind for kind, space in TABULARS}}
    types = {"second": "warehouse", "outer": "namespace", "inner": "namespace", "other": "namespace"}
    found: list[Grant] = []
    for name, kind in named.items():
        type = ObjectType("role" if kind == "role_above" else types.get(kind, kind))
        for principal in PRINCIPALS:
            if type is ObjectType.ROLE and (principal, name) not in {
                ("ann", "role"), ("ben", "role"), ("ann", "role_above"), ("role", "role_above")
            }:  # fmt: skip
                continue
            ends = (None,) if type is ObjectType.ROLE and principal == "role" else (None, *EXPIRY)
            found += [(principal, name, privilege, end) for privilege in GRANTABLE[type] for end in ends]
    return found


POSSIBLE = _possible()
# The same number on each kind of leaf, so that a new kind does not displace the others. Few on high objects, since
# otherwise everything would be visible.
GRANTS = st.one_of(
    *(st.sampled_from([grant for grant in POSSIBLE if grant[1].startswith(f"{kind} in ")]) for kind in sorted(KINDS)),
    st.sampled_from([grant for grant in POSSIBLE if grant[1].startswith("role")]),
    st.sampled_from(POSSIBLE),
)
MOST_GRANTS = 7 * len(KINDS)


class Lists:
    """All lists of one set of rows, for one reader."""

    def __init__(
        self, rows: Rows, tabulars: dict[tuple[str, str], UUID], naive: Naive, reader: str, counted: Counter[str]
    ) -> None:
        self._counted = counted
        self._rows = rows
        self._tabulars = tabulars
        self._naive = naive
        self._reader = reader
        self.tasks_seen = 0
        self.tasks_left_out = 0

    def seen(self, type: ObjectType, ids: Sequence[str]) -> set[str]:
        """Return the visible objects, with one check for each."""
        return {id for id in ids if self._naive.holds(self._reader, "can_include_in_list", f"{type.value}:{id}")}

    def everything(self, on: ObjectKey) -> bool:
        """Return True if the list is not restricted to candidate rows."""
        return self._naive.holds(self._reader, "can_list_everything", f"{on.type.value}:{on.id}")

    async def compare(self, connection: Connection, holders: Holders) -> None:
        """Check that each list contains what its reader sees, and that the rows marked as certain are visible."""
        of = self._rows.objects
        for name in ("outer", "inner", "other"):
            if self.everything(of[name]):
                continue
            for type in sorted(KINDS):
                ids = [str(id) for at, id in self._tabulars.items() if at == (type.value, name)]
                found = await _by_pages(_tabulars_of(connection, holders, REACHES[type], of[name], type))
                self._same(type, ids, found)
        depths = {"outer": 1, "inner": 2, "other": 1}
        levels: list[tuple[str, str | None, list[str]]] = [
            ("warehouse", None, ["outer"]),
            ("second", None, ["other"]),
            ("warehouse", "outer", ["inner"]),
            ("warehouse", "inner", []),
        ]
        for warehouse, parent, inside in levels:
            if self.everything(of[parent or warehouse]):
                continue
            at = None if parent is None else (UUID(of[parent].id), depths[parent])
            found = await _by_pages(_children_of(connection, holders, of[warehouse], at))
            self._same(ObjectType.NAMESPACE, [of[name].id for name in inside], found)
        warehouses = await list_candidates.warehouses(
            connection, holders, REACHES[ObjectType.WAREHOUSE], project_id=self._rows.project
        )
        both = {str(id): by for id, by in warehouses.items()}
        self._same(ObjectType.WAREHOUSE, [str(id) for id in self._rows.warehouses], both)
        projects = await list_candidates.projects(connection, holders, REACHES[ObjectType.PROJECT])
        self._same(ObjectType.PROJECT, [self._rows.project], {row.id: row.by for row in projects})

    async def compare_tasks(self, connection: Connection, holders: Holders, tasks_of: Mapping[UUID, ObjectKey]) -> None:
        """Check for each warehouse that the listed tasks are all that the reader sees, in order, page by page."""
        of_space = {"outer": "warehouse", "inner": "warehouse", "other": "second"}
        for warehouse in ("warehouse", "second"):
            on = self._rows.objects[warehouse]
            if self.everything(on):
                continue
            expected = task_lists.TaskFilter(warehouse_id=UUID(on.id), of_existing_only=True, holders=holders)
            found: list[UUID] = []
            after = None
            while rows := await task_lists.page(connection, expected, after=after, limit=2):
                found += [row.id for row in rows]
                after = (rows[-1].created_at, rows[-1].id)
            assert len(found) == len(set(found)), "the list has a task twice"
            inside = {id for (_, space), id in self._tabulars.items() if of_space[space] == warehouse}
            theirs = {task: thing for task, thing in tasks_of.items() if UUID(thing.id) in inside}
            assert set(found) <= set(theirs), "the list has tasks outside of its warehouse or of objects without grants"
            seen = {
                task
                for task, thing in theirs.items()
                if self._naive.holds(self._reader, "can_get_tasks", f"{thing.type.value}:{thing.id}")
            }
            assert seen <= set(found), "the list lacks a visible task"
            self.tasks_left_out += len(theirs) - len(found)
            self.tasks_seen += len(seen)

    def _same(self, type: ObjectType, ids: Sequence[str], found: dict[str, str | None]) -> None:
        seen = self.seen(type, ids)
        assert set(found) <= set(ids), "the list has rows outside of its container"
        assert {id for id in found if id in self.seen(type, list(found))} == seen, (
            f"the list of {type} lacks visible rows"
        )
        self._counted.update({type: len(seen)})
        for id, by in found.items():
            if by in REACHES[type].certain:
                assert self._naive.holds(self._reader, str(by), f"{type.value}:{id}"), (
                    "the candidate query claims visibility that the evaluator denies"
                )


_Fetch = Callable[[tuple[str, UUID] | None], Awaitable[Sequence[Any]]]


def _tabulars_of(connection: Connection, holders: Holders, reach: Reach, on: ObjectKey, type: ObjectType) -> _Fetch:
    return lambda after: list_candidates.tabulars(
        connection, holders, reach, namespace_id=UUID(on.id), kind=type.value, after=after, limit=1
    )


def _children_of(connection: Connection, holders: Holders, warehouse: ObjectKey, at: tuple[UUID, int] | None) -> _Fetch:
    reach = REACHES[ObjectType.NAMESPACE]
    return lambda after: list_candidates.children(
        connection, holders, reach, warehouse_id=UUID(warehouse.id), parent=at, after=after, limit=1
    )


async def _by_pages(fetch: _Fetch) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    after = None
    while rows := await fetch(after):
        for row in rows:
            assert str(row.id) not in found, "the list has a row twice"
            found[str(row.id)] = row.by
            after = (row.name_key if hasattr(row, "name_key") else row.path_key, row.id)
    return found


async def _compare(url: str, given_: Sequence[Grant], counted: Counter[str]) -> None:
    database = Database(url, pool_size=2, acquire_timeout=30)
    try:
        rows = Rows()
        tabulars = {at: uuid4() for at in TABULARS}
        now = datetime.now(UTC)
        async with database.transaction() as connection:
            await rows.insert(connection)
            await connection.execute(text("delete from tables"))
            tasks_of = {}
            for (kind, space), id in tabulars.items():
                warehouse = rows.warehouses[1 if space == "other" else 0]
                await add_table(connection, id, warehouse, UUID(rows.objects[space].id), kind=kind)
                task = uuid4()
                tasks_of[task] = ObjectKey(ObjectType(kind), str(id))
                await connection.execute(text(_TASK), {"id": task, "warehouse": warehouse, "kind": kind, "about": id})
            for principal, name, privilege, end in given_:
                kind, _, space = name.partition(" in ")
                on = ObjectKey(ObjectType(kind), str(tabulars[kind, space])) if space else rows.objects[name]
                await grants.grant(
                    connection,
                    privilege=privilege,
                    principal=_principal(rows, principal),
                    on=on,
                    by="test",
                    expires_at=None if end is None else now + timedelta(seconds=EXPIRY[end]),
                )
        await _compare_readers(database, rows, tabulars, tasks_of, counted)
    finally:
        await database.close()


async def _compare_readers(
    database: Database,
    rows: Rows,
    tabulars: dict[tuple[str, str], UUID],
    tasks_of: Mapping[UUID, ObjectKey],
    counted: Counter[str],
) -> None:
    async with database.transaction() as connection:
        expected = {(user, relation, on): end for user, relation, on, end in await all_desired(connection, rows)}
    now = datetime.now(UTC)
    tuples: dict[Tuple, datetime | None] = {
        key: None if end is None else datetime.fromisoformat(end) for key, end in expected.items()
    }
    readers = [Actor.user(user) for user in rows.users]
    readers.append(Actor(kind=ActorKind.USER, id=rows.users[2], assumed_role=rows.role))
    for reader in readers:
        name, held = f"user:{reader.id}", dict(tuples)
        if reader.assumed_role is not None:
            name = NO_USER_OBJECT
            held[NO_USER_OBJECT, "assignee", f"role:{rows.role}"] = None
        resolution = await DatabaseResolver(database).resolve([], reader)
        async with database.read() as connection:
            lists = Lists(rows, tabulars, Naive(MODEL, held, now), name, counted)
            await lists.compare(connection, holders_of(reader, resolution))
            await lists.compare_tasks(connection, holders_of(reader, resolution), tasks_of)
            counted.update({"tasks seen": lists.tasks_seen, "tasks left out": lists.tasks_left_out})


def _principal(rows: Rows, name: str) -> Principal:
    if name in ("ann", "ben"):
        return Principal(PrincipalType.USER, rows.users[("ann", "ben").index(name)])
    return Principal(PrincipalType.ROLE, rows.objects[name].id)


def _agree(url: str, examples: int) -> None:
    counted: Counter[str] = Counter()

    @settings(
        max_examples=examples,
        database=None,
    )
    @given(st.lists(GRANTS, min_size=3, max_size=MOST_GRANTS, unique_by=lambda grant: grant[:3]))
    def run(some: list[Grant]) -> None:
        asyncio.run(_compare(url, some, counted))

    run()
    assert min(counted[what] for what in (*REACHES, "tasks seen", "tasks left out")) >= examples / 4, (
        f"the random cases contain too few allows: {counted}"
    )


@pytest.mark.threat("LG-DIS-12")
@pytest.mark.timeout(300)
def test_list_candidates_include_all_visible_objects(url: str) -> None:
    _agree(url, 40)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_list_candidates_include_all_visible_objects_in_2000_worlds(url: str) -> None:
    _agree(url, 2000)
