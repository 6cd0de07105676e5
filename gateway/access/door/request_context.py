# SPDX-License-Identifier: Apache-2.0
"""The state of one request while it is decided: its caller and the operations that were admitted so far."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from gateway.access.actor import Actor
from gateway.access.dependency_errors import OutOfTime
from gateway.access.door.pending_audit import PendingAudit
from gateway.access.idempotency import Claim, RecordedSuccess
from gateway.access.nouns.refs import UNUSED_ID
from gateway.access.nouns.resolved import Resolution, warehouse_of
from gateway.access.nouns.role import ResolvedRole
from gateway.access.operation import Operation
from gateway.access.operations.steps import AssumeRole, ReadThroughView, RepeatAnswer


class Deadline:
    """The time limit of one request. Without a timer there is no limit, as for the gateway's own work.

    A request can be cancelled until its COMMIT is sent, and never afterwards. So the response "nothing was changed" is
    always true.
    """

    __slots__ = ("_timer",)

    def __init__(self, timer: asyncio.Timeout | None = None) -> None:
        self._timer = timer

    def end_time_limit(self) -> None:
        """End the time limit, so that later steps cannot be cancelled. They have limits of their own.

        Raises OutOfTime if the time limit has passed and the request is being cancelled.
        """
        if self._timer is None:
            return
        try:
            self._timer.reschedule(None)
        except RuntimeError:
            raise OutOfTime("the request exceeded its time limit before its change was committed") from None


@dataclass(frozen=True, slots=True)
class Assumption:
    """The assumption of a role in a request: the caller before it, the admitted operation, and all roles of that
    caller.

    Policies about members of these roles also bind the caller while it acts as another role.
    """

    actor: Actor
    operation: AssumeRole
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DefinerView:
    """A view that was read through: its reader, the reader's role assumption, the admitted operation, and the owner.

    Below the view, the rights of the owner count. `owner` is None if the view has no owner.
    """

    actor: Actor
    assumption: Assumption | None
    operation: ReadThroughView
    owner: str | None


@dataclass(frozen=True, slots=True)
class RequestLocation:
    """The project and the warehouse that contain all objects of a request.

    Each is None if there are several, or none.
    """

    project_id: str | None = None
    warehouse_id: UUID | None = None


@dataclass(slots=True)
class RequestContext:
    """The state of one request at the door. The latch checks it before a response is sent."""

    actor: Actor
    request_id: str
    client_request_id: str | None = None
    """The request id that the client sent. It is recorded beside the gateway's own id, and never used to join records.
    """
    trace_id: str | None = None
    """The id of the trace, for audit records. The door sets it."""
    user_agent: str | None = None
    client_address: str | None = None
    admitted: set[type[Operation]] = field(default_factory=set)
    pending_audits: list[PendingAudit] = field(default_factory=list)
    claim: Claim | None = None
    """The idempotency key that this request claimed. Its success is committed under it."""
    recorded_success: RecordedSuccess | None = None
    """The recorded success of an earlier request with the same idempotency key, if there is one."""

    deadline: Deadline = field(default_factory=Deadline)
    assumption: Assumption | None = None
    """The role assumption, if the caller acts as a role."""

    definer_views: list[DefinerView] = field(default_factory=list)
    """The definer views that were read through so far, the outermost first."""

    location: RequestLocation = RequestLocation()
    """The location of the requested objects, also of refused requests. It is used to count requests and is never sent
    to the caller.
    """

    def record_location(self, resolution: Resolution) -> None:
        """Record the project and the warehouse in which the operation's objects are, or would be if they existed."""
        projects = {row.in_project for row in resolution.rows.values()} - {None}
        projects |= {where.project_id for where in resolution.absent.values()}
        found = (warehouse_of(row) for row in resolution.rows.values())
        warehouses = {warehouse.id for warehouse in found if warehouse is not None}
        warehouses |= {ref.warehouse_id for ref in resolution.absent if getattr(ref, "warehouse_id", None) is not None}
        if len(projects) == 1:
            self.location = RequestLocation(projects.pop(), warehouses.pop() if len(warehouses) == 1 else None)

    def act_as(self, actor: Actor, operation: AssumeRole, role: ResolvedRole, roles: tuple[str, ...]) -> None:
        """Let the caller act with the rights of the role alone.

        `actor` is the caller as it was admitted, and `roles` are all of its roles.
        """
        self.assumption = Assumption(self.actor, operation, roles)
        self.actor = msgspec.structs.replace(actor, assumed_role=role.id, within=role.project_id, instance_admin=False)

    def act_without_rights(self) -> None:
        """Let the caller continue as a member of an absent role: every response is the one for a caller without rights.

        An earlier assumption ends.
        """
        was = self.actor if self.assumption is None else self.assumption.actor
        self.assumption = None
        self.actor = msgspec.structs.replace(was, assumed_role=UUID(UNUSED_ID), instance_admin=False)

    def pass_through(self, operation: ReadThroughView, owner: str | None) -> None:
        """Continue below a view with its owner's rights, or with the caller's own rights if `owner` is None.

        An owner lends rights only to the definition of its own view. Other users may replace the definition of an
        ownerless view below it, so the owner's rights end there.
        """
        self.definer_views.append(DefinerView(self.actor, self.assumption, operation, owner))
        if owner is not None:
            self.actor, self.assumption = self.actor.as_owner(owner), None
            return
        caller = self.definer_views[0]
        self.actor, self.assumption = caller.actor, caller.assumption

    def may_answer(self, served: frozenset[type[Operation]]) -> bool:
        """Return True if a success response may be sent.

        That needs an admitted operation among those served, and durable audit records. A public operation needs
        neither. For operations with idempotency keys, repeating a recorded success counts as an admission.
        """
        if any(operation.is_public() for operation in served):
            return True
        answers = bool(self.admitted & served) or (
            self.recorded_success is not None
            and RepeatAnswer in self.admitted
            and all(operation.uses_idempotency_keys() for operation in served)
        )
        return answers and all(pending_audit.settled for pending_audit in self.pending_audits)

    def holds_secret(self) -> bool:
        """Return True if an admitted operation may have put a secret into the response."""
        return any(operation.returns_secret() for operation in self.admitted)

    def abandon(self, error: str) -> None:
        """Buffer the audit records of admitted operations whose request failed, with the error."""
        for pending_audit in self.pending_audits:
            pending_audit.abandon(error)
