# SPDX-License-Identifier: Apache-2.0
"""Operations of the AuthZEN Authorization API 1.0, by which policy enforcement points ask for decisions.

Specification: https://openid.net/specs/authorization-api-1_0.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from gateway.access.decisions.policy import Asserted
from gateway.access.demand import Demand, Facts
from gateway.access.nouns.cards import ACTIONS
from gateway.access.nouns.refs import ObjectType, Ref
from gateway.access.nouns.relations import Can
from gateway.access.operation import Audience, PublicAudience, QuestionOperation, ReadOperation
from gateway.access.operations.checks import asked_about, hub_of
from gateway.access.tuples import Principal, PrincipalType

MOST_RESULTS: Final = 100
"""The number of results on a page, and the number of principals that one request evaluates."""

_OPEN: Final = PublicAudience(
    Audience.AUTHENTICATED,
    "questions about the caller; the answer about another principal demands can_read_assignments or can_inspect",
)


@dataclass(frozen=True)
class AccessQuestion:
    """The question whether `principal` (the caller if None) may use `relation` on `on`.

    Policies receive `asserted`, the statements of the asker. They are not verified.
    """

    on: Ref
    relation: Can
    principal: Principal | None = None
    asserted: Asserted = field(default_factory=Asserted, hash=False)


@dataclass(frozen=True)
class PageRequest:
    """The page that a search request selects: its greatest number of results, and the token of the page before."""

    limit: int = MOST_RESULTS
    token: str = ""


def rights_to_ask(on: Ref) -> tuple[Demand, ...]:
    """Return the demands of which one is enough to ask about other principals on an object.

    They are optional, because the answer without such a right is the one for an absent object.
    """
    hub = hub_of(on)
    reading = Can.READ_ASSIGNMENTS in ACTIONS[on.type]
    return (
        *((Demand(Can.READ_ASSIGNMENTS, on, required=False),) if reading else ()),
        *(() if hub is None else (Demand(Can.INSPECT, hub, required=False),)),
    )


@dataclass(frozen=True)
class AccessEvaluation(QuestionOperation, abstract=True):
    """Answer access questions (AuthZEN). The answer to a question that the caller may not ask is no."""

    echoes_request_id: ClassVar[bool] = True
    asked: tuple[AccessQuestion, ...]

    def demands(self) -> tuple[Demand, ...]:
        others = [each.on for each in self.asked if each.principal is not None]
        return tuple(dict.fromkeys(demand for on in others for demand in rights_to_ask(on)))

    def further_refs(self) -> tuple[Ref, ...]:
        return tuple(dict.fromkeys(each.on for each in self.asked))

    def questions(self) -> int:
        return max(1, len(self.asked) + len(self.demands()))

    def facts(self) -> Facts:
        return {"checks": len(self.asked)}

    def audit_details(self) -> Mapping[str, str]:
        return asked_about(self.asked)


@dataclass(frozen=True)
class EvaluateAccess(AccessEvaluation):
    """Return whether a subject may perform an action on a resource (AuthZEN, access evaluation)."""

    endpoint: ClassVar[str] = "POST /access/v1/evaluation"
    # Read-only, although the method is POST: the operation only answers a question.
    open_to: ClassVar[PublicAudience] = _OPEN


@dataclass(frozen=True)
class EvaluateAccesses(AccessEvaluation):
    """Return several decisions, each about a subject, an action and a resource (AuthZEN, access evaluations)."""

    endpoint: ClassVar[str] = "POST /access/v1/evaluations"
    open_to: ClassVar[PublicAudience] = _OPEN


@dataclass(frozen=True)
class AccessSearch(QuestionOperation, abstract=True):
    """Search for entities for which an access evaluation would be a yes (AuthZEN).

    The other two entities are fixed. `page` selects a part of the results.
    """

    echoes_request_id: ClassVar[bool] = True
    page: PageRequest
    asserted: Asserted = field(hash=False)

    def questions(self) -> int:
        # Each result is evaluated.
        return self.page.limit

    def demands(self) -> tuple[Demand, ...]:
        return ()


@dataclass(frozen=True)
class SearchSubjects(AccessSearch):
    """Return the users or roles that may perform an action on a resource (AuthZEN, subject search)."""

    # `subjects` is the name of their type in the mapping, and `of_type` the type of principals. `on` is None if the
    # mapping does not have a type, the action or the id: then there are no results.

    endpoint: ClassVar[str] = "POST /access/v1/search/subject"
    open_to: ClassVar[PublicAudience] = _OPEN
    on: Ref | None
    relation: Can
    subjects: str
    of_type: PrincipalType | None

    def demands(self) -> tuple[Demand, ...]:
        return () if self.on is None else rights_to_ask(self.on)

    def further_refs(self) -> tuple[Ref, ...]:
        return () if self.on is None else (self.on,)


@dataclass(frozen=True)
class SearchResources(AccessSearch):
    """Return the resources of a type on which a subject may perform an action (AuthZEN, resource search)."""

    # `resources` is the name of the type in the mapping, and `type` the object type. `type` is None if there are no
    # results. `within` is the namespace that contains the resources.

    endpoint: ClassVar[str] = "POST /access/v1/search/resource"
    open_to: ClassVar[PublicAudience] = _OPEN
    resources: str
    type: ObjectType | None
    relation: Can
    principal: Principal | None = None
    within: Ref | None = None

    def further_refs(self) -> tuple[Ref, ...]:
        return () if self.within is None else (self.within,)

    def audit_details(self) -> Mapping[str, str]:
        return asked_about((self,))


@dataclass(frozen=True)
class SearchActions(AccessSearch):
    """Return the actions that a subject may perform on a resource (AuthZEN, action search)."""

    # `actions` has the relation of each action of the resource's type. `on` is as for `SearchSubjects`.

    endpoint: ClassVar[str] = "POST /access/v1/search/action"
    open_to: ClassVar[PublicAudience] = _OPEN
    on: Ref | None
    actions: Sequence[tuple[str, Can]]
    principal: Principal | None = None

    def demands(self) -> tuple[Demand, ...]:
        return () if self.on is None or self.principal is None else rights_to_ask(self.on)

    def further_refs(self) -> tuple[Ref, ...]:
        return () if self.on is None else (self.on,)

    def audit_details(self) -> Mapping[str, str]:
        return asked_about((self,))


@dataclass(frozen=True)
class GetAuthZenConfiguration(ReadOperation):
    """Return the addresses of the AuthZEN endpoints. It contains no data, and clients read it before they sign in."""

    endpoint: ClassVar[str] = "GET /.well-known/authzen-configuration"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)
