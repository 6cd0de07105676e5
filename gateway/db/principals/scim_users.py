# SPDX-License-Identifier: Apache-2.0
"""Statements on users that identity providers maintain by SCIM. Each statement concerns the users of one provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import columns_for, count_and_some, fetch_one, fetch_optional
from gateway.db.schema.principals import scim_users, users
from gateway.iceberg.identifiers import fold


class ScimUserRow(NamedTuple):
    """A user that a provider maintains. `document` is JSON."""

    id: UUID
    user_id: str
    user_name: str
    external_id: str | None
    active: bool
    document: bytes
    version: int
    created_at: datetime
    updated_at: datetime


_COLUMNS: Final = columns_for(ScimUserRow, scim_users)


class UserTaken(Exception):
    """Another user of the provider has this name or id. The transaction cannot continue."""


@contextmanager
def _clashes() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        if "scim_users_" in str(error.orig) and "_key" in str(error.orig):
            raise UserTaken("another user of the provider has this name or id") from error
        raise


async def create(
    connection: AsyncConnection, *, id: UUID, user_id: str, provider_id: str, values: Mapping[str, Any]
) -> ScimUserRow:
    """Insert the SCIM user of an existing row of `users`, and return its row.

    `values` is the result of `values_of`. Raises UserTaken.
    """
    new = insert(scim_users).values(id=id, user_id=user_id, provider_id=provider_id, **values)
    with _clashes():
        row = await fetch_one(connection, ScimUserRow, new.returning(*_COLUMNS))
    return row


def values_of(*, user_name: str, external_id: str | None, active: bool, document: bytes) -> dict[str, Any]:
    """Return the values of the columns that a request sets for a SCIM user."""
    return {
        "user_name": user_name,
        "user_name_key": fold(user_name),
        "external_id": external_id,
        "active": active,
        "document": document,
    }


async def change(connection: AsyncConnection, id: UUID, values: Mapping[str, Any]) -> ScimUserRow:
    """Update a locked SCIM user and return its row. Raises UserTaken."""
    changed = (
        update(scim_users)
        .where(scim_users.c.id == id)
        .values(**values, version=scim_users.c.version + 1, updated_at=func.clock_timestamp())
    )
    with _clashes():
        row = await fetch_one(connection, ScimUserRow, changed.returning(*_COLUMNS))
    return row


async def get(connection: AsyncConnection, provider_id: str, id: UUID) -> ScimUserRow | None:
    """Return the provider's user with this id, or None."""
    found = select(*_COLUMNS).where(scim_users.c.id == id, scim_users.c.provider_id == provider_id)
    return await fetch_optional(connection, ScimUserRow, found)


async def hold(connection: AsyncConnection, provider_id: str, id: UUID) -> ScimUserRow | None:
    """Return the user as `get` does, and lock its row in `users` until this transaction ends.

    So no grant can be made to the user until then (`users.exist`).
    """
    row = await get(connection, provider_id, id)
    if row is None:
        return None
    await connection.execute(select(users.c.id).where(users.c.id == row.user_id).with_for_update())
    return await get(connection, provider_id, id)


async def is_provisioned(connection: AsyncConnection, user_id: str) -> bool:
    """Return True if a provider maintains the user. Lock the user's row, if any, until the transaction ends."""
    # Two separate statements: the second one sees the changes of a transaction whose lock the first one waited for.
    await connection.execute(select(users.c.id).where(users.c.id == user_id).with_for_update())
    found = select(scim_users.c.id).where(scim_users.c.user_id == user_id)
    return (await connection.execute(found)).one_or_none() is not None


async def page(
    connection: AsyncConnection, *, provider_id: str, conditions: Mapping[str, Any], offset: int, limit: int
) -> tuple[int, Sequence[ScimUserRow]]:
    """Return (the number of matching users, one page of them in order of creation).

    They are the provider's users that meet the conditions. The keys of `conditions` are attributes in lower case.
    """
    statement = select(*_COLUMNS).where(
        scim_users.c.provider_id == provider_id, *(_condition(*each) for each in conditions.items())
    )
    return await count_and_some(
        connection, ScimUserRow, statement.order_by(scim_users.c.id), offset=offset, limit=limit
    )


def _condition(attribute: str, value: Any) -> ColumnElement[bool]:
    condition: ColumnElement[bool]
    match attribute:
        case "id":
            condition = scim_users.c.id == value
        case "username":
            condition = scim_users.c.user_name_key == fold(value)
        case "externalid":
            condition = scim_users.c.external_id == value
        case "active":
            condition = scim_users.c.active == value
        case "displayname":
            named = select(users.c.id).where(func.lower(users.c.name) == value.lower())
            condition = scim_users.c.user_id.in_(named)
        case _:
            raise LookupError(attribute)
    return condition


async def ids_of(connection: AsyncConnection, provider_id: str, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the gateway's user ids of these SCIM ids, as far as they belong to the provider.

    Their rows are locked until the transaction ends, so that no grant is made to a user whose grants a concurrent
    deletion has just ended.
    """
    if not ids:
        return {}
    found = (
        select(scim_users.c.id, scim_users.c.user_id)
        .join(users, users.c.id == scim_users.c.user_id)
        .where(scim_users.c.provider_id == provider_id, scim_users.c.id.in_(ids))
        .order_by(users.c.id)
        .with_for_update(read=True, key_share=True, of=users)
    )
    return {row.id: row.user_id for row in await connection.execute(found)}
