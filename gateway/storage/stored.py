# SPDX-License-Identifier: Apache-2.0
"""Common part of the profiles and stored credentials of all providers: options, checks and decoding. Pure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import msgspec

from gateway.iceberg.errors import BadRequestException
from gateway.scope.credential import Credential, Redacted, digest_of
from gateway.scope.errors import (
    InvalidLocation,
    InvalidStorageCredential,
    InvalidStorageProfile,
    StorageTypeNotSupported,
)
from gateway.scope.location import BaseLocation, Location, Scheme
from gateway.scope.profile import StorageProfile, StorageRules
from lakegate.value_messages import in_words

__all__ = [
    "StoredCredential",
    "StoredProfile",
    "base_below",
    "check_key_prefix",
    "decode_stored_credential",
    "decode_stored_profile",
    "identity_disabled",
    "require_listed",
    "typed",
]

T = TypeVar("T")
Profile = TypeVar("Profile", bound="StoredProfile")


def typed(value: object, kind: type[T]) -> T:
    """Return the value as `kind`. Raises TypeError if it is a profile or credential of another provider."""
    if not isinstance(value, kind):
        raise TypeError(f"a {type(value).__name__} is no {kind.__name__}")
    return value


class StoredProfile(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True, tag_field="type"
):
    """Base class of storage profiles. `scheme` is the scheme of their locations; `place` lists the fields that
    determine the location.
    """

    provider: ClassVar[str]
    scheme: ClassVar[Scheme]
    place: ClassVar[tuple[str, ...]]

    @property
    def escapes_known(self) -> bool:
        """Return False: locations with pattern characters are refused unless the provider can escape them in its
        policies.
        """
        return False

    @property
    def own_access(self) -> Credential | None:
        """None: the gateway accesses the store only with a stored credential."""
        return None

    @abstractmethod
    def base_location(self) -> BaseLocation:
        """Return the location that contains the whole warehouse."""

    def parse_location(self, text: str) -> Location:
        """Parse a location, which has the profile's scheme and is strictly below the base location. Raises
        `InvalidLocation`.
        """
        return self.require_below(self.scheme.parse(text, escapes_known=self.escapes_known))

    def require_below(self, location: Location) -> Location:
        """Return the location. Raises `InvalidLocation` unless it lies strictly below the base location."""
        base = self.base_location()
        if not base.contains(location, strict=True):
            raise InvalidLocation(f"Location must be below the base location of the warehouse, {base.prefix_text!r}")
        return location

    def moved(self, new: StorageProfile) -> list[str]:
        """Return the location fields that differ in `new`, by their names in JSON."""
        if not isinstance(new, type(self)):
            return ["type"]
        return [name.replace("_", "-") for name in self.place if getattr(self, name) != getattr(new, name)]

    def endpoints(self) -> dict[str, str]:
        """Return nothing: the profile contains no server."""
        return {}


@lru_cache(maxsize=512)
def base_below(scheme: Scheme, authority: str, key_prefix: str | None) -> BaseLocation:
    """Return the location of a store, or of a prefix in it. The result is cached: every load with credentials checks
    against it.
    """
    if key_prefix is None:
        return BaseLocation(scheme, authority, ())
    return Location(scheme, authority, tuple(key_prefix.split("/")))


def check_key_prefix(prefix: str, max_bytes: int) -> None:
    """Raise InvalidStorageProfile if the prefix is empty or too long, or has a slash at its start or end."""
    if not prefix or prefix.startswith("/") or prefix.endswith("/"):
        raise InvalidStorageProfile(
            "Storage profile field 'key-prefix' must not be empty, and must not begin or end with a slash"
        )
    if len(prefix.encode()) > max_bytes:
        raise InvalidStorageProfile(f"Storage profile field 'key-prefix' must have at most {max_bytes} bytes")


def decode_stored_profile(kind: type[Profile], fields: dict[str, Any], *, nullable: tuple[str, ...] = ()) -> Profile:
    """Decode the fields. For the fields in `nullable` and for the layout, null means the default.

    Raises `InvalidStorageProfile`, and the errors of the profile's own checks.
    """
    if isinstance(fields.get("key-prefix"), str):
        # A trailing slash does not change the location; an empty prefix is the root of the store.
        fields["key-prefix"] = fields["key-prefix"].removesuffix("/") or None
    for name in ("storage-layout", *nullable):
        if fields.get(name, ...) is None:
            del fields[name]
    try:
        return msgspec.convert(fields, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidStorageProfile(f"Invalid storage profile: {in_words(error, kind)}") from None


def require_listed(listed: tuple[str, ...] | None, kind: str, setting: str) -> None:
    """Raise StorageTypeNotSupported if the operator lists no directories for this kind of warehouse. `listed` is None
    if any is allowed.
    """
    if listed is not None and not listed:
        raise StorageTypeNotSupported(
            f"Storage profiles of type {kind!r} are not allowed on this server. The operator can list directories for "
            f"them in {setting}"
        )


class StoredCredential(
    Redacted,
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="kebab",
    forbid_unknown_fields=True,
    tag_field="credential-type",
):
    """Base class of the credentials that are stored for a warehouse. All fields are texts or None."""

    provider: ClassVar[str]

    @property
    def digest(self) -> str:
        """A cache key for this credential, without its secret."""
        return digest_of(_tag(type(self)), *(value or "" for value in msgspec.structs.astuple(self)))


def _tag(kind: type[StoredCredential]) -> str:
    return str(kind.__struct_config__.tag)


def identity_disabled(identity: type[StoredCredential], instead: str) -> str:
    """Return the error text for an identity of the gateway that the operator did not enable."""
    return f"Credentials of type {_tag(identity)} are not enabled on this server. Use the type {instead}"


def decode_stored_credential(
    union: Any,
    fields: dict[str, Any],
    rules: StorageRules,
    *,
    identity: type[StoredCredential],
    instead: str,
    describe: Callable[[str], str],
) -> Any:
    """Decode `{"credential-type":…}` as a member of `union`.

    `identity` is the class for the gateway's own identity, and `instead` a type that needs no setting. `describe`
    removes values from a message of the decoder, which quotes unknown names and tags: they may be a misplaced secret.

    Raises `InvalidStorageCredential`, whose message never contains a value, and `BadRequestException` for an own
    identity that `rules` do not allow.
    """
    try:
        credential = msgspec.convert(fields, type=union)
    except msgspec.ValidationError as error:
        raise InvalidStorageCredential(f"Invalid storage credential: {describe(str(error))}") from None
    if isinstance(credential, identity) and not rules.identity(identity.provider).enabled:
        kind = _tag(identity)
        raise BadRequestException(f"Credentials of type {kind} are not enabled on this server. Use the type {instead}.")
    return credential
