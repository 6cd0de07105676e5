# SPDX-License-Identifier: Apache-2.0
"""Record metadata files before they are written, so that those to which no table or view refers are found and deleted.

A file without a reference remains if a process is killed. The row of a file is committed before the file is written. A
trigger (`locations.sql`) deletes the row in the transaction that makes a metadata pointer refer to the file. If the
change fails, the row is deleted with the file, or after the sweeper has deleted the file. A file that a change makes
superfluous gets its row in the transaction of that change.

A change that makes a pointer refer to a file, or deletes a file, locks the file's row first. If the change lasts longer
than the file's cleanup window, it finds no row and fails, instead of referring to a deleted file. A request that
registers an existing file (`gateway.features.namespaces.registrations`) restarts its cleanup window before the read,
because the file may be recorded as superfluous.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import structlog
from sqlalchemy import ColumnElement, Exists, func, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.db.engine.database import Database
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.tables import pending_files, tables
from gateway.iceberg.errors import NoSuchWarehouseException

_log = structlog.get_logger("db.pending_files")


class PendingFiles:
    """Records files before they are written and after they are deleted.

    Each method is one statement that commits by itself.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, warehouse_id: UUID, locations: Sequence[str]) -> None:
        """Record files before they are written. Raises DatabaseUnavailable; then no file may be written."""
        async with self._database.autocommit() as connection:
            await add(connection, warehouse_id, locations)

    async def noted(self, location: str) -> bool:
        """Return True if a file is recorded: no pointer refers to it yet, or it will be deleted."""
        async with self._database.autocommit() as connection:
            return (await connection.execute(_NOTED, {"location": location})).first() is not None

    async def keep(self, location: str) -> None:
        """Restart the cleanup window of a file if it is recorded, before a request reads the file and registers it.

        It waits if a sweeper has locked the row. Then the row and the file are gone afterwards.
        """
        async with self._database.autocommit() as connection:
            await connection.execute(_KEEP, {"location": location})

    async def forget(self, locations: Sequence[str]) -> None:
        """Delete the rows of deleted files. If the database does not respond, the sweeper deletes them later."""
        try:
            async with self._database.autocommit() as connection:
                await forget(connection, locations)
        except DatabaseUnavailable as left:
            _log.warning("pending_files.left", files=list(locations), reason=str(left))


_NOTED = text("select 1 from pending_files where location = :location")
_KEEP = text("update pending_files set written_at = clock_timestamp() where location = :location")


async def add(connection: AsyncConnection, warehouse_id: UUID, locations: Sequence[str]) -> None:
    """Record files before they are written. Raises NoSuchWarehouseException if the warehouse was deleted."""
    try:
        await connection.execute(_ADD, {"locations": list(locations), "warehouse_id": warehouse_id})
    except IntegrityError as error:
        if "warehouse_id_fkey" in str(error.orig):
            raise NoSuchWarehouseException(f"Warehouse does not exist: {warehouse_id}") from error
        raise


_ADD = text(
    "insert into pending_files (location, warehouse_id) "
    "select a.location, cast(:warehouse_id as uuid) from unnest(cast(:locations as text[])) as a(location) "
    "on conflict do nothing"
)


async def hold(connection: AsyncConnection, locations: Sequence[str]) -> None:
    """Lock the rows of these files until the end of this transaction, which makes pointers refer to them. So the
    sweeper keeps them.

    Raises DatabaseUnavailable if the sweeper has locked one of them: nothing happened, and the client may retry.
    """
    held = (await connection.execute(_HOLD, {"locations": list(locations)})).all()
    if len(held) != len(set(locations)):
        raise DatabaseUnavailable("the change took too long: its files are being removed as unreferenced files")


_HOLD = text("select location from pending_files where location = any(:locations) order by location for update")


async def forget(connection: AsyncConnection, locations: Sequence[str]) -> None:
    """Delete the rows of deleted files."""
    await connection.execute(_FORGET, {"locations": list(locations)})


_FORGET = text("delete from pending_files where location = any(:locations)")


class OverdueFile(NamedTuple):
    """A recorded metadata file that no pointer refers to."""

    location: str
    warehouse_id: UUID


async def overdue(connection: AsyncConnection, *, seconds: float, limit: int) -> Sequence[OverdueFile]:
    """Return files that have been recorded for more than `seconds` and that no pointer refers to.

    At most `limit` files of each warehouse are returned, ordered by warehouse. So a warehouse whose store does not
    respond blocks no other.
    """
    queue_position = func.row_number().over(
        partition_by=pending_files.c.warehouse_id, order_by=pending_files.c.written_at
    )
    old = (
        select(pending_files.c.location, pending_files.c.warehouse_id, queue_position.label("turn"))
        .where(_over(seconds), ~_named())
        .subquery()
    )
    statement = select(old.c.location, old.c.warehouse_id).where(old.c.turn <= limit).order_by(old.c.warehouse_id)
    return await fetch_all(connection, OverdueFile, statement)


async def claim(connection: AsyncConnection, locations: Sequence[str], *, seconds: float) -> list[str]:
    """Lock and return those of the files that this transaction may delete.

    No other transaction uses or deletes them, and they are still overdue: `PendingFiles.keep` may have restarted the
    cleanup window of others.
    """
    is_requested = pending_files.c.location.in_(list(locations))
    statement = select(pending_files.c.location).where(is_requested, _over(seconds), ~_named())
    held = statement.order_by(pending_files.c.location).with_for_update(skip_locked=True)
    return list((await connection.execute(held)).scalars())


def _named() -> Exists:
    return select(tables.c.id).where(tables.c.metadata_location == pending_files.c.location).exists()


def _over(seconds: float) -> ColumnElement[bool]:
    over: ColumnElement[bool] = pending_files.c.written_at < func.clock_timestamp() - _seconds(seconds)
    return over


def _seconds(seconds: float) -> object:
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds)
