# SPDX-License-Identifier: Apache-2.0
"""Steps: decisions that precede the operation of a request. No endpoint serves them.

Acting as a role is decided before every other operation of the request. Reading through views is decided for each view,
before the object that is read. Replaying the response of an idempotent request is decided if its key has a recorded
success.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.nouns.refs import ViewRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.role import RoleRef
from gateway.access.operation import Step
from gateway.obligations.application import EnforcementPoint


@dataclass(frozen=True)
class AssumeRole(Step):
    """Act as a role: for the rest of the request, the caller has only the rights of the role."""

    occasion: ClassVar[str] = "assume"
    role: RoleRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.ASSUME, self.role),)


@dataclass(frozen=True)
class ReadThroughView(Step):
    """Read through a view: a trusted engine reads the objects in the view's definition for a user."""

    occasion: ClassVar[str] = "through"
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.SCAN
    view: ViewRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.view), Demand(Can.SELECT, self.view))

    @classmethod
    def is_of_catalog(cls) -> bool:
        """Return True, because the step precedes reads of the catalog only."""
        return True


@dataclass(frozen=True)
class RepeatAnswer(Step):
    """Repeat the response of an earlier success to the principal of that request, without a change.

    No relation is demanded: a dropped object cannot be resolved, and the response only confirms the success. If the
    response has a body, other operations are decided to create it again. The door admits this step only if a success is
    recorded.
    """

    occasion: ClassVar[str] = "repeat"
    repeated: str

    def facts(self) -> Facts:
        return {"repeated": self.repeated}
