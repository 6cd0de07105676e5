# SPDX-License-Identifier: Apache-2.0
"""Prevent that protected columns of tables are dropped, renamed, moved or given another type: the built-in verifier
`columns`.

A column is given by its full dotted name, or by its field id as `#7`. The fields inside a protected column are
protected too. A name that a table does not have is ignored for this table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from gateway.verification.builtin.compatibility import shown
from gateway.verification.builtin.documents import Columns, FlatColumn, columns_of, table_after, table_before
from gateway.verification.builtin.rule import DATA_UPDATES, PROPERTY_UPDATES, Concern
from gateway.verification.port import ChangeKind, ProposedChange

CONCERN: Final = Concern(
    kinds=frozenset({ChangeKind.COMMIT}),
    object_types=frozenset({"table"}),
    unaffected=DATA_UPDATES | PROPERTY_UPDATES,
)


class Protected(msgspec.Struct, frozen=True, kw_only=True):
    """The names and field ids of protected columns. The letter case of names is ignored."""

    names: frozenset[str]
    ids: frozenset[int] = frozenset()

    def contains(self, column: FlatColumn) -> bool:
        """Return True if the column itself is listed as protected."""
        return column.id in self.ids or column.path.casefold() in self.names


def parse_columns(entries: Iterable[str]) -> Protected:
    """Parse entries `name` and `#id` into protected columns. Raises ValueError for an invalid entry, or if there is
    none.
    """
    names: set[str] = set()
    ids: set[int] = set()
    for entry in entries:
        if not entry.startswith("#"):
            names.add(entry.casefold())
        elif (digits := entry[1:]).isascii() and digits.isdecimal():
            ids.add(int(digits))
        else:
            raise ValueError(f"{entry!r} must be the name of a column, or its field id such as #7")
    if not names and not ids:
        raise ValueError("at least one column must be protected")
    return Protected(names=frozenset(names), ids=frozenset(ids))


def changed_columns(change: ProposedChange, protected: Protected) -> tuple[str, ...]:
    """Return a reason for each protected column that the change drops, renames, moves or gives another type.

    Raises DocumentMissing and `BadRequestException`.
    """
    before = table_before(change)
    if before is None:
        return ()
    old, new = before.schema, table_after(change).schema
    if old.same_as(new):
        return ()
    columns, later = columns_of(old), columns_of(new)
    found = [_fault(column, later) for column in columns.values() if _is_protected(column, columns, protected)]
    return tuple(fault for fault in found if fault)


def _is_protected(column: FlatColumn, columns: Columns, protected: Protected) -> bool:
    """Return True if the column, or a column that encloses it, is protected."""
    enclosing: FlatColumn | None = column
    while enclosing is not None:
        if protected.contains(enclosing):
            return True
        enclosing = None if enclosing.parent is None else columns[enclosing.parent]
    return False


def _fault(column: FlatColumn, columns: Columns) -> str | None:
    later = columns.get(column.id)
    name = f"protected column {column.path} (id {column.id})"
    if later is None:
        return f"{name} must not be dropped"
    if later.path != column.path or later.parent != column.parent:
        return f"{name} must not be renamed to {later.path}"
    # A nested type is compared by its kind. The fields inside it are compared one by one.
    if shown(later.type) != shown(column.type):
        return f"{name} must not change its type from {shown(column.type)} to {shown(later.type)}"
    return None
