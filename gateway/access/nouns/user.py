# SPDX-License-Identifier: Apache-2.0
"""Users: people and services that an identity provider knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from gateway.access.nouns.card import Card, Resolved
from gateway.access.nouns.refs import IdRef, ObjectType
from gateway.iceberg.errors import CatalogError, ForbiddenException


@dataclass(frozen=True, slots=True)
class UserRef(IdRef):
    """A user by its id `<idp>~<subject>`."""

    type: ClassVar[ObjectType] = ObjectType.USER
    in_path: ClassVar[tuple[str, ...]] = ("user_id",)
    user_id: str


class ResolvedUser(Resolved, frozen=True, kw_only=True):
    """A user row."""

    type: ClassVar[ObjectType] = ObjectType.USER
    id: str
    name: str
    email: str | None
    user_type: str
    created_at: datetime
    updated_at: datetime | None
    last_updated_with: str

    @property
    def in_project(self) -> str | None:
        return None


class UserNotFound(CatalogError, code=404):
    """The user does not exist, or the caller may not see it."""


class UserActionForbidden(ForbiddenException):
    """The caller may see a user, and may not take this action on it."""


CARD = Card(
    type=ObjectType.USER,
    row=ResolvedUser,
    refs=(UserRef,),
    not_found=UserNotFound,
    forbidden=UserActionForbidden,
    grantors="an administrator of the server",
)
