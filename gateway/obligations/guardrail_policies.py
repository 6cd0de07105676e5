# SPDX-License-Identifier: Apache-2.0
"""Convert the row filters and masks of guardrails to data policies, so that both are bound to a table alike. Pure.

A guardrail is a Rego package that can deny an operation or restrict it. It returns filters and masks for one question
of one caller. So they apply to that caller without a binding or an exemption.
"""

from __future__ import annotations

from typing import Final

import msgspec

from gateway.obligations.data_policies import (
    BoundPolicy,
    ColumnReference,
    DataPolicy,
    Definition,
    Mask,
    RowFilter,
    Test,
)
from gateway.obligations.kinds import ColumnMasks, RowFilters
from gateway.obligations.merging import Obligations
from gateway.obligations.validation import problems_of
from lakegate.restrictions.actions import Action

GUARDRAIL: Final = "guardrail"
"""The id of these policies in problems. No stored policy has it, because ids of stored policies are UUIDs."""

_test = msgspec.json.Decoder(Test)


def policies_of(obligations: Obligations) -> tuple[BoundPolicy, ...]:
    """Return the row filters and masks in the obligations as data policies, in a fixed order; empty if there are
    none.
    """
    definitions: list[Definition] = []
    for one in obligations:
        if isinstance(one, RowFilters):
            definitions += [RowFilter(_test.decode(text)) for text in sorted(one.texts)]
        elif isinstance(one, ColumnMasks):
            definitions += [_mask(text) for text in sorted(one.texts)]
    return tuple(BoundPolicy(policy=DataPolicy(id=GUARDRAIL, version=0, definition=each)) for each in definitions)


def without_policies(obligations: Obligations) -> Obligations:
    """Return the obligations without the row filters and masks that `policies_of` converts."""
    return Obligations.of(*(one for one in obligations if not isinstance(one, RowFilters | ColumnMasks)))


def require_valid(obligations: Obligations) -> None:
    """Raise ValueError for a row filter or mask that a data policy must not contain, for example too many tests."""
    for each in policies_of(obligations):
        problems = problems_of(each.policy.definition, None)
        if problems:
            raise ValueError(f"a row filter or mask is invalid at {problems[0].pointer!r}: {problems[0].problem}")


def _mask(text: str) -> Mask:
    column, _, action = text.rpartition(": ")
    return Mask(Action(action), (ColumnReference(name=column),))
