# SPDX-License-Identifier: Apache-2.0
"""Merge the projections of each column to the strictest one.

The protocol allows one projection for a column, and a reader that receives two must fail. The merge does not depend on
the order of the projections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

from lakegate.restrictions.actions import Action, Projection

#: The greatest lower bounds of an action: the actions that reveal less, directly below it. Together they form a
#: lattice. Null and the fixed value reveal nothing. Null is the least action, so that a merge gives null only if one of
#: its operands is null: a required column, whose masks are never null, gets the fixed value.
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
    """Return the actions that reveal no more than `action`, with itself."""
    return frozenset({action}).union(*map(_lower_bounds, _BELOW[action]))


_LOWER_BOUNDS: Final[Mapping[Action, frozenset[Action]]] = {action: _lower_bounds(action) for action in Action}


def reveals_no_more(one: Action, other: Action) -> bool:
    """Return True if the result of `one` can be computed from the result of `other`, or is less exact."""
    return one in _LOWER_BOUNDS[other]


def meet(one: Action, other: Action) -> Action:
    """Return the action that reveals most of all those that reveal no more than `one` and no more than `other`.

    Associative, commutative and idempotent. Two actions of different families give the fixed value.
    """
    return max(_LOWER_BOUNDS[one] & _LOWER_BOUNDS[other], key=lambda action: len(_LOWER_BOUNDS[action]))


def strictest(candidates: Mapping[int, Sequence[Projection]]) -> tuple[Projection, ...]:
    """Return one projection for each field id, in the order of ids: the meet of its candidates."""
    return tuple(
        Projection(field_id, reduce(meet, (each.action for each in some)))
        for field_id, some in sorted(candidates.items())
        if some
    )
