# SPDX-License-Identifier: Apache-2.0
"""Search on a real PostgreSQL: signatures of names change the cost of a search, never its result.

The expected result comes from the similarities of all visible names, in one sort.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest
from asyncpg import BitString
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from gateway.access.door.list_visibility import Holders
from gateway.db.tables import search
from gateway.db.tables.search import FoundRow, Within
from gateway.iceberg.identifiers import fold
from tests.support.rows.parts import Rows

pytestmark = pytest.mark.servers

NAMES = 3_000
GRANTED = 400
SYLLABLES = ("or", "der", "cus", "tom", "er", "sa", "les", "_", "1", "22", "é", "売", "a", "bb", " ")
TEXTS = (
    "order",
    "cus",
    "customer_sales",
    "a",
    "1",
    "tomer a1",
    "売上",
    "ders or",
    "sales",
    "les1_22",
    "x",
    "qqqq",
    "é",
)
PAGES = ((10, 0), (1, 0), (25, 10), (100, 50), (1000, 0), (10, 2_995))

_ALL = """
    with x as (select searchable(:text) as key), c as (
        select t.id, {key} collate "C" as key from tables t join namespaces n on n.id = t.namespace_id
        where t.staged_by is null and t.deleted_at is null and t.id = any(:ids))
    select c.id, word_similarity(x.key, c.key) as score from c, x where word_similarity(x.key, c.key) >= 0.3
    order by score desc, similarity(x.key, c.key) desc, c.key, c.id
"""
_ADD = """
    insert into tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, location_key,
        metadata)
    select n.id, :warehouse, n.space, 'table', n.name, n.name, n.id, n.id::text, n.id::text, '{}'
    from unnest(cast(:ids as uuid[]), cast(:spaces as uuid[]), cast(:names as text[])) n(id, space, name)
"""
_GRANT = """
    insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by)
    select gen_random_uuid(), :privilege, 'user', :user, :type, id, 'test' from unnest(cast(:ids as text[])) id
"""


def _names() -> list[str]:
    """Return names of a few syllables, so that many are equally similar. Some fill every bit of a signature."""
    made = random.Random(15)
    short = ["".join(made.choices(SYLLABLES, k=made.randint(1, 6))) + f"_{n}" for n in range(NAMES - 20)]
    long = ["".join(made.choices("abcdefghijklmnopqrstuvwxyz_", k=900)) + f"order{n}" for n in range(20)]
    return [fold(name) for name in [*short, *long]]


class Filled:
    """Rows of a warehouse with many tables in two namespaces. `granted`: tables of the second that a user may read."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection
        self.rows = Rows()
        self.ids: dict[UUID, list[UUID]] = {self.rows.outer: [], self.rows.inner: []}

    @property
    def granted(self) -> list[UUID]:
        """Return tables of the second namespace with a grant of their own."""
        return self.ids[self.rows.inner][:GRANTED]

    async def insert(self) -> None:
        """Insert the rows: two thirds of the tables are in the first namespace."""
        await self.rows.insert(self.connection)
        await self.connection.execute(text("delete from tables"))
        names = _names()
        ids = [uuid4() for _ in names]
        spaces = [self.rows.inner if number % 3 == 0 else self.rows.outer for number in range(len(names))]
        values = {"warehouse": self.rows.warehouses[0], "ids": ids, "spaces": spaces, "names": names}
        await self.connection.execute(text(_ADD), values)
        for id, space in zip(ids, spaces, strict=True):
            self.ids[space].append(id)

    async def expected(self, asked: str, ids: Sequence[UUID]) -> list[tuple[UUID, float]]:
        """Return (id, score) of all results among these tables, in their order."""
        key = "t.search_key" if "." not in asked else "(n.search_key || ' ' || t.search_key)"
        values = {"text": fold(asked), "ids": list(ids)}
        return [(row.id, row.score) for row in await self.connection.execute(text(_ALL.format(key=key)), values)]

    async def found(
        self, asked: str, within: Within | None = None, limit: int = 10, offset: int = 0
    ) -> Sequence[FoundRow]:
        """Return the result of a search."""
        return await search.tabulars(
            self.connection,
            within,
            warehouse_id=self.rows.warehouses[0],
            text=asked,
            limit=limit,
            offset=offset,
        )


