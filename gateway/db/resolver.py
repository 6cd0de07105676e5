# SPDX-License-Identifier: Apache-2.0
"""Turning references into rows for the door: one statement on the primary for each kind of reference in the request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    Column,
    ColumnElement,
    Label,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access import refs
from gateway.access.actor import Actor
from gateway.access.resolved import (
    Resolution,
    Resolved,
    ResolvedNamespace,
    ResolvedProject,
    ResolvedRole,
    ResolvedServer,
    ResolvedTable,
    ResolvedView,
    Whereabouts,
)
from gateway.access.tuples import PrincipalType
from gateway.db.direct import DirectRead
from gateway.db.engine import Database
from gateway.db.found import generic_table_from, namespace_from, table_from, user_from, view_from, warehouse_from
from gateway.db.rows import AnyRow
from gateway.db.schema.grants import grants
from gateway.db.schema.namespaces import namespaces
from gateway.db.schema.projects import projects
from gateway.db.schema.roles import roles
from gateway.db.schema.servers import server
from gateway.db.schema.tables import tables
from gateway.db.schema.users import users
from gateway.db.schema.warehouses import warehouses
from gateway.iceberg.identifiers import Namespace, fold

# One moment for all of a statement: a grant that ends while it runs is either live and has a coming end, or is neither.
_MOMENT = func.statement_timestamp()
_now = _MOMENT.label("now")

# No name has a control character.
_BETWEEN_KEYS = "\x1e"

_WAREHOUSE = (
    warehouses.c.id.label("w_id"),
    warehouses.c.project_id.label("w_project_id"),
    warehouses.c.name.label("w_name"),
    warehouses.c.active.label("w_active"),
    warehouses.c.profile.label("w_profile"),
    warehouses.c.profile_version.label("w_profile_version"),
    warehouses.c.revision.label("w_revision"),
    warehouses.c.secret_id.label("w_secret_id"),
    warehouses.c.allowed_format_versions.label("w_allowed"),
    warehouses.c.default_format_version.label("w_default"),
)
_NAMESPACE = (
    namespaces.c.id.label("n_id"),
    namespaces.c.levels.label("n_levels"),
    namespaces.c.ancestors.label("n_ancestors"),
    namespaces.c.properties.label("n_properties"),
)
_TABLE = (
    tables.c.id.label("t_id"),
    tables.c.name.label("t_name"),
    tables.c.location.label("t_location"),
    tables.c.metadata_location.label("t_metadata_location"),
    tables.c.metadata.label("t_metadata"),
    tables.c.format.label("t_format"),
    tables.c.version.label("t_version"),
)


class DatabaseResolver:
    """The door's resolver on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def resolve(self, wanted: Sequence[refs.Ref], caller: Actor) -> Resolution:
        """The rows behind `wanted`, the database's clock and the caller's roles. References to nothing have no row.

        What lies in a warehouse that is not active has one: the door says what that means for the operation.
        """
        found: dict[refs.Ref, Resolved] = {}
        absent: dict[refs.Ref, Whereabouts] = {}
        asked_by = _caller(caller)
        clock: AnyRow | None = None
        kinds: dict[type[refs.Ref], list[refs.Ref]] = {}
        for ref in wanted:
            kinds.setdefault(type(ref), []).append(ref)
        for kind, some in kinds.items():
            if len(some) == 1:
                # One row that always has `now` and `caller_roles`, and the rest when the reference points at something.
                row = await self._database.read_one(_STATEMENTS[kind], {**_parameters(some[0]), **asked_by})
                resolved = _resolved(some[0], row)
                found.update({} if resolved is None else {some[0]: resolved})
                absent.update(_absent(some[0], row))
            else:
                # A transaction names many tables, a question many objects: one statement for all of a kind.
                async with self._database.read() as connection:
                    row, several = await _read_several(connection, kind, some, asked_by)
                found.update(several)
            clock = clock or row
        # The first statement of all tells the clock and the revisions: what is read after them can only be newer.
        if clock is None:
            clock = await self._database.read_one(_ONLY_CLOCK, asked_by)
        return Resolution(
            rows=found,
            now=clock.now.astimezone(UTC),
            caller_roles=tuple(sorted({*(clock.caller_roles or ()), *_assumed(caller)})),
            revision=clock.revision,
            time_boxes=clock.time_boxes,
            next_expiry=None if clock.next_expiry is None else clock.next_expiry.astimezone(UTC),
            absent=absent,
        )

    async def endings(self, caller: Actor, *, after: datetime, until: datetime) -> Sequence[datetime]:
        """When grants to the caller, or to one of the caller's roles, end within these times, in order."""
        async with self._database.read() as connection:
            rows = await connection.execute(_ENDINGS, {**_caller(caller), "after": after, "until": until})
            return [row.expires_at.astimezone(UTC) for row in rows]


