# SPDX-License-Identifier: Apache-2.0
"""Operations that explain decisions, and their bodies."""

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
from gateway.access.operation import Audience, Operation, PublicAudience, QuestionOperation, ReadOperation
from gateway.access.operations.actions import Identity
from gateway.access.operations.checks import Check, asked_about
from gateway.access.request import InPath

_Text = Annotated[str, msgspec.Meta(max_length=512)]


#: The share of its caller that an explanation uses: the decision, the rights of the caller, and the confirmations.
_QUESTIONS: Final = 20


@dataclass(frozen=True)
class Explaining(Operation, abstract=True):
    """Base of the operations that explain the decision on a check."""

    check: Check

    def demands(self) -> tuple[Demand, ...]:
        if self.check.principal is not None:
            return (Demand(Can.READ_ASSIGNMENTS, self.check.on),)
        return self._demands_of_own()

    def _demands_of_own(self) -> tuple[Demand, ...]:
        """Return the demands of a question about the caller's own rights."""
        visible_by = VISIBLE_BY.get(self.check.on.type)
        return () if visible_by is None else (Demand(visible_by, self.check.on, alternative=Can.READ_ASSIGNMENTS),)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.check.on,)

    def questions(self) -> int:
        return _QUESTIONS

    def facts(self) -> Facts:
        return {"action": self.check.relation.value}

    def audit_details(self) -> Mapping[str, str]:
        return asked_about((self.check,))


_OPEN_TO_SELF = PublicAudience(
    Audience.SELF, "the caller's own rights; a question about another principal demands can_read_assignments"
)


@dataclass(frozen=True)
class ExplainAccess(Explaining, QuestionOperation):
    """Explain why a principal (the caller if None) may or may not take an action, by the rules and grants behind it.

    Every caller may ask about itself and an object that it sees. A question about another principal needs the right to
    read the assignments of the object.
    """

    endpoint: ClassVar[str] = "POST /management/v1/access/explain"
    # Read-only, although the method is POST: the operation only answers a question.
    open_to: ClassVar[PublicAudience] = _OPEN_TO_SELF
    user_agent: str | None = None
    client_address: str | None = None
    time: datetime | None = None
    at: datetime | None = None

    def audit_details(self) -> Mapping[str, str]:
        return {**super().audit_details(), **({} if self.at is None else {"at": self.at.isoformat()})}


_DENIAL = "GET /management/v1/access/denials/{denial_id}"


@dataclass(frozen=True)
class RefusedRequest:
    """A refused request: the id of its audit record, its time, its operation, and the guardrails' reasons for the
    caller that received them.
    """

    id: UUID
    at: datetime
    operation: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExplainDenial(Explaining, ReadOperation):
    """Explain the decision that a refused request would get now.

    `is_own` is true if the caller sent that request, as a role that it has: the question is about its own rights.
    """

    endpoint: ClassVar[str] = _DENIAL
    open_to: ClassVar[PublicAudience] = _OPEN_TO_SELF
    refused: RefusedRequest
    is_own: bool = False

    def demands(self) -> tuple[Demand, ...]:
        return self._demands_of_own() if self.is_own else super().demands()


@dataclass(frozen=True)
class ReadDenial(ReadOperation):
    """Find the record of a refused request, to explain it.

    `ExplainDenial` then decides whether the caller may read the explanation.
    """

    endpoint: ClassVar[str] = _DENIAL
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED,
        "the refused principal, and callers that may read the assignments of the object; for others it does not exist",
    )
    denial_id: InPath[UUID]

    def facts(self) -> Facts:
        return {"denial_id": str(self.denial_id)}


class CircumstancesRequest(StrictRequest, frozen=True):
    """The circumstances of the request that is explained.

    An absent user agent or client address is unknown to the policies. Without `time`, they receive the present.
    """

    user_agent: _Text | None = None
    client_address: _Text | None = None
    time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class ExplainRequest(StrictRequest, frozen=True):
    """Request of `POST /access/explain`. `operation` and `identity` are as in `POST /permissions/check`.

    `at` is the past moment that the question is about; without it the question is about now.
    """

    operation: dict[str, dict[str, Any]]
    identity: Identity | None = None
    circumstances: CircumstancesRequest | None = None
    at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class Party(Answer, frozen=True, omit_defaults=True):
    """An object or a principal. `name` is for people; it is absent if the object has none."""

    type: str
    id: str
    name: str | None = None


class FactGrant(Answer, frozen=True, omit_defaults=True):
    """The grant behind a fact: its id, grantor, time, reason and expiry."""

    id: UUID
    granted_by: str
    granted_at: datetime
    reason: str | None = None
    expires_at: datetime | None = None


FactKind = Literal["grant", "membership", "group", "hierarchy", "managed-access", "visibility"]


