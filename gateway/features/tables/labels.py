# SPDX-License-Identifier: Apache-2.0
"""Return the tags of tables and views as `labels` (REST specification, `LoadTableResult` and `LoadViewResult`)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.nouns.resolved import ResolvedTable, ResolvedView
from gateway.access.operations.tables import LoadTable
from gateway.access.operations.views import LoadView
from gateway.db.policies.labels import labels
from gateway.features.kit import Kit, UseCases
from gateway.features.tables.loads import shows_data
from gateway.obligations.application import restrictions_on

EVERY_COLUMN = range(2**31)


class _Field(msgspec.Struct, frozen=True, rename="kebab"):
    field_id: int
    labels: dict[str, str]


class _Labels(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    object_labels: dict[str, str] | None = None
    fields: list[_Field] | None = None


class Labels(UseCases):
    """Reads the labels of tables and views. If not `enabled`, there are none, and nothing is read."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._enabled = kit.tag_labels

    async def of_table(self, permit: Permit[LoadTable]) -> bytes:
        """Return the JSON of `labels`, empty without any. Equal tags give equal bytes.

        Tags of the namespaces above and of the warehouse are included; the nearest one of a name is sent. Raises
        DatabaseUnavailable.
        """
        if not self._enabled:
            return b""
        return await self._read(permit.table(permit.operation.table), _labelled_columns(permit))

    async def of_view(self, permit: Permit[LoadView]) -> bytes:
        """Return the JSON as `of_table` does. Columns of views have no tags."""
        return await self._read(permit.view(permit.operation.view), ()) if self._enabled else b""

    async def _read(self, row: ResolvedTable | ResolvedView, columns: Container[int]) -> bytes:
        nearest_first = (row.id, row.namespace.id, *reversed(row.namespace.ancestors), row.warehouse.id)
        return encoded(await labels(self._database, row.id, nearest_first[1:]), nearest_first, columns)


def encoded(rows: Iterable[Any], nearest_first: Sequence[object], columns: Container[int]) -> bytes:
    """Return the JSON of `labels` from rows of `gateway.db.policies.labels`; empty without any label."""
    rank = {id: number for number, id in enumerate(nearest_first)}
    ordered = sorted(rows, key=lambda row: (rank[row.object_id], row.field_id or 0, row.name))
    own: dict[str, str] = {}
    fields: dict[int, dict[str, str]] = {}
    for row in ordered:
        if row.field_id is None:
            own.setdefault(row.name, row.value)
        elif row.field_id in columns:
            fields.setdefault(row.field_id, {})[row.name] = row.value
    if not own and not fields:
        return b""
    found = [_Field(id, labels) for id, labels in fields.items()]
    return msgspec.json.encode(_Labels(dict(sorted(own.items())) or None, found or None))


def _labelled_columns(permit: Permit[LoadTable]) -> Container[int]:
    """Return the field ids of the columns whose labels the caller may see.

    A restricted caller sees labels of present columns that nothing hides or masks: a classification shows where
    protected data is. That does not concern a caller that reads no data and whom no data policy restricts.
    """
    ref = permit.operation.table
    if not shows_data(permit):
        return ()
    readable, verdict = permit.restriction(ref), permit.policy_verdict(ref)
    restrictions = restrictions_on(permit.obligations, str(permit.table(ref).id))
    if restrictions is None:
        return () if verdict is not None and verdict.restricts else EVERY_COLUMN
    columns = () if verdict is None or verdict.columns is None else (field.id for field in verdict.columns.current)
    present = readable.fields if readable is not None else frozenset(columns)
    return present - {each.field_id for each in restrictions.masks}
