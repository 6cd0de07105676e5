# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints about allowed actions and managed access."""

from __future__ import annotations

from uuid import UUID

from gateway.protocol.base import Answer, Request, UserId


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
