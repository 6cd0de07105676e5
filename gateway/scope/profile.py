# SPDX-License-Identifier: Apache-2.0
"""What every storage profile has, whatever its provider: a place, and how credentials for parts of it are confined.

The providers' own profiles are in `gateway/storage/<provider>/profile.py`; `gateway/storage/registry.py` reads them.
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
    """How credentials of a warehouse are confined to one location.

    `seconds` is the longest life of such a credential. `role` is what it is a session of. `policy` builds the document
    that confines it; it does no I/O, and raises PolicyTooLarge or InvalidLocation for a location that it cannot confine
    a credential to.
    """

    seconds: int
    role: str | None
    policy: Callable[[Location, AccessLevel], str]


@dataclass(frozen=True, slots=True)
class NoVending:
    """A warehouse that hands out no credentials: `reason` for the audit, `skipped` for the report of a validation."""

    reason: str
    skipped: str


class StorageProfile(Protocol):
    """A warehouse's storage, as its provider describes it. A frozen struct, whose JSON is what is stored and sent."""

    provider: ClassVar[str]
    """The `type` of the profile."""
    credential_kind: ClassVar[str | None]
    """The `credential-type` of a credential that is stored for such a profile; None where none is ever stored."""
    no_contact: ClassVar[str]
    """What a validation reports when no store was reached. It is one text for every cause: its reader must not learn
    which addresses of the operator's network are in use."""

    @property
    def storage_layout(self) -> StorageLayout:
        """Where tables and views lie when their creators choose no location."""
        ...

    @property
    def escapes_known(self) -> bool:
        """Whether pattern characters in a location can be taken literally when a credential is confined to it."""
        ...

    @property
    def downscoping(self) -> Downscoping | NoVending:
        """How credentials are confined, or why none is handed out."""
        ...

    @property
    def own_access(self) -> Credential | None:
        """The gateway's access when no credential is stored; None when it has none."""
        ...

    def base_location(self) -> BaseLocation:
        """The place below which everything of the warehouse lies."""
        ...

    def parse_location(self, text: str) -> Location:
        """Read a location from a client: right scheme, strictly below the base. Raises InvalidLocation."""
        ...

    def check(self, rules: StorageRules) -> None:
        """Judge what the profile names, as it is written. Raises InvalidStorageProfile."""
        ...

    def moved(self, new: "StorageProfile") -> list[str]:
        """Return the names of fields by which `new` is another place than this profile."""
        ...

    def endpoints(self) -> Mapping[str, str]:
        """Return audit details: the servers that the profile names, without those it leaves to the provider."""
        ...

    def client_properties(
        self, temporary: TemporaryCredential | None, *, refresh_endpoint: str | None
    ) -> dict[str, str]:
        """Return the properties that clients read their access from (Iceberg REST, `config`).

        Keys, expiry and `refresh_endpoint` are in them only with `temporary`.
        """
        ...


def longest_life(profile: StorageProfile) -> int:
    """Return the longest life in seconds of a credential that the warehouse hands out; 0 when it hands out none."""
    match profile.downscoping:
        case Downscoping(seconds=seconds):
            return seconds
        case NoVending():
            return 0


def key_seconds(profile: StorageProfile) -> int:
    """Return for how many seconds keys that leave now may work, with the tolerance of clocks; 0 when none leave."""
    longest = longest_life(profile)
    return longest + CLOCK_TOLERANCE_SECONDS if longest else 0
