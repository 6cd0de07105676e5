# SPDX-License-Identifier: Apache-2.0
"""Merge the projections of each column to the strictest one, and encode them for engines.

The protocol allows one projection for a column, and a reader that receives two must fail. The merge does not depend on
the order of the projections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gateway.obligations.masks import Action


class Projection(msgspec.Struct, frozen=True, order=True):
    """The replacement of the values of one column. `field_id` is greater than 0."""

    field_id: int
    action: Action


#: The actions, from those that reveal nothing of a value to those that reveal most. A fixed value precedes null,
#: because a required column cannot be null. The order is total, also where two actions reveal different parts of a
#: value, so that the result is deterministic.
STRICTNESS: Final[tuple[Action, ...]] = (
    Action.MASK_TO_FIXED_VALUE,
    Action.REPLACE_WITH_NULL,
    Action.SHA_256_QUERY_LOCAL,
    Action.SHA_256_GLOBAL,
    Action.MASK_ALPHANUM,
    Action.TRUNCATE_TO_YEAR,
    Action.TRUNCATE_TO_MONTH,
    Action.SHOW_LAST_4,
    Action.SHOW_FIRST_4,
)


def strictest(candidates: Mapping[int, Sequence[Projection]]) -> tuple[Projection, ...]:
    """Return the strictest projection for each field id, in the order of ids. `candidates` has the candidates by id."""
    return tuple(
        min(some, key=lambda each: STRICTNESS.index(each.action)) for _, some in sorted(candidates.items()) if some
    )


class _Projection(msgspec.Struct, frozen=True, rename="kebab"):
    field_id: int
    action: str


class _ReadRestrictions(msgspec.Struct, frozen=True, rename="kebab"):
    required_column_projections: tuple[_Projection, ...]


def read_restrictions(projections: Sequence[Projection]) -> bytes:
    """Return the JSON of `read-restrictions` in a load response, in the form of the Iceberg REST specification.

    Equal projections give equal bytes. Without projections the result is empty: an absent member means the same as an
    empty object. The JSON has only field ids and actions: no policy, role or tag, and nothing about the caller.
    """
    if not projections:
        return b""
    ordered = tuple(_Projection(each.field_id, each.action.value) for each in sorted(projections))
    return msgspec.json.encode(_ReadRestrictions(ordered))
