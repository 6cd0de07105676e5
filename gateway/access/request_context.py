# SPDX-License-Identifier: Apache-2.0
"""The context of one request at the door: its caller and its admitted operations."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from gateway.access.actor import Actor
from gateway.access.dependency_errors import OutOfTime
from gateway.access.idempotency import Claim, Remembered
from gateway.access.operation import Operation
from gateway.access.operations.steps import AssumeRole, ReadThroughView, RepeatAnswer
from gateway.access.pending_audit import PendingAudit
from gateway.access.refs import NOBODY_HAS_THIS_ID
from gateway.access.resolved import Resolution, ResolvedRole, project_of, warehouse_of


class Deadline:
    """The time limit of one request. Without a timer there is no limit, as for the gateway's own work.

    A request can be cancelled until its COMMIT is sent, and never afterwards. So a client that receives the answer
    "nothing was changed" can rely on it.
    """

    __slots__ = ("_timer",)

    def __init__(self, timer: asyncio.Timeout | None = None) -> None:
        self._timer = timer

    def let_go(self) -> None:
        """End the time limit: later steps have limits of their own, and their outcome is reported as it is.

        Raises OutOfTime if the limit is over and the cancellation is under way.
        """
        if self._timer is None:
            return
        try:
            self._timer.reschedule(None)
        except RuntimeError:
            raise OutOfTime("the time of the request was over before its change was committed") from None


@dataclass(frozen=True, slots=True)
class Assumption:
    """Record the caller that assumed a role, the admitted operation, and all roles of that caller: policies about their
    members also bind a caller that acts as another role.
    """

    actor: Actor
    operation: AssumeRole
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DefinerView:
    """Record a view that was read through: the caller, the admitted operation, and the owner whose rights count below
    it.
    """

    actor: Actor
    assumption: Assumption | None
    operation: ReadThroughView
    owner: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """The project and the warehouse that all things of a request lie in, where it is one."""

    project_id: str | None = None
    warehouse_id: UUID | None = None


@dataclass(slots=True)
class RequestContext:
    """Hold what the door knows of one request, and what the latch checks before an answer leaves."""

    actor: Actor
    request_id: str
    client_request_id: str | None = None
    """The caller's own name for the request: kept beside ours, and never used to join records."""
    user_agent: str | None = None
    client_address: str | None = None
    admitted: set[type[Operation]] = field(default_factory=set)
    trails: list[PendingAudit] = field(default_factory=list)
    claim: Claim | None = None
    """The idempotency key this request holds; its success is committed under it."""
    remembered: Remembered | None = None
    """The earlier success under this request's idempotency key, when it is a repetition."""

    deadline: Deadline = field(default_factory=Deadline)
    assumption: Assumption | None = None
    """How the caller came to act as a role, if so."""

    passages: list[DefinerView] = field(default_factory=list)
    """The views on the way to what is asked for, the outermost first."""

    place: Place = Place()
    """Where what was asked for lies, allowed or not: for counting requests, and for nothing that is told the caller."""

    def came_for(self, resolution: Resolution) -> None:
        """Note where the things of an operation lie, or would lie."""
        projects = {project_of(row) for row in resolution.rows.values()} - {None}
        projects |= {where.project_id for where in resolution.absent.values()}
        found = (warehouse_of(row) for row in resolution.rows.values())
        warehouses = {warehouse.id for warehouse in found if warehouse is not None}
        warehouses |= {ref.warehouse_id for ref in resolution.absent if getattr(ref, "warehouse_id", None) is not None}
        if len(projects) == 1:
            self.place = Place(projects.pop(), warehouses.pop() if len(warehouses) == 1 else None)

    def act_as(self, actor: Actor, operation: AssumeRole, role: ResolvedRole, roles: tuple[str, ...]) -> None:
        """Make the caller, admitted as `actor`, act as the role alone; `roles` are all roles of the caller."""
        self.assumption = Assumption(self.actor, operation, roles)
        self.actor = msgspec.structs.replace(actor, assumed_role=role.id, within=role.project_id, instance_admin=False)

    def act_as_nobody(self) -> None:
        """Continue as a member of a role that does not exist, so that every answer is that for a caller without rights.
        An earlier assumption ends.
        """
        was = self.actor if self.assumption is None else self.assumption.actor
        self.assumption = None
        self.actor = msgspec.structs.replace(was, assumed_role=UUID(NOBODY_HAS_THIS_ID), instance_admin=False)

    def pass_through(self, operation: ReadThroughView, owner: str | None) -> None:
        """Continue below a view: with its owner's rights, or with the caller's own if the view names no owner.

        An owner lends rights to the definition of its own view only. The definition of an ownerless view below it can
        be replaced by other users, so the owner's rights end there.
        """
        self.passages.append(DefinerView(self.actor, self.assumption, operation, owner))
        if owner is not None:
            self.actor, self.assumption = self.actor.as_owner(owner), None
            return
        caller = self.passages[0]
        self.actor, self.assumption = caller.actor, caller.assumption

    def may_answer(self, served: frozenset[type[Operation]]) -> bool:
        """True if a success answer may leave: one of the served operations was admitted and every trail is durable."""
        if any(operation.is_public() for operation in served):
            return True
        answers = bool(self.admitted & served) or (
            self.remembered is not None
            and RepeatAnswer in self.admitted
            and all(operation.heeds_keys() for operation in served)
        )
        return answers and all(trail.settled for trail in self.trails)

    def abandon(self, error: str) -> None:
        """Keep the audit records of admitted operations that failed."""
        for trail in self.trails:
            trail.abandon(error)
