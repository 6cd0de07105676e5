# SPDX-License-Identifier: Apache-2.0
"""Relationship tuples of OpenFGA as values.

PostgreSQL has the rows that require the tuples, and OpenFGA evaluates them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote

from gateway.access.nouns.refs import ObjectKey
from gateway.iceberg.errors import CatalogError


class PrincipalType(StrEnum):
    """The types of principals that can hold grants."""

    USER = "user"
    ROLE = "role"


#: Principal id that represents all principals of a type; no user or role has it. Only flags have such a subject.
ALL_USERS = "*"

#: The relation of column grantees on their table. It is derived from live grants on columns, as `traverse` is from
#: grants on contents.
READ_COLUMNS = "read_columns"

#: The flag of managed access, a relation on warehouses and namespaces.
MANAGED_ACCESS = "managed_access"


@dataclass(frozen=True, slots=True, order=True)
class Principal:
    """A user by `<idp>~<subject>`, or a role by its id. EVERYBODY represents all users, and is used only in flags."""

    type: PrincipalType
    id: str


@dataclass(frozen=True, slots=True)
class TupleKey:
    """One relationship: `subject` has `relation` on `object`.

    The subject is a principal (grants, `traverse`) or another object (the edge from a child to its parent).
    """

    subject: Principal | ObjectKey
    relation: str
    object: ObjectKey


#: OpenFGA's limit of 512 bytes for `user:<percent-encoded id>`.
MAX_ENCODED_BYTES = 507


class UserIdTooLong(CatalogError, code=400, type="UserIdTooLongError"):
    """The percent-encoded user id has more bytes than a relationship tuple can contain."""


def is_valid_in_tuples(user_id: str) -> bool:
    """Return True if a relationship tuple can contain this user id.

    Other ids are rejected on input, before any change.
    """
    try:
        return len(quote(user_id, safe="")) <= MAX_ENCODED_BYTES
    except UnicodeEncodeError:
        return False


def require_valid_in_tuples(user_id: str) -> str:
    """Return the id. Raises UserIdTooLong, because a grant that cannot be delivered must not be recorded."""
    if not is_valid_in_tuples(user_id):
        raise UserIdTooLong(f"A user id must have at most {MAX_ENCODED_BYTES} bytes when percent-encoded.")
    return user_id
