# SPDX-License-Identifier: Apache-2.0
"""Match the recorded grants of `delegate` with a user and an address. Pure.

The limits are a part of the grant's row, and not of OpenFGA's tuple. A row can hold a list of users, and the statement
that resolves a request already reads rows about the engine. So a limit is exact at the time of the request, costs no
round trip, and cannot be served from a cache. OpenFGA still decides whether the grant itself holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from ipaddress import ip_address, ip_network
from typing import Any

import msgspec
from msgspec import UNSET

from gateway.access.delegation_limits import ActsFor, limits_of
from gateway.access.nouns.refs import ObjectKey, ObjectType


class DelegateGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A live grant of `delegate` to an engine, or to one of its roles (`direct` is False).

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
        """Return True if the grant includes the user, by id or by a role, and the address. Administrators are not
        considered.
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
        """Return the limits without other users and without roles that the user is not in. Return None if the grant
        does not include the user.
        """
        limits = self.limits
        if limits is None or not self.names(user, roles):
            return None
        users = () if limits.users is UNSET or user not in limits.users else (user,)
        own = () if limits.roles is UNSET else tuple(role for role in limits.roles if str(role) in roles)
        return msgspec.structs.replace(limits, users=users or UNSET, roles=own or UNSET)

    def includes(self, address: str | None) -> bool:
        """Return True if the grant includes the address of the connection. An unknown address is in no network."""
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
    """Return the reason for the audit record why none of `grants` permits the user from the address."""
    if not grants:
        return "delegate: no grant is recorded"
    if not any(each.names(user, roles) for each in grants):
        return "delegate: no grant names the user or one of the user's roles"
    return "delegate: no grant includes the network of the request"


ADMINISTRATORS_REFUSED = "delegate: the user is an administrator, and no grant includes administrators"


def delegate_grants(recorded: Any) -> tuple[DelegateGrant, ...]:
    """Return the grants in a column of `gateway.db.resolver.caller`: type, id, principal type, expiry, limits."""
    return tuple(
        DelegateGrant(
            on=ObjectKey(ObjectType(type), id),
            limits=limits_of(limits),
            expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
            direct=principal_type == "user",
        )
        for type, id, principal_type, expires_at, limits in recorded or ()
    )
