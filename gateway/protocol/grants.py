# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for assignments and grants."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, StrictRequest, UserId
from gateway.protocol.delegation import ActsFor
from gateway.protocol.rights import Identity

#: The maximum number of entries in the writes and deletes of one request together, and so in each of them.
MAX_ENTRIES = 100


class AssignmentEntry(StrictRequest, frozen=True, omit_defaults=True):
    """An assignment, such as `{"type": "select", "user": "oidc~alice"}`. Exactly one of `user` and `role` is given.
    `acts-for` limits `delegate`.
    """

    type: str
    user: UserId | None = None
    role: UUID | None = None
    acts_for: ActsFor | None = None


class AssignmentsAnswer(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/assignments`. `project-id` is present for assignments on a project, `column` and `field-id`
    for those on a column.
    """

    assignments: list[AssignmentEntry]
    project_id: str | None = None
    column: str | None = None
    field_id: int | None = None


Entries = Annotated[tuple[AssignmentEntry, ...], msgspec.Meta(max_length=MAX_ENTRIES)]


class WriteAssignmentsRequest(StrictRequest, frozen=True):
    """Request of `POST …/assignments`."""

    writes: Entries = ()
    deletes: Entries = ()


class GrantWrite(StrictRequest, frozen=True):
    """A privilege to grant. `expires-at` needs a time zone. `reason` is a text for reviewers of the grant. `acts-for`
    limits `delegate`.
    """

    privilege: str
    principal: Identity
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)] | None = None
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    acts_for: ActsFor | None = None


class GrantDelete(StrictRequest, frozen=True):
    """A privilege to revoke."""

    privilege: str
    principal: Identity


class WriteGrantsRequest(StrictRequest, frozen=True):
    """Request of `POST …/grants`."""

    writes: Annotated[tuple[GrantWrite, ...], msgspec.Meta(max_length=MAX_ENTRIES)] = ()
    deletes: Annotated[tuple[GrantDelete, ...], msgspec.Meta(max_length=MAX_ENTRIES)] = ()


class GrantedTo(Answer, frozen=True, omit_defaults=True):
    """The user or role that has the grant."""

    user: str | None = None
    role: UUID | None = None


class GrantedOn(Answer, frozen=True, omit_defaults=True):
    """The object of the grant: its type, and its ids as used in paths. A column is identified by its table and its
    `field-id`. `column` is its name. If it is `dropped`, this is its last name, and the grant has no effect. `tag-id`
    repeats `tag-definition-id` for older clients.
    """

    type: str
    server_id: str | None = None
    project_id: str | None = None
    warehouse_id: str | None = None
    namespace_id: str | None = None
    table_id: str | None = None
    view_id: str | None = None
    generic_table_id: str | None = None
    column: str | None = None
    field_id: int | None = None
    dropped: bool = False
    role_id: str | None = None
    tag_id: str | None = None
    tag_definition_id: str | None = None
    data_policy_id: str | None = None


class Grant(Answer, frozen=True, omit_defaults=True):
    """A grant. `granted-by`, `reason`, `expires-at` and `acts-for` are extensions of this server. `acts-for` are the
    limits of `delegate`.
    """

    privilege: str
    principal: GrantedTo
    resource: GrantedOn
    created_at: datetime
    granted_by: str
    recognized: bool
    """True if this server knows the privilege."""
    reason: str | None = None
    expires_at: datetime | None = None
    acts_for: ActsFor | None = None


class GrantList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/grants`: the oldest grants first."""

    grants: list[Grant]
    next_page_token: str | None = None


class EndedGrant(Answer, frozen=True, omit_defaults=True):
    """A grant that has ended. `ended-because` is `revoked`, `expired`, `replaced` (by a grant of the same grantor with
    another expiry, reason or limits), `object deleted` or `principal deleted`. An expired grant has no `ended-by`.
    """

    privilege: str
    principal: GrantedTo
    resource: GrantedOn
    created_at: datetime
    granted_by: str
    ended_at: datetime
    ended_because: str
    ended_by: str | None = None
    reason: str | None = None
    expires_at: datetime | None = None
    acts_for: ActsFor | None = None


class GrantHistory(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/grants/history`: the grants that ended last first."""

    grants: list[EndedGrant]
    next_page_token: str | None = None


class PrivilegeInfo(Answer, frozen=True, omit_defaults=True):
    """A privilege with its texts for users."""

    name: str
    display_name: str
    category: str
    resource_type: str
    description: str | None = None


class GrantablePrivilege(Answer, frozen=True):
    """A privilege. `allowed` is true if the caller, or the principal in question, may grant and revoke it on the
    object.
    """

    allowed: bool
    privilege: PrivilegeInfo


class GrantablePrivileges(Answer, frozen=True):
    """Response of `GET …/grants/grantable-privileges` on an object: all privileges of its type."""

    privileges: list[GrantablePrivilege]


class AllPrivileges(Answer, frozen=True):
    """Response of `GET /grants/grantable-privileges`: the privileges by the type of the object."""

    privileges: dict[str, list[PrivilegeInfo]]
