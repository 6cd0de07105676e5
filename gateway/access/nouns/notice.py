# SPDX-License-Identifier: Apache-2.0
"""Notices: named texts of a project for all principals that see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from gateway.access.nouns.card import Card, ResolvedInProject
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import IdRef, ObjectType
from gateway.access.nouns.relations import Can
from gateway.iceberg.errors import CatalogError, ForbiddenException


@dataclass(frozen=True, slots=True)
class NoticeRef(IdRef):
    """A notice by its id."""

    type: ClassVar[ObjectType] = ObjectType.NOTICE
    in_path: ClassVar[tuple[str, ...]] = ("notice_id",)
    notice_id: UUID


class ResolvedNotice(ResolvedInProject, frozen=True, kw_only=True):
    """The row of a notice, without its text."""

    type: ClassVar[ObjectType] = ObjectType.NOTICE


class NoticeNotFound(CatalogError, code=404):
    """The notice does not exist, or the caller may not see it."""


class NoticeActionForbidden(ForbiddenException):
    """The caller may see a notice, and may not take this action on it."""


class NoticeNameAlreadyExists(CatalogError, code=409):
    """Another notice of the project has this name, irrespective of letter case."""


CARD = Card(
    type=ObjectType.NOTICE,
    row=ResolvedNotice,
    refs=(NoticeRef,),
    parents=(ObjectType.PROJECT,),
    edge="project",
    not_found=NoticeNotFound,
    forbidden=NoticeActionForbidden,
    grantors="the owner of the notice or a security administrator of the project",
    visible_by=Can.READ,
    privileges=(Privilege.OWNERSHIP,),
    own=True,
)
