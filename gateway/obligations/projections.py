# SPDX-License-Identifier: Apache-2.0
"""Merge several reasons to hold back one column: the strictest wins, in any order.

The protocol has one projection for a column, and a reader that receives two has to fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gateway.obligations.masks import Action


class Projection(msgspec.Struct, frozen=True, order=True):
    """The replacement of a column's values, by its field id (above 0)."""

    field_id: int
    action: Action


#: From what tells nothing of a value to what tells most. A fixed value goes before null, which a required column cannot
#: have; two actions that tell different things of a value have an order all the same, so that none depends on chance.
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


def strictest(wanted: Mapping[int, Sequence[Projection]]) -> tuple[Projection, ...]:
    """One projection for each field id, the strictest of those that are wanted, in the order of ids."""
    return tuple(
        min(some, key=lambda each: STRICTNESS.index(each.action)) for _, some in sorted(wanted.items()) if some
    )


class _Projection(msgspec.Struct, frozen=True, rename="kebab"):
    field_id: int
    action: str


class _ReadRestrictions(msgspec.Struct, frozen=True, rename="kebab"):
    required_column_projections: tuple[_Projection, ...]


def read_restrictions(projections: Sequence[Projection]) -> bytes:
    """Return the member `read-restrictions` of a load's answer as JSON, as the catalog protocol defines it.

    Equal projections give equal bytes. Without projections it is empty, because an empty object means the same as
    none. It holds actions by field ids alone: no policy, role or tag, and nothing about the caller.
    """
    if not projections:
        return b""
    told = tuple(_Projection(each.field_id, each.action.value) for each in sorted(projections))
    return msgspec.json.encode(_ReadRestrictions(told))
