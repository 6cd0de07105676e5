# SPDX-License-Identifier: Apache-2.0
"""Pages of the members of a role, and of the roles that a principal is a member of."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from uuid import UUID

import msgspec

from gateway.access.bodies import UserId
from gateway.access.operations.roles import DescribedMember, NamedRole, NamedRoleList, RoleMemberList
from gateway.access.tuples import PrincipalType
from gateway.db.engine.database import Connection
from gateway.db.principals import roles, users
from gateway.db.principals.roles import MemberRow, RoleRow
from gateway.db.principals.users import UserRow
from gateway.features.paging import Page, place_of
from gateway.iceberg.errors import BadRequestException


async def members_page(
    connection: Connection, rows: Sequence[MemberRow], page: Page[tuple[str, str]], project_id: str
) -> RoleMemberList:
    """Return the page of members. `rows` are at most `page.limit` rows.

    Members that are roles of other projects are listed without a name, because the caller may not be allowed to read
    them.
    """
    shown = page.rows(rows)
    ids = {kind: [row.principal_id for row in shown if row.principal_type == kind] for kind in PrincipalType}
    known_users = {row.id: row for row in await users.named(connection, ids[PrincipalType.USER])}
    known_roles = {
        str(row.id): row for row in await roles.named(connection, ids[PrincipalType.ROLE], project_id=project_id)
    }
    return RoleMemberList(
        members=[
            _described_role(row.principal_id, known_roles.get(row.principal_id))
            if row.principal_type == PrincipalType.ROLE
            else _described_user(row.principal_id, known_users.get(row.principal_id))
            for row in shown
        ],
        next_page_token=page.next_token(rows, lambda row: f"{row.principal_type}:{row.principal_id}"),
    )


def _described_role(id: str, row: RoleRow | None) -> DescribedMember:
    if row is None:
        return DescribedMember(type="role", id=id)
    return DescribedMember(type="role", id=id, name=row.name, ident=ident_of(row))


def _described_user(id: str, row: UserRow | None) -> DescribedMember:
    if row is None:
        return DescribedMember(type="user", id=id)
    return DescribedMember(type="user", id=id, name=row.name, email=row.verified_email, user_type=row.user_type)


def roles_page(rows: Sequence[RoleRow], token: str | None, size: int) -> NamedRoleList:
    """Return a page of roles in the order of (name, id), starting after the place in the token.

    Names are compared by code points, whatever the collation of the database is. Raises InvalidPaginationToken.
    """
    place = place_of(token, _read_place)
    left = sorted((row for row in rows if place is None or _place(row) > place), key=_place)
    page = [NamedRole(id=row.id, ident=ident_of(row), name=row.name) for row in left[:size]]
    if len(left) <= size:
        return NamedRoleList(roles=page)
    next_token = base64.urlsafe_b64encode(msgspec.json.encode(_place(left[size - 1]))).decode()
    return NamedRoleList(roles=page, next_page_token=next_token)


def _place(row: RoleRow) -> tuple[str, str]:
    return row.name_key, str(row.id)


def _read_place(token: str) -> tuple[str, str]:
    return msgspec.json.decode(base64.b64decode(token, altchars=b"-_", validate=True), type=tuple[str, str])


def parse_member(type: str, id: str) -> tuple[PrincipalType, str]:
    """Return (type, id) of a member in the form of relationship tuples. Raise 400 for an invalid id."""
    try:
        kind = PrincipalType(type)
        return kind, str(UUID(id)) if kind is PrincipalType.ROLE else msgspec.convert(id, UserId)
    except (ValueError, msgspec.ValidationError):
        raise BadRequestException(
            "A member must be a user in the form `<provider>~<subject>`, or the UUID of a role."
        ) from None


def ident_of(row: RoleRow) -> str:
    """Return the identifier of a role: its provider and its id there."""
    return f"{row.provider_id}~{row.source_id}"
