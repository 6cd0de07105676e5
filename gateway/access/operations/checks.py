# SPDX-License-Identifier: Apache-2.0
"""Asking what somebody may do, without doing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import Operation
from gateway.access.refs import Ref
from gateway.access.relations import DEMANDED, Can
from gateway.access.tuples import Principal
from gateway.iceberg.errors import BadRequestException


@dataclass(frozen=True)
class CheckPermission(Operation):
    """Whether `principal` (the caller when None) has `relation` on `on`.

    About oneself anybody may ask; about others only who may read the assignments of the object.
    """

    endpoint: ClassVar[str] = "POST /management/v1/permissions/check"
    open_to_authenticated: ClassVar[str] = "about oneself; asking about others demands can_read_assignments"
    on: Ref
    relation: Can
    principal: Principal | None = None

    def __post_init__(self) -> None:
        """Raise 400 for a relation that no operation demands on this type: OpenFGA would call it an error, and the
        caller would be told of an outage.
        """
        known = DEMANDED[self.on.type]
        if self.relation not in known:
            raise BadRequestException(
                f"{self.relation} is not decided on a {self.on.type}: possible are {', '.join(sorted(known))}"
            )

    def demands(self) -> tuple[Demand, ...]:
        if self.principal is None:
            return (Demand(self.relation, self.on, required=False),)
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)
