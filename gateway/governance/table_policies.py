# SPDX-License-Identifier: Apache-2.0
"""Use case: list the data policies of a table with their effect on a principal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from gateway.access.actor import Actor
from gateway.access.door import Door
from gateway.access.operations.data_policies import ListTableDataPolicies
from gateway.access.permit import Permit
from gateway.access.policy_verdict import PolicyVerdict
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.relations import Can
from gateway.db import table_policies
from gateway.db.engine import Database
from gateway.db.rows import AnyRow
from gateway.governance.principals import actor_of
from gateway.protocol.data_policies import PolicyPlace, TableDataPolicy, TableDataPolicyList


class TablePolicies:
    """List the data policies of tables."""

    def __init__(self, *, database: Database, door: Door) -> None:
        self._database = database
        self._door = door

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
