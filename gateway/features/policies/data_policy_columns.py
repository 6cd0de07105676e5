# SPDX-License-Identifier: Apache-2.0
"""The columns that a data policy names, and the field ids that its bindings to tables record for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never
from uuid import UUID

from gateway.db.engine.database import Connection
from gateway.db.policies import data_policy_bindings
from gateway.db.tables.excerpts import excerpts_of
from gateway.obligations.columns import RestrictionNotExpressible, columns_of
from gateway.obligations.data_policies import (
    AllOf,
    AnyOf,
    CompareTest,
    ConstantTest,
    Definition,
    InTest,
    Mask,
    NotTest,
    NullTest,
    RoleTest,
    RowFilter,
    Test,
)


def column_names(definition: Definition) -> frozenset[str]:
    """Return the names of the columns that the definition refers to. References by tag are left out."""
    match definition:
        case Mask():
            references = definition.columns
        case RowFilter():
            return frozenset(_names(definition.test))
        case _:
            assert_never(definition)
    return frozenset(each.name for each in references if each.name is not None)


def _names(test: Test) -> list[str]:
    match test:
        case AllOf() | AnyOf():
            return [name for each in test.operands for name in _names(each)]
        case NotTest():
            return _names(test.operand)
        case NullTest() | CompareTest() | InTest():
            return [] if test.column.name is None else [test.column.name]
        case ConstantTest() | RoleTest():
            return []
        case _:
            assert_never(test)


async def recorded_fields(
    connection: Connection, tables: Sequence[UUID], definition: Definition
) -> dict[UUID, tuple[int, ...]]:
    """Return the field ids of the named columns in the current schemas of these tables.

    A table whose schemas cannot be read has none: the decision then resolves the names itself.
    """
    names = column_names(definition)
    if not names:
        return {}
    one = isinstance(definition, RowFilter)  # a mask covers all columns of a name in any letter case
    found: dict[UUID, tuple[int, ...]] = {}
    for id, excerpt in (await excerpts_of(connection, tables)).items():
        try:
            columns = columns_of(excerpt.text)
        except RestrictionNotExpressible:
            continue
        found[id] = tuple(sorted({field.id for name in names for field in columns.meant(name, one=one)}))
    return found


async def record_columns(connection: Connection, policy_id: UUID, definition: Definition) -> None:
    """Record the field ids of a new definition in all bindings of the policy to tables."""
    rows = await data_policy_bindings.of_policy(connection, policy_id)
    tables = [row.object_id for row in rows if row.object_type == "table"]
    found = await recorded_fields(connection, tables, definition)
    await data_policy_bindings.record_fields(connection, policy_id, {id: found.get(id, ()) for id in tables})