def _caller(actor: Actor) -> dict[str, str]:
    """Whose roles are looked up: those of the assumed role, or else of the caller."""
    if actor.assumed_role is not None:
        return {"caller_type": PrincipalType.ROLE.value, "caller_id": str(actor.assumed_role)}
    return {"caller_type": PrincipalType.USER.value, "caller_id": actor.id}


def _assumed(actor: Actor) -> tuple[str, ...]:
    return () if actor.assumed_role is None else (str(actor.assumed_role),)


async def _read_several(
    connection: AsyncConnection, kind: type[refs.Ref], some: Sequence[refs.Ref], asked_by: dict[str, str]
) -> tuple[AnyRow, dict[refs.Ref, Resolved]]:
    """(a row with the clock, what is behind these references of one kind), in one statement whatever there is."""
    query, columns = _SEVERAL[kind]
    wanted = [tuple(_parameters(ref).values())[: len(columns)] for ref in some]
    labelled = [column.label(f"key_{number}") for number, column in enumerate(columns)]
    asked = query.add_columns(*labelled).where(tuple_(*columns).in_(list(dict.fromkeys(wanted))))
    rows: Sequence[AnyRow] = (await connection.execute(_always(asked), asked_by)).all()
    by_key = {tuple(row[-len(columns) :]): row for row in rows}
    found: dict[refs.Ref, Resolved] = {}
    for ref, key in zip(some, wanted, strict=True):
        resolved = _resolved(ref, by_key[key]) if key in by_key else None
        if resolved is not None and _lies_where_asked(ref, resolved):
            found[ref] = resolved
    return rows[0], found


def _lies_where_asked(ref: refs.Ref, row: Resolved) -> bool:
    """The path of a namespace's id may name a warehouse, which is no part of what it is looked up by."""
    if not isinstance(ref, refs.NamespaceIdRef) or not isinstance(row, ResolvedNamespace):
        return True
    return ref.warehouse_id in (None, row.warehouse.id)


def _word(constant: str) -> ColumnElement[str]:
    """A constant of ours as a literal of the statement."""
    return literal_column(f"'{constant}'", Text)


def _roles_and_grants() -> tuple[CTE, ColumnElement[bool]]:
    """(the roles the caller is in, which grants are to the caller or to one of them).

    Ownership of a role is membership in it, as in the model.
    """
    live = grants.c.expires_at.is_(None) | (grants.c.expires_at > _MOMENT)
    # Written into the statement: with parameters in their place, a plan for all values cannot use the partial index.
    gives = or_(grants.c.privilege == _word("assignee"), grants.c.privilege == _word("ownership"))
    membership = and_(grants.c.object_type == _word("role"), gives, live)
    held = (
        select(grants.c.object_id.label("role_id"))
        .where(
            membership,
            grants.c.principal_type == bindparam("caller_type"),
            grants.c.principal_id == bindparam("caller_id"),
        )
        .cte("held_roles", recursive=True)
    )
    through = select(grants.c.object_id).where(
        membership, grants.c.principal_type == _word("role"), grants.c.principal_id == held.c.role_id
    )
    every = held.union(through)
    to_caller = and_(
        grants.c.principal_type == bindparam("caller_type"), grants.c.principal_id == bindparam("caller_id")
    )
    to_role = and_(grants.c.principal_type == _word("role"), grants.c.principal_id.in_(select(every.c.role_id)))
    return every, or_(to_caller, to_role)


