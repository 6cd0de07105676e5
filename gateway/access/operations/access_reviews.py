# SPDX-License-Identifier: Apache-2.0
"""Operations that review existing grants: certify or revoke them, and list the decisions.

A revocation is the ordinary change of grants, with its demands. A certification demands the same rights, because
keeping a grant is as much a decision of its grantors as ending it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal

import msgspec

from gateway.access.bodies import Answer, StrictRequest
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, Operation, QuestionOperation, ReadOperation
from gateway.access.operations.access_request_bodies import AccessObject, Reason
from gateway.access.operations.actions import Identity
from gateway.access.operations.grant_lists import ChangeGrants
from gateway.access.operations.grants import GrantDelete, GrantedOn, GrantedTo
from gateway.access.request import Body, PageSize, PageToken

MOST_REVIEWED: Final = 100
"""The largest number of grants that one request decides about."""

ReviewDecision = Literal["certify", "revoke"]
ReviewOutcome = Literal["certified", "revoked", "gone"]


@dataclass(frozen=True)
class FindGrantsToReview(QuestionOperation):
    """Find the grants on an object, or also below it, about which the caller wants to decide."""

    # Read-only: this operation only finds the grants. A separate operation decides about those of each object.
    pause_reason: ClassVar[str] = "grants are found to be reviewed, and that pauses"
    endpoint: ClassVar[str] = "POST /management/v1/access/reviews/decisions"
    request: Annotated[ReviewGrantsRequest, Body()]
    on: Ref

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class ReviewGrants(ChangeOperation):
    """Certify or revoke grants on one object. `change` is the ordinary revocation of these grants."""

    endpoint: ClassVar[str] = FindGrantsToReview.endpoint
    event: ClassVar[EventDeclaration] = ChangeEvent(on="change.on")
    request: ReviewGrantsRequest
    change: ChangeGrants

    def demands(self) -> tuple[Demand, ...]:
        return self.change.demands()

    def parts(self) -> tuple[Operation, ...]:
        return (self.change,) if self.request.decision == "revoke" else ()

    def facts(self) -> Facts:
        return {"decision": self.request.decision, "grants": self.change.facts()["deletes"]}


@dataclass(frozen=True)
class ListGrantReviews(ReadOperation):
    """List the decisions of reviews about grants on an object, the latest first.

    The query parameters `type`, `id` and, for an object in a warehouse, `warehouseId` name the object.
    """

    endpoint: ClassVar[str] = "GET /management/v1/access/reviews/decisions"
    on: Ref
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)


class ReviewFilter(StrictRequest, frozen=True):
    """Selects grants on the object and below it. `granted-before` selects those that no grantor renewed since."""

    principal: Identity | None = None
    privilege: str | None = None
    granted_before: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class ReviewGrantsRequest(StrictRequest, frozen=True):
    """Request of `POST /access/reviews/decisions`. Exactly one of `grants` and `filter` is given.

    `grants` are on the object itself. With `filter`, one request decides about `page-size` grants, and the token in the
    response continues.
    """

    decision: ReviewDecision
    reason: Reason
    object: AccessObject
    grants: Annotated[tuple[GrantDelete, ...], msgspec.Meta(min_length=1, max_length=MOST_REVIEWED)] | None = None
    filter: ReviewFilter | None = None
    page_size: Annotated[int, msgspec.Meta(ge=1, le=MOST_REVIEWED)] = MOST_REVIEWED
    page_token: str | None = None


class ReviewedGrantAnswer(Answer, frozen=True, omit_defaults=True):
    """The outcome for one grant. `gone` means that it had already ended."""

    object: GrantedOn
    privilege: str
    principal: GrantedTo
    outcome: ReviewOutcome


class ReviewGrantsAnswer(Answer, frozen=True, omit_defaults=True):
    """Response of `POST /access/reviews/decisions`."""

    decisions: list[ReviewedGrantAnswer]
    next_page_token: str | None = None


class GrantReview(Answer, frozen=True, omit_defaults=True):
    """A decision about a grant. A certificate has the decision `certified`."""

    privilege: str
    principal: GrantedTo
    decision: str
    reason: str
    decided_by: str
    decided_at: datetime


class GrantReviewList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /access/reviews/decisions`: the latest decisions first."""

    decisions: list[GrantReview]
    next_page_token: str | None = None
