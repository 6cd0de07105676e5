# SPDX-License-Identifier: Apache-2.0
"""Which user ids can be held by a relationship tuple. Others are refused where they come in, never after a change."""

from __future__ import annotations

from urllib.parse import quote

from gateway.iceberg.errors import CatalogError

#: OpenFGA's limit of 512 bytes for `user:<percent-encoded id>`.
MAX_ENCODED_BYTES = 507


class UserIdTooLong(CatalogError, code=400, type="UserIdTooLongError"):
    """The user id has more bytes, percent-encoded, than a relationship can hold."""


def fits_a_tuple(user_id: str) -> bool:
    """Whether a tuple can hold this user id."""
    try:
        return len(quote(user_id, safe="")) <= MAX_ENCODED_BYTES
    except UnicodeEncodeError:
        return False


def require_fitting(user_id: str) -> str:
    """Return the id. Raises UserIdTooLong: a grant that cannot be delivered must not be recorded."""
    if not fits_a_tuple(user_id):
        raise UserIdTooLong(f"A user id may have {MAX_ENCODED_BYTES} bytes when percent-encoded.")
    return user_id
