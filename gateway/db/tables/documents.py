# SPDX-License-Identifier: Apache-2.0
"""Read metadata documents, after the request is permitted, through a cache that is bounded in bytes.

The document of a table id and a metadata location never changes. Every statement that writes one writes both
(`gateway.db.tables.tables`), each metadata file has a UUID in its name, and a table that is registered again has a new
id. So an entry of the cache is never stale. The only correction at a read is of times that would stop writers.

A document that is not in the cache is read together with its location, which may be newer than the row on which the
permit was decided. So the response must contain the document and the location that this module returns.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, Protocol
from uuid import UUID
from weakref import WeakValueDictionary

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Select, and_, bindparam, cast, func, literal, select

from gateway.access.nouns.resolved import ResolvedGenericTable, ResolvedTable, ResolvedView
from gateway.db.engine.database import Database
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.schema.tables import LIVE, tables
from gateway.iceberg.errors import PayloadTooLarge
from gateway.iceberg.metadata import writable_document

_LARGEST_SHARE: Final = 4
"""A document larger than this fraction (1/4) of the cache is not cached: it would evict all others."""

_OVERHEAD_BYTES: Final = 512
"""Approximate size of a cache entry without its document."""


_PORTION_BYTES: Final = 16 * 1024 * 1024
"""Approximate limit of the bytes of documents that one statement reads for a transaction."""


class Document(msgspec.Struct, frozen=True):
    """A metadata document, and the location of its metadata file. A generic table has no metadata file."""

    metadata_location: str
    text: bytes


class DocumentObserver(Protocol):
    """Receives figures of the document cache, for metrics."""

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Count lookups that found a document in the cache, and lookups that did not."""
        ...

    def documents_kept(self, count: int) -> None:
        """Set the number of bytes in the document cache of this process."""
        ...


class DocumentCache:
    """A cache of documents in one process, with at most `max_bytes` in total (0: no cache).

    The least recently used documents are evicted.
    """

    def __init__(self, max_bytes: int, observer: DocumentObserver) -> None:
        self._max_bytes = max_bytes
        self._observer = observer
        self._kept: OrderedDict[tuple[UUID, str], bytes] = OrderedDict()
        self._bytes = 0

    def get(self, id: UUID, metadata_location: str) -> bytes | None:
        """Return the document, None if it is not cached."""
        found = self._kept.get((id, metadata_location))
        if found is not None:
            self._kept.move_to_end((id, metadata_location))
        self._observer.count_lookups("documents", hits=int(found is not None), misses=int(found is None))
        return found

    def keep(self, id: UUID, metadata_location: str, text: bytes) -> None:
        """Cache a committed document, and evict the least recently used ones."""
        size = len(text) + _OVERHEAD_BYTES
        if size * _LARGEST_SHARE > self._max_bytes or (id, metadata_location) in self._kept:
            return
        self._kept[(id, metadata_location)] = text
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest) + _OVERHEAD_BYTES
        self._observer.documents_kept(self._bytes)


