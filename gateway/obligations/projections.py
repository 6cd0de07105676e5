# SPDX-License-Identifier: Apache-2.0
"""Compute the projections of the columns that a principal may not read.

A projection is the replacement of a column's values in `read-restrictions`. If a column has several projections, they
are merged into the strictest. The protocol allows one projection for a column, and a reader that receives two must
fail. The merge does not depend on the order of the projections.

Columns are identified by their field id, which a rename keeps and which is never reused. A column that is dropped and
added again is a different column. Every column without a grant is withheld, in every schema of the table: a reader may
read files of each schema.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from typing import Final

import msgspec

from gateway.iceberg.identifiers import fold
from lakegate.restrictions.actions import Action, Projection, applies
from lakegate.restrictions.literals import Int, ListType, MapType, NestedField, StructType, Type

#: For each action, the actions directly below it, which reveal less. Together they form a lattice. Null and the fixed
#: value reveal nothing. Null is the least action, so that a merge gives null only if one of its operands is null: a
#: required column, whose masks are never null, gets the fixed value.
_BELOW: Final[Mapping[Action, frozenset[Action]]] = {
    Action.REPLACE_WITH_NULL: frozenset(),
    Action.MASK_TO_FIXED_VALUE: frozenset({Action.REPLACE_WITH_NULL}),
    Action.MASK_ALPHANUM: frozenset({Action.MASK_TO_FIXED_VALUE}),
    Action.SHOW_FIRST_4: frozenset({Action.MASK_ALPHANUM}),
    Action.SHOW_LAST_4: frozenset({Action.MASK_ALPHANUM}),
    Action.TRUNCATE_TO_YEAR: frozenset({Action.MASK_TO_FIXED_VALUE}),
    Action.TRUNCATE_TO_MONTH: frozenset({Action.TRUNCATE_TO_YEAR}),
    Action.SHA_256_QUERY_LOCAL: frozenset({Action.MASK_TO_FIXED_VALUE}),
    Action.SHA_256_GLOBAL: frozenset({Action.SHA_256_QUERY_LOCAL}),
}


def _lower_bounds(action: Action) -> frozenset[Action]:
    """Return `action` and all actions that reveal no more than `action`."""
    return frozenset({action}).union(*map(_lower_bounds, _BELOW[action]))


_LOWER_BOUNDS: Final[Mapping[Action, frozenset[Action]]] = {action: _lower_bounds(action) for action in Action}


def reveals_no_more(one: Action, other: Action) -> bool:
    """Return True if the result of the action `one` can be computed from that of `other`, or is less exact."""
    return one in _LOWER_BOUNDS[other]


def meet(one: Action, other: Action) -> Action:
    """Return, of the actions that reveal no more than `one` and no more than `other`, the one that reveals most.

    It is associative, commutative and idempotent. For two actions of different families it is the fixed value.
    """
    return max(_LOWER_BOUNDS[one] & _LOWER_BOUNDS[other], key=lambda action: len(_LOWER_BOUNDS[action]))


def strictest(candidates: Mapping[int, Sequence[Projection]]) -> tuple[Projection, ...]:
    """Return one projection for each field id, ordered by id.

    Its action is the `meet` of all candidates for the field.
    """
    return tuple(
        Projection(field_id, reduce(meet, (each.action for each in some)))
        for field_id, some in sorted(candidates.items())
        if some
    )


class RestrictionNotExpressible(Exception):
    """The protocol cannot express the restriction for an engine, so reading must be refused."""


class _Schema(msgspec.Struct, frozen=True, rename="kebab"):
    schema_id: Int = 0
    fields: tuple[NestedField, ...] = ()


class _Document(msgspec.Struct, frozen=True, rename="kebab"):
    """The decoded members of a metadata document. All other members, such as snapshots, are skipped.

    A document of format version 1 may have only `schema`.
    """

    current_schema_id: Int | None = None
    schemas: tuple[_Schema, ...] = ()
    schema: _Schema | None = None


class Columns(msgspec.Struct, frozen=True):
    """The top-level columns of a table: those of its current schema, and those of every schema in its document."""

    current: tuple[NestedField, ...]
    schemas: tuple[tuple[NestedField, ...], ...]

    def named(self, name: str) -> int | None:
        """Return the field id of the column with exactly this name in the current schema, or None."""
        return next((field.id for field in self.current if field.name == name), None)

    def meant(self, name: str, *, one: bool) -> list[NestedField]:
        """Return the current columns with the name, in any letter case.

        With `one`, return only the column with exactly this name, if there is one.
        """
        found = [field for field in self.current if fold(field.name) == fold(name)]
        return [field for field in found if one and field.name == name] or found

    def dropped(self, name: str) -> int | None:
        """Return the field id of the dropped column that had this name.

        Return the highest id if there are several such columns, and None if there is none.
        """
        now = {field.id for field in self.current}
        had = [field.id for schema in self.schemas for field in schema if field.name == name and field.id not in now]
        return max(had, default=None)

    def ids_of_name(self, name: str) -> frozenset[int]:
        """Return the field ids of all columns that have this name in any schema, in any letter case and Unicode
        form.
        """
        everywhere = (field for schema in (*self.schemas, self.current) for field in schema)
        key = fold(name)
        return frozenset(field.id for field in everywhere if fold(field.name) == key)

    def nested(self, name: str) -> bool:
        """Return True if the current schema has a nested field with this full dotted name."""
        return any(name in paths(field.type, field.name) for field in self.current)

    def name_of(self, field_id: int) -> tuple[str | None, bool]:
        """Return (name, True if the current schema has the column).

        For a dropped column, the name is the last one in the document's schemas, or None if no schema has it.
        """
        for field in self.current:
            if field.id == field_id:
                return field.name, True
        had = [field.name for schema in self.schemas for field in schema if field.id == field_id]
        return (had[-1] if had else None), False

    def readable_by_name(self, granted: Collection[int]) -> list[str]:
        """Return the names of granted columns, for an engine that refers to columns by name instead of field id.

        Such an engine reads an old snapshot by the names of that snapshot's schema, and does not tell which schema it
        uses. So a name is left out if an unreadable column has or had it, in any schema, letter case and Unicode form.
        """
        readable = self.readable(granted)
        everywhere = (field for schema in (*self.schemas, self.current) for field in schema)
        others = {fold(field.name) for field in everywhere if field.id not in readable}
        return [field.name for field in self.current if field.id in readable and fold(field.name) not in others]

    def readable(self, granted: Collection[int]) -> frozenset[int]:
        """Return those of the ids `granted` that are in the current schema.

        A grant on a dropped column has no effect.
        """
        return frozenset(field.id for field in self.current if field.id in granted)


def columns_of(document: bytes) -> Columns:
    """Return the columns of a metadata document. Raises RestrictionNotExpressible for a malformed document."""
    try:
        read = msgspec.json.decode(document, type=_Document)
    except (msgspec.MsgspecError, RecursionError):
        raise RestrictionNotExpressible("the table's schemas cannot be read") from None
    schemas = read.schemas or (() if read.schema is None else (read.schema,))
    now = next((each for each in schemas if each.schema_id == read.current_schema_id), None)
    if now is None and read.current_schema_id is None and read.schema is not None:
        now = read.schema
    if now is None:
        raise RestrictionNotExpressible("the table has no current schema")
    return Columns(now.fields, tuple(schema.fields for schema in schemas))


def held_back(granted: AbstractSet[int], columns: Columns) -> tuple[Projection, ...]:
    """Return a projection for each top-level column without a grant, of every schema, ordered by field id.

    The projection is null if the column is optional in all schemas, and the fixed value of its type if a schema
    requires it. Raises RestrictionNotExpressible if neither is possible. It is also raised if a top-level column of one
    schema is nested in another schema: hiding one would hide part of the other, and the protocol forbids projections on
    both.
    """
    schemas = (*columns.schemas, columns.current)
    top = {field.id for schema in schemas for field in schema}
    below = {id for schema in schemas for field in schema for id in ids_within(field.type)}
    if top & below:
        raise RestrictionNotExpressible("a top-level column is nested inside another column in one of the schemas")
    found: dict[int, list[Projection]] = {}
    for id in top - granted:
        found[id] = [Projection(id, _action([f for schema in schemas for f in schema if f.id == id]))]
    return strictest(found)


def _action(fields: Sequence[NestedField]) -> Action:
    """Return the action that withholds one column, given its definitions in all schemas.

    Raises RestrictionNotExpressible if none applies.
    """
    if any(field.id <= 0 for field in fields):
        raise RestrictionNotExpressible(
            "a column has a field id that is not positive, which the protocol cannot send to engines"
        )
    required = any(field.required for field in fields)
    action = Action.MASK_TO_FIXED_VALUE if required else Action.REPLACE_WITH_NULL
    if not all(applies(action, field.type, required=required) for field in fields):
        raise RestrictionNotExpressible("the type of a required column has no fixed value to mask it with")
    return action


def ids_within(kind: Type) -> Iterable[int]:
    """Yield the field ids of all fields inside of a column of this type."""
    match kind:
        case StructType(fields=fields):
            for field in fields:
                yield field.id
                yield from ids_within(field.type)
        case ListType():
            yield kind.element_id
            yield from ids_within(kind.element)
        case MapType():
            yield kind.key_id
            yield kind.value_id
            yield from ids_within(kind.key)
            yield from ids_within(kind.value)
        case _:
            return


def paths(kind: Type, at: str) -> Iterable[str]:
    """Yield the dotted names of all fields inside of a column, in the notation of engines."""
    match kind:
        case StructType(fields=fields):
            for field in fields:
                yield f"{at}.{field.name}"
                yield from paths(field.type, f"{at}.{field.name}")
        case ListType():
            yield f"{at}.element"
            yield from paths(kind.element, f"{at}.element")
        case MapType():
            yield from (f"{at}.key", f"{at}.value")
            yield from paths(kind.key, f"{at}.key")
            yield from paths(kind.value, f"{at}.value")
        case _:
            return
