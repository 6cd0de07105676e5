# SPDX-License-Identifier: Apache-2.0
"""The limits of grants of `delegate`, the privilege by which an engine may act for users. Pure.

Limits are the users, roles and networks for which the engine may act, and whether administrators are included. They are
stored in the grant's row, and not in OpenFGA's tuple: a row can hold a list of users, and the statement that resolves a
request already reads rows about the engine. So a limit is exact at the time of the request, costs no round trip, and
cannot be served from a cache. OpenFGA still decides whether the grant itself is effective.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from ipaddress import ip_address, ip_network
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gateway.access.bodies import Answer, StrictRequest, UserId
from gateway.access.nouns.refs import ObjectKey, ObjectType

Network = Annotated[str, Meta(min_length=3, max_length=49, pattern=r"^[0-9a-fA-F:.]+/[0-9]{1,3}(?![\s\S])$")]


class ActsFor(StrictRequest, frozen=True):
    """Limits of a grant of `delegate`. Without `users` and `roles` the holder acts for every user, else for these users
    and the members of these roles. Users that could grant `delegate` there are administrators, and are excluded unless
    `administrators` is true. With `networks` (CIDR) requests must come from one of them.
    """

    users: Annotated[tuple[UserId, ...], Meta(min_length=1, max_length=100)] | UnsetType = UNSET
    roles: Annotated[tuple[UUID, ...], Meta(min_length=1, max_length=100)] | UnsetType = UNSET
    administrators: bool = False
    networks: Annotated[tuple[Network, ...], Meta(min_length=1, max_length=20)] | UnsetType = UNSET

    @property
    def unlimited(self) -> bool:
        """Return True if the grant permits every user from every network."""
        return self.administrators and self.users is self.roles is self.networks is UNSET


DEFAULT_LIMITS = ActsFor()
"""The limits of a grant that names none: every user except administrators."""


def limits_text(limits: ActsFor | None) -> str | None:
    """Return the text that stores the limits in the database.

    Equal limits have equal texts. None stands for the default limits.
    """
    if limits is None or limits == DEFAULT_LIMITS:
        return None
    sorted_limits = {
        name: sorted(set(value)) for name in ("users", "roles", "networks") if (value := getattr(limits, name))
    }
    return msgspec.json.encode(msgspec.structs.replace(limits, **sorted_limits)).decode()


def limits_of(text: str | None) -> ActsFor | None:
    """Return the limits that a text of the database contains. Return None if this version cannot read the text."""
    if text is None:
        return DEFAULT_LIMITS
    try:
        return msgspec.json.decode(text, type=ActsFor)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


class DelegateHolder(Answer, frozen=True, omit_defaults=True):
    """The user or role that holds `delegate`. A role's `name` is present only if the caller may read it."""

    user: str | None = None
    role: UUID | None = None
    name: str | None = None


class DelegateScope(Answer, frozen=True, omit_defaults=True):
    """The project or warehouse in which the holder may act for the caller."""

    type: Literal["project", "warehouse"]
    name: str
    project_id: str
    warehouse_id: str | None = None


class OwnDelegate(Answer, frozen=True, omit_defaults=True):
    """A grant of `delegate` that includes the caller. `acts-for` are its limits without other users and roles."""

    holder: DelegateHolder
    resource: DelegateScope
    acts_for: ActsFor
    created_at: datetime
    expires_at: datetime | None = None


class OwnDelegates(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /whoami/delegates`: the oldest grants first."""

    delegates: list[OwnDelegate]
    next_page_token: str | None = None


class DelegateGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A live grant of `delegate` to an engine, or to one of the engine's roles (`direct` is False).

    `limits` is None if this version cannot read them. Such a grant permits no user.
    """

    on: ObjectKey
    limits: ActsFor | None
    expires_at: datetime | None
    direct: bool

    def covers(self, warehouse_id: str, project_id: str) -> bool:
        """Return True if the grant is on this warehouse or on its project."""
        return self.on in (ObjectKey(ObjectType.WAREHOUSE, warehouse_id), ObjectKey(ObjectType.PROJECT, project_id))

    def permits(self, user: str, roles: Collection[str], address: str | None) -> bool:
        """Return True if the grant includes both the user (by id or by a role) and the address.

        The exclusion of administrators is not checked here.
        """
        return self.names(user, roles) and self.includes(address)

    def names(self, user: str, roles: Collection[str]) -> bool:
        """Return True if the grant includes the user, by id or by a role."""
        limits = self.limits
        if limits is None:
            return False
        if limits.users is UNSET and limits.roles is UNSET:
            return True
        by_role = limits.roles is not UNSET and any(str(role) in roles for role in limits.roles)
        return by_role or (limits.users is not UNSET and user in limits.users)

    def limits_for(self, user: str, roles: Collection[str]) -> ActsFor | None:
        """Return the limits without other users, and without roles that the user is not in.

        Return None if the grant does not include the user.
        """
        limits = self.limits
        if limits is None or not self.names(user, roles):
            return None
        users = () if limits.users is UNSET or user not in limits.users else (user,)
        own = () if limits.roles is UNSET else tuple(role for role in limits.roles if str(role) in roles)
        return msgspec.structs.replace(limits, users=users or UNSET, roles=own or UNSET)

    def includes(self, address: str | None) -> bool:
        """Return True if the grant permits requests from this address of a connection.

        An unknown address is in no network.
        """
        if self.limits is None:
            return False
        return self.limits.networks is UNSET or in_networks(address, self.limits.networks)

    @property
    def for_administrators(self) -> bool:
        """True if the grant includes administrators."""
        return self.limits is not None and self.limits.administrators


def in_networks(address: str | None, networks: Iterable[str]) -> bool:
    """Return True if the IP address is in one of the networks. An IPv4 address in IPv6 form counts as IPv4."""
    try:
        known = ip_address(address or "")
    except ValueError:
        return False
    mapped = getattr(known, "ipv4_mapped", None)
    return any((mapped or known) in ip_network(network, strict=False) for network in networks)


def refusing_limit(grants: Collection[DelegateGrant], user: str, roles: Collection[str]) -> str:
    """Return the limit by which none of `grants` permits the user from the address, as text for the audit record."""
    if not grants:
        return "delegate: no grant is recorded"
    if not any(each.names(user, roles) for each in grants):
        return "delegate: no grant names the user or one of the user's roles"
    return "delegate: no grant includes the network of the request"


ADMINISTRATORS_REFUSED = "delegate: the user is an administrator, and no grant includes administrators"


def delegate_grants(recorded: Any) -> tuple[DelegateGrant, ...]:
    """Return the grants that a column of `gateway.db.resolver.caller` contains.

    Each element has the object's type and id, the type of the principal, the expiry and the limits.
    """
    return tuple(
        DelegateGrant(
            on=ObjectKey(ObjectType(type), id),
            limits=limits_of(limits),
            expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
            direct=principal_type == "user",
        )
        for type, id, principal_type, expires_at, limits in recorded or ()
    )
