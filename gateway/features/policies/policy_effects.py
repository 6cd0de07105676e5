# SPDX-License-Identifier: Apache-2.0
"""Compute the effect of one data policy on the tables that it covers, and of a change on its caller."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from msgspec import Struct

from gateway.access.door.permit import Permit
from gateway.access.nouns.resolved import Excerpt
from gateway.access.operation import Operation
from gateway.access.operations.data_policy_bodies import MaskedColumn
from gateway.access.results import Restricts
from gateway.db.engine.database import Connection
from gateway.db.policies.policy_inputs import inputs_within
from gateway.db.pools.rows import AnyRow
from gateway.db.tables.excerpts import excerpts_of
from gateway.iceberg.errors import CatalogError
from gateway.obligations.binding import restrictions_of
from gateway.obligations.binding_columns import TableColumns
from gateway.obligations.columns import RestrictionNotExpressible, columns_of
from gateway.obligations.data_policies import (
    AppliesTo,
    PolicyInputs,
    PrincipalAttributes,
    RowFilter,
    columns_referenced,
)

_NOBODY: Final = PrincipalAttributes(principal="")
"""A principal without attributes. They decide which rows a filter keeps, and not which columns it tests."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a policy on one table: masked columns, names of tested columns, or the refusal of all data."""

    masked: tuple[MaskedColumn, ...] = ()
    filtered: tuple[str, ...] = ()
    hides_all_rows: bool = False
    refused: bool = False


async def effects_on(connection: Connection, policy_id: UUID, rows: Sequence[AnyRow]) -> Mapping[UUID, Effect]:
    """Return the effect on each row of `data_policy_bindings.covered`, by its id. Those without an effect are left out.

    A table whose policies or schemas cannot be read has the effect that the door gives it: the refusal.
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
    """Return the effect of a policy on one table, None if there is none. A generic table has no excerpt."""
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
