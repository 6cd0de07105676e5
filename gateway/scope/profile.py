# SPDX-License-Identifier: Apache-2.0
"""The interface of storage profiles: the base location of a warehouse and the confinement of its credentials.

The profiles of the providers are in `gateway/storage/<provider>/profile.py`. `gateway/storage/registry.py` reads them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from gateway.scope.credential import Credential, TemporaryCredential
from gateway.scope.layout import StorageLayout
from gateway.scope.level import AccessLevel
from gateway.scope.location import BaseLocation, Location
from gateway.scope.rules import StorageRules

__all__ = ["Downscoping", "NoVending", "StorageProfile", "key_seconds", "longest_life"]

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
    shortest_seconds: int = 900  # most stores; the others state theirs
    levels: frozenset[AccessLevel] = frozenset(AccessLevel)


@dataclass(frozen=True, slots=True)
class NoVending:
    """A warehouse that vends no credentials. `reason` is text for the audit, `skipped` for the validation report."""

    reason: str
    skipped: str


class StorageProfile(Protocol):
    """The storage of a warehouse, as its provider describes it. A frozen struct that is stored and sent as JSON."""

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
        """Return the confinement of credentials, or the reason why none are vended."""
        ...

    @property
    def own_access(self) -> Credential | None:
        """Return the credential that the gateway uses when none is stored; None if it has none."""
        ...

    def base_location(self) -> BaseLocation:
        """Return the location below which all files of the warehouse lie."""
        ...

    def parse_location(self, text: str) -> Location:
        """Parse a location that a client sent. Raises InvalidLocation unless it lies strictly below the base."""
        ...

    def check(self, rules: StorageRules) -> None:
        """Check the profile's fields against the rules, without resolving host names. Raises InvalidStorageProfile."""
        ...

    def moved(self, new: "StorageProfile") -> list[str]:
        """Return the names of the changed fields that make `new` refer to other storage than this profile."""
        ...

    def endpoints(self) -> Mapping[str, str]:
        """Return the servers that the profile names, as audit details. Default servers of the provider are left out."""
        ...

    def client_properties(
        self, temporary: TemporaryCredential | None, *, refresh_endpoint: str | None
    ) -> dict[str, str]:
        """Return the properties for access to the storage, for clients (`config` in Iceberg REST).

        They include keys, expiry and `refresh_endpoint` only with `temporary`.
        """
        ...


def longest_life(profile: StorageProfile) -> int:
    """Return the longest lifetime in seconds of a credential that the warehouse vends; 0 if it vends none."""
    match profile.downscoping:
        case Downscoping(seconds=seconds):
            return seconds
        case NoVending():
            return 0


def key_seconds(profile: StorageProfile) -> int:
    """Return the seconds for which keys vended now may work, clock tolerance included; 0 if none are vended."""
    longest = longest_life(profile)
    return longest + CLOCK_TOLERANCE_SECONDS if longest else 0
