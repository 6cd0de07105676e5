# SPDX-License-Identifier: Apache-2.0
"""Operations on tag definitions in a project."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, Name, StrictRequest
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.relations import Can
from gateway.access.nouns.tag import TagRef
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.operations.roles import Description
from gateway.access.request import InBody, InPath, OfRequest, PageSize, PageToken, Query


@dataclass(frozen=True)
class CreateTag(ChangeOperation):
    """Define a tag in a project. The creator owns it."""

    endpoint: ClassVar[str] = "POST /management/v1/tag-definition"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project", new="tag_id", named="request.name")
    returns: ClassVar[int] = 201
    project: OfRequest
    request: InBody[CreateTagRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_TAG, self.project),)

    def facts(self) -> Facts:
        return {
            "tag_name": self.request.name,
            "value_kind": self.request.value_kind,
            "scope": tuple(self.request.scope),
        }


@dataclass(frozen=True)
class ListTags(ReadOperation):
    """List the tag definitions of a project. `name` selects one of them; letter case is ignored."""

    endpoint: ClassVar[str] = "GET /management/v1/tag-definition"
    project: OfRequest
    named: Annotated[str | None, Query("name")] = None
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_TAGS, self.project),)


@dataclass(frozen=True)
class _OfTag:
    """Mixin of operations on one tag that demand one relation to it."""

    needs: ClassVar[Can]
    tag: InPath[TagRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(self.needs, self.tag),)


@dataclass(frozen=True)
class GetTag(_OfTag, ReadOperation):
    """Return the definition of a tag."""

    endpoint: ClassVar[str] = "GET /management/v1/tag-definition/{tag_id}"
    needs: ClassVar[Can] = Can.READ


@dataclass(frozen=True)
class UpdateTag(_OfTag, ChangeOperation):
    """Change the name and description of a tag, widen its scope, or add allowed values."""

    endpoint: ClassVar[str] = "POST /management/v1/tag-definition/{tag_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="tag")
    needs: ClassVar[Can] = Can.UPDATE
    request: InBody[UpdateTagRequest]

    def facts(self) -> Facts:
        return {"tag_name": self.request.name, "scope": tuple(self.request.scope)}


@dataclass(frozen=True)
class DeleteTag(_OfTag, ChangeOperation):
    """Delete the definition of a tag that no object carries and no data policy uses."""

    endpoint: ClassVar[str] = "DELETE /management/v1/tag-definition/{tag_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="tag")
    needs: ClassVar[Can] = Can.DELETE
    returns: ClassVar[int] = 204


#: The types of objects that can carry tags.
TagTarget = Literal["warehouse", "namespace", "table", "view", "generic-table", "column"]

#: `marker` has no value, `free-text` any value, and `enumerated` one of the allowed values.
ValueKind = Literal["marker", "free-text", "enumerated"]

TagValue = Annotated[str, msgspec.Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]+(?![\s\S])$")]

Scope = Annotated[tuple[TagTarget, ...], msgspec.Meta(min_length=1, max_length=6)]

#: The values of one request. A definition has at most ten times as many (`MAX_ALLOWED_VALUES`).
TagValues = Annotated[tuple[TagValue, ...], msgspec.Meta(max_length=100)]


class CreateTagRequest(StrictRequest, frozen=True):
    """Request of `POST /tag-definition`. `allowed-values` is required for `enumerated`, and refused otherwise."""

    name: Name
    scope: Scope
    value_kind: ValueKind
    description: Description | None = None
    allowed_values: TagValues | None = None


class UpdateTagRequest(StrictRequest, frozen=True):
    """Request of `POST /tag-definition/{id}`. `scope` is the whole new scope, which contains the present one.

    Without a `description`, the existing description is removed.
    """

    name: Name
    scope: Scope
    description: Description | None = None
    add_allowed_values: TagValues | None = None


class TagDefinition(Answer, frozen=True, omit_defaults=True):
    """The definition of a tag. `allowed-values` is present for `enumerated`, except in lists."""

    id: UUID
    name: str
    scope: list[str]
    value_kind: str
    created_at: datetime
    description: str | None = None
    allowed_values: list[str] | None = None
    updated_at: datetime | None = None


class TagDefinitionList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /tag-definition`: the oldest first."""

    tag_definitions: list[TagDefinition]
    next_page_token: str | None = None


class SetTagRequest(StrictRequest, frozen=True):
    """Request of `PUT …/tags/{name}`. A marker has no value; all other tags need one."""

    value: TagValue | None = None


class AppliedTag(Answer, frozen=True, omit_defaults=True):
    """Response of `PUT …/tags/{name}`. `applied-at` is the time of the last change of this attachment."""

    tag_definition_id: UUID
    name: str
    applied_at: datetime
    value: str | None = None


class TagSource(Answer, frozen=True, omit_defaults=True):
    """The container from which an object inherits a tag: its warehouse, or a namespace above it."""

    type: str
    warehouse_id: UUID
    namespace_id: UUID | None = None


class TargetTag(Answer, frozen=True, omit_defaults=True):
    """A tag of an object. `inherited-from` is absent if the tag is attached to the object itself, `updated-at` if its
    value never changed.
    """

    tag_definition_id: UUID
    name: str
    created_at: datetime
    source: str = "manual"
    updated_at: datetime | None = None
    value: str | None = None
    inherited_from: TagSource | None = None


class TagList(Answer, frozen=True):
    """Response of `GET …/tags`, by name."""

    tags: list[TargetTag]


class TaggedColumn(Answer, frozen=True, omit_defaults=True):
    """A column with tags. `name` is the name in the current schema. A `dropped` column has its last known name."""

    field_id: int
    tags: list[TargetTag]
    name: str | None = None
    dropped: bool = False


class ColumnTagList(Answer, frozen=True):
    """Response of `GET …/table/{id}/column-tags`, by field id."""

    columns: list[TaggedColumn]


class AttachmentTarget(Answer, frozen=True, omit_defaults=True):
    """An object with a tag: its type, and its ids as used in paths. A column has the id of its table and a field id."""

    type: str
    warehouse_id: UUID
    namespace_id: UUID | None = None
    table_id: UUID | None = None
    view_id: UUID | None = None
    generic_table_id: UUID | None = None
    field_id: int | None = None


class TagAttachment(Answer, frozen=True, omit_defaults=True):
    """An attachment of a tag to an object. `updated-at` is absent if its value never changed."""

    target: AttachmentTarget
    created_at: datetime
    attached_by: str
    source: str = "manual"
    updated_at: datetime | None = None
    value: str | None = None


class TagAttachmentList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /tag-definition/{id}/attachments`: direct attachments only."""

    attachments: list[TagAttachment]
    next_page_token: str | None = None


class TagSuggestion(Answer, frozen=True, omit_defaults=True):
    """A tag that fits the name and the type of a column. `because` is the full name of the field that suggests it."""

    field_id: int
    column: str
    tag: str
    because: str
    whole_name: bool


class TagSuggestionList(Answer, frozen=True):
    """Response of `GET …/table/{id}/tag-suggestions`, in the order of the columns."""

    suggestions: list[TagSuggestion]
