# SPDX-License-Identifier: Apache-2.0
"""Statements on rows that one user makes and another principal decides: access requests and break-glass activations.

A row has an object, privileges and a status, and its grants name it in their reason. All times are by the database's
clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    Uuid,
    and_,
    any_,
    case,
    cast,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    text,
    true,
    tuple_,
    union,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.door.list_visibility import Holders
from gateway.access.nouns.refs import TABULARS, ObjectKey, ObjectType
from gateway.access.tuples import PrincipalType
from gateway.db.pools.rows import fields_of
from gateway.db.schema.grants import grants
from gateway.db.schema.tables import namespaces, tables

NOW: Final = func.clock_timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRow:
    """A row to record."""

    id: UUID
    principal: str
    project_id: str
    warehouse_id: UUID | None
    on: ObjectKey
    name: str
    privileges: Sequence[str]
    reason: str


@dataclass(frozen=True, slots=True)
class DecidedRow:
    """A row with its current status. `principal` is the user that made it, and that receives the grants.

    `named` is the beginning of the reason of the grants.
    """

    named = ""

    id: UUID
    principal: str
    project_id: str
    warehouse_id: UUID | None
    object_type: str
    object_id: str
    name: str
    privileges: list[str]
    reason: str
    status: str
    created_at: datetime
    ends_at: datetime | None
    ended_by: str | None
    ended_at: datetime | None

    @property
    def on(self) -> ObjectKey:
        """Return the object of the row."""
        return ObjectKey(ObjectType(self.object_type), self.object_id)

    @property
    def grant_reason(self) -> str:
        """Return the reason of the grants that a decision makes. It names the row."""
        return grant_reason(type(self), self.id, self.reason)


Row = TypeVar("Row", bound=DecidedRow)


def grant_reason(kind: type[DecidedRow], id: UUID, reason: str) -> str:
    """Return the reason of a grant that names the row."""
    return f"{kind.named} {id}: {reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows of a page: oldest first, after the id `after`.

    - `deciding`: the pairs of object type and privilege that can give the right to decide. None if a principal can have
      the right in another way: then the rows of all users are read.
    - `own`: True for the rows of the user itself, False for those of other users, None for both.
    - `project_id`: limits the rows to one project.
    """

    user: str
    holders: Holders
    deciding: AbstractSet[tuple[str, str]] | None
    project_id: str | None
    own: bool | None = None
    after: UUID | None = None
    limit: int


@dataclass(frozen=True, slots=True)
class DecidedRows:
    """The table of one kind of rows. `computed` replaces columns by expressions, such as the current status."""

    table: Table
    kind: type[DecidedRow]
    computed: Mapping[str, ColumnElement[Any]]

    async def record(self, connection: AsyncConnection, new: NewRow, **values: object) -> None:
        """Record a row. `values` are the columns of its kind."""
        known = {field.name: getattr(new, field.name) for field in fields(NewRow) if field.name != "on"}
        known |= {"object_type": new.on.type.value, "object_id": new.on.id, "privileges": list(new.privileges)}
        await connection.execute(insert(self.table).values(**known, **values))

    def one(self, id: UUID) -> Select[Any]:
        """Return the statement that reads the row with this id."""
        return self._select().where(self.table.c.id == id)

    def all_of(self, ids: Select[Any]) -> Select[Any]:
        """Return the statement that reads the rows whose ids `ids` selects, in the order of the ids."""
        # An array, because a join can make the planner read rows between these.
        return (
            self._select().where(self.table.c.id == any_(func.array(ids.scalar_subquery()))).order_by(self.table.c.id)
        )

    async def change(
        self, connection: AsyncConnection, id: UUID, condition: ColumnElement[bool], **values: object
    ) -> bool:
        """Change the row if the condition holds. Return False if it does not.

        Concurrent changes wait here for the first one, and then compare with its result.
        """
        changed = await connection.execute(update(self.table).where(self.table.c.id == id, condition).values(**values))
        return bool(changed.rowcount)

    def page(self, selection: Selection, *terms: ColumnElement[bool]) -> Select[Any]:
        """Return the statement that reads rows of the user, and rows about which one of its grants can let it decide.

        Each grant leads to rows by an index. Rows of other users to which no grant leads are not read.
        """
        columns = self.table.c
        if selection.after is not None:
            terms += (columns.id > selection.after,)
        if selection.project_id is not None:
            terms += (columns.project_id == selection.project_id,)
        found: list[Select[Any]] = []
        if selection.own is not False:
            found.append(self._first(selection, *terms, columns.principal == selection.user))
        if selection.own is not True:
            found += self._of_others(selection, *terms, columns.principal != selection.user)
        ways = union(*(select(each.subquery().c.id) for each in found))
        return self.all_of(select(ways.subquery().c.id).order_by("id").limit(selection.limit))

    def _of_others(self, selection: Selection, *terms: ColumnElement[bool]) -> list[Select[Any]]:
        """Return a statement for each kind of object with a grant of the user: the ids of the rows on it or in it."""
        columns, scopes = self.table.c, _scopes(selection).cte("scopes")
        in_warehouse = columns.warehouse_id == scopes.c.warehouse_id
        below = or_(namespaces.c.id == scopes.c.uuid, scopes.c.uuid == any_(namespaces.c.ancestors))
        on_itself = (columns.object_type == scopes.c.type, columns.object_id == scopes.c.id)
        ways = {
            # Without the term, all rows would be read before the scopes.
            ObjectType.SERVER: self._first(selection, *terms, scopes.c.type == ObjectType.SERVER.value),
            ObjectType.PROJECT: self._first(selection, *terms, columns.project_id == scopes.c.id),
            ObjectType.WAREHOUSE: self._first(selection, *terms, in_warehouse),
            ObjectType.NAMESPACE: self._placed(self._first(selection, *terms, in_warehouse, below)),
            None: self._first(selection, *terms, *on_itself),
        }
        found = []
        for type, way in ways.items():
            rows = way.correlate(scopes).lateral()
            of_type = true() if type is None else scopes.c.type == type.value
            found.append(select(rows.c.id).select_from(scopes.join(rows, true())).where(of_type))
        return found

    def _placed(self, statement: Select[Any]) -> Select[Any]:
        """Return the statement with the namespace of each row's object, or the object itself if it is one."""
        type, id = self.table.c.object_type, self.table.c.object_id
        own = case((type == ObjectType.NAMESPACE.value, cast(id, Uuid)))
        inside = case((type.in_([each.value for each in TABULARS]), cast(id, Uuid)))
        home = func.coalesce(own, tables.c.namespace_id)
        return statement.select_from(
            self.table.outerjoin(tables, tables.c.id == inside).join(namespaces, namespaces.c.id == home)
        )

    def _first(self, selection: Selection, *terms: ColumnElement[bool]) -> Select[Any]:
        return select(self.table.c.id).where(*terms).order_by(self.table.c.id).limit(selection.limit)

    def _select(self) -> Select[Any]:
        names = fields_of(self.kind)
        return select(
            *[self.computed[name].label(name) if name in self.computed else self.table.c[name] for name in names]
        )


