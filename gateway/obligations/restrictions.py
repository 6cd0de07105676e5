# SPDX-License-Identifier: Apache-2.0
"""The member `read-restrictions` of a load's answer, as the catalog protocol defines it.

It holds actions by field ids alone: no policy, role or tag, and nothing about the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.obligations.projections import Projection


class _Projection(msgspec.Struct, frozen=True, rename="kebab"):
    field_id: int
    action: str


class _ReadRestrictions(msgspec.Struct, frozen=True, rename="kebab"):
    required_column_projections: tuple[_Projection, ...]


def read_restrictions(projections: Sequence[Projection]) -> bytes:
    """The member as JSON, the same bytes for the same projections; empty when nothing is held back, because an empty
    object means the same as none.
    """
    if not projections:
        return b""
    told = tuple(_Projection(each.field_id, each.action.value) for each in sorted(projections))
    return msgspec.json.encode(_ReadRestrictions(told))
