# SPDX-License-Identifier: Apache-2.0
"""The operator's rules for storage profiles and storage credentials."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.scope.endpoint import ANY_NETWORK, DEFAULT_RULES, EndpointRules
from gateway.scope.errors import InvalidLocation
from gateway.scope.location import check_segment, shown

__all__ = [
    "STORED",
    "STRICTEST",
    "IdentityRules",
    "StorageRules",
    "check_authority",
    "parse_directories",
    "parse_roots",
]

_AUTHORITY: Final = re.compile(
    r"(?!.*\.\.)(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)(?::(?P<port>[1-9][0-9]{0,4}))?", re.ASCII
)
_DEFAULT_PORT: Final = "8020"  # of a name node


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRules:
    """Rules for warehouses that use the gateway's own identity in a cloud.

    `direct`: True if the identity may be used without a role, for the listed `stores` only. `external_id_required`:
    True if a role may be assumed only with an external id. `stores`: the names of the stores of such warehouses; with
    roles, an empty tuple allows any store that the role reaches. `endpoints`: the custom endpoints to which requests
    may be signed with the identity; those of the cloud itself need no entry.
    """

    enabled: bool = False
    direct: bool = False
    external_id_required: bool = True
    stores: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()

    def allows_directly(self, store: str) -> bool:
        """Return True if the identity may be used for this store without a role."""
        return self.enabled and self.direct and store in self.stores


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRules:
    """Rules for storage profiles and credentials that clients send.

    `endpoints`: networks in which endpoints may lie. `directories`: absolute paths below which warehouses on the
    gateway's own machine may lie. An empty tuple allows no such warehouse, None allows any path. `roots`: the same for
    locations `scheme://host[:port]/path` in file systems that the gateway opens with its own identity.
    `identities`: the rules for credentials that are the gateway's own identity in a cloud, by the type of storage
    profiles; None allows every one. `hosts`: hosts of stores that profiles may
    name in addition to those of the provider; None allows any. `extensions`: the types of storage profiles of other
    packages that are enabled; None allows any.
    """

    endpoints: EndpointRules = DEFAULT_RULES
    directories: tuple[str, ...] | None = ()
    roots: tuple[str, ...] | None = ()
    hosts: tuple[str, ...] | None = ()
    identities: tuple[tuple[str, IdentityRules], ...] | None = ()
    extensions: tuple[str, ...] | None = ()

    def identity(self, provider: str) -> IdentityRules:
        """Return the rules for storage profiles of this type."""
        if self.identities is None:
            return IdentityRules(enabled=True)
        return dict(self.identities).get(provider, IdentityRules())


STRICTEST: Final = StorageRules()
"""The rules of the default settings."""
STORED: Final = StorageRules(
    endpoints=ANY_NETWORK, directories=None, roots=None, identities=None, hosts=None, extensions=None
)
"""Rules for reading stored profiles and credentials. Each use checks them again by the operator's current rules."""


def parse_directories(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the paths after a check that each is absolute and canonical, such as `/srv/lake`.

    Raises ValueError that names an invalid one.
    """
    for text in texts:
        root, *segments = text.split("/")
        try:
            if root or not segments:
                raise InvalidLocation("it must start with a slash")
            for segment in segments:
                check_segment(segment)
        except InvalidLocation as wrong:
            raise ValueError(f"{text!r} is not a canonical path, such as /srv/lake: {wrong.message}") from None
    return tuple(texts)


def check_authority(text: str) -> None:
    """Raise InvalidLocation unless the text is `host` or `host:port`, without a user and without IPv6 addresses."""
    found = _AUTHORITY.fullmatch(text)
    if found is None or int(found["port"] or 1) > 65535:
        raise InvalidLocation(f"Location must name a host, or a host and a port, and not {shown(text)}")


def parse_roots(texts: Sequence[str], scheme: str) -> tuple[str, ...]:
    """Return the locations after a check that each has the form `scheme://host[:port]/path` and is canonical.

    Raises ValueError that names an invalid one, or two spellings of one host.
    """
    spellings: dict[str, str] = {}
    for text in texts:
        authority, *segments = text.removeprefix(f"{scheme}://").split("/")
        try:
            if not text.startswith(f"{scheme}://") or not segments:
                raise InvalidLocation(f"it must start with {scheme}:// and have a path")
            check_authority(authority)
            for segment in segments:
                check_segment(segment)
        except InvalidLocation as wrong:
            raise ValueError(
                f"{text!r} is not a canonical location, such as {scheme}://host:{_DEFAULT_PORT}/path: {wrong.message}"
            ) from None
        # Warehouses overlap only if their authorities are equal, so each host needs one spelling.
        other = spellings.setdefault(authority.lower().removesuffix(f":{_DEFAULT_PORT}"), authority)
        if other != authority:
            raise ValueError(f"{text!r} names a host that is also written as {other!r}. Use one spelling")
    return tuple(texts)
