# SPDX-License-Identifier: Apache-2.0
"""Steps: decisions on the way to the operation of a request. No endpoint serves them.

Acting as a role is decided before every other operation of the request. Reading through a view is decided view by
view, before the object that is read. Repeating an answer needs a success recorded under the idempotency key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Step
from gateway.access.refs import RoleRef, ViewRef
from gateway.access.relations import Can
from gateway.obligations.application import Place


@dataclass(frozen=True)
class AssumeRole(Step):
    """Act as a role: from here on the caller has the rights of the role alone."""

    occasion: ClassVar[str] = "assume"
    role: RoleRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.ASSUME, self.role),)


@dataclass(frozen=True)
class ReadThroughView(Step):
    """Read through a view: a trusted engine reads it for a user, on the way to the objects of its definition."""

    occasion: ClassVar[str] = "through"
    place: ClassVar[Place | None] = Place.SCAN
    view: ViewRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.view), Demand(Can.SELECT, self.view))

    @classmethod
    def is_of_catalog(cls) -> bool:
        """Return True: it leads to reads of the catalog alone."""
        return True


@dataclass(frozen=True)
class RepeatAnswer(Step):
    """Repeat the answer of an earlier success to the principal of that request, without a change.

    No relation is demanded: a dropped object cannot be looked up, and the answer says nothing but that it was done. A
    body is made anew by operations of its own. The door admits it only with the recorded success.
    """

    occasion: ClassVar[str] = "repeat"
    repeated: str

    def facts(self) -> Facts:
        return {"repeated": self.repeated}
