# SPDX-License-Identifier: Apache-2.0
"""Parse requests that change grants into assignments. An invalid request raises an error with status 400. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from ipaddress import ip_network

from gateway.access.management_errors import InvalidGrantExpiry, InvalidGrantPrivilege, SelfAssignment, TooManyEntries
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType, Ref
from gateway.access.nouns.role import RoleRef
from gateway.access.operations.actions import Identity
from gateway.access.operations.grants import MAX_ENTRIES, Assignment, AssignmentEntry, GrantDelete, GrantWrite
from gateway.access.principals import principal_of
from gateway.access.tuples import PrincipalType
from gateway.iceberg.errors import BadRequestException

#: Grants must expire before this time. It is far in the future, and far from the limits of calendar arithmetic.
LAST_END = datetime(9000, 1, 1, tzinfo=UTC)


def parse_entries(entries: Iterable[AssignmentEntry]) -> tuple[Assignment, ...]:
    """Return the entries of a request as assignments.

    Raises InvalidGrantPrivilege, and 400 for an entry that does not name exactly one principal.
    """
    return tuple(
        Assignment(
            _known_privilege(entry.type),
            principal_of(Identity(user=entry.user, role=entry.role)),
            acts_for=entry.acts_for,
        )
        for entry in entries
    )


def parse_grants(entries: Iterable[GrantWrite | GrantDelete]) -> tuple[Assignment, ...]:
    """Return the entries of a grants request as assignments. Raises the errors of `parse_entries`."""
    return tuple(
        Assignment(
            _known_privilege(entry.privilege),
            principal_of(entry.principal),
            entry.reason,
            entry.expires_at,
            entry.acts_for,
        )
        if isinstance(entry, GrantWrite)
        else Assignment(_known_privilege(entry.privilege), principal_of(entry.principal))
        for entry in entries
    )


def _known_privilege(name: str) -> Privilege:
    """Return the privilege with this name. Raises InvalidGrantPrivilege if no object type has it."""
    try:
        return Privilege(name)
    except ValueError:
        raise InvalidGrantPrivilege(
            f"{name!r} is not a privilege of this server. Check the spelling of the privilege."
        ) from None


def parse_privileges(kind: ObjectType, names: Iterable[str]) -> tuple[Privilege, ...]:
    """Return the privileges by which a list is filtered. Raises InvalidGrantPrivilege if the object type lacks one."""
    return tuple(_privilege(kind, name) for name in dict.fromkeys(names))


def require_writable(
    on: Ref,
    writes: tuple[Assignment, ...],
    deletes: tuple[Assignment, ...],
    *,
    kind: ObjectType | None = None,
) -> tuple[tuple[Assignment, ...], tuple[Assignment, ...]]:
    """Validate a grant change and return (writes, deletes). Limits in `deletes` are ignored: clients send entries as
    they were listed.

    `kind` is the type of the object of the grants, if that is a part of `on` (a column of a table). Raises
    InvalidGrantPrivilege, SelfAssignment, InvalidGrantExpiry, TooManyEntries, and 400 for a grant that the request
    contains twice.
    """
    if len(writes) + len(deletes) > MAX_ENTRIES:
        raise TooManyEntries(
            f"The request contains {len(writes) + len(deletes)} entries; at most {MAX_ENTRIES} are allowed. Send "
            "them in several requests."
        )
    if len({entry.key for entry in (*writes, *deletes)}) != len(writes) + len(deletes):
        raise BadRequestException("The request contains the same assignment twice. Give each assignment once.")
    for entry in (*writes, *deletes):
        _privilege(kind or on.type, entry.privilege)
        _require_limits(entry)
        within_roles = on.type is ObjectType.ROLE and entry.principal.type is PrincipalType.ROLE
        if within_roles and isinstance(on, RoleRef) and entry.principal.id == str(on.role_id):
            raise SelfAssignment("A role cannot be assigned to itself.")
        # Only the year is compared: near the end of the calendar, a conversion to another time zone overflows.
        if entry.expires_at is not None and entry.expires_at.year >= LAST_END.year:
            raise InvalidGrantExpiry(
                f"expires-at must be before the year {LAST_END.year}. For a grant without an expiry, leave "
                "expires-at out."
            )
        if within_roles and entry.expires_at is not None:
            raise InvalidGrantExpiry(
                "The membership of a role in a role cannot have an expiry. Leave expires-at out, and revoke the "
                "membership later."
            )
    return writes, deletes


def _require_limits(entry: Assignment) -> None:
    """Raise 400 if a privilege other than `delegate` has limits, or a network in the limits is not in CIDR form."""
    if entry.acts_for is None:
        return
    if entry.privilege is not Privilege.DELEGATE:
        raise BadRequestException(f"acts-for limits `delegate` only, and not {entry.privilege}. Leave it out.")
    for network in entry.acts_for.networks or ():
        try:
            ip_network(network)
        except ValueError:
            raise BadRequestException(
                f"acts-for: {network!r} is not a network. Write an address and a prefix length without host bits, such "
                "as 10.1.0.0/16 or 2001:db8::/32."
            ) from None


def _privilege(kind: ObjectType, name: str) -> Privilege:
    for privilege in GRANTABLE[kind]:
        if privilege == name:
            return privilege
    raise InvalidGrantPrivilege(
        f"{name!r} cannot be granted on a {kind}. Possible privileges: {', '.join(GRANTABLE[kind])}"
    )


def require_future(entries: Iterable[Assignment], now: datetime) -> None:
    """Raise InvalidGrantExpiry unless every expiry is after `now`, the time of the database clock."""
    for entry in entries:
        if entry.expires_at is not None and entry.expires_at <= now:
            raise InvalidGrantExpiry(f"expires-at must be in the future, and {entry.expires_at.isoformat()} is not.")
