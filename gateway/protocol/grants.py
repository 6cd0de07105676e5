# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints about assignments and grants."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Request, UserId
from gateway.protocol.rights import Identity

#: Entries in the writes and deletes of one request together; also what each of both may hold.
MAX_ENTRIES = 100


class AssignmentEntry(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True, omit_defaults=True
):
    """`{"type": "select", "user": "oidc~alice"}` or with `role`; exactly one of both."""

    type: str
    user: UserId | None = None
    role: UUID | None = None


class AssignmentsAnswer(Answer, frozen=True, omit_defaults=True):
    """`GET …/assignments`. `project-id` is told of assignments on a project, `column` and `field-id` of those on a
    column.
    """

    assignments: list[AssignmentEntry]
    project_id: str | None = None
    column: str | None = None
    field_id: int | None = None


Entries = Annotated[tuple[AssignmentEntry, ...], msgspec.Meta(max_length=MAX_ENTRIES)]


class WriteAssignmentsRequest(Request, frozen=True):
    """`POST …/assignments`."""

    writes: Entries = ()
    deletes: Entries = ()


class GrantWrite(Request, frozen=True):
    """One privilege to give. `expires-at` carries its zone; `reason` is for those who review it."""

    privilege: str
    principal: Identity
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)] | None = None
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class GrantDelete(Request, frozen=True):
    """One privilege to take."""

    privilege: str
    principal: Identity


class WriteGrantsRequest(Request, frozen=True):
    """`POST …/grants`."""

    writes: Annotated[tuple[GrantWrite, ...], msgspec.Meta(max_length=MAX_ENTRIES)] = ()
    deletes: Annotated[tuple[GrantDelete, ...], msgspec.Meta(max_length=MAX_ENTRIES)] = ()


class GrantedTo(Answer, frozen=True, omit_defaults=True):
    """Who holds it: a user or a role."""

    user: str | None = None
    role: UUID | None = None


class GrantedOn(Answer, frozen=True, omit_defaults=True):
    """On what: its type and the ids that name it in paths. A column is one of the table by its `field-id`; `column` is
    its name, or the last one it had when it was `dropped`: then the grant gives nothing.
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


class Grant(Answer, frozen=True, omit_defaults=True):
    """One grant. `granted-by`, `reason` and `expires-at` are additions of this server."""

    privilege: str
    principal: GrantedTo
    resource: GrantedOn
    created_at: datetime
    granted_by: str
    recognized: bool
    """Whether this server knows the privilege."""
    reason: str | None = None
    expires_at: datetime | None = None


class GrantList(Answer, frozen=True, omit_defaults=True):
    """`GET …/grants`, oldest first."""

    grants: list[Grant]
    next_page_token: str | None = None


class EndedGrant(Answer, frozen=True, omit_defaults=True):
    """A grant that was. `ended-because` is revoked, expired, replaced (by another end or reason of the same grantor),
    object deleted or principal deleted; nobody in particular ended what expired.
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


class GrantHistory(Answer, frozen=True, omit_defaults=True):
    """`GET …/grants/history`, the latest end first."""

    grants: list[EndedGrant]
    next_page_token: str | None = None


class PrivilegeTold(Answer, frozen=True, omit_defaults=True):
    """A privilege as people read it."""

    name: str
    display_name: str
    category: str
    resource_type: str
    description: str | None = None


class GrantablePrivilege(Answer, frozen=True):
    """Whether the caller may give and take this privilege here."""

    allowed: bool
    privilege: PrivilegeTold
