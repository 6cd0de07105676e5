# SPDX-License-Identifier: Apache-2.0
"""Base class of resolved rows, and the card, which declares an object type: references, rows, relations and privileges.

`cards.py` has the cards of all types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias
from uuid import UUID

import msgspec

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType, Ref
from gateway.access.nouns.relations import Can
from gateway.iceberg.errors import CatalogError, ForbiddenException


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The row of an object. `type` is the object's type."""

    type: ClassVar[ObjectType]
    id: Any

    @property
    def key(self) -> ObjectKey:
        """The key of the object in the relationship model."""
        return ObjectKey(self.type, str(self.id))

    @property
    def in_project(self) -> str | None:
        """The id of the project that contains the object, or that the object is; None for users and the server."""
        # Without a project, a new type would be visible to tokens of every project.
        raise TypeError(f"{type(self).__name__} must state in which project its objects are, or that they are in none")


class ResolvedInProject(Resolved, frozen=True, kw_only=True):
    """The row of an object that is directly in a project, and not in a warehouse."""

    id: UUID
    project_id: str
    name: str

    @property
    def in_project(self) -> str | None:
        return self.project_id


# Aliases, because `type` is a field inside of the class.
_Row: TypeAlias = type[Resolved]
_Reference: TypeAlias = type[Ref]
_Error: TypeAlias = type[CatalogError]
_Forbidden: TypeAlias = type[ForbiddenException]


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One object type.

    - `row` and `refs`: the type of its rows, and the types of references to it.
    - `parents`: the types of objects that contain it. `edge` is the relation to them in the relationship model.
    - `not_found`: the error for absent objects and for those that the caller may not see.
      `absent_text` is its message, if it is not that the object does not exist.
    - `forbidden`: the error for an action that the caller may not take on a visible object.
    - `grantors`: the principals that can grant privileges on it, if they are not its owner and grant managers.
    - `visible_by`: the relation that makes an object visible. The existence of a server or user is not a secret.
    - `queried_by`: the relation that callers need to query their own actions, if it is not `visible_by`.
    - `privileges`: those that can be granted.
    - `policy_operations`: names of operations for policies that do not follow from the action and the type.
    - `body_name`: the type in request and response bodies, if it is not the type with hyphens.
    - `own`: True for a type that the reference system does not have. Its clients do not know the actions that are
      named after the type, such as its creation, so lists of catalog actions omit these.
    """

    type: ObjectType
    row: _Row
    refs: tuple[_Reference, ...]
    parents: tuple[ObjectType, ...] = ()
    edge: str = "parent"
    not_found: _Error
    absent_text: str = ""
    forbidden: _Forbidden
    grantors: str = ""
    visible_by: Can | None = None
    queried_by: Can | None = None
    privileges: tuple[Privilege, ...] = ()
    policy_operations: Mapping[Can, str] = {}
    body_name: str = ""
    own: bool = False

    @property
    def words(self) -> str:
        """The name of the type in messages, such as `data policy`."""
        return self.type.value.replace("_", " ")

    @property
    def granted_by(self) -> str:
        """The principals that can grant privileges on an object, as text for a message."""
        return (
            self.grantors
            or f"a principal with `manage_grants` on the {self.words}, or (without managed access) its owner,"
        )

    @property
    def in_bodies(self) -> str:
        """The name of the type in paths and in bodies, such as `data-policy` and `tag-definition`."""
        return self.body_name or self.type.value.replace("_", "-")

    @property
    def id_members(self) -> tuple[str, ...]:
        """The members with the object's id in the `resource` of a grant.

        There are two if the type has another name in bodies.
        """
        return tuple(dict.fromkeys(f"{name.replace('-', '_')}_id" for name in (self.type.value, self.in_bodies)))

    def absent(self, name: str) -> CatalogError:
        """Return the common response for an absent object and for one that the caller may not see.

        `name` is the object's name as in the request.
        """
        return self.not_found(self.absent_text or f"{self.words.capitalize()} does not exist: {name}")
