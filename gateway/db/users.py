# SPDX-License-Identifier: Apache-2.0
"""Statements on users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import case, func, literal_column, select, text
from sqlalchemy import delete as delete_from
from sqlalchemy import update as update_of
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.rows import AnyRow
from gateway.db.schema.scim import scim_users
from gateway.db.schema.users import users


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """An address, and its source: `verified` by a provider's claim or given by a directory, or else by a caller with
    the right to change users. None is no address.
    """

    email: str | None
    verified: bool


async def upsert(
    connection: AsyncConnection,
    *,
    id: str,
    name: str,
    address: Address | None,
    user_type: str,
    by: str,
    update_if_exists: bool,
) -> tuple[AnyRow, bool]:
    """The user's row and whether it was created; an existing one is changed only with `update_if_exists`.

    Without an `address` an existing record keeps its own.
    """
    first: dict[str, Any] = {} if address is None else {"email": address.email}
    if address is not None and address.verified:
        first["verified_email"] = address.email
    new = insert(users).values(id=id, name=name, user_type=user_type, last_updated_with=by, **first)
    change = {"name": name, "user_type": user_type, "last_updated_with": by}
    change |= {} if address is None else _columns(address)
    values: dict[str, Any] = (
        {**change, "updated_at": func.clock_timestamp()} if update_if_exists else {"id": users.c.id}
    )
    statement = new.on_conflict_do_update(index_elements=["id"], set_=values).returning(
        users, literal_column("xmax = 0").label("created")
    )
    row = (await connection.execute(statement)).one()
    return row, bool(row.created)


async def verify_address(connection: AsyncConnection, id: str, email: str) -> None:
    """Record the address that the user's provider verified, unless a directory (SCIM) keeps the user."""
    kept = select(scim_users.c.id).where(scim_users.c.user_id == id).exists()
    change = update_of(users).where(users.c.id == id, users.c.verified_email.is_distinct_from(email), ~kept)
    await connection.execute(change.values(email=email, verified_email=email))


def _columns(address: Address) -> dict[str, Any]:
    """The values of both columns. An address that nobody verified leaves the verified one only if it is the same."""
    if address.verified:
        return {"email": address.email, "verified_email": address.email}
    same = case((users.c.verified_email == address.email, users.c.verified_email), else_=None)
    return {"email": address.email, "verified_email": same}


async def get(connection: AsyncConnection, id: str) -> AnyRow | None:
    """The user's row, or None."""
    return (await connection.execute(select(users).where(users.c.id == id))).one_or_none()


async def update(
    connection: AsyncConnection, id: str, *, name: str, address: Address | None, user_type: str, by: str
) -> AnyRow | None:
    """Give a user another name and kind, and the address if there is one; the row, None when there is none."""
    values = {"name": name, "user_type": user_type, "last_updated_with": by}
    values |= {} if address is None else _columns(address)
    change = update_of(users).where(users.c.id == id).values(**values, updated_at=func.clock_timestamp())
    row: AnyRow | None = (await connection.execute(change.returning(users))).one_or_none()
    return row


async def exist(connection: AsyncConnection, ids: Sequence[str]) -> set[str]:
    """Which of the ids are known. These stay so until the transaction ends: nothing is granted to whom a deletion has
    just swept the grants of.
    """
    if not ids:
        return set()
    return {row.id for row in await connection.execute(_EXIST, {"ids": list(ids)})}


_EXIST = text("select id from users where id = any(:ids) order by id for key share")


async def delete(connection: AsyncConnection, id: str) -> bool:
    """Remove the record; False when there is none. Then `ownership.record_principal_gone` in the same transaction."""
    return (await connection.execute(delete_from(users).where(users.c.id == id))).rowcount == 1


async def page(
    connection: AsyncConnection, *, name_contains: str | None, after: str | None, limit: int
) -> Sequence[AnyRow]:
    """Users in the order of their ids, those after `after`."""
    statement = select(users).order_by(users.c.id).limit(limit)
    if after is not None:
        statement = statement.where(users.c.id > after)
    if name_contains:
        statement = statement.where(users.c.name.icontains(name_contains, autoescape=True))
    return (await connection.execute(statement)).all()