def _of_caller() -> tuple[Label[Any], Label[Any]]:
    """(the ids of the roles the caller is in, or null; when the first grant to the caller or to one of them ends)."""
    every, theirs = _roles_and_grants()
    ends = select(func.min(grants.c.expires_at)).where(grants.c.expires_at > _MOMENT, theirs)
    roles_held = select(func.array_agg(every.c.role_id)).scalar_subquery()
    return roles_held.label("caller_roles"), ends.scalar_subquery().label("next_expiry")


def _endings() -> Select[Any]:
    ends = grants.c.expires_at
    within = and_(ends > bindparam("after", type_=ends.type), ends <= bindparam("until", type_=ends.type))
    return select(ends).where(within, _roles_and_grants()[1]).distinct().order_by(ends)


_ENDINGS = _endings()


def _of_server(column: Column[Any]) -> Label[Any]:
    return select(column).scalar_subquery().label(column.name)


#: What every resolution reads beside its rows: the clock, the server's revision, and what is known of the caller.
_CLOCK: Select[Any] = select(_now, _of_server(server.c.revision), _of_server(server.c.time_boxes), *_of_caller())


_ONLY_CLOCK = DirectRead(_CLOCK)


def _always(query: Select[Any]) -> Select[Any]:
    """Left-join the query to the clock, so that an absent row still tells the time."""
    found = query.subquery("found")
    clock = _CLOCK.subquery("clock")
    return select(*clock.c, *found.c).select_from(clock.outerjoin(found, true()))


def _direct(query: Select[Any]) -> DirectRead:
    return DirectRead(_always(query))


def _named_direct(query: Select[Any], key: str) -> DirectRead:
    """As `_direct`, for something named by its path: where it would lie is read too when it is not there."""
    always = _always(query)
    above = namespaces.c.path_key == any_(func.string_to_array(bindparam("above_keys", type_=Text), _BETWEEN_KEYS))
    path = (
        select(func.to_jsonb(func.array_append(namespaces.c.ancestors, namespaces.c.id)))
        .where(namespaces.c.warehouse_id == warehouses.c.id, above)
        .order_by(func.cardinality(namespaces.c.ancestors).desc())
        .limit(1)
        .scalar_subquery()
    )
    where = (
        select(func.jsonb_build_array(warehouses.c.project_id, func.coalesce(path, literal_column("'[]'", JSONB))))
        .where(warehouses.c.id == bindparam("warehouse_id"))
        .scalar_subquery()
    )
    missing = always.selected_columns[key].is_(None)
    return DirectRead(always.add_columns(case((missing, where)).label("absent")))


def _warehouse_columns() -> Select[Any]:
    return select(*_WAREHOUSE)


def _namespace_columns() -> Select[Any]:
    return select(*_WAREHOUSE, *_NAMESPACE).join_from(
        namespaces, warehouses, warehouses.c.id == namespaces.c.warehouse_id
    )


def _table_columns(kind: str = "table") -> Select[Any]:
    return _kept_columns(kind).where(tables.c.deleted_at.is_(None))


def _kept_columns(kind: str) -> Select[Any]:
    """Of what was dropped and can come back, too."""
    return (
        select(*_WAREHOUSE, *_NAMESPACE, *_TABLE)
        .join_from(tables, namespaces, namespaces.c.id == tables.c.namespace_id)
        .join(warehouses, warehouses.c.id == tables.c.warehouse_id)
        .where(tables.c.staged_by.is_(None), tables.c.kind == _word(kind))
    )


def _named(kind: str) -> Select[Any]:
    return _table_columns(kind).where(
        namespaces.c.warehouse_id == bindparam("warehouse_id"),
        namespaces.c.path_key == bindparam("path_key"),
        tables.c.name_key == bindparam("name_key"),
    )


def _by_id(kind: str, *, kept: bool = False) -> Select[Any]:
    return (_kept_columns(kind) if kept else _table_columns(kind)).where(
        tables.c.id == bindparam("id"), tables.c.warehouse_id == bindparam("warehouse_id")
    )


