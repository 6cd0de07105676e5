# SPDX-License-Identifier: Apache-2.0
"""Acting as a role (`lakekeeper.md` 5.5): decided before anything else that a request with such a wish asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import Step
from gateway.access.refs import RoleRef
from gateway.access.relations import Can


@dataclass(frozen=True)
class AssumeRole(Step):
    """From here on the caller has what the role has and nothing else."""

    occasion: ClassVar[str] = "assume"
    role: RoleRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.ASSUME, self.role),)
