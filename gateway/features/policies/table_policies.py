# SPDX-License-Identifier: Apache-2.0
"""Return the data policies of a table with their effect on a principal, and its restrictions on a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec

from gateway.access.actor import Actor
from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck
from gateway.access.door.permit import Permit
from gateway.access.management_errors import PreviewForbidden
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operations.data_policies import ListTableDataPolicies, PreviewDataPolicies
from gateway.access.operations.data_policy_bodies import (
    DataPolicyPreview,
    PolicyPlace,
    TableDataPolicy,
    TableDataPolicyList,
)
from gateway.access.principals import actor_of
from gateway.access.restrictions.column_restrictions import restriction_under
from gateway.access.restrictions.policy_verdict import PolicyVerdict
from gateway.db.policies import table_policies
from gateway.db.pools.rows import AnyRow
from gateway.features.kit import UseCases
from gateway.obligations.application import restrictions_for_load
from gateway.obligations.data_policies import BoundPolicy
from gateway.obligations.kinds import ReadableColumns
from gateway.obligations.merging import Obligations


class TablePolicies(UseCases):
    """List the data policies of tables."""

    async def list(self, permit: Permit[ListTableDataPolicies]) -> TableDataPolicyList:
        """Return the policies by id. A policy that binds a table through several objects is listed once."""
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


def _answer(bindings: Sequence[AnyRow], verdict: PolicyVerdict | None, *, named: bool) -> TableDataPolicy:
    """Return one policy from its bindings. Without a verdict that could be computed, the policy restricts."""
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
        """Return what the principal would get. Raises PreviewForbidden for expressions that the caller may not see."""
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
        """Raise PreviewForbidden unless the caller may read every policy whose expressions the answer would contain."""
        if verdict is None or not verdict.restricts:
            return
        keys = [] if guarded else [ObjectKey(ObjectType.DATA_POLICY, id) for id in sorted(verdict.applying or ())]
        readable = await self._door.hypothetical_checks.related(permit, permit.actor, Can.READ, keys)
        if guarded or not all(readable):
            raise PreviewForbidden(
                "The preview would contain expressions that you may not read. Own every data policy that restricts "
                f"{actor.id or actor.assumed_role} on this table, or ask a security administrator of the project. "
                "Expressions of guardrails are never shown."
            )
