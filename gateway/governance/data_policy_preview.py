# SPDX-License-Identifier: Apache-2.0
"""Use case: return the restrictions that a principal has on a table, to the owners of the policies."""

from __future__ import annotations

import msgspec

from gateway.access.actor import Actor
from gateway.access.column_restrictions import restriction_under
from gateway.access.door import Door
from gateway.access.hypothetical_evaluation import HypotheticalCheck
from gateway.access.operations.data_policies import PreviewDataPolicies
from gateway.access.permit import Permit
from gateway.access.policy_verdict import PolicyVerdict
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.relations import Can
from gateway.governance.errors import PreviewForbidden
from gateway.governance.principals import actor_of
from gateway.obligations.application import restrictions_for_load
from gateway.obligations.data_policies import BoundPolicy
from gateway.obligations.kinds import ReadableColumns
from gateway.obligations.merging import Obligations
from gateway.protocol.data_policies import DataPolicyPreview


class DataPolicyPreviews:
    """Preview the effect of data policies and column grants."""

    def __init__(self, *, door: Door) -> None:
        self._door = door

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
