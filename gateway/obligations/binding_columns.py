# SPDX-License-Identifier: Apache-2.0
"""Find the columns that data policies name or select by tags, as field ids, in all schemas that a table has had.

A mask covers more columns than those that have its name now: a column that was renamed, and a column that was dropped
and added again under the name, stay masked. A row filter needs exactly one column of the current schema.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from gateway.iceberg.identifiers import fold
from gateway.obligations.data_policies import (
    BoundPolicy,
    ColumnReference,
    Definition,
    Mask,
    PolicyInputs,
    RowFilter,
    column_names,
)
from gateway.obligations.projections import Columns, RestrictionNotExpressible, ids_within, paths
from lakegate.restrictions.literals import NestedField


def recorded_ids(definition: Definition, columns: Columns) -> tuple[int, ...]:
    """Return the field ids of the current columns that a definition names, as its bindings to tables record them."""
    names = column_names(definition)
    one = isinstance(definition, RowFilter)  # a mask covers all columns of a name in any letter case
    return tuple(sorted({field.id for name in names for field in columns.meant(name, one=one)}))


class TableColumns:
    """The columns of one table with their names in all schemas, and the tags of the columns."""

    def __init__(self, columns: Columns, inputs: PolicyInputs) -> None:
        self._inputs = inputs
        self._tags_of_table = {tag for tag, field_id in inputs.tagged_fields if field_id is None}
        self.current = {field.id: field for field in columns.current}
        self._fields: dict[int, list[NestedField]] = defaultdict(list)
        self._ids: dict[str, set[int]] = defaultdict(set)
        self._names: dict[int, set[str]] = defaultdict(set)
        # Most fields have the same definition in all schemas. Equal definitions are kept once, because a table may have
        # hundreds of schemas.
        for field in (field for schema in (*columns.schemas, columns.current) for field in schema):
            known = self._fields[field.id]
            if not known or known[-1] != field:
                known.append(field)
                self._name(field.id, field.name)
        for field_id, name in inputs.former_columns:
            self._name(field_id, name)

    def _name(self, field_id: int, name: str) -> None:
        self._ids[fold(name)].add(field_id)
        self._names[field_id].add(fold(name))

    def definitions(self, field_id: int) -> list[NestedField]:
        """Return the definitions of a column in the schemas of the document, the current one last."""
        return self._fields[field_id]

    def require_separable(self, masked: Collection[int]) -> None:
        """Raise RestrictionNotExpressible if, in some schema, a masked column is nested in another column, or contains
        one.

        The protocol forbids projections on a column and on a part of it. It also forbids field ids below 1.
        """
        if not masked:
            return
        if any(field_id <= 0 for field_id in masked):
            raise RestrictionNotExpressible("a masked column has a field id that is not positive")
        below = {id for fields in self._fields.values() for field in fields for id in ids_within(field.type)}
        inside = {id for each in masked for field in self._fields[each] for id in ids_within(field.type)}
        if below & set(masked) or inside & self._fields.keys():
            raise RestrictionNotExpressible("a masked column is nested inside another column in one of the schemas")

    def masked(self, mask: Mask, bound: BoundPolicy, problems: list[str]) -> tuple[set[int], set[int]]:
        """Return (field ids to mask with the action, field ids that contain a named nested field).

        Ids that are in no schema of the document are left out: no reader accepts them, and no row has them.
        """
        exact: set[int] = set()
        whole: set[int] = set()
        if mask.columns:
            exact.update(bound.recorded)
            for reference in mask.columns:
                self._referenced(reference, exact, whole, problems)
        elif bound.tag is not None:
            exact.update(self._covered({bound.tag}))
        else:
            exact.update(self._fields)
            problems.append("the mask names no columns and is not bound to a tag, so it masks all columns: name them")
        known = self._fields.keys() - set(bound.released)
        return exact & known, whole & known

    def _referenced(self, reference: ColumnReference, exact: set[int], whole: set[int], problems: list[str]) -> None:
        if reference.tag is not None:
            tags = self._tags(reference.tag)
            if not tags:
                tag = self.tag_name(reference.tag)
                problems.append(f"the table has no tag {tag!r}: attach the tag or change the policy")
            exact.update(self._covered(tags))
            return
        name = reference.name or ""
        named = self._ids.get(fold(name), set())
        containing = self._containing(name)
        exact.update(named)
        whole.update(containing)
        if containing:
            problems.append(f"{name!r} is a nested field, so the whole column is masked: name the top-level column")
        elif not named:
            problems.append(f"the table has no column {name!r}: correct the name or bind the policy to other tables")

    def _containing(self, name: str) -> set[int]:
        """Return the ids of columns that, in some schema, contain a nested field with this full dotted name."""
        wanted = fold(name)
        if "." not in wanted:
            return set()
        return {
            field.id
            for fields in self._fields.values()
            for field in fields
            if any(fold(path) == wanted for path in paths(field.type, field.name))
        }

    def tag_name(self, reference: str) -> str:
        """Return the name of the tag that a reference (an id or a name) identifies, for messages."""
        return dict(self._inputs.tag_names).get(reference, reference)

    def _tags(self, reference: str) -> set[str]:
        """Return the table's tags that a reference identifies: the tag with this id, or those with this name.

        A tag of the table is one of the table itself or of one of its columns. Letter case of the name is ignored.
        """
        carried = {tag for tag, _ in self._inputs.tagged_fields}
        if reference in dict(self._inputs.tag_names):
            return {reference} & carried
        return {id for id, each in self._inputs.tag_names if fold(each) == fold(reference) and id in carried}

    def _covered(self, tags: Collection[str]) -> set[int]:
        """Return the ids of the columns that one of the tags covers.

        A tag of the table or of a container covers all columns. Otherwise the columns with one of the tags are covered,
        and all columns that ever had the same name as one of these.
        """
        if not self._tags_of_table.isdisjoint(tags):
            return set(self._fields)
        tagged = {id for tag, id in self._inputs.tagged_fields if tag in tags and id is not None}
        names = {name for id in tagged for name in self._names.get(id, ())}
        return tagged.union(*(self._ids[name] for name in names))

    def filtered(self, reference: ColumnReference, recorded: Iterable[int]) -> list[NestedField]:
        """Return the current columns to which a reference in a row filter refers.

        A name refers to one column, a tag to all columns that it covers. The result is empty if there is none, or if
        the name is ambiguous. A recorded column is preferred to a later column of the name, because the filter was
        written for its values. Of columns whose names differ in letter case only, the one with exactly this name is
        preferred.
        """
        if reference.tag is not None:
            ids = self._covered(self._tags(reference.tag))
            return [field for id, field in self.current.items() if id in ids]
        name = fold(reference.name or "")
        had = self._ids.get(name, set()) & self.current.keys()
        now = {id for id in had if fold(self.current[id].name) == name}
        candidates = had & set(recorded) or now or had
        if candidates <= now:
            # Recorded columns may have exchanged names that differ only in letter case. The column with exactly this
            # name is preferred.
            candidates = {id for id in candidates if self.current[id].name == reference.name} or candidates
        return [self.current[id] for id in candidates] if len(candidates) == 1 else []


def unambiguous_names(columns: Columns, inputs: PolicyInputs) -> dict[int, str]:
    """Return the names of the current columns by field id. Names that another column has or had are left out.

    Engines that refer to columns by name read an old snapshot by the names of its schema. There, a filter with such a
    name could read another column. Letter case is ignored, because engines ignore it.
    """
    ids: dict[str, set[int]] = defaultdict(set)
    everywhere = (field for schema in (*columns.schemas, columns.current) for field in schema)
    for field_id, name in (*((field.id, field.name) for field in everywhere), *inputs.former_columns):
        ids[fold(name)].add(field_id)
    return {field.id: field.name for field in columns.current if len(ids[fold(field.name)]) == 1}
