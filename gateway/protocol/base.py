# SPDX-License-Identifier: Apache-2.0
"""Common types of the management API's bodies: names, ids and the two base classes.

Request bodies with unknown fields are rejected, so a mistyped option is an error.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+(?![\s\S])$")]

#: Without slashes, because clients name a warehouse as `project/warehouse`.
WarehouseName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"^[^/\x00-\x1f\x7f]+(?![\s\S])$")]

ProjectId = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_-]+(?![\s\S])$")]

UserId = Annotated[
    str, msgspec.Meta(min_length=3, max_length=255, pattern=r"^[a-z0-9-]+~[^\x00-\x1f\x7f]{1,127}(?![\s\S])$")
]

UserType = Literal["human", "application"]

ManagedBy = Literal["self-managed", "instance-admin"]

FormatVersions = Annotated[tuple[Literal[1, 2, 3], ...], msgspec.Meta(min_length=1)]


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """A request body."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A response body."""
