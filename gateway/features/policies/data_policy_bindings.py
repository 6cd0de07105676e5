# SPDX-License-Identifier: Apache-2.0
"""Use cases of bindings, which apply data policies to objects: bind, unbind, and list the affected tables and alerts.

A mask also covers columns that had its name earlier. A policy manager can release such a column from the policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal
from uuid import UUID

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import forbidden, not_found
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.data_policy import ResolvedDataPolicy
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedGenericTable, ResolvedNamespace, ResolvedTable, ResolvedWarehouse
from gateway.access.nouns.tag import ResolvedTag
from gateway.access.operations.data_policies import (
    BindDataPolicy,
    ListDataPolicyAffected,
    ListDataPolicyAlerts,
    ListDataPolicyBindings,
    ReleaseDataPolicyColumn,
    TryDataPolicyBindings,
    places_of,
    target_ref,
)
from gateway.access.operations.data_policy_bodies import (
    AffectedList,
    AffectedPrincipal,
    AffectedTable,
    AlertList,
    BindingAnswer,
    BindingList,
    BindingTarget,
    BoundName,
)
from gateway.access.results import Restricts
from gateway.db.engine import policy_loss, vacated_names
from gateway.db.engine.database import Connection
from gateway.db.engine.policy_loss import Loss, losses_of
from gateway.db.policies import data_policies, data_policy_bindings
from gateway.db.policies.data_policy_bindings import (
    MAX_NAMES,
    BindingRow,
    Bound,
    CoveredTable,
    Reader,
    TooManyNames,
    name_id,
)
from gateway.db.policies.data_policy_revisions import lock, touch
from gateway.features.kit import UseCases
from gateway.features.paging import Page
from gateway.features.policies.data_policies import recorded_fields
from gateway.features.policies.table_policies import Effect, effects_on, restricts_caller
from gateway.iceberg.errors import BadRequestException
from gateway.obligations.data_policies import AppliesTo, Definition

_MOST_BINDINGS: Final = 1_000
"""Limit of the bindings of a page."""

_MOST_TABLES: Final = 100
"""Limit of the tables of a page with their readers."""


class _RolledBack(Exception):
    """Raised in a dry run to roll its transaction back."""


class DataPolicyBindings(UseCases):
    """Bind data policies to objects, and list the tables that they cover."""

    async def list(self, permit: Permit[ListDataPolicyBindings]) -> BindingList:
        """Return the bindings of a policy, ordered by the ids of the bound objects."""
        operation = permit.operation
        page = self._page_of(operation, UUID, most=_MOST_BINDINGS)
        async with self._database.read() as connection:
            rows = await data_policy_bindings.of_policy(
                connection, operation.policy.policy_id, after=page.after, limit=page.limit
            )
        return BindingList(
            bindings=[_binding(row) for row in page.rows(rows)],
            next_page_token=page.next_token(rows, lambda row: row.object_id),
        )

    async def change(self, permit: Permit[BindDataPolicy]) -> Restricts | None:
        """Bind and unbind in one transaction. The changes apply from the response on.

        Return whether the policy restricts the caller where it is bound now; None if it was bound to nothing. Raise 400
        for an object of another project, and 403 for a name to which the caller may not bind policies.
        """
        operation = permit.operation
        async with self._database.change(permit) as connection:
            applies_to = await self._apply(connection, permit)
        binds = operation.request.add or operation.request.add_names
        return await restricts_caller(permit, {str(operation.policy.policy_id): applies_to} if binds else {})

    async def dry_run(self, permit: Permit[TryDataPolicyBindings]) -> AffectedList:
        """Return the result that `affected` would have after the change, and whether the policy would restrict the
        caller.

        The change is made in a transaction that is rolled back. Raises the errors of `change`.
        """
        operation = permit.operation
        policy = permit.row(operation.policy, ResolvedDataPolicy)
        found: list[AffectedList] = []
        with suppress(_RolledBack):
            async with self._database.transaction() as connection:
                applies_to = await self._apply(connection, permit)
                found.append(
                    await _affected_by(connection, policy.id, self._page_of(operation, UUID, most=_MOST_TABLES))
                )
                raise _RolledBack
        standing = await permit.policy_standing({str(policy.id): applies_to}, permit.resolution)
        return msgspec.structs.replace(found[0], restricts_caller=str(policy.id) in standing.restricting)

    async def _apply(
        self, connection: Connection, permit: Permit[BindDataPolicy] | Permit[TryDataPolicyBindings]
    ) -> AppliesTo:
        """Make the change of a request. Return whether the policy applies to its subjects only or to all but the exempt
        (`AppliesTo`).
        """
        operation, request = permit.operation, permit.operation.request
        policy = permit.row(operation.policy, ResolvedDataPolicy)
        targets = (*request.add, *request.remove)
        rows = {each: permit.resolution.get(target_ref(each)) for each in targets}
        placed = {each: _placed(row, policy.project_id) for each, row in rows.items()}
        names = (*request.add_names, *request.remove_names)
        named: set[UUID | None] = {_placed_name(permit, each, policy.project_id) for each in names}
        warehouses = named.union(placed.values())
        locked = await data_policies.lock(connection, policy.id)
        if locked is None:
            raise not_found(operation.policy)
        tables = [each.id for each in request.add if each.type == "table"]
        fields = await recorded_fields(connection, tables, msgspec.convert(locked.definition, Definition))
        added = [_bound(each, placed[each], fields.get(each.id, ())) for each in request.add]
        await data_policy_bindings.bind(connection, policy.id, added, by=permit.actor.id)
        if named:
            await self._bind_names(connection, permit, warehouses)
        removed = [each.id for each in request.remove]
        removed += [name_id(each.warehouse_id, each.pattern) for each in request.remove_names]
        await data_policy_bindings.unbind(connection, policy.id, removed)
        free = [(each.warehouse_id, each.pattern) for each in request.remove_names]
        await vacated_names.forget(connection, policy.id, free)
        await data_policy_bindings.touch_each(connection, policy.project_id, warehouses)
        return AppliesTo(locked.applies_to)

    async def _bind_names(
        self,
        connection: Connection,
        permit: Permit[BindDataPolicy] | Permit[TryDataPolicyBindings],
        warehouses: set[UUID | None],
    ) -> None:
        """Lock the warehouses of the change, and bind the policy to names. Raise 400 if a warehouse would have too many
        bound names.
        """
        policy = permit.row(permit.operation.policy, ResolvedDataPolicy)
        for each in sorted(id for id in warehouses if id is not None):
            await lock(connection, project_id=policy.project_id, warehouse_id=each)
        names = [(each.warehouse_id, each.pattern) for each in permit.operation.request.add_names]
        try:
            await data_policy_bindings.bind_names(connection, policy.id, names, by=permit.actor.id)
        except TooManyNames:
            raise BadRequestException(
                f"Data policies can be bound to at most {MAX_NAMES} names of a warehouse. Use wildcards, or bind the "
                "policy to a namespace."
            ) from None

    async def release(self, permit: Permit[ReleaseDataPolicyColumn]) -> None:
        """Stop applying the policy to one column of a table. Raise 400 if the policy does not cover the table."""
        operation = permit.operation
        policy = permit.row(operation.policy, ResolvedDataPolicy)
        async with self._database.change(permit) as connection:
            if await data_policies.lock(connection, policy.id) is None:
                raise not_found(operation.policy)
            found = await data_policy_bindings.covered(
                connection, policy.id, table_id=operation.table_id, after=None, limit=1
            )
            if not found or found[0].kind != "table":
                raise BadRequestException(
                    f"The data policy covers no Iceberg table {operation.table_id}. `GET /management/v1/data-policy/"
                    f"{policy.id}/affected` lists the tables that it covers."
                )
            await data_policy_bindings.release(
                connection, policy.id, operation.table_id, operation.field_id, by=permit.actor.id
            )
            await touch(connection, project_id=policy.project_id, warehouse_id=found[0].warehouse_id)

    async def affected(self, permit: Permit[ListDataPolicyAffected]) -> AffectedList:
        """Return the tables on which the policy has an effect, each with the principals that it restricts there.
        Include objects that took over a name under which the policy restricted more.

        A page can have fewer tables than requested, even none: the page size counts all covered tables, even those
        without an effect.
        """
        operation = permit.operation
        async with self._database.read() as connection:
            return await _affected_by(
                connection,
                operation.policy.policy_id,
                self._page_of(operation, UUID, most=_MOST_TABLES),
                without_effect=operation.without_effect,
            )

    async def alerts(self, permit: Permit[ListDataPolicyAlerts]) -> AlertList:
        """Return the tables to which the policy could not be applied as written, latest first."""
        async with self._database.read() as connection:
            return AlertList(alerts=await policy_loss.alerts(connection, permit.operation.policy.policy_id))


async def _affected_by(
    connection: Connection,
    id: UUID,
    page: Page[UUID],
    *,
    without_effect: bool = False,
) -> AffectedList:
    """Return a page of the tables on which a policy has an effect. With `without_effect`, return all tables that it
    covers.
    """
    found = await data_policy_bindings.covered(connection, id, after=page.after, limit=page.limit)
    names = await vacated_names.announced(connection, id, after=page.after, limit=page.limit)
    ids = sorted({row.id for row in found}.union(row.object_id for row in names))
    shown = page.rows(ids)
    covered = [row for row in found if row.id in shown]
    effects = dict(await effects_on(connection, id, covered))
    if without_effect:
        effects = {row.id: Effect() for row in covered} | effects
    readers = await data_policy_bindings.readers(connection, id, list(effects))
    lost = {each.object_id: each for each in losses_of(names)}
    rows = {row.id: row for row in found}
    return AffectedList(
        tables=[
            _affected(rows.get(each), effects.get(each), lost.get(each), readers)
            for each in shown
            if each in effects or each in lost
        ],
        next_page_token=page.next_token(ids, str),
    )


def _placed(row: Resolved | None, project_id: str) -> UUID | None:
    """Return the id of the warehouse of a bound object, None for a tag. Raise 400 if the object is in another project
    than the policy.
    """
    match row:
        case ResolvedTag():
            _require_same(row.project_id, project_id)
            return None
        case ResolvedWarehouse():
            warehouse = row
        case ResolvedNamespace() | ResolvedTable() | ResolvedGenericTable():
            warehouse = row.warehouse
        case _:
            raise LookupError(f"{row!r} cannot be bound")
    _require_same(warehouse.project_id, project_id)
    return warehouse.id


def _placed_name(
    permit: Permit[BindDataPolicy] | Permit[TryDataPolicyBindings], name: BoundName, project_id: str
) -> UUID:
    """Return the id of the warehouse of a bound name. Raise 403 if the caller may not bind policies in the deepest
    existing container of the name, and 400 if the warehouse is in another project than the policy.
    """
    ref = next(each for each in places_of(name) if permit.resolution.get(each) is not None)
    if not permit.holds(Can.BIND_DATA_POLICY, ref):
        # The caller may not see the deepest namespace, so the error names the warehouse.
        raise forbidden(permit.actor, Can.BIND_DATA_POLICY.value, WarehouseRef(name.warehouse_id), ())
    _require_same(permit.warehouse(WarehouseRef(name.warehouse_id)).project_id, project_id)
    return name.warehouse_id


def _require_same(of_object: str, of_policy: str) -> None:
    if of_object != of_policy:
        raise BadRequestException(
            "The object and the data policy are in different projects. Create the policy in the project of the object."
        )


def _bound(target: BindingTarget, warehouse_id: UUID | None, fields: tuple[int, ...]) -> Bound:
    """Return the binding as it is stored. A generic table is stored with the type `table`; its id shows what it is."""
    return Bound("table" if target.type == "generic-table" else target.type, target.id, warehouse_id, fields)


def _binding(row: BindingRow) -> BindingAnswer:
    return BindingAnswer(
        type="generic-table" if row.kind == "generic_table" else row.object_type,
        id=row.object_id,
        bound_by=row.bound_by,
        bound_at=row.bound_at,
        warehouse_id=row.warehouse_id,
        recorded_fields=tuple(row.recorded_fields),
        namespace=tuple(row.levels[:-1]) if row.levels else (),
        name=row.levels[-1] if row.levels else None,
    )


_KINDS: Final[Mapping[str, Literal["table", "generic-table", "view", "namespace"]]] = {
    "table": "table",
    "generic_table": "generic-table",
    "view": "view",
    "namespace": "namespace",
}


def _affected(
    table: CoveredTable | None, effect: Effect | None, loss: Loss | None, readers: Sequence[Reader]
) -> AffectedTable:
    """Return the entry for a table that the policy covers (`table`), for an object that took over a name under which
    the policy restricted more (`loss`), or for both.
    """
    if (table is None or effect is None) and loss is not None:
        return AffectedTable(
            type=_KINDS[loss.kind],
            table_id=loss.object_id,
            warehouse_id=loss.warehouse_id,
            namespace=list(loss.levels),
            name=loss.own_name,
            principals=[],
            lost=True,
        )
    if table is None or effect is None:
        raise LookupError("the object is neither covered by the policy nor has a name that lost a restriction")
    return AffectedTable(
        type=_KINDS[table.kind],
        table_id=table.id,
        warehouse_id=table.warehouse_id,
        namespace=list(table.levels),
        name=table.name,
        principals=[
            AffectedPrincipal(type=row.principal_type, id=row.principal_id) for row in readers if row.id == table.id
        ],
        lost=loss is not None,
        masked_columns=list(effect.masked),
        filtered_columns=list(effect.filtered),
        hides_all_rows=effect.hides_all_rows,
        refused=effect.refused,
    )
