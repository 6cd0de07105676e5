# SPDX-License-Identifier: Apache-2.0
"""Statements on the attachments of tags to objects and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import Select, and_, delete, exists, func, insert, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import columns_for, fetch_all, fetch_one, fetch_optional
from gateway.db.schema.policies import tag_attachments, tags
from gateway.db.schema.tables import LIVE, namespaces, tables

_on = tag_attachments.c


class Attachment(NamedTuple):
    """The attachment of a tag to an object or, with `field_id`, to a column of a table."""

    tag_id: UUID
    warehouse_id: UUID
    object_type: str
    object_id: UUID
    field_id: int | None
    value: str | None
    attached_by: str
    attached_at: datetime
    created_at: datetime


class NamedAttachment(NamedTuple):
    """An attachment with the name of its tag."""

    tag_id: UUID
    warehouse_id: UUID
    object_type: str
    object_id: UUID
    field_id: int | None
    value: str | None
    attached_by: str
    attached_at: datetime
    created_at: datetime
    name: str


_COLUMNS: Final = columns_for(Attachment, tag_attachments)


@dataclass(frozen=True, slots=True)
class Target:
    """An object that can have tags. For a column, it has the id of the table, the field id and the current name."""

    type: str
    id: UUID
    warehouse_id: UUID
    field_id: int | None = None
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """The conditions for a list of attachments. None, or an empty filter, selects all. Times are inclusive."""

    value: str | None = None
    type: str | None = None
    warehouse_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


def _at(tag_id: UUID, target: Target) -> tuple[object, ...]:
    field = _on.field_id.is_(None) if target.field_id is None else _on.field_id == target.field_id
    return _on.tag_id == tag_id, _on.object_id == target.id, field


async def held(connection: AsyncConnection, tag_id: UUID, target: Target) -> Attachment | None:
    """Return the attachment of a tag to an object and lock it until the transaction ends.

    Return None if there is none.
    """
    found = select(*_COLUMNS).where(*_at(tag_id, target)).with_for_update()  # type: ignore[arg-type]  # conditions of one table
    return await fetch_optional(connection, Attachment, found)


async def attach(
    connection: AsyncConnection, tag_id: UUID, target: Target, present: Attachment | None, *, value: str | None, by: str
) -> Attachment:
    """Attach a tag, or change the value of the attachment `present`, which `held` has locked. Return the row.

    Call it with the tag and the object locked, so that concurrent changes of one attachment run one after another.
    """
    # One time for the whole statement, so that both times of a new attachment are equal.
    now = func.statement_timestamp()
    said = {"value": value, "attached_by": by, "attached_at": now, "column_name": target.column}
    if present is not None:
        change = update(tag_attachments).where(*_at(tag_id, target)).values(**said)  # type: ignore[arg-type]  # as above
        return await fetch_one(connection, Attachment, change.returning(*_COLUMNS))
    made = insert(tag_attachments).values(
        tag_id=tag_id,
        warehouse_id=target.warehouse_id,
        object_type=target.type,
        object_id=target.id,
        field_id=target.field_id,
        created_at=now,
        **said,
    )
    return await fetch_one(connection, Attachment, made.returning(*_COLUMNS))


async def detach(connection: AsyncConnection, tag_id: UUID, target: Target) -> None:
    """Detach a tag. Do nothing if the object does not have it."""
    await connection.execute(delete(tag_attachments).where(*_at(tag_id, target)))  # type: ignore[arg-type]  # as above


def _with_names() -> Select[tuple[object, ...]]:
    return select(*_COLUMNS, tags.c.name).join_from(tag_attachments, tags, tags.c.id == _on.tag_id)


async def of_objects(connection: AsyncConnection, ids: Sequence[UUID]) -> Sequence[NamedAttachment]:
    """Return the attachments to these objects themselves, without those to columns, ordered by the tag's name."""
    statement = _with_names().where(_on.object_id.in_(list(ids)), _on.field_id.is_(None))
    return await fetch_all(connection, NamedAttachment, statement.order_by(tags.c.name_key, _on.object_id))


async def of_columns(
    connection: AsyncConnection, table_id: UUID, field_id: int | None = None
) -> Sequence[NamedAttachment]:
    """Return the attachments to all columns of a table, or to one column, ordered by field id and the tag's name."""
    statement = _with_names().where(_on.object_id == table_id, _on.field_id.is_not(None))
    if field_id is not None:
        statement = statement.where(_on.field_id == field_id)
    return await fetch_all(connection, NamedAttachment, statement.order_by(_on.field_id, tags.c.name_key))


async def of_tag(
    connection: AsyncConnection,
    tag_id: UUID,
    chosen: Filter,
    *,
    after: tuple[UUID, int] | None,
    limit: int,
) -> Sequence[Attachment]:
    """Return the attachments of a tag, ordered by (object id, field id). The page starts after `after`.

    The field id is -1 for an object itself. Dropped tables and deleted objects are left out.
    """
    field = func.coalesce(_on.field_id, -1)
    present = or_(
        _on.object_type == "warehouse",
        and_(_on.object_type == "namespace", exists().where(namespaces.c.id == _on.object_id)),
        exists().where(tables.c.id == _on.object_id, LIVE),
    )
    statement = select(*_COLUMNS).where(_on.tag_id == tag_id, present).order_by(_on.object_id, field).limit(limit)
    if after is not None:
        statement = statement.where(tuple_(_on.object_id, field) > tuple_(*after))
    if chosen.value is not None:
        statement = statement.where(_on.value == chosen.value)
    if chosen.type is not None:
        statement = statement.where(_on.object_type == chosen.type)
    if chosen.warehouse_id is not None:
        statement = statement.where(_on.warehouse_id == chosen.warehouse_id)
    if chosen.since is not None:
        statement = statement.where(_on.attached_at >= chosen.since)
    if chosen.until is not None:
        statement = statement.where(_on.attached_at <= chosen.until)
    return await fetch_all(connection, Attachment, statement)
