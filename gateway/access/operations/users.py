# SPDX-License-Identifier: Apache-2.0
"""What can be asked about users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Durability, Operation
from gateway.access.refs import Ref, ServerRef, UserRef
from gateway.access.relations import Can
from gateway.access.request import Body, InPath, PageSize, PageToken, Query
from gateway.protocol.search import SearchRequest


@dataclass(frozen=True)
class WhoAmI(Operation):
    """The caller's own user record."""

    endpoint: ClassVar[str] = "GET /management/v1/whoami"
    open_to_self: ClassVar[str] = "it tells callers about themselves"


@dataclass(frozen=True)
class RegisterSelf(Operation):
    """The caller's own user record comes into being; it gives no right."""

    endpoint: ClassVar[str] = "POST /management/v1/user"
    returns: ClassVar[int] = 201
    for_every_token: ClassVar[bool] = True
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    open_to_self: ClassVar[str] = "a verified caller may be known by name; being known gives no right"
    by: str = "config-call-creation"
    display_name: str | None = None
    user_type: str | None = None
    update_if_exists: bool = False


@dataclass(frozen=True)
class ProvisionUser(Operation):
    """Somebody else's user record, before they first come."""

    endpoint: ClassVar[str] = "POST /management/v1/user"
    returns: ClassVar[int] = 201
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    user_id: str
    display_name: str | None = None
    email: str | None = None
    user_type: str | None = None
    update_if_exists: bool = False

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.PROVISION_USERS, ServerRef()),)


@dataclass(frozen=True)
class ListUsers(Operation):
    """All users of the server."""

    endpoint: ClassVar[str] = "GET /management/v1/user"
    name_contains: Annotated[str | None, Query("name")] = None
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_USERS, ServerRef()),)


@dataclass(frozen=True)
class GetUser(Operation):
    """One user's record; any verified caller may read it, as in the reference system."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}"
    open_to_authenticated: ClassVar[str] = "names of principals are no secret among those who have a token"
    user: InPath[UserRef]

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.user,)


@dataclass(frozen=True)
class SearchUser(Operation):
    """Users whose names, verified addresses or ids are like a text; any verified caller may, as for one user."""

    endpoint: ClassVar[str] = "POST /management/v1/search/user"
    open_to_authenticated: ClassVar[str] = "names of principals are no secret among those who have a token"
    reads_because: ClassVar[str] = "it searches"
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

    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    display_name: str
    user_type: str


@dataclass(frozen=True)
class UpdateSelf(_ChangingUser, Operation):
    """What the caller is called."""

    endpoint: ClassVar[str] = "PUT /management/v1/user/{user_id}"
    open_to_self: ClassVar[str] = "what one is called is one's own; it gives no right"


@dataclass(frozen=True)
class UpdateUser(_ChangingUser, Operation):
    """Write the name and the address of another user."""

    endpoint: ClassVar[str] = "PUT /management/v1/user/{user_id}"
    email: str | None = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.UPDATE_USERS, ServerRef()),)


@dataclass(frozen=True)
class _DeletingUser(_OfUser):
    """Part of those that remove a record with every grant to the user."""

    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE


@dataclass(frozen=True)
class DeleteSelf(_DeletingUser, Operation):
    """The caller's own record goes, with every grant to the caller."""

    endpoint: ClassVar[str] = "DELETE /management/v1/user/{user_id}"
    open_to_self: ClassVar[str] = "everybody may give up what they have"


@dataclass(frozen=True)
class DeleteUser(_DeletingUser, Operation):
    """Somebody's record goes, with every grant to them."""

    endpoint: ClassVar[str] = "DELETE /management/v1/user/{user_id}"

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DELETE_USERS, ServerRef()),)


@dataclass(frozen=True)
class ListOwnRoles(_OfUser, Operation):
    """The roles the caller was put into."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles"
    open_to_self: ClassVar[str] = "it tells callers about themselves"


@dataclass(frozen=True)
class ListUserRoles(_OfUser, Operation):
    """The roles somebody else was put into."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles"

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_USERS, ServerRef()),)


@dataclass(frozen=True)
class ListAllOwnRoles(_OfUser, Operation):
    """The roles the caller is in, also through other roles."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles/transitive"
    open_to_self: ClassVar[str] = "it tells callers about themselves"


@dataclass(frozen=True)
class ListAllUserRoles(_OfUser, Operation):
    """The roles somebody else is in, also through other roles."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/roles/transitive"

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_USERS, ServerRef()),)
