# SPDX-License-Identifier: Apache-2.0
"""Bodies of SCIM (RFC 7643 sections 4 and 5, RFC 7644 sections 3.4.2, 3.5.2 and 3.12).

Requests are read leniently (`reading.py`): unknown attributes are ignored, since providers send whatever they are told
to map. Answers hold an attribute or leave it out (UNSET).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

MEDIA_TYPE: Final = "application/scim+json"
USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
LIST: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
PATCH: Final = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ERROR: Final = "urn:ietf:params:scim:api:messages:2.0:Error"
CONFIG: Final = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
RESOURCE_TYPE: Final = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:Schema"


Listed = TypeVar("Listed")


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Anything on the wire: members in camel case."""


class NameBody(Wire, frozen=True):
    """The parts of a person's name."""

    formatted: str | None = None
    given_name: str | None = None
    family_name: str | None = None


class EmailBody(Wire, frozen=True):
    """One address."""

    value: str | None = None
    type: str | None = None
    primary: bool | str | None = None


class UserRequest(Wire, frozen=True):
    """`POST /Users` and `PUT /Users/{id}`; further attributes are ignored."""

    user_name: str
    schemas: tuple[str, ...] | None = None
    external_id: str | None = None
    active: bool | str | None = None
    display_name: str | None = None
    name: NameBody | None = None
    emails: tuple[EmailBody, ...] | None = None


class MemberBody(Wire, frozen=True):
    """One member of a group, by the id of a user."""

    value: str
    type: str | None = None
    display: str | None = None


class GroupRequest(Wire, frozen=True):
    """`POST /Groups` and `PUT /Groups/{id}`."""

    display_name: str
    schemas: tuple[str, ...] | None = None
    external_id: str | None = None
    members: tuple[MemberBody, ...] | None = None


class OperationBody(Wire, frozen=True):
    """One operation of a patch: `op` is add, replace or remove, in any letter case."""

    op: str
    path: str | None = None
    value: Any = None


class PatchRequest(Wire, frozen=True):
    """`PATCH`: all operations or none."""

    operations: Annotated[tuple[OperationBody, ...], msgspec.Meta(min_length=1)] = msgspec.field(name="Operations")
    schemas: tuple[str, ...] | None = None


class Meta(Wire, frozen=True):
    """What is told about a resource."""

    resource_type: str
    location: str
    created: datetime | UnsetType = UNSET
    last_modified: datetime | UnsetType = UNSET
    version: str | UnsetType = UNSET


class ScimName(Wire, frozen=True):
    """A person's name, as far as it is known."""

    formatted: str | UnsetType = UNSET
    given_name: str | UnsetType = UNSET
    family_name: str | UnsetType = UNSET


class ScimEmail(Wire, frozen=True):
    """One address."""

    value: str
    primary: bool | UnsetType = UNSET
    type: str | UnsetType = UNSET


class ScimUser(Wire, frozen=True):
    """A user of the provider. `id` is this server's; it never changes."""

    schemas: tuple[str, ...]
    id: str
    meta: Meta | UnsetType = UNSET
    user_name: str | UnsetType = UNSET
    external_id: str | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    name: ScimName | UnsetType = UNSET
    emails: tuple[ScimEmail, ...] | UnsetType = UNSET


class ScimMember(Wire, frozen=True):
    """A member, by the id of a user."""

    value: str
    ref: str = msgspec.field(name="$ref")
    display: str
    type: str


class ScimGroup(Wire, frozen=True):
    """A group of the provider: a role of the project."""

    schemas: tuple[str, ...]
    id: str
    meta: Meta | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    external_id: str | UnsetType = UNSET
    members: tuple[ScimMember, ...] | UnsetType = UNSET


class ListOf(Wire, frozen=True):
    """One page of a list, of which the first resource is number `start_index`; each kind names its `resources`."""

    schemas: tuple[str, ...]
    total_results: int
    start_index: int
    items_per_page: int


class ScimUserList(ListOf, frozen=True):
    """Users that a filter takes."""

    resources: tuple[ScimUser, ...] = msgspec.field(name="Resources")


class ScimGroupList(ListOf, frozen=True):
    """Groups that a filter takes."""

    resources: tuple[ScimGroup, ...] = msgspec.field(name="Resources")


def listed(
    kind: Callable[..., Listed], resources: Sequence[Wire], *, total: int | None = None, start: int = 1
) -> Listed:
    """A page of this kind of list; without `total` it is all there is."""
    return kind(
        schemas=(LIST,),
        total_results=len(resources) if total is None else total,
        start_index=start,
        items_per_page=len(resources),
        resources=tuple(resources),
    )


class ErrorBody(Wire, frozen=True):
    """Any refusal; `status` is the HTTP status as text."""

    schemas: tuple[str, ...]
    status: str
    detail: str
    scim_type: str | UnsetType = UNSET
