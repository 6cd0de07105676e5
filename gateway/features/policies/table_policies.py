# SPDX-License-Identifier: Apache-2.0
"""Compute and list the effect of data policies on tables: for a principal, for the caller, and as a preview.

The list has the policies of a table with their effect on a principal. The preview has the restrictions that a principal
would get on a table. For a change of a policy, the module computes the tables with an effect, and whether the policy
restricts the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct

from gateway.access.actor import Actor
from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck
from gateway.access.door.permit import Permit
from gateway.access.management_errors import PreviewForbidden
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Excerpt
from gateway.access.operation import Operation
from gateway.access.operations.data_policies import ListTableDataPolicies, PreviewDataPolicies
from gateway.access.operations.data_policy_bodies import (
    DataPolicyPreview,
    MaskedColumn,
    PolicyPlace,
    TableDataPolicy,
    TableDataPolicyList,
)
from gateway.access.principals import actor_of
from gateway.access.restrictions.bound_restrictions import PolicyVerdict
from gateway.access.restrictions.column_restrictions import restriction_under
from gateway.access.results import Restricts
from gateway.db.engine.database import Connection
from gateway.db.policies import table_policies
from gateway.db.policies.data_policy_bindings import CoveredTable
from gateway.db.policies.policy_inputs import inputs_within
from gateway.db.policies.table_policies import TablePolicy
from gateway.db.tables.excerpts import excerpts_of
from gateway.features.kit import UseCases
from gateway.iceberg.errors import CatalogError
from gateway.obligations.application import restrictions_for_load
from gateway.obligations.binding import restrictions_of
from gateway.obligations.binding_columns import TableColumns
from gateway.obligations.data_policies import (
    AppliesTo,
    BoundPolicy,
    PolicyInputs,
    PrincipalAttributes,
    RowFilter,
    columns_referenced,
)
from gateway.obligations.kinds import ReadableColumns
from gateway.obligations.merging import Obligations
from gateway.obligations.projections import RestrictionNotExpressible, columns_of

_NOBODY: Final = PrincipalAttributes(principal="")
"""A principal without attributes. They decide which rows a filter keeps, and not which columns it tests."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a policy on one table: masked columns, columns that row filters test, and whether all rows or all
    data are hidden.
    """

    masked: tuple[MaskedColumn, ...] = ()
    filtered: tuple[str, ...] = ()
    hides_all_rows: bool = False
    refused: bool = False


async def effects_on(connection: Connection, policy_id: UUID, rows: Sequence[CoveredTable]) -> Mapping[UUID, Effect]:
    """Return {table id: effect} for the rows of `data_policy_bindings.covered`. Tables without an effect are left out.

    If the policies or schemas of a table cannot be read, all its data is refused, as in a decision of the door.
    """
    places = {row.id: [row.namespace_id, *reversed(row.ancestors), row.warehouse_id] for row in rows}
    if not places:
        return {}
    inputs = await inputs_within(connection, places)
    excerpts = await excerpts_of(connection, [row.id for row in rows if row.kind == "table"])

    def computed() -> dict[UUID, Effect]:
        effects = {id: _effect(str(policy_id), str(id), inputs.get(id), excerpts.get(id)) for id in places}
        return {id: effect for id, effect in effects.items() if effect is not None}

    return await asyncio.to_thread(computed)


def _effect(policy_id: str, table_id: str, inputs: PolicyInputs | None, excerpt: Excerpt | None) -> Effect | None:
    """Return the effect of a policy on one table, None if there is none. A generic table has no excerpt: all data is
    refused.
    """
    if inputs is None or excerpt is None:
        return Effect(refused=True)
    own = [each for each in inputs.bound if each.policy.id == policy_id]
    try:
        columns = columns_of(excerpt.text)
        found = restrictions_of(table_id, own, inputs, _NOBODY, columns, excerpt.metadata_location)
    except RestrictionNotExpressible:
        return Effect(refused=True)
    if found.restrictions is None:
        return None
    table = TableColumns(columns, inputs)
    masked = tuple(
        MaskedColumn(name=table.definitions(each.field_id)[-1].name, field_id=each.field_id, action=each.action.value)
        for each in found.restrictions.masks
    )
    tested = {
        field.name
        for each in own
        if isinstance(each.policy.definition, RowFilter)
        for reference in columns_referenced(each.policy.definition)
        for field in table.filtered(reference, set(each.recorded) - set(each.released))
    }
    is_filter = any(isinstance(each.policy.definition, RowFilter) for each in own)
    return Effect(masked, tuple(sorted(tested)), hides_all_rows=is_filter and bool(found.problems))


Answer = TypeVar("Answer", bound=Struct)


async def restricts_caller(permit: Permit[Operation], policies: Mapping[str, AppliesTo]) -> Restricts | None:
    """Return the value of the header `X-Lakegate-Restricts`, None if none of the policies restricts the caller.

    Call it after the change was made.
    """
    if not policies:
        return None
    try:
        standing = await permit.policy_standing(policies, permit.resolution)
    except CatalogError:
        return "unknown"
    return "caller" if standing.restricting else None


class TablePolicies(UseCases):
    """List the data policies of tables."""

    async def list(self, permit: Permit[ListTableDataPolicies]) -> TableDataPolicyList:
        """Return the policies of a table, ordered by id. A policy that covers the table through several bindings is
        listed once.
        """
        operation = permit.operation
        table = permit.table(operation.on)
        if table.warehouse.data_policy_revision is None:
            return TableDataPolicyList(data_policies=[])
        containers = (table.namespace.id, *table.namespace.ancestors, table.warehouse.id)
        async with self._database.read() as connection:
            rows = await table_policies.of_table(connection, table.id, containers)
        bindings = {id: list(some) for id, some in groupby(rows, key=lambda row: row.id)}
        keys = [ObjectKey(ObjectType.DATA_POLICY, str(id)) for id in bindings]
        readable = await self._door.hypothetical_checks.related(permit, permit.actor, Can.READ, keys)
        actor = permit.actor if operation.principal is None else actor_of(operation.principal)
        verdict = await self._verdict(permit, actor)
        return TableDataPolicyList(
            data_policies=[
                _answer(some, verdict, named=may_read)
                for some, may_read in zip(bindings.values(), readable, strict=True)
            ]
        )

    async def _verdict(self, permit: Permit[ListTableDataPolicies], actor: Actor) -> PolicyVerdict | None:
        checks = [(actor, permit.operation.on, ())]
        return (await self._door.hypothetical_checks.policy_verdicts(permit, checks))[0]


def _answer(bindings: Sequence[TablePolicy], verdict: PolicyVerdict | None, *, named: bool) -> TableDataPolicy:
    """Return one policy from its bindings. If no verdict could be computed, the policy counts as restricting."""
    first = bindings[0]
    id = str(first.id)
    applying = None if verdict is None else verdict.applying
    return TableDataPolicy(
        id=first.id,
        kind=first.kind,
        applies_to=first.applies_to,
        bound_to=[PolicyPlace(type=row.object_type, id=row.object_id) for row in bindings],
        restricts=applying is None or id in applying,
        exempt=verdict is not None and id in verdict.exempt,
        name=first.name if named else None,
    )


class DataPolicyPreviews(UseCases):
    """Preview the effect of data policies and column grants."""

    async def preview(self, permit: Permit[PreviewDataPolicies]) -> DataPolicyPreview:
        """Return the restrictions that the principal would get. Raises PreviewForbidden for hidden expressions."""
        operation, checks = permit.operation, self._door.hypothetical_checks
        actor = permit.actor if operation.principal is None else actor_of(operation.principal)
        table = permit.table(operation.on)
        stated: dict[int, tuple[BoundPolicy, ...]] = {}
        (whole,) = await checks.evaluate(permit, [HypotheticalCheck(actor, Can.READ_DATA, operation.on)], stated)
        (fields,) = (frozenset(),) if whole else await checks.readable_columns(permit, [(actor, operation.on)])
        if not whole and not fields:
            return DataPolicyPreview(allowed=False)
        (verdict,) = await checks.policy_verdicts(permit, [(actor, operation.on, stated.get(0, ()))])
        await self._require_readable(permit, actor, verdict, guarded=bool(stated.get(0)))
        if verdict is not None and verdict.inexpressible:
            return DataPolicyPreview(allowed=False)
        restrictions = () if verdict is None or verdict.restrictions is None else (verdict.restrictions,)
        columns: tuple[ReadableColumns, ...] = ()
        location = restrictions[0].metadata_location if restrictions else table.metadata_location
        if fields:
            async for _, excerpt in checks.excerpts([table.id]):
                found = restriction_under(table.id, excerpt, fields)
                if found is None:
                    return DataPolicyPreview(allowed=False)
                columns, location = (found,), excerpt.metadata_location
        text = restrictions_for_load(Obligations.of(*columns, *restrictions), str(table.id))
        return DataPolicyPreview(
            allowed=True,
            metadata_location=location,
            read_restrictions=msgspec.Raw(text) if text else msgspec.UNSET,
        )

    async def _require_readable(
        self, permit: Permit[PreviewDataPolicies], actor: Actor, verdict: PolicyVerdict | None, *, guarded: bool
    ) -> None:
        """Raise PreviewForbidden unless the caller manages every policy whose expressions the response contains."""
        if verdict is None or not verdict.restricts:
            return
        keys = [] if guarded else [ObjectKey(ObjectType.DATA_POLICY, id) for id in sorted(verdict.applying or ())]
        readable = await self._door.hypothetical_checks.related(permit, permit.actor, Can.UPDATE, keys)
        if guarded or not all(readable):
            raise PreviewForbidden(
                "The preview would contain expressions that you may not read. Own every data policy that restricts "
                f"{actor.id or actor.assumed_role} on this table, or ask a security administrator of the project. "
                "Expressions of guardrails are never shown."
            )
