# SPDX-License-Identifier: Apache-2.0
"""Operations of SCIM: on the users of one identity provider, and on its groups as roles of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.server import ServerRef
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.request import Header, OfRequest
from gateway.scim.reading import Group, User
from gateway.scim.wire import PatchRequest


@dataclass(frozen=True)
class _Synchronising:
    """Mixin of all SCIM operations.

    They need the right to synchronize. The caller's token determines the identity provider.
    """

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SYNCHRONIZE_IDENTITIES, ServerRef()),)


@dataclass(frozen=True)
class GetScimConfig(_Synchronising, ReadOperation):
    """Return the supported features of SCIM."""

    endpoint: ClassVar[str] = "GET /scim/v2/ServiceProviderConfig"


@dataclass(frozen=True)
class ListScimResourceTypes(_Synchronising, ReadOperation):
    """List the resource types."""

    endpoint: ClassVar[str] = "GET /scim/v2/ResourceTypes"


@dataclass(frozen=True)
class ListScimSchemas(_Synchronising, ReadOperation):
    """List the schemas of stored attributes."""

    endpoint: ClassVar[str] = "GET /scim/v2/Schemas"


@dataclass(frozen=True)
class GetScimResourceType(_Synchronising, ReadOperation):
    """Return a resource type."""

    endpoint: ClassVar[str] = "GET /scim/v2/ResourceTypes/{resource_type}"


@dataclass(frozen=True)
class GetScimSchema(_Synchronising, ReadOperation):
    """Return the schema of one resource type."""

    endpoint: ClassVar[str] = "GET /scim/v2/Schemas/{schema_urn}"


@dataclass(frozen=True)
class _Listing(_Synchronising):
    """Mixin of lists. `filter` is the filter of the request, `start` the number of the first result, from 1."""

    filter: str | None = None
    start: int = 1
    count: int | None = None


@dataclass(frozen=True)
class _OfOne(_Synchronising):
    """Mixin of operations on one user or one group, identified by its SCIM id."""

    id: UUID

    def facts(self) -> Facts:
        return {"about": str(self.id)}


@dataclass(frozen=True)
class _Conditional:
    """Mixin of changes with an optional precondition: the current version must be that in `if_match`."""

    if_match: Annotated[str | None, Header("if-match")] = field(default=None, kw_only=True)


@dataclass(frozen=True)
class _InProject(_Synchronising):
    """Mixin of operations on the groups of one project."""

    project: OfRequest

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.project,)


@dataclass(frozen=True)
class _OfGroup(_OfOne, _InProject):
    """Mixin of operations on one group."""


@dataclass(frozen=True)
class _ChangingGroup(_Conditional, _OfGroup):
    """Mixin of operations that contain the new content of a group."""

    group: Group

    def facts(self) -> Facts:
        return {"about": str(self.id), "role_name": self.group.display_name, "joining": len(self.group.joining)}


@dataclass(frozen=True)
class ListScimUsers(_Listing, ReadOperation):
    """List the provider's users that match a filter."""

    endpoint: ClassVar[str] = "GET /scim/v2/Users"


@dataclass(frozen=True)
class GetScimUser(_OfOne, ReadOperation):
    """Return one of the provider's users."""

    endpoint: ClassVar[str] = "GET /scim/v2/Users/{scim_id}"


@dataclass(frozen=True)
class CreateScimUser(_Synchronising, ChangeOperation):
    """Create a user of the provider, before or after the user's first request. The record gives no right."""

    endpoint: ClassVar[str] = "POST /scim/v2/Users"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="", new="scim_id", kind="scim_user")
    returns: ClassVar[int] = 201
    user: User

    def facts(self) -> Facts:
        return {"user_name": self.user.user_name, "active": self.user.active}


@dataclass(frozen=True)
class ReplaceScimUser(_Conditional, _OfOne, ChangeOperation):
    """Replace all stored attributes of a user. A user that is not `active` is refused from the next request on."""

    endpoint: ClassVar[str] = "PUT /scim/v2/Users/{scim_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="id", kind="scim_user")
    user: User

    def facts(self) -> Facts:
        return {"about": str(self.id), "user_name": self.user.user_name, "active": self.user.active}


@dataclass(frozen=True)
class PatchScimUser(_Conditional, _OfOne, ChangeOperation):
    """Change attributes of a user. A user that is not `active` is refused from the next request on."""

    endpoint: ClassVar[str] = "PATCH /scim/v2/Users/{scim_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="id", kind="scim_user")
    patch: PatchRequest

    def audited_fields(self) -> Mapping[str, object]:
        """Return each value of the patch under its path, so that the audit can remove secrets by their names.

        A directory may send passwords, which the gateway ignores.
        """
        patch = [{"op": each.op, each.path or "value": each.value} for each in self.patch.operations]
        return {**super().audited_fields(), "patch": patch}


@dataclass(frozen=True)
class DeleteScimUser(_Conditional, _OfOne, ChangeOperation):
    """Delete a user's record with every grant to the user."""

    endpoint: ClassVar[str] = "DELETE /scim/v2/Users/{scim_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="id", kind="scim_user")
    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class ListScimGroups(_Listing, ReadOperation):
    """List the provider's groups in the project that match a filter."""

    endpoint: ClassVar[str] = "GET /scim/v2/Groups"
    project: OfRequest = ProjectRef("")
    with_members: bool = True

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.project,)


@dataclass(frozen=True)
class GetScimGroup(_OfGroup, ReadOperation):
    """Return one of the provider's groups, with its members unless the request excludes them."""

    endpoint: ClassVar[str] = "GET /scim/v2/Groups/{scim_id}"
    with_members: bool = True


@dataclass(frozen=True)
class CreateScimGroup(_InProject, ChangeOperation):
    """Create a group of the provider: a new role without rights."""

    endpoint: ClassVar[str] = "POST /scim/v2/Groups"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project", new="scim_id", kind="scim_group")
    returns: ClassVar[int] = 201
    group: Group

    def facts(self) -> Facts:
        return {"role_name": self.group.display_name, "joining": len(self.group.joining)}


@dataclass(frozen=True)
class ReplaceScimGroup(_ChangingGroup, ChangeOperation):
    """Replace a group's name and members."""

    endpoint: ClassVar[str] = "PUT /scim/v2/Groups/{scim_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="id", kind="scim_group")


@dataclass(frozen=True)
class PatchScimGroup(_ChangingGroup, ChangeOperation):
    """Change members or the name of a group. The answer contains the attributes that `attributes` names."""

    endpoint: ClassVar[str] = "PATCH /scim/v2/Groups/{scim_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="id", kind="scim_group")


@dataclass(frozen=True)
class DeleteScimGroup(_Conditional, _OfGroup, ChangeOperation):
    """Delete a group: the role, with every grant on it and to it."""

    endpoint: ClassVar[str] = "DELETE /scim/v2/Groups/{scim_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="id", kind="scim_group")
    returns: ClassVar[int] = 204
