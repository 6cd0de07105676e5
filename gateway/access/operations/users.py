# SPDX-License-Identifier: Apache-2.0
"""What can be asked about users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import Durability, Operation
from gateway.access.refs import Ref, ServerRef, UserRef
from gateway.access.relations import Can


@dataclass(frozen=True)
class WhoAmI(Operation):
    """The caller's own user record."""

    endpoint: ClassVar[str] = "GET /management/v1/whoami"
    open_to_authenticated: ClassVar[str] = "it tells callers about themselves"


@dataclass(frozen=True)
class RegisterSelf(Operation):
    """The caller's own user record comes into being; it gives no right."""

    endpoint: ClassVar[str] = "POST /management/v1/user"
    returns: ClassVar[int] = 201
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    open_to_authenticated: ClassVar[str] = "a verified caller may be known by name; being known gives no right"
    by: str = "config-call-creation"
    display_name: str | None = None
    email: str | None = None
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
    name_contains: str | None = None
    page_token: str | None = None
    page_size: int | None = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_USERS, ServerRef()),)


@dataclass(frozen=True)
class GetUser(Operation):
    """One user's record; any verified caller may read it, as in the reference system."""

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}"
    open_to_authenticated: ClassVar[str] = "names of principals are no secret among those who have a token"
    user: UserRef

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.user,)
