# SPDX-License-Identifier: Apache-2.0
"""Bodies of access requests, their statuses, and the limits that the operator sets.

The members follow the drafts of AuthZEN: a request is a task with an id, a status and a decision, which may give less
than was requested.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, ProjectId, StrictRequest
from gateway.access.operations.answers import Opening
from gateway.access.operations.grants import GrantedOn, GrantedTo

SHORTEST_SECONDS: Final = 1
"""The shortest duration of an access, in seconds."""

_LONGEST_SECONDS: Final = 31_536_000

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=900, pattern=r"^[^\x00]*(?![\s\S])$")]
Comment = Annotated[str, msgspec.Meta(max_length=900, pattern=r"^[^\x00]*(?![\s\S])$")]
Duration = Annotated[int, msgspec.Meta(ge=SHORTEST_SECONDS, le=_LONGEST_SECONDS)]
Privileges = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=10)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequestRules:
    """The limits of access requests: times in seconds, and numbers of pending requests."""

    default_duration: int
    longest_duration: int
    lifetime: float
    """The time after which a pending request expires."""
    reminder_interval: float
    """The shortest time between two reminders of one request."""
    per_principal: int
    per_object: int


class AccessRequestStatus(StrEnum):
    """The state of an access request. Only a pending request can be decided, and only an approved one can be ended."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    """No approver decided in time."""
    ENDED = "ended"
    """The granted access expired, or was ended or revoked."""


class AccessObject(StrictRequest, frozen=True, omit_defaults=True):
    """The object to which access is requested: its type, and its id.

    A project, warehouse, role, tag and data policy are given by their id, such as `project-id`. An object in a
    warehouse also needs `warehouse-id`. Instead of its id, it can be given by `namespace` (a list of levels), and a
    table, view or generic table by `namespace` and `name`.
    """

    type: Literal["project", "warehouse", "namespace", "table", "view", "generic-table", "role", "tag", "data-policy"]
    project_id: ProjectId | None = None
    warehouse_id: UUID | None = None
    namespace_id: UUID | None = None
    table_id: UUID | None = None
    view_id: UUID | None = None
    generic_table_id: UUID | None = None
    role_id: UUID | None = None
    tag_id: UUID | None = None
    data_policy_id: UUID | None = None
    namespace: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=64)] | None = None
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] | None = None


class AccessRequestItem(StrictRequest, frozen=True):
    """An object and the privileges on it."""

    object: AccessObject
    privileges: Privileges


class CreateAccessRequestRequest(StrictRequest, frozen=True):
    """Request of `POST /access/requests`. Without `duration-seconds`, the access has the default duration.

    `items` replaces `object` and `privileges` in a request for several objects. Their requests form a bundle.
    """

    reason: Reason
    object: AccessObject | None = None
    privileges: Privileges | None = None
    items: Annotated[tuple[AccessRequestItem, ...], msgspec.Meta(min_length=1, max_length=10)] | None = None
    duration_seconds: Duration | None = None


class ApproveAccessRequestRequest(StrictRequest, frozen=True):
    """Request of `POST …/approve`. `privileges` and `duration-seconds` give less than was requested. Without them, the
    whole request is approved. `requests` selects some requests of a bundle.
    """

    privileges: Privileges | None = None
    duration_seconds: Duration | None = None
    comment: Comment | None = None
    requests: Annotated[tuple[UUID, ...], msgspec.Meta(min_length=1, max_length=10)] | None = None


class DenyAccessRequestRequest(StrictRequest, frozen=True):
    """Request of `POST …/deny`. The requester sees the reason."""

    reason: Reason


class RequestedItem(Answer, frozen=True, omit_defaults=True, kw_only=True):
    """One request of a bundle, with the members of `AccessRequest` that differ between its requests."""

    id: UUID
    status: AccessRequestStatus
    object: GrantedOn
    name: str
    opens: list[Opening] | None = None
    privileges: list[str]
    granted: list[str] | None = None
    ends_at: datetime | None = None


class AccessRequest(Answer, frozen=True, omit_defaults=True, kw_only=True):
    """A request for access. `name` is the name of the object at the time of the request.

    `expires-at` is the time until which a decision is possible. `granted` are the privileges of an approved request,
    which may be fewer than requested, and `ends-at` is the expiry of their grants. `opens` are the numbers of
    objects to which an approval gives access too. It is absent in lists, and for callers that may not know them.
    `bundle` is the id of all requests that were made together with this one. `items` are those that the caller may
    read, this one included. It is absent in lists.
    """

    id: UUID
    bundle: UUID | None = None
    items: list[RequestedItem] | None = None
    status: AccessRequestStatus
    principal: GrantedTo
    object: GrantedOn
    name: str
    opens: list[Opening] | None = None
    privileges: list[str]
    reason: str
    duration_seconds: int
    created_at: datetime
    expires_at: datetime
    reminded_at: datetime | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    comment: str | None = None
    granted: list[str] | None = None
    ends_at: datetime | None = None
    ended_by: str | None = None
    ended_at: datetime | None = None


class TriedPrivilege(Answer, frozen=True, omit_defaults=True):
    """A requested privilege. A principal with `granted-with` on the object can approve it.

    `deciders` are the first principals that have this right, without the caller. It is absent for callers that may not
    read the assignments of the object. `more` is true if there are further ones.
    """

    privilege: str
    granted_with: str
    deciders: list[GrantedTo] | None = None
    more: bool = False


class TriedItem(Answer, frozen=True, omit_defaults=True, kw_only=True):
    """An object of a dry run. `opens` is as in `AccessRequest`."""

    object: GrantedOn
    name: str
    opens: list[Opening] | None = None
    privileges: list[TriedPrivilege]


class TriedAccessRequest(Answer, frozen=True):
    """Response of `POST /access/requests/dry-run`: the objects in the order of the request."""

    items: list[TriedItem]
    duration_seconds: int


class AccessRequestList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /access/requests`: the oldest requests first."""

    access_requests: list[AccessRequest]
    next_page_token: str | None = None
