# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for allowed actions and managed access."""

from __future__ import annotations

from uuid import UUID

from gateway.protocol.base import Answer, StrictRequest, UserId


class ActionsAnswer(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/access` and `GET …/authorizer-actions`: names without `can_`, in alphabetical order. On roles,
    `can_change_ownership` and `can_grant_assignee` keep it, as in Lakekeeper.

    `restricted-actions` are those of them that row filters or masks restrict: the principal reads only through an
    engine that applies them, and writes only by appending.
    """

    allowed_actions: list[str]
    restricted_actions: list[str] = []


class AllowedAction(Answer, frozen=True, omit_defaults=True):
    """An allowed action: the name without `can_`.

    With `restricted`, row filters or masks restrict it: the principal reads only through an engine that applies them,
    and writes only by appending.
    """

    action: str
    restricted: bool = False


class CatalogActionsAnswer(Answer, frozen=True):
    """Response of `GET …/actions`: the allowed actions, in alphabetical order."""

    allowed_actions: list[AllowedAction]


class Identity(StrictRequest, frozen=True):
    """A principal: exactly one of `user` and `role` is given."""

    user: UserId | None = None
    role: UUID | None = None


class ManagedAccessRequest(StrictRequest, frozen=True):
    """Request of `POST …/managed-access`."""

    managed_access: bool


class WarehousePermissions(Answer, frozen=True):
    """Response of `GET /permissions/warehouse/{id}`."""

    managed_access: bool


class NamespacePermissions(Answer, frozen=True):
    """Response of `GET /permissions/namespace/{id}`. `managed-access` is set on the namespace itself,
    `managed-access-inherited` on a container above it.
    """

    managed_access: bool
    managed_access_inherited: bool