#: One statement for each kind of reference, built once: building them costs more than running them.
_STATEMENTS: dict[type[refs.Ref], DirectRead] = {
    refs.TableRef: _named_direct(_named("table"), "t_id"),
    refs.ViewRef: _named_direct(_named("view"), "t_id"),
    refs.GenericTableRef: _named_direct(_named("generic_table"), "t_id"),
    refs.TableIdRef: _direct(_by_id("table")),
    refs.ViewIdRef: _direct(_by_id("view")),
    refs.KeptTableRef: _direct(_by_id("table", kept=True)),
    refs.KeptViewRef: _direct(_by_id("view", kept=True)),
    refs.KeptGenericTableRef: _direct(_by_id("generic_table", kept=True)),
    refs.GenericTableIdRef: _direct(_by_id("generic_table")),
    refs.NamespaceRef: _named_direct(
        _namespace_columns().where(
            namespaces.c.warehouse_id == bindparam("warehouse_id"),
            namespaces.c.path_key == bindparam("path_key"),
        ),
        "n_id",
    ),
    refs.NamespaceIdRef: _direct(
        _namespace_columns().where(
            namespaces.c.id == bindparam("id"),
            # Null when nobody said in which warehouse.
            namespaces.c.warehouse_id
            == func.coalesce(
                bindparam("warehouse_id", type_=namespaces.c.warehouse_id.type), namespaces.c.warehouse_id
            ),
        )
    ),
    refs.WarehouseRef: _direct(_warehouse_columns().where(warehouses.c.id == bindparam("id"))),
    refs.WarehouseNameRef: _direct(
        _warehouse_columns().where(
            warehouses.c.project_id == bindparam("project_id"),
            warehouses.c.name_key == bindparam("name_key"),
        )
    ),
    refs.ProjectRef: _direct(select(projects.c.id, projects.c.name).where(projects.c.id == bindparam("id"))),
    refs.UserRef: _direct(select(users).where(users.c.id == bindparam("id"))),
    refs.RoleRef: _direct(select(roles.c.id, roles.c.project_id, roles.c.name).where(roles.c.id == bindparam("id"))),
    refs.ServerRef: _direct(select(server.c.id, server.c.bootstrapped_at)),
}


_KEYS_OF_TABULAR = (namespaces.c.warehouse_id, namespaces.c.path_key, tables.c.name_key)

#: For several references of one kind: what is read, and the columns it is looked up by, in the order of `_parameters`.
_SEVERAL: dict[type[refs.Ref], tuple[Select[Any], tuple[Column[Any], ...]]] = {
    refs.TableRef: (_table_columns(), _KEYS_OF_TABULAR),
    refs.ViewRef: (_table_columns("view"), _KEYS_OF_TABULAR),
    refs.TableIdRef: (_table_columns(), (tables.c.id, tables.c.warehouse_id)),
    refs.ViewIdRef: (_table_columns("view"), (tables.c.id, tables.c.warehouse_id)),
    refs.KeptTableRef: (_kept_columns("table"), (tables.c.id, tables.c.warehouse_id)),
    refs.KeptViewRef: (_kept_columns("view"), (tables.c.id, tables.c.warehouse_id)),
    refs.KeptGenericTableRef: (_kept_columns("generic_table"), (tables.c.id, tables.c.warehouse_id)),
    refs.GenericTableRef: (_table_columns("generic_table"), _KEYS_OF_TABULAR),
    refs.GenericTableIdRef: (_table_columns("generic_table"), (tables.c.id, tables.c.warehouse_id)),
    refs.NamespaceRef: (_namespace_columns(), _KEYS_OF_TABULAR[:2]),
    refs.NamespaceIdRef: (_namespace_columns(), (namespaces.c.id,)),
    refs.WarehouseRef: (_warehouse_columns(), (warehouses.c.id,)),
    refs.WarehouseNameRef: (
        _warehouse_columns(),
        (warehouses.c.project_id, warehouses.c.name_key),
    ),
    refs.ProjectRef: (select(projects.c.id, projects.c.name), (projects.c.id,)),
    refs.UserRef: (select(users), (users.c.id,)),
    refs.RoleRef: (select(roles.c.id, roles.c.project_id, roles.c.name), (roles.c.id,)),
}


