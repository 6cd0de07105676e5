# SPDX-License-Identifier: Apache-2.0
"""What can be asked by SCIM: the users of one identity provider, and its groups as roles of a project."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.refs import ProjectRef, Ref, ServerRef
from gateway.access.relations import Can
from gateway.access.request import Header, OfRequest
from gateway.scim.reading import Group, User
from gateway.scim.wire import PatchRequest


@dataclass(frozen=True)
class _Synchronising:
    """Part of all: the right to keep what a provider keeps here. Whose it is follows from who asks."""

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SYNCHRONIZE_IDENTITIES, ServerRef()),)


@dataclass(frozen=True)
class GetScimConfig(_Synchronising, ReadOperation):
    """What of SCIM is supported."""

    endpoint: ClassVar[str] = "GET /scim/v2/ServiceProviderConfig"


@dataclass(frozen=True)
class ListScimResourceTypes(_Synchronising, ReadOperation):
    """The kinds of resources."""

    endpoint: ClassVar[str] = "GET /scim/v2/ResourceTypes"


@dataclass(frozen=True)
class ListScimSchemas(_Synchronising, ReadOperation):
    """The attributes that are kept."""

    endpoint: ClassVar[str] = "GET /scim/v2/Schemas"


@dataclass(frozen=True)
class GetScimResourceType(_Synchronising, ReadOperation):
    """One kind of resources."""

    endpoint: ClassVar[str] = "GET /scim/v2/ResourceTypes/{resource_type}"


@dataclass(frozen=True)
class GetScimSchema(_Synchronising, ReadOperation):
    """The attributes that are kept of one kind of resources."""

    endpoint: ClassVar[str] = "GET /scim/v2/Schemas/{schema_urn}"


@dataclass(frozen=True)
class _Listing(_Synchronising):
    """Part of lists. `filter` is as it was sent; `start` counts from 1."""

    filter: str | None = None
    start: int = 1
    count: int | None = None


@dataclass(frozen=True)
class _OfOne(_Synchronising):
    """Part of what is about one user or group, by SCIM's id."""

    id: UUID

    def facts(self) -> Facts:
        return {"about": str(self.id)}


@dataclass(frozen=True)
class _Conditional:
    """Part of changes of one user or group: the change is made to a version that `if_match` names, if it is given."""

    if_match: Annotated[str | None, Header("if-match")] = field(default=None, kw_only=True)


@dataclass(frozen=True)
class _InProject(_Synchronising):
    """Part of what is about the groups of one project."""

    project: OfRequest

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.project,)


@dataclass(frozen=True)
class _OfGroup(_OfOne, _InProject):
    """Part of what is about one group."""


@dataclass(frozen=True)
class _ChangingGroup(_Conditional, _OfGroup):
    """Part of what says what is to become of a group."""

    group: Group

    def facts(self) -> Facts:
        return {"about": str(self.id), "role_name": self.group.display_name, "joining": len(self.group.joining)}


@dataclass(frozen=True)
class ListScimUsers(_Listing, ReadOperation):
    """The provider's users that a filter takes."""

    endpoint: ClassVar[str] = "GET /scim/v2/Users"


@dataclass(frozen=True)
class GetScimUser(_OfOne, ReadOperation):
    """One of the provider's users."""

    endpoint: ClassVar[str] = "GET /scim/v2/Users/{scim_id}"


@dataclass(frozen=True)
class CreateScimUser(_Synchronising, ChangeOperation):
    """A user of the provider, before or after they first come. It gives no right."""

    endpoint: ClassVar[str] = "POST /scim/v2/Users"
    returns: ClassVar[int] = 201
    user: User

    def facts(self) -> Facts:
        return {"user_name": self.user.user_name, "active": self.user.active}


@dataclass(frozen=True)
class ReplaceScimUser(_Conditional, _OfOne, ChangeOperation):
    """All that is kept of a user; who is not `active` is refused from the next request on."""

    endpoint: ClassVar[str] = "PUT /scim/v2/Users/{scim_id}"
    user: User

    def facts(self) -> Facts:
        return {"about": str(self.id), "user_name": self.user.user_name, "active": self.user.active}


@dataclass(frozen=True)
class PatchScimUser(_Conditional, _OfOne, ChangeOperation):
    """Some of what is kept of a user; who is not `active` is refused from the next request on."""

    endpoint: ClassVar[str] = "PATCH /scim/v2/Users/{scim_id}"
    patch: PatchRequest


@dataclass(frozen=True)
class DeleteScimUser(_Conditional, _OfOne, ChangeOperation):
    """The user's record goes, with every grant to the user."""

    endpoint: ClassVar[str] = "DELETE /scim/v2/Users/{scim_id}"
    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class ListScimGroups(_Listing, ReadOperation):
    """The provider's groups in the project that a filter takes."""

    endpoint: ClassVar[str] = "GET /scim/v2/Groups"
    project: OfRequest = ProjectRef("")
    with_members: bool = True

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.project,)


@dataclass(frozen=True)
class GetScimGroup(_OfGroup, ReadOperation):
    """One of the provider's groups, with its members unless the request leaves them out."""

    endpoint: ClassVar[str] = "GET /scim/v2/Groups/{scim_id}"
    with_members: bool = True


@dataclass(frozen=True)
class CreateScimGroup(_InProject, ChangeOperation):
    """A group of the provider: a new role, which has no right until somebody gives it one."""

    endpoint: ClassVar[str] = "POST /scim/v2/Groups"
    returns: ClassVar[int] = 201
    group: Group

    def facts(self) -> Facts:
        return {"role_name": self.group.display_name, "joining": len(self.group.joining)}


@dataclass(frozen=True)
class ReplaceScimGroup(_ChangingGroup, ChangeOperation):
    """All of a group: its name and its members."""

    endpoint: ClassVar[str] = "PUT /scim/v2/Groups/{scim_id}"


@dataclass(frozen=True)
class PatchScimGroup(_ChangingGroup, ChangeOperation):
    """Some of a group: members come and go, or it gets another name. What `attributes` names is told of it."""

    endpoint: ClassVar[str] = "PATCH /scim/v2/Groups/{scim_id}"


@dataclass(frozen=True)
class DeleteScimGroup(_Conditional, _OfGroup, ChangeOperation):
    """The role goes, with every grant on it and to it."""

    endpoint: ClassVar[str] = "DELETE /scim/v2/Groups/{scim_id}"
    returns: ClassVar[int] = 204
