# SPDX-License-Identifier: Apache-2.0
"""One request at the door: who sends it and what it has been admitted for."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from gateway.access.actor import Actor
from gateway.access.deadline import Deadline
from gateway.access.operation import Operation
from gateway.access.operations.assuming import AssumeRole
from gateway.access.operations.passing import ReadThroughView
from gateway.access.operations.repetitions import RepeatAnswer
from gateway.access.refs import NOBODY_HAS_THIS_ID
from gateway.access.repetition import Claim, Remembered
from gateway.access.resolved import Resolution, ResolvedRole, project_of, warehouse_of
from gateway.access.trail import Trail


@dataclass(frozen=True, slots=True)
class Assumption:
    """Who assumed a role, by which admitted operation, and all roles that caller is in: what policies say of their
    members binds also who acts as another role.
    """

    actor: Actor
    operation: AssumeRole
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """A view that was read through: by whom, as what, by which admitted operation, and whose rights count below it."""

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
class Entrance:
    """What the door knows of one request, and what the latch asks before an answer leaves."""

    actor: Actor
    request_id: str
    client_request_id: str | None = None
    """The caller's own name for the request: kept beside ours, and never used to join records."""
    user_agent: str | None = None
    client_address: str | None = None
    admitted: set[type[Operation]] = field(default_factory=set)
    trails: list[Trail] = field(default_factory=list)
    claim: Claim | None = None
    """The idempotency key this request holds; its success is committed under it."""
    remembered: Remembered | None = None
    """The earlier success under this request's idempotency key, when it is a repetition."""

    deadline: Deadline = field(default_factory=Deadline)
    assumption: Assumption | None = None
    """How the caller came to act as a role, if so."""

    passages: list[Passage] = field(default_factory=list)
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
        """Make the caller, who was admitted as `actor`, a member of the role and nothing else; `roles` are all that the
        caller is in.
        """
        self.assumption = Assumption(self.actor, operation, roles)
        self.actor = msgspec.structs.replace(actor, assumed_role=role.id, within=role.project_id, instance_admin=False)

    def act_as_nobody(self) -> None:
        """Go on as a member of a role that there is not and that has nothing, so that every answer is that to who has
        nothing. What was assumed before is given up.
        """
        was = self.actor if self.assumption is None else self.assumption.actor
        self.assumption = None
        self.actor = msgspec.structs.replace(was, assumed_role=UUID(NOBODY_HAS_THIS_ID), instance_admin=False)

    def pass_through(self, operation: ReadThroughView, owner: str | None) -> None:
        """Continue below a view: with its owner's rights, or with the caller's own if the view names no owner.

        An owner lends rights to the definition of its own view only. The definition of an ownerless view below it can
        be replaced by other users, so the owner's rights end there.
        """
        self.passages.append(Passage(self.actor, self.assumption, operation, owner))
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
        """Write down what was admitted and then failed."""
        for trail in self.trails:
            trail.abandon(error)
