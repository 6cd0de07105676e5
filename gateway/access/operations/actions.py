# SPDX-License-Identifier: Apache-2.0
"""Operations that return the actions a principal may take on an object, and their bodies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar
from uuid import UUID

from gateway.access.bodies import Answer, StrictRequest, UserId
from gateway.access.demand import Demand, Facts
from gateway.access.nouns.cards import CARDS, VISIBLE_BY
from gateway.access.nouns.families import (
    DEFAULT_PROJECT,
    IN_PROJECTS,
    IN_PROJECTS_BY_TYPE,
    NAMESPACE,
    NAMESPACE_IN_WAREHOUSE,
    PROJECT,
    PROJECT_OF_REQUEST,
    SERVER,
    TABULARS,
    WAREHOUSE,
    declare_for_each,
)
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.server import ServerRef, UserRef
from gateway.access.operation import Audience, PublicAudience, ReadOperation
from gateway.access.request import About, InPath

#: The relation that a caller needs to check its own actions on an object, by type. A member of a role may check its
#: actions on the role.
_QUERY_RELATION = {type: card.queried_by or card.visible_by for type, card in CARDS.items()}


@dataclass(frozen=True)
class QueryActions(ReadOperation, abstract=True):
    """Return the catalog actions that a principal (the caller when None) may take on an object."""

    on: Ref
    principal: About = None

    def demands(self) -> tuple[Demand, ...]:
        if self.principal is not None:
            return (Demand(Can.READ_ASSIGNMENTS, self.on),)
        query_relation = _QUERY_RELATION.get(self.on.type)
        return () if query_relation is None else (Demand(query_relation, self.on),)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.on,)


_ACTIONS = partial(
    declare_for_each,
    QueryActions,
    name="Get{noun}Actions",
    endpoint="GET /management/v1/{path}/actions",
    doc="Return the catalog actions that a principal may take on {words}.",
)
QUERY_ACTIONS: tuple[type[QueryActions], ...] = (
    *_ACTIONS(
        (SERVER,),
        open_to=PublicAudience(
            Audience.SELF, "the caller's own rights; a question about another principal demands can_read_assignments"
        ),
    ),
    *_ACTIONS((PROJECT_OF_REQUEST, WAREHOUSE, NAMESPACE_IN_WAREHOUSE, *TABULARS, *IN_PROJECTS)),
)


@dataclass(frozen=True)
class GetUserActions(ReadOperation):
    """Return the actions that a principal may take on a user's record.

    The relationship model has no rights on single users. The actions need rights on the server, or the record is the
    caller's own.
    """

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/actions"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "the caller's own actions; a question about another principal demands can_list_users"
    )
    user: InPath[UserRef]
    principal: About = None

    def demands(self) -> tuple[Demand, ...]:
        return () if self.principal is None else (Demand(Can.LIST_USERS, ServerRef()),)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.user, ServerRef())

    def facts(self) -> Facts:
        return {"about": self.user.user_id}


@dataclass(frozen=True)
class QueryRights(ReadOperation, abstract=True):
    """Return the actions that a principal (the caller when None) may take on an object."""

    authorizer_only: ClassVar[bool]
    on: Ref
    principal: About = None

    def demands(self) -> tuple[Demand, ...]:
        visible_by = VISIBLE_BY.get(self.on.type)
        if self.principal is not None:
            return (Demand(Can.READ_ASSIGNMENTS, self.on),)
        if visible_by is None:
            return ()
        return (Demand(visible_by, self.on, alternative=Can.READ_ASSIGNMENTS),)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.on,)


_OPEN_TO_SELF = "the caller's own rights; a question about another principal demands can_read_assignments"
_OTHERS = (DEFAULT_PROJECT, PROJECT, WAREHOUSE, NAMESPACE, *TABULARS, *IN_PROJECTS_BY_TYPE)
_ACCESS = partial(
    declare_for_each,
    QueryRights,
    name="Get{noun}Access",
    endpoint="GET /management/v1/permissions/{path}/access",
    doc="Return the actions that a principal may take on {words}.",
    authorizer_only=False,
)
_AUTHORIZER_ACTIONS = partial(
    declare_for_each,
    QueryRights,
    name="Get{noun}AuthorizerActions",
    endpoint="GET /management/v1/permissions/{path}/authorizer-actions",
    doc="Return the actions of the relationship model alone that a principal may take on {words}.",
    authorizer_only=True,
)
QUERY_RIGHTS: tuple[type[QueryRights], ...] = (
    *_ACCESS((SERVER,), open_to=PublicAudience(Audience.SELF, _OPEN_TO_SELF)),
    *_ACCESS(_OTHERS),
    *_AUTHORIZER_ACTIONS((SERVER,), open_to=PublicAudience(Audience.SELF, _OPEN_TO_SELF)),
    *_AUTHORIZER_ACTIONS(_OTHERS),
)


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
