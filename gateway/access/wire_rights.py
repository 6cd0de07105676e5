# SPDX-License-Identifier: Apache-2.0
"""Bodies of the management API that are about rights: assignments, grants and checks (`lakekeeper.md` 3.5 to 3.7)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from gateway.access.wire import Answer, Request, UserId

#: Entries in the writes and deletes of one request together; also what each of both may hold.
MAX_ENTRIES = 100
#: Checks in one request.
MAX_CHECKS = 1000


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


class ActionsAnswer(Answer, frozen=True):
    """`GET …/access` and `GET …/authorizer-actions`: names without `can_`, in alphabetical order."""

    allowed_actions: list[str]


class AllowedAction(Answer, frozen=True):
    """An action by its name without `can_`."""

    action: str


class CatalogActionsAnswer(Answer, frozen=True):
    """`GET …/actions`, in alphabetical order."""

    allowed_actions: list[AllowedAction]


class Identity(Request, frozen=True):
    """Whom something is about; exactly one of both."""

    user: UserId | None = None
    role: UUID | None = None


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


class ManagedAccessRequest(Request, frozen=True):
    """`POST …/managed-access`."""

    managed_access: bool


class WarehousePermissions(Answer, frozen=True):
    """`GET /permissions/warehouse/{id}`."""

    managed_access: bool


class NamespacePermissions(Answer, frozen=True):
    """`GET /permissions/namespace/{id}`: set here, and set on something above."""

    managed_access: bool
    managed_access_inherited: bool


class CheckRequest(Request, frozen=True):
    """`POST /permissions/check`."""

    operation: dict[str, dict[str, Any]]
    identity: Identity | None = None


class CheckAnswer(Answer, frozen=True):
    """Whether it would be allowed."""

    allowed: bool


class CheckItem(Request, frozen=True):
    """One check of a batch."""

    operation: dict[str, dict[str, Any]]
    id: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    identity: Identity | None = None


class BatchCheckRequest(Request, frozen=True):
    """`POST /action/batch-check`. With `delegated`, which is ours, an engine asks in the name of its users."""

    checks: tuple[CheckItem, ...]
    error_on_not_found: bool = False
    delegated: bool = False


class CheckResult(Answer, frozen=True, omit_defaults=True):
    """One answer of a batch. To `read_columns` a yes with `columns` (names in the table's current schema) is one for
    these columns alone; without them it is for all.
    """

    allowed: bool
    id: str | None = None
    columns: list[str] | None = None


class BatchCheckAnswer(Answer, frozen=True):
    """The answers, in the order of the checks."""

    results: list[CheckResult]
