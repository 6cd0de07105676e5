# SPDX-License-Identifier: Apache-2.0
"""Operations on the tags of objects: attach and detach tags, list them, and list the objects with a tag.

Attaching needs `manage_tags` on the object and `apply` on the tag. So an administrator can let principals classify an
object that they may not change, and the owner of a tag chooses who may use it. Detaching needs `remove` on the tag
instead of `apply`, and so does changing the value of an attached tag (`gateway.features.tags.tag_attachments`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, ClassVar, get_args
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.families import (
    GENERIC_TABLE,
    NAMESPACE_IN_WAREHOUSE,
    TABLE,
    VIEW,
    WAREHOUSE,
    Target,
    declare_for_each,
)
from gateway.access.nouns.refs import Ref, TableRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.tag import TagNameRef, TagRef
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.operations.tags import SetTagRequest, TagTarget
from gateway.access.request import Body, InPath, PageSize, PageToken, Query
from gateway.iceberg.errors import BadRequestException


@dataclass(frozen=True)
class _OnObject:
    """Mixin of operations that change the tags of an object."""

    tag_needs: ClassVar[Can]
    on: Ref
    tag: InPath[TagNameRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.MANAGE_TAGS, self.on), Demand(self.tag_needs, self.tag))

    def facts(self) -> Facts:
        return {"tag_name": self.tag.name}


@dataclass(frozen=True)
class AttachTag(_OnObject, ChangeOperation, abstract=True):
    """Attach a tag to an object, or change its value there."""

    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="attachTag")
    tag_needs: ClassVar[Can] = Can.APPLY
    value: Annotated[str | None, Body(SetTagRequest, "value")]

    def demands(self) -> tuple[Demand, ...]:
        return (*super().demands(), Demand(Can.REMOVE, self.tag, required=False))

    def facts(self) -> Facts:
        return {"tag_name": self.tag.name, "value": self.value}


@dataclass(frozen=True)
class DetachTag(_OnObject, ChangeOperation, abstract=True):
    """Detach a tag from an object. Nothing changes if the object does not carry the tag."""

    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="detachTag")
    tag_needs: ClassVar[Can] = Can.REMOVE
    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class ListObjectTags(ReadOperation, abstract=True):
    """List the tags of an object. With `effective`, inherited tags are included."""

    on: Ref
    effective: Annotated[bool, Query("effective")] = False

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.on),)


_ALL: tuple[Target, ...] = (WAREHOUSE, NAMESPACE_IN_WAREHOUSE, TABLE, VIEW, GENERIC_TABLE)
ATTACH_TAG: tuple[type[AttachTag], ...] = declare_for_each(
    AttachTag,
    _ALL,
    name="Attach{noun}Tag",
    endpoint="PUT /management/v1/{path}/tags/{{tag_name}}",
    doc="Attach a tag to {words}, or change its value there.",
)
DETACH_TAG: tuple[type[DetachTag], ...] = declare_for_each(
    DetachTag,
    _ALL,
    name="Detach{noun}Tag",
    endpoint="DELETE /management/v1/{path}/tags/{{tag_name}}",
    doc="Detach a tag from {words}. Nothing changes if it does not carry the tag.",
)
LIST_OBJECT_TAGS: tuple[type[ListObjectTags], ...] = declare_for_each(
    ListObjectTags,
    _ALL,
    name="List{noun}Tags",
    endpoint="GET /management/v1/{path}/tags",
    doc="List the tags of {words}. With `effective`, inherited tags are included.",
)

_COLUMN = f"{TABLE.path}/column/{{column}}"


@dataclass(frozen=True)
class _OnColumn:
    """Mixin of operations that change the tags of a column. Policies also receive the column's name."""

    tag_needs: ClassVar[Can]
    on: InPath[TableRef]
    column: InPath[str]
    tag: InPath[TagNameRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.MANAGE_TAGS, self.on), Demand(self.tag_needs, self.tag))

    def facts(self) -> Facts:
        return {"tag_name": self.tag.name, "column": self.column}

    def audit_details(self) -> Mapping[str, str]:
        return {"column": self.column}


