# SPDX-License-Identifier: Apache-2.0
"""Combine the parts of an explanation to its outcome: the decision, the blocking conditions, and the expiry. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum, auto

from gateway.access.decisions.hypothetical_evaluation import HypotheticalVerdict
from gateway.access.operations.answers import Decided, PoliciesAnswer, WitnessAnswer


class Restriction(Enum):
    """The effect of data policies on an action: none, parts of the table are hidden, or the whole action is denied."""

    NONE = auto()
    PARTS = auto()
    ALL = auto()


def blocked_by(verdict: HypotheticalVerdict, restriction: Restriction, *, by_authorizer: bool) -> list[str]:
    """Return the conditions that block the action, beside relationships and guardrails."""
    conditions = {
        "warehouse-inactive": not verdict.active,
        "user-deactivated": verdict.deactivated,
        "authorizer": by_authorizer,
        "obligation-unenforced": not verdict.enforceable,
        "data-policy": restriction is Restriction.ALL,
    }
    return [name for name, blocks in conditions.items() if blocks]


def decision_of(
    verdict: HypotheticalVerdict, policies: PoliciesAnswer, blocked: Sequence[str], restriction: Restriction
) -> Decided:
    """Return the decision that follows from all parts."""
    if verdict.holds and policies.depends_on and not blocked:
        return "depends"
    if not verdict.allowed or blocked:
        return "denied"
    return "allowed" if restriction is Restriction.NONE else "restricted"


def until_of(shown: Sequence[WitnessAnswer]) -> datetime | None:
    """Return the time at which the last witness expires; None if one has no expiry, or if there is none.

    Only witnesses that the caller may read count. The end of a hidden grant is as secret as the grant.
    """
    ends = [each.until for each in shown]
    return None if None in ends else max((end for end in ends if end is not None), default=None)
