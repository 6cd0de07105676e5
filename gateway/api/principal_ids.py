# SPDX-License-Identifier: Apache-2.0
"""Ids of principals in paths. They may contain slashes (`oidc~spiffe://cluster/job`) and backslashes (`oidc~D\\ann`).

The client encodes them as `%2F` and `%5C`. The router splits the decoded path, and names have neither. So each slash of
such an id is U+001F, and each backslash U+001E, until the reference is read. No id contains these characters: subjects
and role sources have no control characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.iceberg.errors import BadRequestException

_STAND_INS: Final = {"/": "\x1f", "\\": "\x1e"}
_PROTECTED: Final = str.maketrans(_STAND_INS)
_RESTORED: Final = str.maketrans({stand_in: character for character, stand_in in _STAND_INS.items()})
_USER: Final = ("", "management", "v1", "user")
_ROLE: Final = ("", "management", "v1", "role")
#: Segments before the member in `/management/v1/role/{role_id}/members/{member_type}/{member_id}`.
_BEFORE_MEMBER: Final = 7


def is_principal_next(before: Sequence[str]) -> bool:
    """Return True if the next segment of a path is the id of a principal. `before` are the decoded segments before it.

    It is the user of `/management/v1/user/{user_id}/…`, or the member of a role.
    """
    if tuple(before) == _USER:
        return True
    return len(before) == _BEFORE_MEMBER and tuple(before[:4]) == _ROLE and before[5] == "members"


def protect_slashes(id: str) -> str:
    """Return the decoded id of a principal as one segment for the router. Raises 400 for U+001E and U+001F in it."""
    if any(stand_in in id for stand_in in _STAND_INS.values()):
        raise BadRequestException("The id of a principal in the path must not contain control characters.")
    return id.translate(_PROTECTED)


def principal_in_path(segment: str) -> str:
    """Return the id of a principal from its path parameter, the inverse of `protect_slashes`."""
    return segment.translate(_RESTORED)
