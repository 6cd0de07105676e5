# SPDX-License-Identifier: Apache-2.0
"""Operations on access requests. A user requests privileges on an object, and a principal that may grant them decides.

An approval is a change of grants: its part is the operation by which the approver would grant the privileges directly.
So it has the same demands, and the same guardrails decide it. A request is found first, by its id. The operation on it
is then decided by the right on its object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Final
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.authz_errors import access_request_not_found
from gateway.access.nouns.cards import ACTIONS, VISIBLE_BY
from gateway.access.nouns.privileges import Privilege, granting
from gateway.access.nouns.refs import ObjectType, Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.tag import TagRef
from gateway.access.operation import (
    Audience,
    ChangeOperation,
    HttpOperation,
    Operation,
    PublicAudience,
    QuestionOperation,
    ReadOperation,
)
from gateway.access.operations.access_request_bodies import (
    AccessRequestStatus,
    ApproveAccessRequestRequest,
    CreateAccessRequestRequest,
    DenyAccessRequestRequest,
)
from gateway.access.operations.grant_lists import ChangeGrants, change_grants_on
from gateway.access.operations.grants import Assignment
from gateway.access.request import Body, InBody, InPath, PageSize, PageToken, Query
from gateway.iceberg.errors import BadRequestException, CatalogError

_REQUESTS: Final = "/management/v1/access/requests"
_ONE: Final = f"{_REQUESTS}/{{access_request_id}}"

_FOUND_FIRST: Final = PublicAudience(
    Audience.AUTHENTICATED,
    "the request is returned to its requester, and to principals that may grant one of its privileges on its object; "
    "for other callers it does not exist",
)
_OWN: Final = PublicAudience(
    Audience.SELF, "the requester changes its own request; for other callers it does not exist"
)

#: The types of objects to which `can_request_access` on the object lets users request access without seeing it. On a
#: tag, this right is about the objects with the tag, and not about the tag.
REQUESTABLE_UNSEEN: Final = frozenset(type for type, actions in ACTIONS.items() if Can.REQUEST_ACCESS in actions) - {
    ObjectType.TAG
}


def parse_status(given: Sequence[str]) -> AccessRequestStatus | None:
    """Return the status by which requests are listed, None for all. Raises BadRequestException for an unknown one."""
    if not given:
        return None
    if given[0] not in set(AccessRequestStatus):
        raise BadRequestException(f"The query parameter status must be one of: {', '.join(AccessRequestStatus)}.")
    return AccessRequestStatus(given[0])


@dataclass(frozen=True)
class FoundAccessRequest:
    """A request: its id, the user that made it, its object, and the requested privileges."""

    id: UUID
    principal: str
    on: Ref
    privileges: tuple[Privilege, ...]


@dataclass(frozen=True)
class FindRequestableTag(QuestionOperation):
    """Find a tag on an object by which the caller may request access to it without seeing it.

    Policies are not told the object, because their reasons would show whether it exists.
    """

    # Read-only: this operation only finds the tag. A separate operation makes the request.
    pause_reason: ClassVar[str] = "a tag is found to make a request, and that pauses"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED,
        "the tag is only found; the right on the object or on the tag decides the request that follows, with one 404 "
        "for all other callers",
    )
    endpoint: ClassVar[str] = f"POST {_REQUESTS}"
    returns: ClassVar[int] = 201
    request: Annotated[CreateAccessRequestRequest, Body()]
    on: Ref


@dataclass(frozen=True)
class FindTagOfDryRun(FindRequestableTag):
    """Find a tag on an object by which the caller may request access to it, for a dry run of the request."""

    endpoint: ClassVar[str] = f"POST {_REQUESTS}/dry-run"
    returns: ClassVar[int] = 200


@dataclass(frozen=True)
class RequestingAccess(HttpOperation, abstract=True):
    """Mixin of operations for objects that the caller sees, or to which it may request access.

    `by_tag` is a tag on the object by which it may do so. Policies decide about the object, also then. `further` are
    the requests for other objects that are made together with this one.
    """

    request: InBody[CreateAccessRequestRequest]
    on: Ref
    privileges: tuple[Privilege, ...]
    by_tag: TagRef | None = None
    further: tuple[RequestingAccess, ...] = ()

    @property
    def each(self) -> tuple[RequestingAccess, ...]:
        """The requests, each for one object."""
        return (replace(self, further=()), *self.further)

    def parts(self) -> tuple[Operation, ...]:
        return self.each if self.further else ()

    def demands(self) -> tuple[Demand, ...]:
        if self.further:
            return tuple(demand for part in self.parts() for demand in part.demands())
        requestable = Can.REQUEST_ACCESS if self.on.type in REQUESTABLE_UNSEEN else None
        own = Demand(VISIBLE_BY[self.on.type], self.on, required=self.by_tag is None, alternative=requestable)
        return (own,) if self.by_tag is None else (own, Demand(Can.REQUEST_ACCESS, self.by_tag))

    def hidden(self, ref: Ref) -> CatalogError:
        """Return the error for an absent object, also if the right on the tag ended meanwhile."""
        return super().hidden(next(each.on for each in self.each if ref in (each.on, each.by_tag)))

    def facts(self) -> Facts:
        return {
            "object_type": self.on.type.value,
            "object": self.on.full_name or str(self.on.requested().warehouse_id),
            "privileges": tuple(self.privileges),
            "duration_seconds": self.request.duration_seconds,
        }


@dataclass(frozen=True)
class CreateAccessRequest(RequestingAccess, ChangeOperation):
    """Request privileges on objects that the caller sees, or to which it may request access."""

    endpoint: ClassVar[str] = FindRequestableTag.endpoint
    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", new="access_request_id", kind="access_request")
    returns: ClassVar[int] = 201


@dataclass(frozen=True)
class TryAccessRequest(RequestingAccess, QuestionOperation):
    """Return what a request would open, and which principals decide about it. Request nothing."""

    pause_reason: ClassVar[str] = "the request is written and rolled back, and writing pauses"
    endpoint: ClassVar[str] = FindTagOfDryRun.endpoint

    def parts(self) -> tuple[Operation, ...]:
        # Policies decide as about the request itself, so that a dry run shows nothing of a request that they refuse.
        return tuple(CreateAccessRequest(each.request, each.on, each.privileges, each.by_tag) for each in self.each)


@dataclass(frozen=True)
class ListAccessRequests(ReadOperation):
    """List the caller's requests, and those about which the caller may decide; the oldest first.

    `mine` selects one of the two.
    """

    endpoint: ClassVar[str] = f"GET {_REQUESTS}"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "the caller's own requests; each request of another user is filtered by the right to grant it"
    )
    status: Annotated[AccessRequestStatus | None, Query("status", parse=parse_status)] = None
    mine: Annotated[bool | None, Query("mine")] = None
    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class GetAccessRequest(ReadOperation):
    """Return a request, or one of a bundle, to its requester or to a principal that may decide about it."""

    endpoint: ClassVar[str] = f"GET {_ONE}"
    open_to: ClassVar[PublicAudience] = _FOUND_FIRST
    access_request_id: InPath[UUID]

    def facts(self) -> Facts:
        return {"access_request": str(self.access_request_id)}


@dataclass(frozen=True)
class FindingAccessRequest(QuestionOperation, abstract=True):
    """Mixin of operations that find a request, or those of a bundle by its id, to change them.

    The right on the objects decides the next operation.
    """

    # Read-only: this operation only finds the request. A separate operation changes it.
    pause_reason: ClassVar[str] = "a request is found to be decided, and that pauses"
    open_to: ClassVar[PublicAudience] = _FOUND_FIRST
    access_request_id: InPath[UUID]

    def facts(self) -> Facts:
        return {"access_request": str(self.access_request_id)}


@dataclass(frozen=True)
class ChangingAccess(ChangeOperation, abstract=True):
    """Mixin of operations that change the grants of a request.

    `change` is the change of grants, which the door decides as if the caller made it directly. `further` are the other
    requests of a bundle with their changes.
    """

    found: FoundAccessRequest
    change: ChangeGrants
    further: tuple[tuple[FoundAccessRequest, ChangeGrants], ...] = field(default=(), kw_only=True)

    @property
    def each(self) -> tuple[tuple[FoundAccessRequest, ChangeGrants], ...]:
        """The requests, each with the change of its grants."""
        return ((self.found, self.change), *self.further)

    def parts(self) -> tuple[Operation, ...]:
        return tuple(change for _, change in self.each)

    def demands(self) -> tuple[Demand, ...]:
        return tuple(demand for _, change in self.each for demand in change.demands())

    def hidden(self, ref: Ref) -> CatalogError:
        """Return AccessRequestNotFound, because a caller that does not see the object must not learn its id."""
        return access_request_not_found(self.found.id)

    def facts(self) -> Facts:
        return {"access_request": str(self.found.id), "requested_by": self.found.principal, **self.change.facts()}

    def audit_details(self) -> Mapping[str, str]:
        ids = ",".join(str(found.id) for found, _ in self.each)
        return {"access_request": ids, "requested_by": self.found.principal}


@dataclass(frozen=True)
class FindAccessRequestToApprove(FindingAccessRequest):
    """Find a request to approve."""

    endpoint: ClassVar[str] = f"POST {_ONE}/approve"
    returns: ClassVar[int] = 204
    request: Annotated[ApproveAccessRequestRequest, Body()]


@dataclass(frozen=True)
class ApproveAccessRequest(ChangingAccess):
    """Approve a request, or a part of it, and grant its privileges to the requester until they expire."""

    endpoint: ClassVar[str] = FindAccessRequestToApprove.endpoint
    event: ClassVar[EventDeclaration] = ChangeEvent(on="found.on")
    returns: ClassVar[int] = 204
    request: ApproveAccessRequestRequest


def change_for(
    found: FoundAccessRequest, *, writes: tuple[Assignment, ...] = (), deletes: tuple[Assignment, ...] = ()
) -> ChangeGrants:
    """Return the change of grants on the object of a request."""
    return change_grants_on(found.on.type)(found.on, writes, deletes)


@dataclass(frozen=True)
class FindAccessRequestToDeny(FindingAccessRequest):
    """Find a request to deny."""

    endpoint: ClassVar[str] = f"POST {_ONE}/deny"
    returns: ClassVar[int] = 204
    request: Annotated[DenyAccessRequestRequest, Body()]


@dataclass(frozen=True)
class DenyAccessRequest(ChangeOperation):
    """Deny a request. The caller must be able to grant `privilege`, one of those that were requested.

    `further` are the other requests of a bundle, which are denied together with this one.
    """

    endpoint: ClassVar[str] = FindAccessRequestToDeny.endpoint
    event: ClassVar[EventDeclaration] = ChangeEvent(on="found.on")
    returns: ClassVar[int] = 204
    found: FoundAccessRequest
    privilege: Privilege
    request: DenyAccessRequestRequest
    further: tuple[tuple[FoundAccessRequest, Privilege], ...] = ()

    @property
    def each(self) -> tuple[tuple[FoundAccessRequest, Privilege], ...]:
        """The requests, each with a privilege of it that the caller must be able to grant."""
        return ((self.found, self.privilege), *self.further)

    def parts(self) -> tuple[Operation, ...]:
        # Policies decide about the object of each request.
        return tuple(replace(self, found=found, privilege=one, further=()) for found, one in self.each if self.further)

    def demands(self) -> tuple[Demand, ...]:
        return tuple(Demand(granting(privilege), found.on) for found, privilege in self.each)

    def facts(self) -> Facts:
        return {"access_request": str(self.found.id), "requested_by": self.found.principal}

    def hidden(self, ref: Ref) -> CatalogError:
        """Return AccessRequestNotFound, because a caller that does not see the object must not learn its id."""
        return access_request_not_found(self.found.id)


@dataclass(frozen=True)
class FindAccessRequestToEnd(FindingAccessRequest):
    """Find an approved request whose access shall end."""

    endpoint: ClassVar[str] = f"POST {_ONE}/end"
    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class EndAccess(ChangingAccess):
    """End the access of an approved request before it expires: revoke the grants that its approval made.

    With `own`, the caller is the requester, and gives up its own access.
    """

    endpoint: ClassVar[str] = FindAccessRequestToEnd.endpoint
    event: ClassVar[EventDeclaration] = ChangeEvent(on="found.on")
    returns: ClassVar[int] = 204
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "the requester gives up its own access; the access of another user demands the right to grant it"
    )
    own: bool

    def parts(self) -> tuple[Operation, ...]:
        return () if self.own else super().parts()

    def demands(self) -> tuple[Demand, ...]:
        return () if self.own else super().demands()

    def further_refs(self) -> tuple[Ref, ...]:
        return tuple(found.on for found, _ in self.each)


@dataclass(frozen=True)
class ChangingOwnAccessRequest(ChangeOperation, abstract=True):
    """Mixin of changes by the requester that concern the request or bundle only, and no grant."""

    returns: ClassVar[int] = 204
    open_to: ClassVar[PublicAudience] = _OWN
    access_request_id: InPath[UUID]

    def facts(self) -> Facts:
        return {"access_request": str(self.access_request_id)}


@dataclass(frozen=True)
class WithdrawAccessRequest(ChangingOwnAccessRequest):
    """Withdraw a pending request of the caller."""

    endpoint: ClassVar[str] = f"POST {_ONE}/withdraw"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="access_request_id", kind="access_request")


@dataclass(frozen=True)
class RemindOfAccessRequest(ChangingOwnAccessRequest):
    """Send the event of a pending request of the caller again, for the principals that may decide."""

    endpoint: ClassVar[str] = f"POST {_ONE}/remind"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="access_request_id", kind="access_request")
