# SPDX-License-Identifier: Apache-2.0
"""Asking what somebody may do, without doing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import Operation
from gateway.access.refs import Ref
from gateway.access.relations import Can
from gateway.access.tuples import Principal


@dataclass(frozen=True)
class CheckPermission(Operation):
    """Whether `principal` (the caller when None) has `relation` on `on`.

    About oneself anybody may ask; about others only who may read the assignments of the object.
    """

    endpoint: ClassVar[str] = "POST /management/v1/permissions/check"
    on: Ref
    relation: Can
    principal: Principal | None = None

    def demands(self) -> tuple[Demand, ...]:
        if self.principal is None:
            return (Demand(self.relation, self.on, required=False),)
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)
