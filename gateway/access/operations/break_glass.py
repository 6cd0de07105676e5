# SPDX-License-Identifier: Apache-2.0
"""Operations of break-glass: a user takes rights for an emergency, and another principal reviews it afterwards.

The privilege `break_glass` gives no right of its own. An activation makes ordinary grants that expire. Guardrails and
data policies decide about each use of these grants as about any other. An activation is found first, by its id; the
right on its object then decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.authz_errors import break_glass_not_found
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can
from gateway.access.operation import Audience, ChangeOperation, PublicAudience, QuestionOperation, ReadOperation
from gateway.access.operations.break_glass_bodies import (
    ActivateBreakGlassRequest,
    ActivationStatus,
    ReviewBreakGlassRequest,
)
from gateway.access.request import Body, InBody, InPath, PageSize, PageToken, Query
from gateway.iceberg.errors import BadRequestException, CatalogError

_ALL: Final = "/management/v1/access/break-glass"
_ONE: Final = f"{_ALL}/{{activation_id}}"

_FOUND_FIRST: Final = PublicAudience(
    Audience.AUTHENTICATED,
    "the activation is only found; the right on its object decides the operation that follows, with one 404 for all "
    "other callers",
)


def parse_status(given: Sequence[str]) -> ActivationStatus | None:
    """Return the status by which activations are listed, None for all. Raises BadRequestException if unknown."""
    if not given:
        return None
    if given[0] not in set(ActivationStatus):
        raise BadRequestException(f"The query parameter status must be one of: {', '.join(ActivationStatus)}.")
    return ActivationStatus(given[0])


@dataclass(frozen=True)
class FoundActivation:
    """An activation: its id, its user and its object."""

    id: UUID
    principal: str
    on: Ref


@dataclass(frozen=True)
class ActivateBreakGlass(ChangeOperation):
    """Take privileges on an object for an emergency, for a limited time and with a reason."""

    endpoint: ClassVar[str] = f"POST {_ALL}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="on")
    returns: ClassVar[int] = 201
    request: InBody[ActivateBreakGlassRequest]
    on: Ref
    privileges: tuple[Privilege, ...]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.BREAK_GLASS, self.on),)

    def facts(self) -> Facts:
        return {"privileges": tuple(self.privileges), "minutes": self.request.minutes, "reason": self.request.reason}


@dataclass(frozen=True)
class ListBreakGlass(ReadOperation):
    """List the caller's activations, and those that the caller may confirm or review; the oldest first.

    Activations with the status `ended` wait for a review.
    """

    endpoint: ClassVar[str] = f"GET {_ALL}"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF,
        "the caller's own activations; each one of another user is filtered by the right to confirm or review it",
    )
    status: Annotated[ActivationStatus | None, Query("status", parse=parse_status)] = None
    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class FindingActivation(QuestionOperation, abstract=True):
    """Mixin of operations that find an activation to change. The right on its object decides the next operation."""

    # Read-only: this operation only finds the activation. A separate operation changes it.
    pause_reason: ClassVar[str] = "an activation is found to be changed, and that pauses"
    open_to: ClassVar[PublicAudience] = _FOUND_FIRST
    returns: ClassVar[int] = 204
    activation_id: InPath[UUID]

    def facts(self) -> Facts:
        return {"activation": str(self.activation_id)}


@dataclass(frozen=True)
class ChangingActivation(ChangeOperation, abstract=True):
    """Mixin of operations that change an activation."""

    returns: ClassVar[int] = 204
    event: ClassVar[EventDeclaration] = ChangeEvent(on="found.on")
    found: FoundActivation

    def facts(self) -> Facts:
        return {"activation": str(self.found.id), "activated_by": self.found.principal}

    def audit_details(self) -> Mapping[str, str]:
        return {"activation": str(self.found.id), "activated_by": self.found.principal}

    def hidden(self, ref: Ref) -> CatalogError:
        """Return BreakGlassNotFound, because a caller that does not see the object must not learn its id."""
        return break_glass_not_found(self.found.id)


@dataclass(frozen=True)
class FindActivationToConfirm(FindingActivation):
    """Find an activation to confirm."""

    endpoint: ClassVar[str] = f"POST {_ONE}/confirm"


@dataclass(frozen=True)
class ConfirmBreakGlass(ChangingActivation):
    """Confirm an activation of another user as the second person. Its grants are made now."""

    endpoint: ClassVar[str] = FindActivationToConfirm.endpoint

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CONFIRM_BREAK_GLASS, self.found.on),)


@dataclass(frozen=True)
class FindActivationToEnd(FindingActivation):
    """Find an activation to end."""

    endpoint: ClassVar[str] = f"POST {_ONE}/end"


@dataclass(frozen=True)
class EndBreakGlass(ChangingActivation):
    """End an activation before its time, or withdraw a pending one. With `own`, the caller is its user."""

    endpoint: ClassVar[str] = FindActivationToEnd.endpoint
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "a user ends its own activation; that of another user demands the right to confirm it"
    )
    own: bool

    def demands(self) -> tuple[Demand, ...]:
        return () if self.own else (Demand(Can.CONFIRM_BREAK_GLASS, self.found.on),)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.found.on,)


@dataclass(frozen=True)
class FindActivationToReview(FindingActivation):
    """Find an ended activation to review."""

    endpoint: ClassVar[str] = f"POST {_ONE}/review"
    request: Annotated[ReviewBreakGlassRequest, Body()]


@dataclass(frozen=True)
class ReviewBreakGlass(ChangingActivation):
    """Close the review of another user's activation with a finding.

    `found.on` is the warehouse of the activation. If it does not exist any more, it is the project.
    """

    endpoint: ClassVar[str] = FindActivationToReview.endpoint
    request: ReviewBreakGlassRequest

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.REVIEW_BREAK_GLASS, self.found.on),)
