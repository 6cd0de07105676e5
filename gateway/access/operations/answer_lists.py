# SPDX-License-Identifier: Apache-2.0
"""Operations that list the principals that may take an action, and what a principal may do, with the reasons.

An answer is complete, or the request fails. Facts that the caller may not read appear as another grant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, StrictRequest
from gateway.access.demand import Demand, Facts
from gateway.access.nouns.cards import VISIBLE_BY
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.role import RoleRef
from gateway.access.nouns.server import ServerRef
from gateway.access.operation import Audience, PublicAudience, QuestionOperation
from gateway.access.operations.actions import Identity
from gateway.access.operations.answers import NotKept, PolicyReason
from gateway.access.operations.grants import GrantedOn, GrantedTo
from gateway.access.tuples import Principal

#: The largest page, and the page without a size.
MAX_ROWS = 1000
DEFAULT_ROWS = 100
MAX_OBJECTS = 100
DEFAULT_OBJECTS = 25

#: The most checks by which OpenFGA confirms one object of `what-can`. Actions that the same grants give are one check.
_CHECKS_OF_OBJECT: Final = 20

PageRows = Annotated[int, msgspec.Meta(ge=1)]


@dataclass(frozen=True)
class WhoCan(QuestionOperation):
    """List the principals that may take an action on an object, with the reason and the end of each.

    With `expand`, list the direct members of this role that may. The caller must be able to read the assignments of the
    object, and of the role.
    """

    endpoint: ClassVar[str] = "POST /management/v1/access/who-can"
    on: Ref
    action: Can
    expand: UUID | None = None
    page_token: str | None = None
    page_size: int | None = None
    at: datetime | None = None

    def demands(self) -> tuple[Demand, ...]:
        role = () if self.expand is None else (Demand(Can.READ_ASSIGNMENTS, RoleRef(self.expand)),)
        return (Demand(Can.READ_ASSIGNMENTS, self.on), *role)

    def questions(self) -> int:
        # A check of a past moment has its own tuples, so it is sent alone.
        return super().questions() if self.at is None else min(self.page_size or DEFAULT_ROWS, MAX_ROWS)

    def facts(self) -> Facts:
        return {"action": self.action.value}

    def audit_details(self) -> Mapping[str, str]:
        role = {} if self.expand is None else {"expanded_role": str(self.expand)}
        moment = {} if self.at is None else {"at": self.at.isoformat()}
        return {"asked_action": self.action.value, **role, **moment}


@dataclass(frozen=True)
class WhatCan(QuestionOperation):
    """List what a principal (the caller when None) may do, at the highest objects, with the reason and the end.

    `on` limits the answer to an object and its contents. Callers may ask about themselves. For another principal they
    must be able to read the assignments of the object and of its contents; without an object, those of the server.
    """

    endpoint: ClassVar[str] = "POST /management/v1/access/what-can"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "the caller's own rights; a question about another principal demands can_read_assignments"
    )
    principal: Principal | None = None
    on: Ref | None = None
    action: Can | None = None
    page_token: str | None = None
    page_size: int | None = None
    at: datetime | None = None

    def demands(self) -> tuple[Demand, ...]:
        if self.principal is not None:
            return (Demand(Can.READ_ASSIGNMENTS, self.on or ServerRef()),)
        visible_by = None if self.on is None else VISIBLE_BY.get(self.on.type)
        if self.on is None or visible_by is None:
            return ()
        return (Demand(visible_by, self.on, alternative=Can.READ_ASSIGNMENTS),)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.on or ServerRef(),)

    def questions(self) -> int:
        if self.at is None:
            return super().questions()
        objects = min(self.page_size or DEFAULT_OBJECTS, MAX_OBJECTS)
        return objects if self.action is not None else objects * _CHECKS_OF_OBJECT

    def facts(self) -> Facts:
        return {"about": "" if self.principal is None else f"{self.principal.type}:{self.principal.id}"}

    def audit_details(self) -> Mapping[str, str]:
        about = {} if self.principal is None else {"asked_about": f"{self.principal.type}:{self.principal.id}"}
        moment = {} if self.at is None else {"at": self.at.isoformat()}
        return {**about, **({} if self.action is None else {"asked_action": self.action.value}), **moment}


class WhoCanRequest(StrictRequest, frozen=True):
    """Request of `POST /access/who-can`.

    `action` and `object` are as in `POST /permissions/check`, such as `"read_data"` and `{"table": {"warehouse-id": …,
    "table-id": …}}`. `expand` is a role of the answer, whose members are listed instead. `at` is the past moment of the
    question; without it the question is about now.
    """

    action: str
    object: dict[str, dict[str, Any]]
    expand: UUID | None = None
    page_token: str | None = None
    page_size: PageRows | None = None
    at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class WhatCanRequest(StrictRequest, frozen=True):
    """Request of `POST /access/what-can`.

    `principal` is a user or a role; without it, the answer is about the caller. `object` and `action` are as in `POST
    /access/who-can`: they limit the answer to an object with its contents, and to one action. `at` is as there.
    """

    principal: Identity | None = None
    object: dict[str, dict[str, Any]] | None = None
    action: str | None = None
    page_token: str | None = None
    page_size: PageRows | None = None
    at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class Fact(Answer, frozen=True, omit_defaults=True):
    """A fact behind a row.

    `grant` is a grant on an object, `membership` one on a role, `contents` a grant on an object inside of the resource.
    `another grant` stands for all facts of a reason that contains one which the caller may not read.
    """

    fact: Literal["grant", "membership", "contents", "another grant"]
    privilege: str | None = None
    principal: GrantedTo | None = None
    resource: GrantedOn | None = None
    granted_by: str | None = None
    created_at: datetime | None = None
    reason: str | None = None
    expires_at: datetime | None = None


class AnswerRow(Answer, frozen=True, omit_defaults=True, kw_only=True):
    """The common members of rows.

    `reason` are facts that together give the right: without any of them, this reason does not. `end` is the time after
    which the right does not hold by this reason; without it there is no end, unless `end-unknown` is true.
    """

    reason: list[Fact]
    end: datetime | None = None
    end_unknown: bool = False


class RowLimits(Answer, frozen=True, omit_defaults=True):
    """List the limits of a right by relationships: denials and obligations of guardrails, and data policies.

    The circumstances of a request are unknown, so a real request can be limited otherwise. With `restricted`, data
    policies or guardrails restrict rows or columns.
    """

    denied: list[PolicyReason] = []
    obligations: dict[str, int | bool] = {}
    restricted: bool = False


class LimitedActions(RowLimits, frozen=True, omit_defaults=True, kw_only=True):
    """Actions with the same limits: names without `can_`, in alphabetical order."""

    actions: list[str]


class RestrictedTables(Answer, frozen=True, omit_defaults=True):
    """The number of tables and generic tables in an object to which data policies apply that restrict the principal.

    With `at-least`, there may be more.
    """

    count: int
    at_least: bool = False


class WhoCanRow(AnswerRow, frozen=True, omit_defaults=True, kw_only=True):
    """A principal that may take the action. `resource` is the highest object at which the reason lies, absent if the
    caller may not read the reason. A role can be expanded. `limits` is absent if nothing limits the right.
    """

    principal: GrantedTo
    resource: GrantedOn | None = None
    expandable: bool = False
    limits: RowLimits | None = None


class AccessAnswer(Answer, frozen=True, omit_defaults=True, kw_only=True):
    """The common members of answers.

    `as-of` is the time of the answer by the database's clock. `staleness-seconds` is the age of its facts at that time:
    0, because they are read on the primary database. `revision` is that of the server's rights, `warehouse-revision`
    that of the rights in the object's warehouse, `model-id` that of the relationship model. `token-groups-known` is
    false, because only a token states the roles that a user has by groups. `circumstances-known` is false, because no
    request is sent: guardrails that read circumstances can decide otherwise. In an answer about a past moment, `as-of`
    is that moment, and `not-kept` names what has no history: the answer is by relationships only.
    `authorizers-not-asked` names the additional authorizers, which can refuse each right of the answer.
    """

    as_of: datetime
    revision: UUID
    warehouse_revision: UUID | None = None
    model_id: str
    staleness_seconds: int
    token_groups_known: bool
    circumstances_known: bool
    next_page_token: str | None = None
    not_kept: list[NotKept] = []
    authorizers_not_asked: list[str] = []


class WhoCanAnswer(AccessAnswer, frozen=True, kw_only=True):
    """Response of `POST /access/who-can`: roles first, each kind in the order of the ids."""

    rows: list[WhoCanRow]


class HeldActions(AnswerRow, frozen=True, kw_only=True, omit_defaults=True):
    """Actions with the same reason: names without `can_`, in alphabetical order."""

    actions: list[str]


class WhatCanRow(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """An object and all actions that the principal may take on it. `contents` are the actions on every object in it,
    by type. `limits` are those of actions on the object itself; actions without limits are left out.
    `restricted-tables` limits actions on the data of `contents`.

    Objects in it have a row of their own only if the actions on them differ from `contents`.
    """

    resource: GrantedOn
    held: list[HeldActions]
    contents: dict[str, list[str]] = {}
    limits: list[LimitedActions] = []
    restricted_tables: RestrictedTables | None = None


class WhatCanAnswer(AccessAnswer, frozen=True, kw_only=True):
    """Response of `POST /access/what-can`: the highest objects first."""

    rows: list[WhatCanRow]
