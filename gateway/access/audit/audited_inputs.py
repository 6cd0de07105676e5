# SPDX-License-Identifier: Apache-2.0
"""The inputs of decisions in an audit record, so that recorded decisions can be decided again by other rules. Pure.

The inputs are what the rest of the record lacks: the caller's roles, the position and the former names of the object,
and the facts of the operation. They contain no secret and no claim of a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.access.decisions.policy import ResourceNames
from gateway.access.demand import Fact

MAX_INPUT_BYTES: Final = 4_096
"""Limit of the inputs of one decision, in bytes of JSON. Larger inputs are left out as a whole."""

MAX_ROLES: Final = 64
"""Limit of the caller's recorded roles. With more roles they are left out as a whole."""


class CallerInputs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The ids of the caller's roles, direct and through other roles. `complete` is false if they were left out."""

    roles: tuple[str, ...] = ()
    groups_known: bool = True
    complete: bool = True


class DecisionInputs(ResourceNames, frozen=True, kw_only=True, omit_defaults=True):
    """The first object of an operation beside its type and id, and the facts, as policies received them.

    `demands` has the index of an object in `resources` for each demanded relation, if one is not on the first object.
    `complete` is false if the inputs were left out.
    """

    facts: Mapping[str, Fact] = {}
    demands: tuple[tuple[str, int], ...] = ()
    complete: bool = True


INPUTS_LEFT_OUT: Final = DecisionInputs(complete=False)
ROLES_LEFT_OUT: Final = CallerInputs(complete=False)
