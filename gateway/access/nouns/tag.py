# SPDX-License-Identifier: Apache-2.0
"""Declare the object type tag: its references, rows and refusals.

A tag can be attached to objects and columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from gateway.access.nouns.card import Card, ResolvedInProject
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import IdRef, ObjectType, Ref, Requested
from gateway.access.nouns.relations import Can
from gateway.iceberg.errors import CatalogError, ForbiddenException
from gateway.iceberg.identifiers import fold


@dataclass(frozen=True, slots=True)
class TagRef(IdRef):
    """The definition of a tag by its id."""

    type: ClassVar[ObjectType] = ObjectType.TAG
    in_path: ClassVar[tuple[str, ...]] = ("tag_id",)
    tag_id: UUID


@dataclass(frozen=True, slots=True)
class TagNameRef(Ref):
    """The definition of a tag by its name, in the project of a warehouse."""

    type: ClassVar[ObjectType] = ObjectType.TAG
    in_path: ClassVar[tuple[str, ...]] = ("warehouse_id", "tag_name")
    warehouse_id: UUID
    name: str

    def requested(self) -> Requested:
        return Requested(self.name, warehouse_id=str(self.warehouse_id))

    def lookup(self) -> dict[str, Any]:
        return {"warehouse_id": self.warehouse_id, "name_key": fold(self.name)}


class ResolvedTag(ResolvedInProject, frozen=True, kw_only=True):
    """The definition of a tag."""

    type: ClassVar[ObjectType] = ObjectType.TAG


class TagNotFound(CatalogError, code=404):
    """The tag does not exist, or the caller may not see it."""


class TagActionForbidden(ForbiddenException):
    """The caller may see a tag, and may not take this action on it."""


CARD = Card(
    type=ObjectType.TAG,
    row=ResolvedTag,
    refs=(TagRef, TagNameRef),
    parents=(ObjectType.PROJECT,),
    edge="project",
    not_found=TagNotFound,
    forbidden=TagActionForbidden,
    grantors="the owner of the tag or a security administrator of the project",
    visible_by=Can.READ,
    privileges=(Privilege.OWNERSHIP, Privilege.APPLY, Privilege.REMOVE, Privilege.REQUESTER),
    policy_operations={
        Can.APPLY: "attach_table_tag",
        Can.READ_ATTACHMENTS: "list_tag_attachments",
        Can.REMOVE: "detach_table_tag",
    },
    body_name="tag-definition",
)
