# SPDX-License-Identifier: Apache-2.0
"""Asking what somebody may do, without doing it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Operation
from gateway.access.refs import Ref
from gateway.access.relations import ACTIONS, VISIBLE_BY, Can
from gateway.access.tuples import Principal
from gateway.iceberg.errors import BadRequestException


@dataclass(frozen=True)
class Check:
    """Whether `principal` (the caller when None) may use `relation` on `on`; `facts` are what policies are told of it.

    `id` is the caller's own name for the question.
    """

    on: Ref
    relation: Can
    principal: Principal | None = None
    facts: Facts = field(default_factory=dict, hash=False)
    id: str | None = None

    def __post_init__(self) -> None:
        """Raise 400 for a relation that the model does not decide on this type: OpenFGA would call it an error, and the
        caller would be told of an outage.
        """
        known = ACTIONS[self.on.type]
        if self.relation not in known:
            raise BadRequestException(
                f"{self.relation} is not decided on a {self.on.type}: possible are {', '.join(sorted(known))}"
            )


@dataclass(frozen=True)
class CheckPermission(Operation):
    """One check.

    About oneself anybody may ask; about others only who may read the assignments of the object.
    """

    endpoint: ClassVar[str] = "POST /management/v1/permissions/check"
    reads_because: ClassVar[str] = "it is a question"
    open_to_self: ClassVar[str] = "about oneself; asking about others demands can_read_assignments"
    check: Check

    def demands(self) -> tuple[Demand, ...]:
        if self.check.principal is None:
            return ()
        return (Demand(Can.READ_ASSIGNMENTS, self.check.on),)

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.check.on,)


@dataclass(frozen=True)
class BatchCheck(Operation):
    """Many checks in one request, each about the caller or about somebody else.

    The demands are optional, because one check that may not be asked is told of one by one: see
    `gateway.governance.checks`.
    """

    endpoint: ClassVar[str] = "POST /management/v1/action/batch-check"
    reads_because: ClassVar[str] = "it is many questions"
    open_to_authenticated: ClassVar[str] = "about oneself; answers about others demand can_read_assignments, one by one"
    checks: tuple[Check, ...]
    error_on_not_found: bool = False

    def demands(self) -> tuple[Demand, ...]:
        demands: dict[Demand, None] = {}
        for check in self.checks:
            if check.principal is not None:
                demands[Demand(Can.READ_ASSIGNMENTS, check.on, required=False)] = None
            visible_by = VISIBLE_BY.get(check.on.type)
            if visible_by is not None and (check.principal is not None or self.error_on_not_found):
                demands[Demand(visible_by, check.on, required=False)] = None
        return tuple(demands)

    def looks_up(self) -> tuple[Ref, ...]:
        return tuple(dict.fromkeys(check.on for check in self.checks))

    def facts(self) -> Facts:
        return {"checks": len(self.checks)}