def _parameters(ref: refs.Ref) -> dict[str, Any]:
    match ref:
        case refs.TableRef() | refs.ViewRef() | refs.GenericTableRef():
            identifier = ref.identifier
            named = {"path_key": identifier.namespace.key, "name_key": fold(identifier.name)}
            return {"warehouse_id": ref.warehouse_id, **named, "above_keys": _keys_above(identifier.namespace)}
        case refs.TableIdRef() | refs.KeptTableRef():
            return {"id": ref.table_id, "warehouse_id": ref.warehouse_id}
        case refs.ViewIdRef() | refs.KeptViewRef():
            return {"id": ref.view_id, "warehouse_id": ref.warehouse_id}
        case refs.GenericTableIdRef() | refs.KeptGenericTableRef():
            return {"id": ref.generic_table_id, "warehouse_id": ref.warehouse_id}
        case refs.NamespaceRef():
            above = _keys_above(ref.namespace.parent)
            return {"warehouse_id": ref.warehouse_id, "path_key": ref.namespace.key, "above_keys": above}
        case refs.NamespaceIdRef():
            return {"id": ref.namespace_id, "warehouse_id": ref.warehouse_id}
        case refs.WarehouseNameRef():
            return {"project_id": ref.project_id, "name_key": fold(ref.name)}
        case _:
            return _parameters_above(ref)


def _keys_above(namespace: Namespace | None) -> str:
    """The keys of a namespace and of all that it lies in."""
    levels = () if namespace is None else namespace.levels
    return _BETWEEN_KEYS.join(Namespace(levels[: depth + 1]).key for depth in range(len(levels)))


def _absent(ref: refs.Ref, row: AnyRow) -> dict[refs.Ref, Whereabouts]:
    where = getattr(row, "absent", None)
    return {} if where is None else {ref: Whereabouts(where[0], tuple(map(UUID, where[1])))}


def _parameters_above(
    ref: refs.WarehouseRef | refs.ProjectRef | refs.UserRef | refs.RoleRef | refs.ServerRef,
) -> dict[str, Any]:
    match ref:
        case refs.WarehouseRef():
            return {"id": ref.warehouse_id}
        case refs.ProjectRef():
            return {"id": ref.project_id}
        case refs.UserRef():
            return {"id": ref.user_id}
        case refs.RoleRef():
            return {"id": ref.role_id}
        case refs.ServerRef():
            return {}


def _resolved(ref: refs.Ref, row: AnyRow) -> Resolved | None:
    if getattr(row, _KEY_COLUMN[ref.type]) is None:
        return None
    match ref.type:
        case refs.ObjectType.TABLE:
            return table_from(row)
        case refs.ObjectType.VIEW:
            return view_from(row)
        case refs.ObjectType.GENERIC_TABLE:
            return generic_table_from(row)
        case refs.ObjectType.NAMESPACE:
            return namespace_from(row)
        case refs.ObjectType.WAREHOUSE:
            return warehouse_from(row)
        case refs.ObjectType.PROJECT:
            return ResolvedProject(id=row.id, name=row.name)
        case refs.ObjectType.ROLE:
            return ResolvedRole(id=row.id, project_id=row.project_id, name=row.name)
        case refs.ObjectType.USER:
            return user_from(row)
        case refs.ObjectType.SERVER:
            return ResolvedServer(id=row.id, bootstrapped=row.bootstrapped_at is not None)


_KEY_COLUMN = {
    refs.ObjectType.TABLE: "t_id",
    refs.ObjectType.VIEW: "t_id",
    refs.ObjectType.GENERIC_TABLE: "t_id",
    refs.ObjectType.NAMESPACE: "n_id",
    refs.ObjectType.WAREHOUSE: "w_id",
    refs.ObjectType.PROJECT: "id",
    refs.ObjectType.ROLE: "id",
    refs.ObjectType.USER: "id",
    refs.ObjectType.SERVER: "id",
}


async def reread_table(connection: AsyncConnection, table_id: UUID) -> ResolvedTable | None:
    """The table's current row, after another commit won the race for its pointer."""
    query = _table_columns().where(tables.c.id == table_id)
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else table_from(row)


async def reread_view(connection: AsyncConnection, view_id: UUID) -> ResolvedView | None:
    """As `reread_table`, for a view."""
    query = _table_columns("view").where(tables.c.id == view_id)
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else view_from(row)