@asynccontextmanager
async def filled(url: str, *, vacuumed: bool = True) -> AsyncIterator[Filled]:
    """Yield the rows. The next user of the database removes them."""
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            made = Filled(connection)
            await made.insert()
            await connection.commit()
            alone = await connection.execution_options(isolation_level="AUTOCOMMIT")
            await alone.execute(text("vacuum analyze" if vacuumed else "analyze"))
        async with engine.connect() as connection:
            made.connection = connection
            yield made
    finally:
        await engine.dispose()


async def test_each_page_equals_the_sort_of_all_similarities(url: str) -> None:
    async with filled(url) as made:
        everything = [id for ids in made.ids.values() for id in ids]
        for asked in (*TEXTS, *(f"{text[:3]}.{text}" for text in TEXTS[:4])):
            expected = await made.expected(asked, everything)
            for limit, offset in PAGES:
                found = [(row.id, row.score) for row in await made.found(asked, None, limit, offset)]
                assert found == expected[offset : offset + limit], (asked, limit, offset)


async def test_a_caller_with_grants_gets_the_best_of_the_visible_names(url: str) -> None:
    async with filled(url) as made:
        user = made.rows.users[0]
        for privilege, type, ids in (
            ("select", "table", [str(id) for id in made.granted]),
            ("describe", "namespace", [str(made.rows.outer)]),
        ):
            values = {"privilege": privilege, "user": user, "type": type, "ids": ids}
            await made.connection.execute(text(_GRANT), values)
        leaves = frozenset({"table:select"})
        both = Within(Holders(user, ()), leaves, frozenset({"describe"}))
        single = Within(Holders(user, ()), leaves, frozenset())
        # The second namespace lies in the first.
        everything = [id for ids in made.ids.values() for id in ids]
        for asked in (*TEXTS, "ord.order"):
            for within, visible in ((both, everything), (single, made.granted)):
                expected = await made.expected(asked, visible)
                for limit, offset in ((10, 0), (200, 20)):
                    found = [(row.id, row.score) for row in await made.found(asked, within, limit, offset)]
                    assert found == expected[offset : offset + limit], (asked, limit, offset)


async def test_a_signature_has_the_bits_of_the_trigrams_of_pg_trgm_and_no_others(url: str) -> None:
    statement = text(
        """
        select name, search_signature(key) as signature, show_trgm(key) as trigrams
        from unnest(cast(:names as text[])) name, lateral (select searchable(name) as key) k
        """
    )
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            for row in await connection.execute(statement, {"names": ["", " ", "a", "a b", *_names()]}):
                assert isinstance(row.signature, BitString)
                bits = {(a * 7919 + b * 104729 + c * 1299709) % 251 for a, b, c in map(str.encode, row.trigrams)}
                assert {n for n, bit in enumerate(row.signature.as_string().replace(" ", "")) if bit == "1"} == bits, (
                    row.name
                )
    finally:
        await engine.dispose()


@pytest.mark.parametrize("vacuumed", [True, False])
async def test_similarities_are_computed_for_few_of_the_visible_names(url: str, vacuumed: bool) -> None:
    """The plan takes signatures from the index, also of new rows, and excludes most names by them."""
    async with filled(url, vacuumed=vacuumed) as made:
        values = {"warehouse_id": made.rows.warehouses[0], "limit": 10, "offset": 0, "text": "customer"}
        values |= {"least": search.LEAST, "last": 9, "few": 140}
        statement = search._STATEMENTS["name", False].text
        await made.connection.execute(search._BY_INDEX)
        explained = await made.connection.scalar(text(f"explain (analyze, format json) {statement}"), values)
        plan = explained if isinstance(explained, list) else json.loads(explained)
        scans = [node for node in _nodes(plan[0]["Plan"]) if node.get("Index Name") == "tables_signature_idx"]
        assert [node["Node Type"] for node in scans] == ["Index Only Scan"]
        assert scans[0]["Actual Rows"] * scans[0]["Actual Loops"] == NAMES
        possible = next(node for node in _nodes(plan[0]["Plan"]) if node.get("Subplan Name") == "CTE possible")
        assert 0 < possible["Actual Rows"] < NAMES / 3


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", []):
        yield from _nodes(each)
