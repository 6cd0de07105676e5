# SPDX-License-Identifier: Apache-2.0
"""Metadata documents on PostgreSQL: resolution reads none, no cached one is stale, commits update the excerpt."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from gateway.access.actor import Actor
from gateway.access.nouns import refs
from gateway.access.nouns.resolved import Excerpt, ResolvedTable
from gateway.db.engine.database import Database
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.db.resolver.resolver_statements import SEVERAL, STATEMENTS
from gateway.db.tables import namespaces, tables, tabular_writes
from gateway.db.tables.documents import Document, DocumentCache, Documents
from gateway.db.tables.excerpts import fill_excerpts
from gateway.iceberg.errors import PayloadTooLarge
from tests.support.rows.parts import Rows


@dataclass
class Uses:
    """Observer that records the hits, misses and number of entries of a cache."""

    hits: int = 0
    misses: int = 0
    kept: list[int] = field(default_factory=list)

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        assert cache == "documents"
        self.hits += hits
        self.misses += misses

    def documents_kept(self, count: int) -> None:
        self.kept.append(count)


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    made = Database(url, pool_size=2, acquire_timeout=30)
    yield made
    await made.close()


def _document(number: int, *, size: int = 0) -> bytes:
    schema = {"schema-id": 0, "fields": [{"id": number, "name": "c", "type": "long", "required": False}]}
    return json.dumps({"pad": "x" * size, "current-schema-id": 0, "schemas": [schema], "snapshots": []}).encode()


async def _table(database: Database, rows: Rows, id: UUID, document: bytes) -> None:
    async with database.transaction() as connection:
        await tabular_writes.create(
            connection,
            id=id,
            warehouse_id=rows.warehouses[0],
            namespace_id=rows.outer,
            name=str(id),
            table_uuid=id,
            location=str(id),
            location_key=str(id),
            metadata_location=f"{id}/0",
            metadata=document,
            staged_by=None,
        )


async def _swap(database: Database, id: UUID, version: int, document: bytes) -> None:
    async with database.transaction() as connection:
        location = f"{id}/{version}"
        assert await tabular_writes.swap(
            connection, id, from_version=version, metadata_location=location, metadata=document
        )


async def _resolved(database: Database, rows: Rows, id: UUID) -> ResolvedTable:
    ref = refs.TabularRef(refs.Table, rows.warehouses[0], id)
    row = (await DatabaseResolver(database).resolve([ref], Actor.user(rows.users[0]))).rows[ref]
    assert isinstance(row, ResolvedTable)
    return row


@pytest.fixture
async def rows(database: Database) -> Rows:
    made = Rows()
    async with database.transaction() as connection:
        await connection.execute(text("delete from server"))
        await made.insert(connection)
    return made


def test_resolver_statements_select_no_documents_or_properties() -> None:
    selected = [
        *(each.statement for each in STATEMENTS.values()),
        *(query for query, _ in SEVERAL.values()),
    ]
    for statement in selected:
        sql = str(statement)
        for column in (
            "tables.metadata,",
            "tables.metadata AS",
            "tables.metadata \n",
            "metadata_excerpt",
            "properties",
        ):
            assert column not in sql, "a resolver statement reads a column that may hold megabytes"
    assert any("tables.metadata_location" in str(each) for each in selected), (
        "expected statements that read the metadata location"
    )


async def test_namespace_properties_are_read_by_id_and_absent_after_a_drop(database: Database, rows: Rows) -> None:
    expected = {"owner": "ß", "location": "s3://b/"}
    async with database.transaction() as connection:
        await namespaces.set_properties(connection, rows.outer, expected)
    assert await namespaces.read_properties(database, rows.outer) == expected
    assert await namespaces.read_properties(database, uuid4()) is None


def test_every_document_insert_uses_one_value_function() -> None:
    """A document that is stored without its excerpt would let decisions use the columns of an earlier schema."""
    stores = re.compile(r'[^_]metadata=metadata\b|"metadata": metadata|metadata=bindparam|metadata = (cast\()?:')
    folder = Path(tables.__file__).parent
    writers = {each.name for each in folder.glob("*.py") if stores.search(each.read_text())}
    assert writers == {"excerpts.py", "tabular_writes.py"}
    code = (folder / "tabular_writes.py").read_text()
    assert len(stores.findall(code)) == 1, "expected exactly one statement that replaces a document"
    assert code.count("await document_values(") == 2
    assert (folder / "tables.py").read_text().count("await document_values(") == 1


async def test_document_cache_has_one_entry_for_each_commit(database: Database, rows: Rows) -> None:
    id, uses = uuid4(), Uses()
    await _table(database, rows, id, _document(1))
    documents = Documents(database, DocumentCache(1_000_000, uses), max_together=10_000_000)
    first = await _resolved(database, rows, id)
    assert await documents.read(first) == Document(f"{id}/0", _document(1))
    assert await documents.read(first) == Document(f"{id}/0", _document(1))
    assert (uses.hits, uses.misses) == (1, 2), "expected two misses and then one hit"
    await _swap(database, id, 1, _document(2))
    second = await _resolved(database, rows, id)
    assert await documents.read(second) == Document(f"{id}/1", _document(2))
    assert await documents.read(first) == Document(f"{id}/0", _document(1)), (
        "the document of a location must not change"
    )


async def test_read_racing_with_a_commit_has_its_location_and_document(database: Database, rows: Rows) -> None:
    id = uuid4()
    await _table(database, rows, id, _document(1))
    documents = Documents(database, DocumentCache(1_000_000, Uses()), max_together=10_000_000)
    before = await _resolved(database, rows, id)
    await _swap(database, id, 1, _document(2))
    assert await documents.read(before) == Document(f"{id}/1", _document(2))
    async with database.transaction() as connection:
        await tables.drop(connection, id, by="x")
    gone = Documents(database, DocumentCache(1_000_000, Uses()), max_together=10_000_000)
    assert await gone.read(before) is None


async def test_document_cache_is_bounded_in_bytes_and_evicts_unused_entries(database: Database, rows: Rows) -> None:
    uses = Uses()
    cache = DocumentCache(10_000, uses)
    ids = [uuid4() for _ in range(8)]
    for id in ids:
        cache.keep(id, "l", b"x" * 1_500)
        cache.get(ids[0], "l")
    assert cache.get(ids[0], "l") is not None, "a used entry must stay in the cache"
    assert cache.get(ids[1], "l") is None, "the least recently used entry must be evicted"
    assert max(uses.kept) <= 10_000
    cache.keep(uuid4(), "l", b"x" * 5_000)
    assert cache.get(ids[0], "l") is not None, "a document above the limit must evict no entry"
    nothing = DocumentCache(0, Uses())
    nothing.keep(ids[0], "l", b"")
    assert nothing.get(ids[0], "l") is None


async def test_concurrent_cache_misses_read_a_document_once(database: Database, rows: Rows) -> None:
    id, uses = uuid4(), Uses()
    await _table(database, rows, id, _document(1))
    row = await _resolved(database, rows, id)
    documents = Documents(database, DocumentCache(1_000_000, uses), max_together=10_000_000)
    found = await asyncio.gather(*(documents.read(row) for _ in range(10)))
    assert found == [Document(f"{id}/0", _document(1))] * 10
    assert all(each is not None and found[0] is not None and each.text is found[0].text for each in found), (
        "concurrent readers must share one copy of the document"
    )


async def test_document_sizes_of_a_transaction_are_summed_before_reading(database: Database, rows: Rows) -> None:
    ids = [uuid4() for _ in range(3)]
    for number, id in enumerate(ids):
        await _table(database, rows, id, _document(number, size=1000))
    resolved = [await _resolved(database, rows, id) for id in ids]
    enough = Documents(database, DocumentCache(0, Uses()), max_together=4_000)
    assert {id: each.text for id, each in (await enough.read_all(resolved)).items()} == {
        id: _document(number, size=1000) for number, id in enumerate(ids)
    }
    few = Documents(database, DocumentCache(0, Uses()), max_together=2_000)
    with pytest.raises(PayloadTooLarge, match=r"takes \d{4} bytes; at most 2000 .* several transactions"):
        await few.read_all(resolved)
    assert await few.read_all(resolved[:1]), "a single table above the sum must be readable"


async def test_excerpt_follows_every_commit_also_of_an_earlier_version(database: Database, rows: Rows) -> None:
    id = uuid4()
    await _table(database, rows, id, _document(1))
    resolver = DatabaseResolver(database)

    async def known() -> Excerpt:
        return (await resolver.excerpts([id]))[id]

    assert (await known()).metadata_location == f"{id}/0"
    assert json.loads((await known()).text)["schemas"][0]["fields"][0]["id"] == 1
    await _swap(database, id, 1, _document(2))
    assert json.loads((await known()).text)["schemas"][0]["fields"][0]["id"] == 2
    assert "snapshots" not in json.loads((await known()).text)
    async with database.transaction() as connection:
        # Commit as a gateway of the previous version does, which does not know the two columns.
        await connection.execute(
            text("update tables set metadata = :document, metadata_location = 'older', version = version + 1"),
            {"document": _document(3)},
        )
    assert (await known()).metadata_location == "older"
    assert json.loads((await known()).text)["schemas"][0]["fields"][0]["id"] == 3
    assert await resolver.excerpts([uuid4()]) == {}


async def test_migrate_fills_the_excerpts_of_earlier_versions(database: Database, rows: Rows) -> None:
    ids = [uuid4() for _ in range(5)]
    for number, id in enumerate(ids):
        await _table(database, rows, id, _document(number + 1))
    broken = ids[0]
    async with database.transaction() as connection:
        await connection.execute(text("update tables set metadata_excerpt = null, metadata_excerpt_of = null"))
        await connection.execute(text("update tables set metadata = 'none' where id = :id"), {"id": broken})
    async with database.engine.connect() as connection:
        await fill_excerpts(connection)
    async with database.read() as connection:
        requested = text(
            "select id, metadata_excerpt, metadata_excerpt_of = metadata_location as same from tables "
            "where id = any(:ids)"
        )
        found = {row.id: row for row in await connection.execute(requested, {"ids": ids})}
    assert found[broken].metadata_excerpt is None, (
        "an unreadable document must get no excerpt and must not stop the migration"
    )
    for number, id in enumerate(ids[1:], start=2):
        assert found[id].same
        assert json.loads(found[id].metadata_excerpt)["schemas"][0]["fields"][0]["id"] == number
    assert await DatabaseResolver(database).excerpts([broken]) == {}
