# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for mapping tables."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Name, ProjectId, StrictRequest, UserId
from gateway.protocol.roles import Description

Value = Annotated[str, msgspec.Meta(min_length=1, max_length=1024, pattern=r"^[^\x00]*(?![\s\S])$")]


class CreateMappingTableRequest(StrictRequest, frozen=True):
    """Request of `POST /mapping-table`."""

    name: Name
    description: Description | None = None
    project_id: ProjectId | None = None


class MappingTableAnswer(Answer, frozen=True, omit_defaults=True):
    """A mapping table: values of users and roles, for row filters."""

    id: UUID
    project_id: str
    name: str
    created_at: datetime
    description: str | None = None


class MappingTableList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /mapping-table`."""

    mapping_tables: list[MappingTableAnswer]
    next_page_token: str | None = None


class MappedPrincipal(StrictRequest, frozen=True, omit_defaults=True):
    """A user or a role. Exactly one of the two is set."""

    user: UserId | None = None
    role: UUID | None = None

    def __post_init__(self) -> None:
        if (self.user is None) == (self.role is None):
            raise ValueError("a principal needs either `user` or `role`")

    @property
    def type(self) -> str:
        """The type of the principal, `user` or `role`."""
        return "role" if self.user is None else "user"

    @property
    def id(self) -> str:
        """The id of the user or role."""
        return str(self.role) if self.user is None else self.user


class MappingEntry(StrictRequest, frozen=True):
    """The values of one principal."""

    principal: MappedPrincipal
    values: Annotated[tuple[Value, ...], msgspec.Meta(min_length=1, max_length=1_000)]


class ChangeEntriesRequest(StrictRequest, frozen=True):
    """Request of `POST /mapping-table/{id}/entries`. `set` replaces all values of a principal."""

    set: Annotated[tuple[MappingEntry, ...], msgspec.Meta(max_length=1_000)] = ()
    remove: Annotated[tuple[MappedPrincipal, ...], msgspec.Meta(max_length=1_000)] = ()


class MappingEntryList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /mapping-table/{id}/entries`."""

    entries: list[MappingEntry]
    next_page_token: str | None = None
