# SPDX-License-Identifier: Apache-2.0
"""Compare the schemas of a table before and after a change by field id: the built-in verifier `schema`.

A compatible change lets readers of the new schema read old data, and lets queries on the old columns continue. Types
may become wider as the Iceberg table specification allows ("Schema Evolution").
"""

from __future__ import annotations

import re
from typing import Final

from gateway.verification.builtin.documents import Columns, FlatColumn, columns_of, table_after, table_before
from gateway.verification.builtin.rule import DATA_UPDATES, PROPERTY_UPDATES, Concern
from gateway.verification.port import ChangeKind, ProposedChange
from lakegate.restrictions.literals import Type, type_name

CONCERN: Final = Concern(
    kinds=frozenset({ChangeKind.COMMIT}),
    object_types=frozenset({"table"}),
    unaffected=DATA_UPDATES | PROPERTY_UPDATES,
)

_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_WIDER: Final = {
    "int": frozenset({"long"}),
    "float": frozenset({"double"}),
    "date": frozenset({"timestamp", "timestamp_ns"}),
}


def incompatible(change: ProposedChange) -> tuple[str, ...]:
    """Return the reasons why the new schema is not compatible. Raises DocumentMissing and `BadRequestException`."""
    before = table_before(change)
    if before is None:
        return ()
    old, new = before.schema, table_after(change).schema
    return () if old.same_as(new) else tuple(breaks(columns_of(old), columns_of(new)))


def breaks(old: Columns, new: Columns) -> list[str]:
    """Return a reason for each difference that is not compatible, in the order of the old schema."""
    reasons: list[str] = []
    gone: set[int] = set()
    for column in old.values():
        later = new.get(column.id)
        if later is None or later.parent != column.parent:
            # The fields inside a dropped column are dropped with the column. The reason about the column is enough.
            if column.parent not in gone:
                verb = "dropped" if later is None else "moved"
                reasons.append(f"column {column.path} (id {column.id}) must not be {verb}")
            gone.add(column.id)
            continue
        reasons += _changed(column, later)
    reasons += [_unreadable(column) for column in new.values() if _cannot_read_old_data(column, old, new)]
    return reasons


def widens(old: Type, new: Type) -> bool:
    """Return True if the types are equal, or the new type is a promotion of the old one. Of nested types only the
    outermost level is compared.
    """
    if not isinstance(old, str) or not isinstance(new, str):
        return old == "unknown" or type_name(old) == type_name(new)
    if old in (new, "unknown") or new in _WIDER.get(old, ()):
        return True
    narrow, wide = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    if narrow is None or wide is None:
        return False
    return narrow[2] == wide[2] and int(narrow[1]) <= int(wide[1])


def shown(kind: Type) -> str:
    """Return a type as text for a message."""
    return kind if isinstance(kind, str) else type_name(kind)


def _changed(old: FlatColumn, new: FlatColumn) -> list[str]:
    reasons = []
    if new.name != old.name:
        reasons.append(f"column {old.path} (id {old.id}) must not be renamed to {new.name}")
    if not widens(old.type, new.type):
        reasons.append(
            f"column {old.path} (id {old.id}) must not change its type from {shown(old.type)} to {shown(new.type)}"
        )
    if new.required and not old.required:
        reasons.append(f"column {old.path} (id {old.id}) must stay optional, because old rows may have no value")
    return reasons


def _cannot_read_old_data(column: FlatColumn, old: Columns, new: Columns) -> bool:
    """Return True for a new required field that has no default value and lies in a parent that exists in old rows."""
    if column.id in old or not column.required or column.has_default or not column.is_field:
        return False
    return not _inside_new_field(column, old, new)


def _inside_new_field(column: FlatColumn, old: Columns, new: Columns) -> bool:
    """Return True if an enclosing field is new too. Then the rule is applied to that field instead."""
    parent = column.parent
    while parent is not None:
        if parent not in old:
            return True
        parent = new[parent].parent
    return False


def _unreadable(column: FlatColumn) -> str:
    return f"column {column.path} (id {column.id}) must be optional or have an initial default, for rows without it"
