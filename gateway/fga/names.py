# SPDX-License-Identifier: Apache-2.0
"""Ids as OpenFGA writes them. Pure, and the only place where an id becomes part of a tuple.

In a tuple `:` ends the type, `#` starts a relation, `*` alone is everybody, and white space is not allowed; the subject
of a token may hold all of these. So a user id is percent-encoded from its UTF-8 bytes, and all but unreserved
characters (RFC 3986 section 2.3) are encoded: what comes out can only name this one user. Ids made by the gateway are
plain and are checked instead.
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
    """A user or object id that no tuple can hold."""


def user_object(user_id: str) -> str:
    """`user:` and the percent-encoded `user_id` (`<idp>~<subject>`), at most 512 bytes; reversed by `user_id_of`.

    Raises InvalidPrincipalId when the id is blank, is no Unicode text (a lone surrogate) or is too long when encoded.
    """
    if not user_id.strip():
        raise InvalidPrincipalId("A user id must not be blank.")
    try:
        encoded = quote(user_id, safe="")
    except UnicodeEncodeError:
        raise InvalidPrincipalId("A user id must be Unicode text without lone surrogates.") from None
    if len(_USER) + len(encoded) > MAX_SUBJECT_BYTES:
        raise InvalidPrincipalId(
            f"A user id may have {MAX_SUBJECT_BYTES - len(_USER)} bytes percent-encoded; this one has {len(encoded)}."
        )
    return _USER + encoded


def user_id_of(subject: str) -> str:
    """The user id that `user_object` made `subject` of.

    Raises ValueError for anything `user_object` would not have made: another type, a wildcard, or the same id written
    in another way, which would be a second name for one user.
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
    """`role:<uuid>#assignee`: everybody in the role. Raises InvalidPrincipalId when the id is no UUID."""
    return f"role:{_uuid(role_id)}#assignee"


def member_of(role_id: UUID | str) -> str:
    """A nameless member of the role, for questions under an assumed role (`gateway.fga.relationships`).

    `=` never comes out of `user_object` unencoded, so no real user has this name.
    """
    return f"{_USER}role={_uuid(role_id)}"


def object_of(type_name: str, object_id: UUID | str) -> str:
    """`<type>:<id>` for an id made by the gateway: unreserved characters only, at most 256 bytes in all.

    Raises InvalidPrincipalId otherwise.
    """
    text = str(object_id)
    if _PLAIN_ID.fullmatch(text) is None:
        raise InvalidPrincipalId(f"The id of a {type_name} consists of letters, digits and . _ ~ - only, not {text!r}.")
    name = f"{type_name}:{text}"
    if len(name) > MAX_OBJECT_BYTES:
        raise InvalidPrincipalId(
            f"The id of a {type_name} must be at most {MAX_OBJECT_BYTES - len(type_name) - 1} bytes."
        )
    return name


def _uuid(role_id: UUID | str) -> str:
    """The one spelling of a UUID: lower case with hyphens."""
    try:
        return str(role_id if isinstance(role_id, UUID) else UUID(role_id))
    except ValueError:
        raise InvalidPrincipalId(f"The id of a role is a UUID, not {role_id!r}.") from None
