# SPDX-License-Identifier: Apache-2.0
"""Acting as a role: decided before every other operation of the request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import Step
from gateway.access.refs import RoleRef
from gateway.access.relations import Can


@dataclass(frozen=True)
class AssumeRole(Step):
    """Act as a role: from here on the caller has the rights of the role alone."""

    occasion: ClassVar[str] = "assume"
    role: RoleRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.ASSUME, self.role),)