class Fact(Answer, frozen=True, omit_defaults=True):
    """A fact that an answer rests on: `subject` has `relation` on `object`.

    A `group` is a membership by a group in the caller's token. `visibility` is derived from grants on contents of the
    object. For `hierarchy`, the subject contains the object.
    """

    kind: FactKind
    subject: Party
    relation: str
    object: Party
    grants: list[FactGrant] = []


class AbsentFact(Answer, frozen=True):
    """A relation that would take the action away again if anything gave it to the principal."""

    relation: str
    object: Party


class WitnessAnswer(Answer, frozen=True, omit_defaults=True):
    """A minimal set of facts that gives the relation: without any one of them it would not. `until` is the first expiry
    of its facts.
    """

    facts: list[Fact]
    absent: list[AbsentFact] = []
    until: datetime | None = None


class NewGrant(Answer, frozen=True):
    """A grant that is missing: `privilege` to `principal` on `object`. Making it needs `granted-with` on the object."""

    privilege: str
    principal: Party
    object: Party
    granted_with: str


class Opening(Answer, frozen=True):
    """The number of objects of one type in which a missing grant would give rights too."""

    type: str
    count: int


class RepairAnswer(Answer, frozen=True, omit_defaults=True):
    """A minimal set of grants that would give the relation. `opens` is absent if the caller may not see all contents of
    the objects.
    """

    grants: list[NewGrant]
    opens: list[Opening] | None = None


class RelationshipsAnswer(Answer, frozen=True, omit_defaults=True):
    """The part of the decision by relationships.

    If it holds, `witnesses` are the reasons, smallest first; otherwise `repairs` are grants that would change it.
    `another-grant` is true if it holds by facts that the caller may not read. `more` is true if there may be more
    witnesses or repairs.
    """

    holds: bool
    relation: str
    witnesses: list[WitnessAnswer] = []
    repairs: list[RepairAnswer] = []
    another_grant: bool = False
    more: bool = False


class PolicyRule(Answer, frozen=True):
    """A rule of a guardrail that applied: its package and name, and its place in the policies."""

    package: str
    rule: str
    file: str
    line: int


class PolicyReason(Answer, frozen=True):
    """The reason of a denial by a guardrail."""

    code: str
    message: str


class LiftingInput(Answer, frozen=True):
    """A part of OPA's input, and a value of it with which the guardrails allow the action."""

    input: str
    value: str | bool


class PoliciesAnswer(Answer, frozen=True, omit_defaults=True):
    """The part of the decision by guardrails.

    `depends-on` has the parts of the input that guardrails read and that are unknown: with them the answer may differ.
    `read` has those that the rules behind a denial or an obligation read and that are known. Each of `lifted-by` alone
    would lift the denial.
    """

    allowed: bool
    reasons: list[PolicyReason] = []
    rules: list[PolicyRule] = []
    obligations: dict[str, int | bool] = {}
    depends_on: list[str] = []
    read: list[str] = []
    lifted_by: list[LiftingInput] = []


class DataPolicyAnswer(Answer, frozen=True):
    """A data policy that restricts what the principal reads of the table."""

    id: str
    name: str


class Revisions(Answer, frozen=True, omit_defaults=True):
    """The states that an answer holds for: the model, the policies, and the grants outside and inside of the
    warehouse.
    """

    model: str
    server: UUID | None = None
    warehouse: UUID | None = None
    data_policies: UUID | None = None
    policies: str | None = None


Decided = Literal["allowed", "denied", "restricted", "depends"]
NotKept = Literal["policies", "data-policies", "token-groups", "warehouse-status"]


class Explanation(Answer, frozen=True, omit_defaults=True):
    """Response of `POST /access/explain`.

    `decision` is `depends` if guardrails read circumstances that are unknown, and `restricted` if data policies limit
    the rows or columns. `blocked-by` names further conditions that deny: an inactive warehouse, a deactivated user, an
    additional authorizer, or obligations that nothing enforces. `groups-unknown` is true if groups in a token of the
    principal could give more.
    For a past moment, `decision` is by relationships only, and `not-kept` names what has no history.
    """

    decision: Decided
    principal: Party
    action: str
    object: Party
    relationships: RelationshipsAnswer
    revisions: Revisions
    as_of: datetime
    policies: PoliciesAnswer | None = None
    summary: str = ""
    until: datetime | None = None
    blocked_by: list[str] = []
    data_policies: list[DataPolicyAnswer] = []
    groups_unknown: bool = False
    warehouse_id: UUID | None = None
    not_kept: list[NotKept] = []


class Denial(Answer, frozen=True):
    """Response of `GET /access/denials/{denial_id}`: a refused request, and the explanation of the decision now.

    `reasons` are those of guardrails in the error message, for the caller that received it.
    """

    id: UUID
    at: datetime
    operation: str
    explanation: Explanation
    reasons: list[str]
