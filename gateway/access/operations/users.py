# SPDX-License-Identifier: Apache-2.0
"""Operations on users."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from gateway.access.bodies import Answer, Name, Request, UserId, UserType
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration, NoEvent
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.server import ServerRef, UserRef
from gateway.access.operation import Audience, ChangeOperation, PublicAudience, QuestionOperation, ReadOperation
from gateway.access.operations.search import SearchRequest
from gateway.access.request import Body, InPath, PageSize, PageToken, Query


@dataclass(frozen=True)
class WhoAmI(ReadOperation):
    """Return the caller's own user record."""

    endpoint: ClassVar[str] = "GET /management/v1/whoami"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.SELF, "the response describes the caller only")


@dataclass(frozen=True)
class ListOwnDelegates(ReadOperation):
    """List the grants of `delegate` by which engines may act for the caller.

    Each grant is on a project or warehouse that the caller sees. Grants that exclude administrators are absent where
    the caller is one.
    """

    endpoint: ClassVar[str] = "GET /management/v1/whoami/delegates"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF,
        "the grants that include the caller; each object is filtered by can_include_in_list",
    )
    page_token: PageToken = None
    page_size: PageSize = None

    def questions(self) -> int:
        """Return the charge of a large request, because each project and warehouse with a grant for all users is
        checked.
        """
        return 100


@dataclass(frozen=True)
class RegisterSelf(ChangeOperation):
    """Create the caller's own user record. The record gives no right."""

    endpoint: ClassVar[str] = "POST /management/v1/user"
    event: ClassVar[EventDeclaration] = NoEvent(
        "a caller's own entry in the list of users is made at its first request"
    )
    returns: ClassVar[int] = 201
    for_every_token: ClassVar[bool] = True
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "a verified caller may register its own name; a registered user has no right"
    )
    by: str = "config-call-creation"
    display_name: str | None = None
    user_type: str | None = None
    update_if_exists: bool = False


@dataclass(frozen=True)
class ProvisionUser(ChangeOperation):
    """Create the record of another user before the user's first request."""

    endpoint: ClassVar[str] = "POST /management/v1/user"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="user_id", kind="user", type="createUser")
    returns: ClassVar[int] = 201
    user_id: str
    display_name: str | None = None
    email: str | None = None
    user_type: str | None = None
    update_if_exists: bool = False

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.PROVISION_USERS, ServerRef()),)


@dataclass(frozen=True)
class ListUsers(ReadOperation):
    """List all users of the server."""

    endpoint: ClassVar[str] = "GET /management/v1/user"
    name_contains: Annotated[str | None, Query("name")] = None
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_USERS, ServerRef()),)


@dataclass(frozen=True)
class GetUser(ReadOperation):
    """Return a user's record. Every verified caller may read it, as in Lakekeeper."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED, "names of principals are not secret to callers with a token"
    )
    user: InPath[UserRef]

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.user,)


@dataclass(frozen=True)
class SearchUser(QuestionOperation):
    """Search users by name, verified address or id. Every verified caller may do this."""

    endpoint: ClassVar[str] = "POST /management/v1/search/user"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED, "names of principals are not secret to callers with a token"
    )
    # Read-only, although the method is POST: the operation searches.
    text: Annotated[str, Body(SearchRequest, "search")]


@dataclass(frozen=True)
class _OfUser:
    """Mixin of operations on one user's record."""

    user: InPath[UserRef]

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.user,)

    def target_user(self) -> str | None:
        return self.user.user_id

    def facts(self) -> Facts:
        return {"about": self.user.user_id}


@dataclass(frozen=True)
class _ChangingUser(_OfUser):
    """Mixin of operations that change the name and kind of a user."""

    display_name: str
    user_type: str


@dataclass(frozen=True)
class UpdateSelf(_ChangingUser, ChangeOperation):
    """Change the caller's own name and kind."""

    endpoint: ClassVar[str] = "PUT /management/v1/user/{user_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="user", type="updateUser")
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "a user may change its own display name; a name gives no right"
    )


@dataclass(frozen=True)
class UpdateUser(_ChangingUser, ChangeOperation):
    """Change the name, kind and address of another user."""

    endpoint: ClassVar[str] = "PUT /management/v1/user/{user_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="user")
    email: str | None = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.UPDATE_USERS, ServerRef()),)


@dataclass(frozen=True)
class _DeletingUser(_OfUser):
    """Mixin of operations that delete a user's record with every grant to the user."""

    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class DeleteSelf(_DeletingUser, ChangeOperation):
    """Delete the caller's own record with every grant to the caller."""

    endpoint: ClassVar[str] = "DELETE /management/v1/user/{user_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="user", type="deleteUser")
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "a user may delete itself and thus give up its own rights"
    )


@dataclass(frozen=True)
class DeleteUser(_DeletingUser, ChangeOperation):
    """Delete another user's record with every grant to that user."""

    endpoint: ClassVar[str] = "DELETE /management/v1/user/{user_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="user")

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DELETE_USERS, ServerRef()),)


@dataclass(frozen=True)
class _RolesOfUser(_OfUser):
    """Mixin of operations that list a user's roles. Without `page_token` and `page_size` they return the whole list."""

    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class ListOwnRoles(_RolesOfUser, ReadOperation):
    """List the roles that the caller is a direct member of."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.SELF, "the response describes the caller only")


@dataclass(frozen=True)
class ListUserRoles(_RolesOfUser, ReadOperation):
    """List the roles that another user is a direct member of."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles"

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_USERS, ServerRef()),)


@dataclass(frozen=True)
class ListAllOwnRoles(_RolesOfUser, ReadOperation):
    """List the roles that the caller is in, also through other roles."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles/transitive"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.SELF, "the response describes the caller only")


@dataclass(frozen=True)
class ListAllUserRoles(_RolesOfUser, ReadOperation):
    """List the roles that another user is in, also through other roles."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles/transitive"

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_USERS, ServerRef()),)


class User(Answer, frozen=True, omit_defaults=True):
    """A user record."""

    id: str
    name: str
    user_type: str
    created_at: datetime
    last_updated_with: str
    email: str | None = None
    updated_at: datetime | None = None


class WhoAmIAnswer(User, frozen=True, omit_defaults=True):
    """Response of `GET /whoami`."""

    is_instance_admin: bool | None = None


class CreateUserRequest(Request, frozen=True):
    """Request of `POST /user`. Without an `id`, the caller registers its own user."""

    id: UserId | None = None
    name: Name | None = None
    email: Annotated[str, msgspec.Meta(max_length=320)] | None = None
    user_type: UserType | None = None
    update_if_exists: bool = False


class UpdateUserRequest(Request, frozen=True):
    """Request of `PUT /user/{id}`. Without an `email`, the existing address is removed."""

    name: Name
    user_type: UserType
    email: Annotated[str, msgspec.Meta(max_length=320)] | None = None


class FoundUser(Answer, frozen=True, omit_defaults=True):
    """A user that matches the search."""

    id: str
    name: str
    user_type: str
    email: str | None = None


class FoundUsers(Answer, frozen=True):
    """Response of `POST /search/user`."""

    users: list[FoundUser]


class UserList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /user`."""

    users: list[User]
    next_page_token: str | None = None
