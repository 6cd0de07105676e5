# SPDX-License-Identifier: Apache-2.0
"""Insert tables, views and generic tables, and replace the documents of tables, using one statement each.

The statement also checks the location, and locks the new metadata file against its cleanup.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.db.tables import retired_locations
from gateway.db.tables.excerpts import document_values
from gateway.db.tables.tables import LOCATION_TAKEN, clashes
from gateway.iceberg.identifiers import fold


class LocationTaken(Exception):
    """A table or view is at, above or below the location, or was there and credentials for it may still be valid."""


async def create(
    connection: AsyncConnection,
    *,
    id: UUID,
    warehouse_id: UUID,
    namespace_id: UUID,
    name: str,
    table_uuid: UUID,
    location: str,
    location_key: str,
    metadata_location: str | None,
    metadata: bytes | None,
    staged_by: str | None,
    kind: str = "table",
    format: str | None = None,
    above: Sequence[str] | None = None,
    noted: bool = False,
) -> None:
    """Insert a table or view, or a staged table without metadata.

    `above` are the overlap keys of all locations above. If they are given, the location must be free
    (`tables.location_taken`); lock it first, in another statement (`tables.lock_place`). With `noted`, the metadata
    file is recorded in `pending_files`, and its row is locked against the sweeper. Raises LocationTaken, Clash if the
    name or the location is taken, and DatabaseUnavailable if the sweeper has locked the file. Then nothing was
    inserted.
    """
    values: dict[str, Any] = {
        "id": id,
        "warehouse_id": warehouse_id,
        "namespace_id": namespace_id,
        "kind": kind,
        "name": name,
        "name_key": fold(name),
        "table_uuid": table_uuid,
        "location": location,
        "location_key": location_key,
        "staged_by": staged_by,
        "format": format,
        **await document_values(kind, metadata_location, metadata),
    }
    if above is not None:
        values |= {**retired_locations.around(location_key, above), "other_than": None, "owners": []}
    with clashes():
        done = (await connection.execute(_create(above is not None, noted), values)).one()
    if done.taken:
        raise LocationTaken
    _require_held(done.held)


_CASTS: Final = {
    "id": "uuid",
    "warehouse_id": "uuid",
    "namespace_id": "uuid",
    "table_uuid": "uuid",
    "metadata": "bytea",
    "metadata_excerpt": "bytea",
    **dict.fromkeys(
        ("kind", "name", "name_key", "location", "location_key", "staged_by", "format", "metadata_location"), "text"
    ),
    "metadata_excerpt_of": "text",
}
"""The columns of a new row, with their types."""

_HELD: Final = "select location from pending_files where location = cast(:metadata_location as text) for update"
_NOT_NOTED: Final = "select null"


@cache
def _create(checked: bool, noted: bool) -> TextClause:
    taken = LOCATION_TAKEN if checked else "select false"
    values = ", ".join(f"cast(:{name} as {type})" for name, type in _CASTS.items())
    return text(
        f"""
        with held as materialized ({_HELD if noted else _NOT_NOTED}),
        place as materialized (select ({taken}) as taken),
        created as (
            insert into tables ({", ".join(_CASTS)})
            select {values} from place where not taken and exists (select 1 from held))
        select taken, (select count(*) from held) as held from place
        """  # noqa: S608 - composed of constants; every value is a bound parameter
    )


async def swap(
    connection: AsyncConnection,
    id: UUID,
    *,
    from_version: int,
    metadata_location: str,
    metadata: bytes,
    noted: bool = False,
    expired: Sequence[str] = (),
) -> bool:
    """Change the pointer if the version is still `from_version`. Return True if it was changed.

    `noted` is as in `create`. The metadata files `expired`, which the table does not refer to any more, are recorded
    for their deletion. Raises DatabaseUnavailable if the sweeper has locked the new file.
    """
    document = await document_values("table", metadata_location, metadata)
    values = {"of": id, "from_version": from_version, "expired": list(expired), **document}
    done = (await connection.execute(_swap(noted), values)).one()
    _require_held(done.held)
    return bool(done.swapped)


@cache
def _swap(noted: bool) -> TextClause:
    return text(
        f"""
        with held as materialized ({_HELD if noted else _NOT_NOTED}),
        swapped as (
            update tables t set metadata_location = cast(:metadata_location as text),
                metadata = cast(:metadata as bytea), metadata_excerpt = cast(:metadata_excerpt as bytea),
                metadata_excerpt_of = cast(:metadata_excerpt_of as text), version = t.version + 1,
                updated_at = clock_timestamp()
            where t.id = cast(:of as uuid) and t.version = cast(:from_version as bigint) and t.deleted_at is null
                and exists (select 1 from held)
            returning t.warehouse_id),
        recorded as (
            insert into pending_files (location, warehouse_id)
            select e.location, s.warehouse_id from swapped s, unnest(cast(:expired as text[])) as e(location)
            on conflict do nothing)
        select (select count(*) from held) as held, (select count(*) from swapped) as swapped
        """  # noqa: S608 - composed of constants; every value is a bound parameter
    )


def _require_held(files: int) -> None:
    """Raise DatabaseUnavailable if the sweeper has locked the file. Nothing happened, and the client may retry."""
    if files != 1:
        raise DatabaseUnavailable("the change took too long: its file is being removed as an unreferenced file")
