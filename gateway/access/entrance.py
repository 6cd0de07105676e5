# SPDX-License-Identifier: Apache-2.0
"""One request at the door: who sends it and what it has been admitted for."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from gateway.access.actor import Actor
from gateway.access.deadline import Deadline
from gateway.access.operation import Operation
from gateway.access.operations.assuming import AssumeRole
from gateway.access.operations.repetitions import RepeatAnswer
from gateway.access.repetition import Claim, Remembered
from gateway.access.resolved import ResolvedRole
from gateway.access.trail import Trail


@dataclass(frozen=True, slots=True)
class Assumption:
    """Who assumed a role, by which admitted operation, and all roles that caller is in: what policies say of their
    members binds also who acts as another role.
    """

    actor: Actor
    operation: AssumeRole
    roles: tuple[str, ...]


@dataclass(slots=True)
class Entrance:
    """What the door knows of one request, and what the latch asks before an answer leaves."""

    actor: Actor
    request_id: str
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

    def act_as(self, operation: AssumeRole, role: ResolvedRole, roles: tuple[str, ...]) -> None:
        """Make the caller a member of the role and nothing else; `roles` are all that the caller is in."""
        self.assumption = Assumption(self.actor, operation, roles)
        self.actor = msgspec.structs.replace(
            self.actor, assumed_role=role.id, within=role.project_id, instance_admin=False
        )

    def may_answer(self, served: frozenset[type[Operation]]) -> bool:
        """True if a success answer may leave: one of the served operations was admitted and every trail is durable."""
        if any(operation.open_to_all for operation in served):
            return True
        answers = bool(self.admitted & served) or (
            self.remembered is not None
            and RepeatAnswer in self.admitted
            and all(operation.is_catalog_mutation() for operation in served)
        )
        return answers and all(trail.settled for trail in self.trails)

    def abandon(self, error: str) -> None:
        """Write down what was admitted and then failed."""
        for trail in self.trails:
            trail.abandon(error)
