# SPDX-License-Identifier: Apache-2.0
"""Answer two special checks in a batch: about objects that the caller cannot see, and about data under data policies.

Data policies (row filters, masks) allow a part of the data, so the result is neither a plain yes nor a plain no.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.access.nouns.cards import VISIBLE_BY
from gateway.access.nouns.refs import ObjectType, Ref
from gateway.access.nouns.relations import Can
from gateway.access.operations.checks import Check, ColumnMask, EngineRestrictions
from gateway.access.restrictions.bound_restrictions import PolicyVerdict
from gateway.obligations.binding_columns import unambiguous_names
from gateway.obligations.compilers.trino import mask_sql, row_filter_sql
from gateway.obligations.kinds import TableRestrictions
from gateway.obligations.projections import Columns, RestrictionNotExpressible
from lakegate.restrictions.actions import Action
from lakegate.restrictions.predicates import ALWAYS

_MANY: Final = 6
"""Minimum number of checks on an object from which a visibility check saves time."""

_TYPES: Final = frozenset({ObjectType.NAMESPACE, ObjectType.TABLE, ObjectType.VIEW, ObjectType.GENERIC_TABLE})

#: Relations that a grant manager holds even on an object that is otherwise invisible. The manager also holds
#: `can_read_assignments`.
_ABOUT_GRANTS: Final = frozenset(each for each in Can if each.name.startswith("GRANT_")) | {
    Can.APPROVE_CHANGES,
    Can.BIND_DATA_POLICY,
    Can.CHANGE_OWNERSHIP,
    Can.READ_ASSIGNMENTS,
    Can.READ_GRANTS,
    Can.SET_MANAGED_ACCESS,
    Can.UNREGISTER,
}

#: Relations whose holders may not see the object. They give no right of their own on it.
_UNSEEN: Final = frozenset({Can.ENFORCE, Can.BREAK_GLASS, Can.CONFIRM_BREAK_GLASS, Can.REQUEST_ACCESS})

Opening = tuple[Can, Ref]


def openings(relation: Can, on: Ref) -> tuple[Opening, ...]:
    """Return relations on `on`: every holder of `relation` holds at least one of them. Empty if none are known.

    `tests/unit/governance/test_hidden_checks.py` compares them with the compiled relationship model.
    """
    if on.type not in _TYPES or relation in _UNSEEN:
        return ()
    visible = (VISIBLE_BY[on.type], on)
    if relation in _ABOUT_GRANTS:
        return visible, (Can.READ_ASSIGNMENTS, on)
    return (visible, (Can.MANAGE_TAGS, on)) if relation is Can.MANAGE_TAGS else (visible,)


def first_checks(questions: Mapping[int, tuple[Can, Ref]]) -> list[Opening]:
    """Return the distinct checks to evaluate first, in order. Objects with fewer than `_MANY` checks have none."""
    count: dict[Ref, int] = {}
    for _, on in questions.values():
        count[on] = count.get(on, 0) + 1
    many = [each for each in questions.values() if count[each[1]] >= _MANY]
    return list(dict.fromkeys(opening for relation, on in many for opening in openings(relation, on)))


def hidden(
    questions: Mapping[int, tuple[Can, Ref]], first: Sequence[Opening], answers: Sequence[bool]
) -> frozenset[int]:
    """Return the indexes of the checks whose result is no, because all results of `first` for them are no."""
    known = dict(zip(first, answers, strict=True))
    found = set()
    for index, (relation, on) in questions.items():
        ways = openings(relation, on)
        if ways and all(way in known for way in ways) and not any(known[way] for way in ways):
            found.add(index)
    return frozenset(found)


#: Checks of these relations on a table concern its data.
READS: Final = frozenset({Can.READ_DATA, Can.READ_COLUMNS})
WRITES: Final = frozenset({Can.WRITE_DATA, Can.COMMIT})
CONCERNS_DATA: Final = READS | WRITES | {Can.UNREGISTER}

#: The SQL condition that no row fulfils.
_NO_ROW: Final = "false"


@dataclass(frozen=True, slots=True)
class RestrictedAnswer:
    """The result of a check that both engines allow. `columns` and `restrictions` are None if nothing is restricted.

    `restricted` is True if the check is not allowed because the data is restricted.
    """

    allowed: bool
    columns: list[str] | None = None
    restrictions: EngineRestrictions | None = None
    restricted: bool = False


REFUSED: Final = RestrictedAnswer(False, restricted=True)


def restricted_answer(
    check: Check, verdict: PolicyVerdict | None, readable: Sequence[str] | None = None
) -> RestrictedAnswer:
    """Return the result of a check that both engines allow, under the data policies of the table.

    `readable` has the names of the columns that column grants allow, None for all columns.
    """
    columns = None if readable is None else list(readable)
    if verdict is None or not verdict.restricts:
        return RestrictedAnswer(True, columns)
    restrictions = verdict.restrictions
    if restrictions is None or verdict.inexpressible:
        return REFUSED
    if check.relation in WRITES:
        return RestrictedAnswer(True) if check.append and restrictions.append else REFUSED
    if check.relation is not Can.READ_COLUMNS or not check.applies_restrictions:
        return REFUSED
    return _for_trino(verdict, restrictions, columns)


def is_possible(relation: Can, verdict: PolicyVerdict) -> bool:
    """Return True if an action on the data of a restricted table is possible under its restrictions.

    Reading is possible, because an engine can apply the restrictions. Appending is possible if every policy permits it.
    """
    restrictions = verdict.restrictions
    if restrictions is None or verdict.inexpressible:
        return False
    return relation in READS or (relation in WRITES and restrictions.append)


def _for_trino(
    verdict: PolicyVerdict, restrictions: TableRestrictions, readable: Collection[str] | None
) -> RestrictedAnswer:
    """Return the row filters and masks as expressions for Trino.

    A column is allowed only if no other column has or had its name: Trino reads old snapshots by their own column
    names.
    """
    if verdict.columns is None or verdict.inputs is None:
        return REFUSED
    names = unambiguous_names(verdict.columns, verdict.inputs)
    shown = {id: name for id, name in names.items() if readable is None or name in readable}
    try:
        masks = list(_masks(restrictions, verdict.columns, shown))
    except RestrictionNotExpressible:
        return REFUSED
    if not shown:
        return REFUSED
    found = EngineRestrictions(row_filter=_row_filter(restrictions, names), column_masks=masks)
    return RestrictedAnswer(True, list(shown.values()), found)


def _row_filter(restrictions: TableRestrictions, names: Mapping[int, str]) -> str | None:
    if restrictions.row_filter == ALWAYS:
        return None
    try:
        return row_filter_sql(restrictions.row_filter, names)
    except RestrictionNotExpressible:
        return _NO_ROW


def _masks(restrictions: TableRestrictions, columns: Columns, shown: Mapping[int, str]) -> Iterator[ColumnMask]:
    """Yield the masks of the columns in `shown`. Raises RestrictionNotExpressible if Trino cannot hide a column."""
    kinds = {field.id: field for field in columns.current}
    for each in restrictions.masks:
        if each.field_id in shown:
            field = kinds[each.field_id]
            try:
                sql = mask_sql(each.action, field.name, field.type, required=field.required)
            except RestrictionNotExpressible:
                stricter = Action.MASK_TO_FIXED_VALUE if field.required else Action.REPLACE_WITH_NULL
                sql = mask_sql(stricter, field.name, field.type, required=field.required)
            # The bridge converts this name and the names of readable columns to lower case by the same rules.
            yield ColumnMask(field.name, sql)
