# SPDX-License-Identifier: Apache-2.0
"""Declare the object type data policy: its references, rows and refusals.

A data policy is a row filter or a mask for the tables to which it is bound.
"""

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
class DataPolicyRef(IdRef):
    """A data policy by its id."""

    type: ClassVar[ObjectType] = ObjectType.DATA_POLICY
    in_path: ClassVar[tuple[str, ...]] = ("policy_id",)
    policy_id: UUID


class ResolvedDataPolicy(ResolvedInProject, frozen=True, kw_only=True):
    """The row of a data policy, without its definition."""

    type: ClassVar[ObjectType] = ObjectType.DATA_POLICY


class DataPolicyNotFound(CatalogError, code=404):
    """The data policy does not exist, or the caller may not see it."""


class DataPolicyActionForbidden(ForbiddenException):
    """The caller may see a data policy, and may not take this action on it."""


CARD = Card(
    type=ObjectType.DATA_POLICY,
    row=ResolvedDataPolicy,
    refs=(DataPolicyRef,),
    parents=(ObjectType.PROJECT,),
    edge="project",
    not_found=DataPolicyNotFound,
    forbidden=DataPolicyActionForbidden,
    grantors="the owner of the data policy or a security administrator of the project",
    visible_by=Can.READ,
    privileges=(Privilege.OWNERSHIP, Privilege.SUBJECT, Privilege.EXEMPT),
    policy_operations={
        Can.BE_SUBJECT: "load_table",
        Can.READ_AFFECTED: "list_data_policy_affected",
        Can.RELEASE: "release_data_policy_column",
        Can.SKIP_POLICY: "load_table",
    },
    own=True,
)
