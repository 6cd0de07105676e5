# SPDX-License-Identifier: Apache-2.0
"""Bodies of SCIM requests and responses (RFC 7643, sections 4 and 5; RFC 7644, sections 3.4.2, 3.5.2 and 3.12).

Unknown attributes of requests are ignored (`reading.py`), because providers send every attribute that their
configuration maps. Responses omit attributes that are UNSET. The parameters `attributes` and `excludedAttributes`
select the attributes of a response (RFC 7644, section 3.9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import fields, replace

from gateway.scim.filters import bare

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
    """Base class of all bodies. Field names are in camel case."""


class NameBody(Wire, frozen=True):
    """The parts of a person's name."""

    formatted: str | None = None
    given_name: str | None = None
    family_name: str | None = None


class EmailBody(Wire, frozen=True):
    """One email address in a request."""

    value: str | None = None
    type: str | None = None
    primary: bool | str | None = None


class UserRequest(Wire, frozen=True):
    """Body of `POST /Users` and `PUT /Users/{id}`. Further attributes are ignored."""

    user_name: str
    schemas: tuple[str, ...] | None = None
    external_id: str | None = None
    active: bool | str | None = None
    display_name: str | None = None
    name: NameBody | None = None
    emails: tuple[EmailBody, ...] | None = None


class MemberBody(Wire, frozen=True):
    """One member of a group. `value` is the id of a user."""

    value: str
    type: str | None = None
    display: str | None = None


class GroupRequest(Wire, frozen=True):
    """Body of `POST /Groups` and `PUT /Groups/{id}`. Further attributes are ignored."""

    display_name: str
    schemas: tuple[str, ...] | None = None
    external_id: str | None = None
    members: tuple[MemberBody, ...] | None = None


class OperationBody(Wire, frozen=True):
    """One operation of a patch. `op` is `add`, `replace` or `remove`, in any letter case."""

    op: str
    path: str | None = None
    value: Any = None


class PatchRequest(Wire, frozen=True):
    """Body of `PATCH`. Either all operations are applied or none."""

    operations: Annotated[tuple[OperationBody, ...], msgspec.Meta(min_length=1)] = msgspec.field(name="Operations")
    schemas: tuple[str, ...] | None = None


class Meta(Wire, frozen=True):
    """Metadata of a resource."""

    resource_type: str
    location: str
    created: datetime | UnsetType = UNSET
    last_modified: datetime | UnsetType = UNSET
    version: str | UnsetType = UNSET


class ScimName(Wire, frozen=True):
    """The known parts of a person's name."""

    formatted: str | UnsetType = UNSET
    given_name: str | UnsetType = UNSET
    family_name: str | UnsetType = UNSET


class ScimEmail(Wire, frozen=True):
    """One email address in a response."""

    value: str
    primary: bool | UnsetType = UNSET
    type: str | UnsetType = UNSET


class ScimUser(Wire, frozen=True):
    """A user of the provider. This server assigns `id`, which never changes."""

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
    """One member of a group in a response. `value` is the id of a user."""

    value: str
    ref: str = msgspec.field(name="$ref")
    display: str
    type: str


class ScimGroup(Wire, frozen=True):
    """A group of the provider. It is a role of the project."""

    schemas: tuple[str, ...]
    id: str
    meta: Meta | UnsetType = UNSET
    display_name: str | UnsetType = UNSET
    external_id: str | UnsetType = UNSET
    members: tuple[ScimMember, ...] | UnsetType = UNSET


class ListOf(Wire, frozen=True):
    """One page of a list. `start_index` is the number of its first resource, from 1. Subclasses define `resources`."""

    schemas: tuple[str, ...]
    total_results: int
    start_index: int
    items_per_page: int


class ScimUserList(ListOf, frozen=True):
    """One page of the users that match a filter."""

    resources: tuple[ScimUser, ...] = msgspec.field(name="Resources")


class ScimGroupList(ListOf, frozen=True):
    """One page of the groups that match a filter."""

    resources: tuple[ScimGroup, ...] = msgspec.field(name="Resources")


def listed(
    kind: Callable[..., Listed], resources: Sequence[Wire], *, total: int | None = None, start: int = 1
) -> Listed:
    """Return one page of a list of type `kind`.

    `total` is the number of resources on all pages; by default, those of this page. `start` is the number of the first
    one, from 1.
    """
    return kind(
        schemas=(LIST,),
        total_results=len(resources) if total is None else total,
        start_index=start,
        items_per_page=len(resources),
        resources=tuple(resources),
    )


class ErrorBody(Wire, frozen=True):
    """Body of an error response. `status` is the HTTP status as text."""

    schemas: tuple[str, ...]
    status: str
    detail: str
    scim_type: str | UnsetType = UNSET


StructT = TypeVar("StructT", bound=Struct)

_ALWAYS = frozenset({"schemas", "id"})


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected attributes of a response.

    `only` and `except_attributes` contain attributes (`members`) and sub-attributes (`members.value`), in lower case.
    If `only` is empty, all attributes but those in `except_attributes` are selected. `above_only` and `above_but`
    contain the attributes of the sub-attributes in each. They are computed once, because a request may have many
    names and resources.
    """

    only: frozenset[str]
    except_attributes: frozenset[str]
    above_only: frozenset[str]
    above_but: frozenset[str]

    @classmethod
    def of(cls, only: Iterable[str], except_attributes: Iterable[str]) -> Selection:
        """Create a selection from names as clients send them: in any letter case, with or without the URN of the core
        schema.
        """
        some, others = (frozenset(bare(each).lower() for each in names) for names in (only, except_attributes))
        return cls(some, others, _above(some), _above(others))

    def takes(self, name: str) -> bool:
        """Return True if the attribute or sub-attribute is selected, or contains a selected sub-attribute."""
        name = name.lower()
        if name in self.except_attributes:
            return False
        return not self.only or name in self.above_only or not self.only.isdisjoint((name, name.partition(".")[0]))

    def narrowed(self, resource: StructT) -> StructT:
        """Return the resource reduced to its selected attributes. `schemas` and `id` are always included."""
        return self._narrowed(resource, "") if self.only or self.except_attributes else resource

    def _narrowed(self, value: StructT, above: str) -> StructT:
        changed: dict[str, Any] = {}
        for field in fields(value):
            name, inner = above + field.encode_name.lower(), getattr(value, field.name)
            if name in _ALWAYS or inner is UNSET:
                continue
            if not self.takes(name):
                changed[field.name] = UNSET
            elif name in self.above_only or name in self.above_but:
                if isinstance(inner, Struct):
                    changed[field.name] = self._narrowed(inner, f"{name}.")
                elif isinstance(inner, tuple):
                    changed[field.name] = tuple(self._narrowed(each, f"{name}.") for each in inner)
        return replace(value, **changed) if changed else value


def _above(names: frozenset[str]) -> frozenset[str]:
    return frozenset(each.partition(".")[0] for each in names if "." in each)
