# SPDX-License-Identifier: Apache-2.0
"""What can be asked about users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Audience, ChangeOperation, OpenTo, QuestionOperation, ReadOperation
from gateway.access.refs import Ref, ServerRef, UserRef
from gateway.access.relations import Can
from gateway.access.request import Body, InPath, PageSize, PageToken, Query
from gateway.protocol.search import SearchRequest


@dataclass(frozen=True)
class WhoAmI(ReadOperation):
    """The caller's own user record."""

    endpoint: ClassVar[str] = "GET /management/v1/whoami"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.SELF, "it tells callers about themselves")


@dataclass(frozen=True)
class RegisterSelf(ChangeOperation):
    """The caller's own user record comes into being; it gives no right."""

    endpoint: ClassVar[str] = "POST /management/v1/user"
    returns: ClassVar[int] = 201
    for_every_token: ClassVar[bool] = True
    open_to: ClassVar[OpenTo] = OpenTo(
        Audience.SELF, "a verified caller may be known by name; being known gives no right"
    )
    by: str = "config-call-creation"
    display_name: str | None = None
    user_type: str | None = None
    update_if_exists: bool = False


@dataclass(frozen=True)
class ProvisionUser(ChangeOperation):
    """Somebody else's user record, before they first come."""

    endpoint: ClassVar[str] = "POST /management/v1/user"
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
    """All users of the server."""

    endpoint: ClassVar[str] = "GET /management/v1/user"
    name_contains: Annotated[str | None, Query("name")] = None
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_USERS, ServerRef()),)


@dataclass(frozen=True)
class GetUser(ReadOperation):
    """One user's record; any verified caller may read it, as in the reference system."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}"
    open_to: ClassVar[OpenTo] = OpenTo(
        Audience.AUTHENTICATED, "names of principals are no secret among those who have a token"
    )
    user: InPath[UserRef]

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.user,)


@dataclass(frozen=True)
class SearchUser(QuestionOperation):
    """Users whose names, verified addresses or ids are like a text; any verified caller may, as for one user."""

    endpoint: ClassVar[str] = "POST /management/v1/search/user"
    open_to: ClassVar[OpenTo] = OpenTo(
        Audience.AUTHENTICATED, "names of principals are no secret among those who have a token"
    )
    # Changes nothing: it searches.
    text: Annotated[str, Body(SearchRequest, "search")]


@dataclass(frozen=True)
class _OfUser:
    """Part of operations on one user's record."""

    user: InPath[UserRef]

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.user,)

    def whose(self) -> str | None:
        return self.user.user_id

    def facts(self) -> Facts:
        return {"about": self.user.user_id}


@dataclass(frozen=True)
class _ChangingUser(_OfUser):
    """Part of those that write another name and kind."""

    display_name: str
    user_type: str


@dataclass(frozen=True)
class UpdateSelf(_ChangingUser, ChangeOperation):
    """What the caller is called."""

    endpoint: ClassVar[str] = "PUT /management/v1/user/{user_id}"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.SELF, "what one is called is one's own; it gives no right")


@dataclass(frozen=True)
class UpdateUser(_ChangingUser, ChangeOperation):
    """Write the name and the address of another user."""

    endpoint: ClassVar[str] = "PUT /management/v1/user/{user_id}"
    email: str | None = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.UPDATE_USERS, ServerRef()),)


@dataclass(frozen=True)
class _DeletingUser(_OfUser):
    """Part of those that remove a record with every grant to the user."""

    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class DeleteSelf(_DeletingUser, ChangeOperation):
    """The caller's own record goes, with every grant to the caller."""

    endpoint: ClassVar[str] = "DELETE /management/v1/user/{user_id}"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.SELF, "everybody may give up what they have")


@dataclass(frozen=True)
class DeleteUser(_DeletingUser, ChangeOperation):
    """Somebody's record goes, with every grant to them."""

    endpoint: ClassVar[str] = "DELETE /management/v1/user/{user_id}"

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DELETE_USERS, ServerRef()),)


@dataclass(frozen=True)
class ListOwnRoles(_OfUser, ReadOperation):
    """The roles the caller was put into."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.SELF, "it tells callers about themselves")


@dataclass(frozen=True)
class ListUserRoles(_OfUser, ReadOperation):
    """The roles somebody else was put into."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles"

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_USERS, ServerRef()),)


@dataclass(frozen=True)
class ListAllOwnRoles(_OfUser, ReadOperation):
    """The roles the caller is in, also through other roles."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles/transitive"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.SELF, "it tells callers about themselves")


@dataclass(frozen=True)
class ListAllUserRoles(_OfUser, ReadOperation):
    """The roles somebody else is in, also through other roles."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles/transitive"

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_USERS, ServerRef()),)
