# SPDX-License-Identifier: Apache-2.0
"""Find checks of a batch that are already answered because the caller cannot see their object. Pure.

Many checks on an invisible object cost as much as on a visible one, and each result is no. So visibility is checked
first. Absent and present objects get the same checks, so timing reveals neither (LG-DIS-01 and LG-DIS-18 in
`docs/threats.md`). The choice of objects depends on the request alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.access.refs import ObjectType, Ref
from gateway.access.relations import VISIBLE_BY, Can

_MANY: Final = 6
"""Minimum number of checks on an object from which a visibility check saves time."""

_TYPES: Final = frozenset({ObjectType.NAMESPACE, ObjectType.TABLE, ObjectType.VIEW, ObjectType.GENERIC_TABLE})

#: Relations that a grant manager holds without seeing the object. It then also holds `can_read_assignments`.
_ABOUT_GRANTS: Final = frozenset(each for each in Can if each.name.startswith("GRANT_")) | {
    Can.APPROVE_CHANGES,
    Can.BIND_DATA_POLICY,
    Can.CHANGE_OWNERSHIP,
    Can.READ_ASSIGNMENTS,
    Can.READ_GRANTS,
    Can.SET_MANAGED_ACCESS,
    Can.UNREGISTER,
}

Opening = tuple[Can, Ref]


def openings(relation: Can, on: Ref) -> tuple[Opening, ...]:
    """Return relations on `on` of which every holder of `relation` holds at least one. Empty if none are known.

    `tests/unit/governance/test_hidden_checks.py` compares them with the compiled relationship model.
    """
    if on.type not in _TYPES or relation is Can.ENFORCE:
        return ()  # an enforcer does not see the object
    visible = (VISIBLE_BY[on.type], on)
    if relation in _ABOUT_GRANTS:
        return visible, (Can.READ_ASSIGNMENTS, on)
    return (visible, (Can.MANAGE_TAGS, on)) if relation is Can.MANAGE_TAGS else (visible,)


def first_checks(questions: Mapping[int, tuple[Can, Ref]]) -> list[Opening]:
    """Return the distinct checks to evaluate first, in order. Objects with fewer than `_MANY` checks are skipped."""
    count: dict[Ref, int] = {}
    for _, on in questions.values():
        count[on] = count.get(on, 0) + 1
    many = [each for each in questions.values() if count[each[1]] >= _MANY]
    return list(dict.fromkeys(opening for relation, on in many for opening in openings(relation, on)))


def hidden(
    questions: Mapping[int, tuple[Can, Ref]], first: Sequence[Opening], answers: Sequence[bool]
) -> frozenset[int]:
    """Return the indexes of checks that the results of `first` already answer with no."""
    known = dict(zip(first, answers, strict=True))
    found = set()
    for index, (relation, on) in questions.items():
        ways = openings(relation, on)
        if ways and all(way in known for way in ways) and not any(known[way] for way in ways):
            found.add(index)
    return frozenset(found)