@dataclass(frozen=True)
class AttachColumnTag(_OnColumn, ChangeOperation):
    """Attach a tag to a column, or change its value there. The tag stays when the column is renamed."""

    endpoint: ClassVar[str] = f"PUT /management/v1/{_COLUMN}/tags/{{tag_name}}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="attachColumnTag")
    tag_needs: ClassVar[Can] = Can.APPLY
    value: Annotated[str | None, Body(SetTagRequest, "value")]

    def demands(self) -> tuple[Demand, ...]:
        return (*super().demands(), Demand(Can.REMOVE, self.tag, required=False))

    def facts(self) -> Facts:
        return {**super().facts(), "value": self.value}


@dataclass(frozen=True)
class DetachColumnTag(_OnColumn, ChangeOperation):
    """Detach a tag from a column. `field-id:<id>` names a column that was dropped."""

    endpoint: ClassVar[str] = f"DELETE /management/v1/{_COLUMN}/tags/{{tag_name}}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="detachColumnTag")
    tag_needs: ClassVar[Can] = Can.REMOVE
    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class ListTagsOfColumn(ReadOperation):
    """List the tags of a column. A column inherits no tags, so `effective` has no effect."""

    endpoint: ClassVar[str] = f"GET /management/v1/{_COLUMN}/tags"
    on: InPath[TableRef]
    column: InPath[str]
    effective: Annotated[bool, Query("effective")] = False

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.on),)

    def audit_details(self) -> Mapping[str, str]:
        return {"column": self.column}


@dataclass(frozen=True)
class ListColumnTags(ReadOperation):
    """List every column of a table that carries tags, with its tags."""

    endpoint: ClassVar[str] = f"GET /management/v1/{TABLE.path}/column-tags"
    on: InPath[TableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.on),)


@dataclass(frozen=True)
class ListTagSuggestions(ReadOperation):
    """Suggest tags for the columns of a table, by their names and types. Nothing is attached."""

    endpoint: ClassVar[str] = f"GET /management/v1/{TABLE.path}/tag-suggestions"
    on: InPath[TableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.on),)


def _target(given: Sequence[str]) -> str | None:
    """Return the object type in a query parameter. Raises 400 if it is unknown."""
    if given and given[-1] not in get_args(TagTarget):
        raise BadRequestException(f"targetType must be one of {', '.join(get_args(TagTarget))}.")
    return given[-1] if given else None


def _time(name: str, given: Sequence[str]) -> datetime | None:
    """Return the time in a query parameter.

    Raises 400 unless it is RFC 3339 with a time zone, and for a year near the limits of the calendar: a conversion to
    another time zone would overflow there.
    """
    if not given:
        return None
    try:
        found = datetime.fromisoformat(given[-1])
    except ValueError:
        found = datetime.min
    if found.tzinfo is None or not 1970 <= found.year < 9000:
        raise BadRequestException(f"{name} must be a time with a time zone (RFC 3339), as 2026-01-31T12:00:00Z.")
    return found


_since, _until = partial(_time, "createdAfter"), partial(_time, "createdBefore")


@dataclass(frozen=True)
class ListTagAttachments(ReadOperation):
    """List the objects with a tag, also those that the caller cannot see otherwise. Inherited tags are left out."""

    endpoint: ClassVar[str] = "GET /management/v1/tag-definition/{tag_id}/attachments"
    tag: InPath[TagRef]
    value: Annotated[str | None, Query("value")] = None
    target: Annotated[str | None, Query("targetType", parse=_target)] = None
    within: Annotated[UUID | None, Query("warehouseId")] = None
    since: Annotated[datetime | None, Query("createdAfter", parse=_since)] = None
    until: Annotated[datetime | None, Query("createdBefore", parse=_until)] = None
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ATTACHMENTS, self.tag),)