class Documents:
    """Reads the documents of tables, views and generic tables that a request was permitted to read or change."""

    def __init__(self, database: Database, cache: DocumentCache, *, max_together: int) -> None:
        """Set `max_together`, the number of bytes that the documents of one transaction may have in total."""
        self._max_together = max_together
        self._database = database
        self._cache = cache
        self._reading: WeakValueDictionary[tuple[UUID, str], asyncio.Lock] = WeakValueDictionary()

    async def read(self, row: ResolvedTable | ResolvedView | ResolvedGenericTable) -> Document | None:
        """Return the document of the row, or of a newer commit if it is read from the database. Return None if the
        table is gone.

        Concurrent requests for the same document that is not cached read it one after the other. Raises
        DatabaseUnavailable.
        """
        location = "" if isinstance(row, ResolvedGenericTable) else row.metadata_location
        if (known := self._cache.get(row.id, location)) is not None:
            return Document(location, known)
        async with self._reading.setdefault((row.id, location), asyncio.Lock()):
            if (known := self._cache.get(row.id, location)) is not None:
                return Document(location, known)
            found = await self._database.read_one(_READ, {"id": row.id})
        if found.document is None:
            return None
        document = Document(found.metadata_location or "", writable_document(found.document, found.now_ms))
        self._cache.keep(row.id, document.metadata_location, document.text)
        return document

    def keep(self, id: UUID, metadata_location: str, text: bytes) -> None:
        """Cache the document that a commit has just made current, because most are loaded soon."""
        self._cache.keep(id, metadata_location, text)

    async def read_all(self, rows: Sequence[ResolvedTable]) -> dict[UUID, Document]:
        """Return the documents of the tables that still exist, as `read` does.

        The sizes of several documents are added before any is read. Raises PayloadTooLarge if they exceed the limit of
        one transaction.
        """
        if len(rows) == 1:
            found = await self.read(rows[0])
            return {} if found is None else {rows[0].id: found}
        documents: dict[UUID, Document] = {}
        for some in await self._portions(rows):
            if len(some) == 1:
                found = await self.read(some[0])
                documents |= {} if found is None else {some[0].id: found}
                continue
            missing = []
            for row in some:
                if (known := self._cache.get(row.id, row.metadata_location)) is None:
                    missing.append(row.id)
                else:
                    documents[row.id] = Document(row.metadata_location, known)
            documents |= await self._read_several(missing)
        return documents

    async def read_dropped(self, ids: Sequence[UUID]) -> dict[UUID, Document]:
        """Return the documents of those objects that are dropped and can be restored, by the object's id.

        Raises PayloadTooLarge if they exceed the limit of one transaction.
        """
        async with self._database.read() as connection:
            sizes = (await connection.execute(_DROPPED_SIZES, {"ids": list(ids)})).scalars().all()
            if (total := sum(sizes)) > self._max_together:
                raise PayloadTooLarge(
                    f"The metadata of the objects to restore takes {total} bytes; at most {self._max_together} are "
                    "allowed. Restore fewer objects in one request."
                )
            rows = (await connection.execute(_READ_DROPPED, {"ids": list(ids)})).all()
        return {row.id: Document(row.metadata_location or "", row.document) for row in rows}

    async def _read_several(self, ids: Sequence[UUID]) -> dict[UUID, Document]:
        if not ids:
            return {}
        async with self._database.read() as connection:
            rows = (await connection.execute(_READ_SEVERAL, {"ids": list(ids)})).all()
        found = {row.id: Document(row.metadata_location, writable_document(row.document, row.now_ms)) for row in rows}
        for id, document in found.items():
            self._cache.keep(id, document.metadata_location, document.text)
        return found

    async def _portions(self, rows: Sequence[ResolvedTable]) -> list[list[ResolvedTable]]:
        """Return the tables in groups, such that one statement can read the documents of a group."""
        if not rows:
            return []
        async with self._database.read() as connection:
            found = await connection.execute(_SIZES, {"ids": [row.id for row in rows]})
            sizes = {row.id: row.size for row in found}
        if (total := sum(sizes.values())) > self._max_together:
            raise PayloadTooLarge(
                f"The metadata of the tables in this transaction takes {total} bytes; at most {self._max_together} "
                "are allowed. Send the changes in several transactions, or expire snapshots first."
            )
        portions: list[list[ResolvedTable]] = []
        left = 0
        for row in rows:
            size = sizes.get(row.id, 0)
            if not portions or size > left:
                portions.append([])
                left = _PORTION_BYTES
            portions[-1].append(row)
            left -= size
        return portions


#: The clock of the database in milliseconds. `writable_document` repairs timestamps that are later.
_NOW_MS: Final = cast(func.extract("epoch", func.clock_timestamp()) * 1000, BigInteger).label("now_ms")


def _read() -> Select[Any]:
    one = select(literal(1).label("one")).subquery("one")
    found: ColumnElement[bool] = and_(tables.c.id == bindparam("id", type_=tables.c.id.type), LIVE)
    columns = (tables.c.metadata_location, tables.c.metadata.label("document"), _NOW_MS)
    return select(*columns).select_from(one.outerjoin(tables, found))


#: The statement always returns one row. The row contains nulls if the table is gone.
_READ = DirectRead(_read())

_READ_SEVERAL = select(tables.c.id, tables.c.metadata_location, tables.c.metadata.label("document"), _NOW_MS).where(
    tables.c.id.in_(bindparam("ids", expanding=True)), LIVE
)

_DROPPED = and_(tables.c.id.in_(bindparam("ids", expanding=True)), tables.c.deleted_at.is_not(None))

_READ_DROPPED = select(tables.c.id, tables.c.metadata_location, tables.c.metadata.label("document")).where(_DROPPED)

_DROPPED_SIZES = select(func.octet_length(tables.c.metadata)).where(_DROPPED)

#: PostgreSQL returns the length of a stored value without reading the value.
_SIZES = select(tables.c.id, func.octet_length(tables.c.metadata).label("size")).where(
    tables.c.id.in_(bindparam("ids", expanding=True)), LIVE
)
