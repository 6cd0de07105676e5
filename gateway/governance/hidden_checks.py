# SPDX-License-Identifier: Apache-2.0
"""Find the checks of a batch that need no further question, because the caller does not see their object. Pure.

Many questions about an invisible object are as costly as about a visible one, and answered with no each time. So
visibility is asked first, of absent objects as of present ones: both get the same questions (LG-DIS-01, LG-DIS-18).
Which objects are asked about so depends on the request alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.access.refs import ObjectType, Ref
from gateway.access.relations import VISIBLE_BY, Can

_MANY: Final = 6
"""With fewer questions about an object nothing would be saved."""

_TYPES: Final = frozenset({ObjectType.NAMESPACE, ObjectType.TABLE, ObjectType.VIEW, ObjectType.GENERIC_TABLE})

#: Held by who manages grants, also without seeing the object: then `can_read_assignments` is held too.
_ABOUT_GRANTS: Final = frozenset(each for each in Can if each.name.startswith("GRANT_")) | {
    Can.CHANGE_OWNERSHIP,
    Can.READ_ASSIGNMENTS,
    Can.READ_GRANTS,
    Can.SET_MANAGED_ACCESS,
    Can.UNREGISTER,
}

Opening = tuple[Can, Ref]


def openings(relation: Can, on: Ref) -> tuple[Opening, ...]:
    """Return relations on `on` of which every holder of `relation` holds at least one; none where that is not known.

    `tests/unit/governance/test_hidden_checks.py` compares them with the compiled relationship model.
    """
    if on.type not in _TYPES:
        return ()
    visible = (VISIBLE_BY[on.type], on)
    if relation in _ABOUT_GRANTS:
        return visible, (Can.READ_ASSIGNMENTS, on)
    return (visible, (Can.MANAGE_TAGS, on)) if relation is Can.MANAGE_TAGS else (visible,)


def asked_first(questions: Mapping[int, tuple[Can, Ref]]) -> list[Opening]:
    """Return what is asked before these questions, each once, in order; nothing about objects with few of them."""
    count: dict[Ref, int] = {}
    for _, on in questions.values():
        count[on] = count.get(on, 0) + 1
    many = [each for each in questions.values() if count[each[1]] >= _MANY]
    return list(dict.fromkeys(opening for relation, on in many for opening in openings(relation, on)))


def hidden(
    questions: Mapping[int, tuple[Can, Ref]], first: Sequence[Opening], answers: Sequence[bool]
) -> frozenset[int]:
    """Return the questions whose answer is no after `first` was answered so."""
    known = dict(zip(first, answers, strict=True))
    found = set()
    for index, (relation, on) in questions.items():
        ways = openings(relation, on)
        if ways and all(way in known for way in ways) and not any(known[way] for way in ways):
            found.add(index)
    return frozenset(found)
