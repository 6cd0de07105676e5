# SPDX-License-Identifier: Apache-2.0
"""Bases of the rows behind references. Each object type has its row beside its card."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

import msgspec

from gateway.access.nouns.refs import ObjectKey, ObjectType


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The row of an object. `type` is its object type."""

    type: ClassVar[ObjectType]
    id: Any

    @property
    def key(self) -> ObjectKey:
        """The key of the object in the relationship model."""
        return ObjectKey(self.type, str(self.id))

    @property
    def in_project(self) -> str | None:
        """The id of the project that the object is or is in; None for users and the server."""
        # Without a project, a new type would be visible to tokens of every project.
        raise NotImplementedError


class ResolvedInProject(Resolved, frozen=True, kw_only=True):
    """The row of an object that is in a project directly, and in no warehouse."""

    id: UUID
    project_id: str
    name: str

    @property
    def in_project(self) -> str | None:
        return self.project_id