async def lock(connection: AsyncConnection, *names: str) -> None:
    """Until this transaction ends, wait with other transactions that lock one of the names, in this order."""
    for name in names:
        await connection.execute(_LOCK, {"name": name})


_LOCK = text("select pg_advisory_xact_lock(hashtextextended(:name, 7))")


def seconds(number: float) -> ColumnElement[Any]:
    """Return a duration in SQL."""
    return func.make_interval(0, 0, 0, 0, 0, 0, number)


async def granted_for_longer(
    connection: AsyncConnection, row: DecidedRow | NewRow, privileges: Sequence[str], *, by: str, until: datetime
) -> str | None:
    """Return a privilege that `by` already granted to the user of the row until `until` or longer, or None.

    A decision would replace such a grant by a shorter one.
    """
    longer = select(grants.c.privilege).where(
        grants.c.object_type == row.on.type.value,
        grants.c.object_id == row.on.id,
        grants.c.principal_type == PrincipalType.USER.value,
        grants.c.principal_id == row.principal,
        grants.c.granted_by == by,
        grants.c.privilege.in_(privileges),
        or_(grants.c.expires_at.is_(None), grants.c.expires_at >= until),
    )
    found: str | None = (await connection.execute(longer.limit(1))).scalar_one_or_none()
    return found


def live_grants_to(holders: Holders) -> ColumnElement[bool]:
    """Return the condition for the live grants to these principals."""
    held = or_(
        and_(grants.c.principal_type == PrincipalType.USER.value, grants.c.principal_id == holders.user),
        and_(grants.c.principal_type == PrincipalType.ROLE.value, grants.c.principal_id.in_(holders.roles)),
    )
    return and_(held, or_(grants.c.expires_at.is_(None), grants.c.expires_at > NOW))


def _scopes(selection: Selection) -> Select[Any]:
    """Return a statement for the objects with a grant that can let the user decide: types, ids and warehouses.

    The objects that can contain others are the server, projects, warehouses and namespaces.
    """
    if selection.deciding is None:
        everything = literal(ObjectType.SERVER.value).label("type"), literal("").label("id")
        nowhere = cast(null(), Uuid).label("uuid"), cast(null(), Uuid).label("warehouse_id")
        return select(*everything, *nowhere)
    type, id = grants.c.object_type, grants.c.object_id
    uuid = case((type.in_((ObjectType.WAREHOUSE.value, ObjectType.NAMESPACE.value)), cast(id, Uuid)))
    warehouse = func.coalesce(namespaces.c.warehouse_id, uuid)
    return (
        select(type.label("type"), id.label("id"), uuid.label("uuid"), warehouse.label("warehouse_id"))
        .select_from(grants.outerjoin(namespaces, namespaces.c.id == uuid))
        .where(live_grants_to(selection.holders), tuple_(type, grants.c.privilege).in_(sorted(selection.deciding)))
        .distinct()
    )
