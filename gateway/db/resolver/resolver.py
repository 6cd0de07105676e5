# SPDX-License-Identifier: Apache-2.0
"""Find the rows of the objects that a request names, for its decision.

Each kind of reference in the request costs one statement on the primary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor
from gateway.access.delegate_grants import delegate_grants
from gateway.access.engine_probes import EngineProbes, ProbeRules, probe_states
from gateway.access.nouns import refs
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.resolved import (
    AbsentLocation,
    Excerpt,
    Governed,
    Resolution,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
    warehouse_of,
)
from gateway.access.nouns.server import ServerRef
from gateway.db.engine.database import Database
from gateway.db.policies.policy_inputs import PolicyRows
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import fetch_optional, make_rows, require_fields
from gateway.db.resolver.caller import (
    BETWEEN,
    COLUMNS,
    ENGINE_CLOCK,
    GRANT_EXPIRIES,
    ONLY_CLOCK,
    ClockRow,
    EngineRow,
    caller_of,
    with_database_time,
    without_database_time,
)
from gateway.db.resolver.resolver_statements import (
    SEVERAL,
    STATEMENTS,
    Lookup,
    NamespaceRow,
    TabularRow,
    WarehouseRow,
    lookup_of,
    parameters_of,
    table_columns,
)
from gateway.db.resolver.row_mapping import (
    generic_table_from,
    is_in_a_warehouse,
    namespace_from,
    read_absent_locations,
    row_from,
    table_from,
    view_from,
    warehouse_from,
)
from gateway.db.schema.tables import tables
from gateway.db.tables.excerpts import EXCERPTS, current_excerpts, excerpts_of
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.obligations.data_policies import PolicyInputs
from gateway.spans import spanned


class DatabaseResolver:
    """Implements the door's resolver on PostgreSQL.

    `probe_rules` determine which engines are not trusted to enforce restrictions without a recent passed probe.
    """

    def __init__(self, database: Database, *, probe_rules: ProbeRules | None = None) -> None:
        self._database = database
        self._policies = PolicyRows(database)
        self._probe_rules = probe_rules or ProbeRules()

    @spanned("postgresql.resolve", lambda _self, requested, *_: {"lakegate.references": len(requested)})
    async def resolve(self, requested: Sequence[refs.Ref], caller: Actor) -> Resolution:
        """Return the rows of `requested`, the time of the database, and the caller's roles. Absent objects have no row.

        An object in an inactive warehouse has a row too: the door decides whether the operation needs an active
        warehouse.
        """
        found: dict[refs.Ref, Resolved] = {}
        absent: dict[refs.Ref, AbsentLocation] = {}
        caller_parameters = caller_of(caller)
        principal = f"{caller.engine or ''}\x00{caller.id}"
        clock: ClockRow | None = None
        kinds: dict[Lookup, list[refs.Ref]] = {}
        for ref in requested:
            kinds.setdefault(lookup_of(ref), []).append(ref)
        for kind, some in kinds.items():
            if len(some) == 1:
                # The row always has `now` and `caller_roles`, and the other columns if the object exists.
                row = await self._database.read_shared(
                    STATEMENTS[kind], {**parameters_of(some[0]), **caller_parameters}, principal
                )
                resolved = _resolved(some[0], row)
                found.update({} if resolved is None else {some[0]: resolved})
                absent.update(_absent(some[0], row))
            else:
                # A transaction may name many tables, and a check many objects. So one statement reads all references of
                # a kind.
                async with self._database.read() as connection:
                    row, several = await _read_several(connection, kind, some, caller_parameters)
                    # Also read if no object is absent, so that requests for absent objects do not take longer.
                    inside = is_in_a_warehouse(some[0])
                    absent_locations = await read_absent_locations(connection, some) if inside else {}
                found.update(several)
                absent.update({ref: where for ref, where in absent_locations.items() if ref not in several})
            clock = clock or row
        # The time and the revisions are those of the first statement: what later statements read can only be newer.
        if clock is None:
            clock = await self._database.read_shared(ONLY_CLOCK, caller_parameters, principal)
        engine = await self._engine_of(caller, principal, found.values())
        return Resolution(
            rows=found,
            now=clock.now.astimezone(UTC),
            caller_roles=tuple(sorted({*(clock.caller_roles or ()), *_assumed(caller)})),
            revision=clock.revision,
            time_boxes=clock.time_boxes,
            revocations_pending=clock.revocations_pending,
            next_expiry=None if clock.next_expiry is None else clock.next_expiry.astimezone(UTC),
            engine_next_expiry=None
            if engine is None or engine.next_expiry is None
            else engine.next_expiry.astimezone(UTC),
            delegations=() if engine is None else delegate_grants(engine.delegations),
            probes=EngineProbes(
                required=self._probe_rules.require(caller.engine),
                by_warehouse=probe_states(None if engine is None else engine.probes),
            ),
            deactivated=clock.deactivated or (engine is not None and engine.deactivated),
            absent=absent,
            break_glass=tuple((id, on) for id, _, on in (each.partition(BETWEEN) for each in clock.break_glass or ())),
            group_roles=_in_question(clock.group_roles or (), requested, found, absent),
        )

    async def _engine_of(self, caller: Actor, principal: str, found: Iterable[Resolved]) -> EngineRow | None:
        """Return the row about the engine that acts for the caller; None if none does.

        It has the first expiry of the engine's grants, its grants of `delegate` on the warehouses and projects of
        `found`, and its probes there. It is read after the revisions, so it is not older than they are.
        """
        engine = caller.engine_itself()
        if engine is None:
            return None
        warehouses = {each.id: each.project_id for each in map(warehouse_of, found) if each is not None}
        places = BETWEEN.join(sorted({*map(str, warehouses), *warehouses.values()}))
        values = {**caller_of(engine), "places": places}
        return await self._database.read_shared(ENGINE_CLOCK, values, principal)

    @spanned("postgresql.columns", lambda _self, _caller, table_ids: {"lakegate.tables": len(table_ids)})
    async def columns(self, caller: Actor, table_ids: Sequence[UUID]) -> Mapping[UUID, frozenset[int]]:
        """Return the field ids of the columns of these tables on which the caller, or one of its roles, has live
        grants.
        """
        found: dict[UUID, set[int]] = {}
        parameters = {**caller_of(caller), "tables": BETWEEN.join(str(id) for id in table_ids)}
        for row in await self._database.read_all(COLUMNS, parameters):
            key = refs.ObjectKey(refs.ObjectType.COLUMN, row.object_id)
            found.setdefault(UUID(refs.table_of(key).id), set()).add(refs.field_of(key))
        return {id: frozenset(fields) for id, fields in found.items()}

    @spanned("postgresql.excerpts", lambda _self, ids: {"lakegate.objects": len(ids)})
    async def excerpts(self, ids: Sequence[UUID]) -> Mapping[UUID, Excerpt]:
        """Return the result of `excerpts_of`, read on the primary."""
        if not ids:
            return {}
        rows = await self._database.read_all(EXCERPTS, {"ids": list(dict.fromkeys(ids))})
        found = current_excerpts(rows)
        if len(found) < len(rows):
            async with self._database.read() as connection:
                found |= await excerpts_of(connection, [row.id for row in rows if row.id not in found])
        return found

    @spanned("postgresql.grant_expiries")
    async def grant_expiries(self, caller: Actor, *, after: datetime, until: datetime) -> Sequence[datetime]:
        """Return the expiries of grants to the caller or its roles, after `after` and up to `until`, in order."""
        parameters = {**caller_of(caller), "after": after, "until": until}
        return [row.expires_at.astimezone(UTC) for row in await self._database.read_all(GRANT_EXPIRIES, parameters)]

    @spanned("postgresql.policy_inputs", lambda _self, rows: {"lakegate.objects": len(rows)})
    async def policy_inputs(self, rows: Sequence[Governed]) -> Mapping[UUID, PolicyInputs | None]:
        """Return the data policies bound to each row (`PolicyRows.inputs`)."""
        return await self._policies.inputs(rows)

    @spanned("postgresql.mapped_values", lambda _self, _project, names, *_: {"lakegate.tables": len(names)})
    async def mapped_values(
        self, project_id: str, names: Sequence[str], user: str, roles: Sequence[str]
    ) -> Sequence[tuple[str, tuple[str, ...]]]:
        """Return the values of a principal in mapping tables (`PolicyRows.mapped`)."""
        return await self._policies.mapped(project_id, names, user, roles)

    @spanned("postgresql.subjects_by_group", lambda _self, policy_ids, _: {"lakegate.objects": len(policy_ids)})
    async def subjects_by_group(self, policy_ids: Sequence[str], provider: str) -> frozenset[str]:
        """Return the data policies with subjects by groups of this provider (`PolicyRows.subjects_by_group`)."""
        return await self._policies.subjects_by_group(policy_ids, provider)


def frequent_reads() -> list[tuple[DirectRead[Any], dict[str, Any]]]:
    """Return the reads of frequent requests, each with parameters that match no row, to prepare them."""
    warehouse, namespace = UUID(int=0), Namespace(("-",))
    requested: list[refs.Ref] = [
        refs.WarehouseNameRef("-", "-"),
        refs.WarehouseRef(warehouse),
        refs.NamespaceRef(warehouse, namespace),
        ProjectRef("-"),
        ServerRef(),
    ]
    named = TableIdentifier(namespace, "-")
    requested += [refs.TabularRef(refs.Table, warehouse, named), refs.TabularRef(refs.View, warehouse, named)]
    caller = caller_of(Actor.user("-"))
    reads = [(STATEMENTS[lookup_of(ref)], {**parameters_of(ref), **caller}) for ref in requested]
    return [*reads, (ONLY_CLOCK, dict(caller))]


def _in_question(
    by_group: Sequence[str],
    requested: Sequence[refs.Ref],
    found: Mapping[refs.Ref, Resolved],
    absent: Mapping[refs.Ref, AbsentLocation],
) -> tuple[tuple[str, str], ...]:
    """Return (role id, project id) of the roles by token groups that belong to the projects of the references.

    If no reference belongs to a project, return all such roles if every reference was found, and none otherwise. In the
    latter case the request is refused anyway, and the number of groups must not distinguish an absent object from an
    invisible one.
    """
    if not by_group:
        return ()
    pairs = [(id, project) for id, _, project in (each.partition(BETWEEN) for each in by_group)]
    projects = {row.in_project for row in found.values()} | {where.project_id for where in absent.values()}
    if known := projects - {None}:
        return tuple(pair for pair in pairs if pair[1] in known)
    return tuple(pairs) if len(found) == len(set(requested)) else ()


def _assumed(actor: Actor) -> tuple[str, ...]:
    return () if actor.assumed_role is None else (str(actor.assumed_role),)


async def _read_several(
    connection: AsyncConnection, kind: Lookup, some: Sequence[refs.Ref], caller_parameters: dict[str, str]
) -> tuple[ClockRow, dict[refs.Ref, Resolved]]:
    """Return (a row with the time, the rows of these references of one kind), read by one statement."""
    (query, columns), row_type = SEVERAL[kind], STATEMENTS[kind].kind or ClockRow
    requested = [tuple(parameters_of(ref).values())[: len(columns)] for ref in some]
    labelled = [column.label(f"key_{number}") for number, column in enumerate(columns)]
    parameters = query.add_columns(*labelled).where(tuple_(*columns).in_(list(dict.fromkeys(requested))))
    result = await connection.execute(with_database_time(parameters), caller_parameters)
    require_fields(row_type, list(result.keys())[: -len(columns)])
    records = [tuple(record) for record in result]
    rows = make_rows(row_type, (record[: -len(columns)] for record in records))
    by_key = {record[-len(columns) :]: row for record, row in zip(records, rows, strict=True)}
    found: dict[refs.Ref, Resolved] = {}
    for ref, key in zip(some, requested, strict=True):
        resolved = _resolved(ref, by_key[key]) if key in by_key else None
        if resolved is not None and _is_below_requested(ref, resolved):
            found[ref] = resolved
    return rows[0], found


def _is_below_requested(ref: refs.Ref, row: Resolved) -> bool:
    """Return False for a namespace that is not in the warehouse of its reference, because it is looked up by id
    alone.
    """
    if not isinstance(ref, refs.NamespaceIdRef) or not isinstance(row, ResolvedNamespace):
        return True
    return ref.warehouse_id in (None, row.warehouse.id)


def _absent(ref: refs.Ref, row: ClockRow) -> dict[refs.Ref, AbsentLocation]:
    where = row.absent
    return {} if where is None else {ref: AbsentLocation(where[0], tuple(map(UUID, where[1])))}


def _resolved(ref: refs.Ref, row: ClockRow) -> Resolved | None:
    match row:
        case TabularRow(t_id=id):
            return None if id is None else _TABULARS[ref.type](row)
        case NamespaceRow(n_id=id):
            return None if id is None else namespace_from(row)
        case WarehouseRow(w_id=id):
            return None if id is None else warehouse_from(row)
        case _:
            found = row_from(CARDS[ref.type].row, row)
            return None if found.id is None else found


_TABULARS: Mapping[refs.ObjectType, Callable[[TabularRow], Resolved]] = {
    refs.ObjectType.TABLE: table_from,
    refs.ObjectType.VIEW: view_from,
    refs.ObjectType.GENERIC_TABLE: generic_table_from,
}


async def reread_table(connection: AsyncConnection, table_id: UUID) -> ResolvedTable | None:
    """Return the table's current row, after a concurrent commit changed its pointer."""
    row = await fetch_optional(connection, TabularRow, _TABLE, {"id": table_id})
    return None if row is None else table_from(row)


async def reread_view(connection: AsyncConnection, view_id: UUID) -> ResolvedView | None:
    """Return the view's current row, after a concurrent commit changed its pointer."""
    row = await fetch_optional(connection, TabularRow, _VIEW, {"id": view_id})
    return None if row is None else view_from(row)


_TABLE, _VIEW = (
    without_database_time(table_columns(kind).where(tables.c.id == bindparam("id"))) for kind in ("table", "view")
)
