# SPDX-License-Identifier: Apache-2.0
"""The form of obligations in the results of guardrails: one field for each kind that has a name in Rego.

A guardrail is a Rego package that can deny an operation, or allow it with obligations. The struct is generated from the
kinds, and `gateway.opa.schema` generates the schema of guardrails from the struct. So each kind is declared only once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from gateway.obligations.guardrail_policies import require_valid
from gateway.obligations.kinds import KINDS, Obligation
from gateway.obligations.merging import Obligations

_STATED: Final[dict[str, type[Obligation]]] = {kind.rego[0]: kind for kind in KINDS if kind.rego is not None}

if TYPE_CHECKING:

    class StatedObligations(msgspec.Struct, frozen=True):
        """One field for each kind of obligation. A field is absent if no guardrail demands its kind."""
else:
    StatedObligations = msgspec.defstruct(
        "Obligations",
        [(name, kind.rego[1] | msgspec.UnsetType, msgspec.UNSET) for name, kind in _STATED.items()],
        namespace={"__doc__": "The obligations of one answer, each left out where no guardrail asks for it."},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def understood(stated: StatedObligations) -> Obligations:
    """Convert the fields to the obligations of the door. Raises ValueError for an invalid obligation."""
    found: list[Obligation] = []
    for name, kind in _STATED.items():
        value: Any = getattr(stated, name)
        one = None if value is msgspec.UNSET else kind.stated(value)
        if one is not None:
            found.append(one)
    obligations = Obligations.of(*found)
    require_valid(obligations)
    return obligations
