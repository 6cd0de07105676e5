# SPDX-License-Identifier: Apache-2.0
"""The interface of storage profiles, and the operator's rules for profiles and credentials.

The profiles of the providers are in `gateway/storage/<provider>/profile.py`. `gateway/storage/registry.py` reads them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from gateway.scope.credential import AccessLevel, Credential, TemporaryCredential
from gateway.scope.endpoint import ANY_NETWORK, DEFAULT_RULES, EndpointRules
from gateway.scope.errors import InvalidLocation
from gateway.scope.location import BaseLocation, Location, StorageLayout, check_segment, shown

__all__ = [
    "Downscoping",
    "IdentityRules",
    "NoVending",
    "STORED",
    "STRICTEST",
    "StorageProfile",
    "StorageRules",
    "check_authority",
    "key_seconds",
    "longest_life",
    "parse_directories",
    "parse_roots",
]


_AUTHORITY: Final = re.compile(
    r"(?!.*\.\.)(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)(?::(?P<port>[1-9][0-9]{0,4}))?", re.ASCII
)
_DEFAULT_PORT: Final = "8020"  # the default port of a name node


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
    locations `scheme://host[:port]/path` in file systems that the gateway opens with its own identity. `identities`:
    the rules for credentials that are the gateway's own identity in a cloud, by the type of storage profiles; None
    allows every one. `hosts`: hosts of stores that profiles may name in addition to those of the provider; None allows
    any. `extensions`: the types of storage profiles of other packages that are enabled; None allows any.
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
    """Check that each path is absolute and canonical, such as `/srv/lake`, and return the paths.

    Raises ValueError with the first invalid path.
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
    """Check that each location is canonical and has the form `scheme://host[:port]/path`, and return the locations.

    Raises ValueError with the first invalid location, or with two spellings of one host.
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
        # The overlap check compares authorities as text, so each host must have one spelling.
        other = spellings.setdefault(authority.lower().removesuffix(f":{_DEFAULT_PORT}"), authority)
        if other != authority:
            raise ValueError(f"{text!r} names a host that is also written as {other!r}. Use one spelling")
    return tuple(texts)


CLOCK_TOLERANCE_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Downscoping:
    """Confinement of a warehouse's credentials to one location.

    `seconds`: the longest lifetime of such a credential. `role`: the role that its session assumes, if any. `policy`
    builds the session policy that limits the credential to the location. The function does no I/O. It raises
    PolicyTooLarge or InvalidLocation if no such policy is possible. `shortest_seconds`: the shortest lifetime that the
    store supports. `levels`: the access levels that a credential of the store can express.
    """

    seconds: int
    role: str | None
    policy: Callable[[Location, AccessLevel], str]
    shortest_seconds: int = 900  # the value of most stores; other providers set their own
    levels: frozenset[AccessLevel] = frozenset(AccessLevel)


@dataclass(frozen=True, slots=True)
class NoVending:
    """A warehouse that vends no credentials. `reason` is text for the audit record, `skipped` for the validation
    report.
    """

    reason: str
    skipped: str


class StorageProfile(Protocol):
    """The storage of a warehouse, as its provider describes it. It is a frozen struct that is stored and sent as
    JSON.
    """

    provider: ClassVar[str]
    """The `type` of the profile."""
    credential_kind: ClassVar[str | None]
    """The `credential-type` of credentials stored for such a profile; None if none is ever stored."""
    no_contact: ClassVar[str]
    """The text of the validation report when no store was reached. It is the same for every cause, so that it does not
    reveal which addresses of the operator's network are in use."""

    @property
    def storage_layout(self) -> StorageLayout:
        """Return the layout of tables and views that are created without a location."""
        ...

    @property
    def escapes_known(self) -> bool:
        """Return True if a session policy can escape the pattern characters of a location."""
        ...

    @property
    def downscoping(self) -> Downscoping | NoVending:
        """Return how credentials are limited to a location, or the reason why none are vended."""
        ...

    @property
    def own_access(self) -> Credential | None:
        """Return the credential that the gateway uses if none is stored; None if there is no such credential."""
        ...

    def base_location(self) -> BaseLocation:
        """Return the location below which all files of the warehouse lie."""
        ...

    def parse_location(self, text: str) -> Location:
        """Parse a location of a client. Raises InvalidLocation unless it lies strictly below the base location."""
        ...

    def check(self, rules: StorageRules) -> None:
        """Check the profile's fields against the rules, without resolving host names. Raises InvalidStorageProfile."""
        ...

    def moved(self, new: "StorageProfile") -> list[str]:
        """Return the names of the changed fields that make `new` refer to other storage than this profile."""
        ...

    def endpoints(self) -> Mapping[str, str]:
        """Return the servers in the profile, as audit details. Default servers of the provider are left out."""
        ...

    def client_properties(
        self, temporary: TemporaryCredential | None, *, refresh_endpoint: str | None
    ) -> dict[str, str]:
        """Return the properties for access to the storage, for clients (`config` in Iceberg REST).

        They include keys, expiry and `refresh_endpoint` only if `temporary` is given.
        """
        ...


def longest_life(profile: StorageProfile) -> int:
    """Return the longest lifetime, in seconds, of a credential that the warehouse can vend; 0 if it vends none."""
    match profile.downscoping:
        case Downscoping(seconds=seconds):
            return seconds
        case NoVending():
            return 0


def key_seconds(profile: StorageProfile) -> int:
    """Return for how many seconds keys that are vended now may work, including clock tolerance; 0 if none are
    vended.
    """
    longest = longest_life(profile)
    return longest + CLOCK_TOLERANCE_SECONDS if longest else 0
