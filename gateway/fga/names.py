# SPDX-License-Identifier: Apache-2.0
"""Convert ids to the names in OpenFGA's tuples and back. Pure. No other module converts ids.

In a tuple `:` ends the type, `#` starts a relation, `*` alone is the wildcard, and white space is not allowed. The
subject of a token may contain all of these. So the UTF-8 bytes of a user id are percent-encoded, except for unreserved
characters (RFC 3986 section 2.3). Different users then have different names. Ids that the gateway generates need no
encoding and are only validated.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes
from uuid import UUID

from gateway.iceberg.errors import CatalogError

#: Limits of OpenFGA's API, in bytes.
MAX_SUBJECT_BYTES = 512
MAX_OBJECT_BYTES = 256

_PLAIN_ID = re.compile(r"[A-Za-z0-9._~-]+", re.ASCII)
_USER = "user:"


class InvalidPrincipalId(CatalogError, code=400):
    """A user or object id that cannot be part of a tuple."""


def user_object(user_id: str) -> str:
    """Return `user:` and the percent-encoded `user_id` (`<idp>~<subject>`), at most 512 bytes. Inverse: `user_id_of`.

    Raises InvalidPrincipalId if the id is blank, contains a lone surrogate or is too long when encoded.
    """
    if not user_id.strip():
        raise InvalidPrincipalId("A user id must not be blank.")
    try:
        encoded = quote(user_id, safe="")
    except UnicodeEncodeError:
        raise InvalidPrincipalId("A user id must be valid Unicode text; this one contains a lone surrogate.") from None
    if len(_USER) + len(encoded) > MAX_SUBJECT_BYTES:
        raise InvalidPrincipalId(
            f"A user id must have at most {MAX_SUBJECT_BYTES - len(_USER)} bytes when percent-encoded; this one has "
            f"{len(encoded)}."
        )
    return _USER + encoded


def user_id_of(subject: str) -> str:
    """Return the user id of `subject`. Inverse of `user_object`.

    Raises ValueError for a text that `user_object` never returns: another type, a wildcard, or another encoding of the
    id, which would be a second name for one user.
    """
    encoded = subject.removeprefix(_USER)
    try:
        user_id = unquote_to_bytes(encoded).decode("utf-8")
        canonical = user_object(user_id)
    except (UnicodeDecodeError, InvalidPrincipalId):
        canonical = ""
    if canonical != subject:
        raise ValueError(f"not a user as the gateway writes it: {subject!r}")
    return user_id


def role_members(role_id: UUID | str) -> str:
    """Return `role:<uuid>#assignee`, which denotes all members of the role.

    Raises InvalidPrincipalId if the id is not a UUID.
    """
    return f"role:{_uuid(role_id)}#assignee"


def member_of(role_id: UUID | str) -> str:
    """Return the name of a placeholder member of the role, for checks of an assumed role (`gateway.fga.relationships`).

    `user_object` encodes `=`, so no real user has this name. Raises InvalidPrincipalId if the id is not a UUID.
    """
    return f"{_USER}role={_uuid(role_id)}"


def object_of(type_name: str, object_id: UUID | str) -> str:
    """Return `<type>:<id>` for an id that the gateway generated.

    Raises InvalidPrincipalId if the id contains a reserved character, or if the result exceeds 256 bytes.
    """
    text = str(object_id)
    if _PLAIN_ID.fullmatch(text) is None:
        raise InvalidPrincipalId(
            f"The id of a {type_name} must consist of letters, digits and . _ ~ - only, not {text!r}."
        )
    name = f"{type_name}:{text}"
    if len(name) > MAX_OBJECT_BYTES:
        raise InvalidPrincipalId(
            f"The id of a {type_name} must be at most {MAX_OBJECT_BYTES - len(type_name) - 1} bytes."
        )
    return name


def _uuid(role_id: UUID | str) -> str:
    """Return a UUID in canonical form: lower case with hyphens. Raises InvalidPrincipalId for other texts."""
    try:
        return str(role_id if isinstance(role_id, UUID) else UUID(role_id))
    except ValueError:
        raise InvalidPrincipalId(f"The id of a role must be a UUID, not {role_id!r}.") from None
