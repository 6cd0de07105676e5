# SPDX-License-Identifier: Apache-2.0
"""Operations on the definitions of tags in a project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.change_event import ChangeEvent, EventDeclaration
from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.refs import TagRef
from gateway.access.relations import Can
from gateway.access.request import InBody, InPath, OfRequest, PageSize, PageToken, Query
from gateway.protocol.tags import CreateTagRequest, UpdateTagRequest


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
    """Mixin of operations on one tag that demand one relation on it."""

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
