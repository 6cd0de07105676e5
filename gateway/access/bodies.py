# SPDX-License-Identifier: Apache-2.0
"""Common types of the bodies of the management API: names, ids and the base classes.

The base class of a body determines whether members that it does not declare are ignored or refused (docs/protocol.md,
"Members and values of later versions"). `tests/access/test_unknown_inputs.py` compares each body with the operations
that read it.
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


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A request body, or a part of one. Unknown members are ignored, so clients of newer versions work."""


class StrictRequest(Request, frozen=True, forbid_unknown_fields=True):
    """A body, or a part of one, that rejects unknown members, because it gives, limits or selects something.

    Such bodies are about rights, policies, trust, retention and filters. The unknown member may be a limit, such as a
    mistyped expiry, or a filter. Without it, the request would give or affect more than the client means.
    """


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A response body."""
