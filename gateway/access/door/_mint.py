# SPDX-License-Identifier: Apache-2.0
"""Mint permits, the proofs of decisions. Import contracts let only the door import this module."""

from __future__ import annotations

from typing import TypeVar

from gateway.access.actor import Actor
from gateway.access.decisions.decision import Decision
from gateway.access.door.pending_audit import PendingAudit
from gateway.access.door.permit import DecideAgain, Permit, ReadStanding
from gateway.access.door.request_context import Deadline, DefinerView
from gateway.access.idempotency import Claim
from gateway.access.nouns.resolved import Resolution
from gateway.access.operation import Operation

Op = TypeVar("Op", bound=Operation)


def mint(
    operation: Op,
    *,
    actor: Actor,
    decision: Decision,
    resolution: Resolution,
    pending_audit: PendingAudit,
    request_id: str,
    claim: Claim | None = None,
    revalidate: DecideAgain | None = None,
    standing: ReadStanding | None = None,
    deadline: Deadline | None = None,
    definer_views: tuple[DefinerView, ...] = (),
) -> Permit[Op]:
    """Return a permit for a decision that allows. Raises ValueError for any other decision."""
    if not decision.allowed:
        raise ValueError(f"a permit needs the outcome allowed, and the decision has the outcome {decision.outcome}")
    permit: Permit[Op] = object.__new__(Permit)
    permit._operation = operation
    permit._actor = actor
    permit._decision = decision
    permit._resolution = resolution
    permit._pending_audit = pending_audit
    permit._request_id = request_id
    permit._claim = claim
    permit._revalidate = revalidate
    permit._standing = standing
    permit._definer_views = definer_views
    permit._deadline = deadline or Deadline()
    return permit
