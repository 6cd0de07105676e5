# SPDX-License-Identifier: Apache-2.0
"""The registry of storage providers, and functions that decode a profile, credential or location of any provider.

Only this module lists the providers. It does no I/O and imports no client of a store, because a subprocess with little
memory uses it to validate metadata files (`examine.py`). A provider imports its client when it is opened.

Other packages register storage providers as entry points of the group `lakegate.storage`. An entry point refers to a
function without parameters that returns a `gateway.storage.provider.Provider`. The name of the entry point is the
`type` of its profiles and credentials, and the only name of its scheme of locations. A package is imported only if the
operator enabled it, or if the profile of a stored warehouse is of its type. A location, which clients write, imports
nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from typing import Any, Final

import msgspec

from gateway.extensions import ExtensionGroup, NoSuchExtension, find_extension, modules_of_extensions
from gateway.scope.credential import Credential
from gateway.scope.errors import (
    InvalidLocation,
    InvalidStorageCredential,
    InvalidStorageProfile,
    StorageTypeNotSupported,
)
from gateway.scope.location import Location, alternatives, shown
from gateway.scope.profile import STORED, StorageProfile, StorageRules
from gateway.storage.adls.profile import ADLS
from gateway.storage.gcs.profile import GCS
from gateway.storage.hdfs.profile import HDFS
from gateway.storage.local.profile import LOCAL
from gateway.storage.provider import ClientOptions, Prove, Provider, StorageClients
from gateway.storage.s3.profile import S3

__all__ = [
    "PROVIDERS",
    "ProviderUnusable",
    "catalog_defaults",
    "credential_kind",
    "credential_type",
    "decode_credential",
    "decode_profile",
    "encode_credential",
    "imported",
    "is_allowed",
    "open_clients",
    "parse_location",
    "prover_of",
    "provided",
    "provider_named",
    "require_provided",
    "require_same_provider",
    "soft_deletion_defaults",
    "stored_profile",
]


PROVIDERS: Final[tuple[Provider, ...]] = (S3, GCS, ADLS, LOCAL, HDFS)

# Types that clients of Lakekeeper use, for a better message than "wrong type".
_OTHER_PROFILES: Final = ("onelake", "stackit")

_BY_TYPE: Final = {kind: provider for provider in PROVIDERS for kind in (provider.tag, *provider.aliases)}
_NAMES: Final = frozenset(_BY_TYPE) | {name for provider in PROVIDERS for name in provider.scheme.names}


def provider_named(kind: str) -> Provider | None:
    """Return the provider of profiles of the type `kind`, which can be in another package. None if there is none.

    Raises ProviderUnusable if the package provides no valid provider.
    """
    return _BY_TYPE.get(kind) or provided(kind, taken=_NAMES)


def _provider_of(value: StorageProfile | Credential) -> Provider:
    found = provider_named(value.provider)
    if found is None:
        raise _not_installed(value.provider)
    return found


def _not_installed(kind: str) -> StorageTypeNotSupported:
    return StorageTypeNotSupported(
        f"No package on this gateway provides the storage type {shown(kind)}. The operator can install it"
    )


def decode_profile(data: bytes | msgspec.Raw, *, rules: StorageRules = STORED) -> StorageProfile:
    """Decode `{"type":…}` by the rules of its provider and of the operator.

    Raises `InvalidStorageProfile`, `StorageTypeNotSupported`, and `InvalidLocation` for the base location.
    """
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise InvalidStorageProfile("The storage profile must be a JSON object") from None
    kind = fields.get("type")
    types = [*(provider.tag for provider in PROVIDERS if provider.allowed(rules)), *(rules.extensions or ())]
    if kind in _OTHER_PROFILES:
        raise StorageTypeNotSupported(
            f"Storage profile type {kind!r} is not supported. Supported types: {', '.join(types)}"
        )
    provider = _allowed(kind, rules)
    if provider is None and isinstance(kind, str) and rules.extensions is None:
        raise _not_installed(kind)
    if provider is None:
        raise InvalidStorageProfile(f"Storage profile field 'type' must be {_quoted(types)}")
    return provider.decode_profile(fields | {"type": provider.tag}, rules)


def _allowed(kind: object, rules: StorageRules) -> Provider | None:
    """Return the provider of this `type`. None if there is none, or if it needs a setting of the operator that `rules`
    lack.
    """
    if not isinstance(kind, str):
        return None
    return _BY_TYPE.get(kind) or (provider_named(kind) if is_allowed(kind, rules) else None)


@lru_cache(maxsize=512)
def stored_profile(data: bytes) -> StorageProfile:
    """Decode a stored profile as `decode_profile` does, without the operator's rules. The result is cached: there are
    few warehouses, and every load needs a profile.
    """
    return decode_profile(data)


def decode_credential(data: bytes | msgspec.Raw, *, rules: StorageRules = STORED) -> Credential:
    """Decode `{"type":…,"credential-type":…}`.

    Raises `InvalidStorageCredential`, whose message never contains a value, `StorageTypeNotSupported`, and
    `BadRequestException` for a credential that the operator does not allow.
    """
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise InvalidStorageCredential("The storage credential must be a JSON object") from None
    kind = fields.pop("type", None)
    readers = {each.credential_tag: each.decode_credential for each in PROVIDERS if each.decode_credential is not None}
    if isinstance(kind, str) and kind in readers:
        return readers[kind](fields, rules)
    provider = _allowed(kind, rules)
    if provider is None or provider.tag in _BY_TYPE or provider.decode_credential is None:
        raise InvalidStorageCredential(f"Storage credential field 'type' must be {_quoted(readers)}")
    return provider.decode_credential(fields, rules)


def catalog_defaults(profile: StorageProfile) -> Mapping[str, str]:
    """Return the properties that all clients of a warehouse get with the configuration of the warehouse."""
    return _provider_of(profile).catalog_defaults(profile)


def soft_deletion_defaults(profile: StorageProfile) -> Mapping[str, str]:
    """Return the additional properties for clients of a warehouse with soft deletion."""
    return _provider_of(profile).soft_deletion_defaults(profile)


def encode_credential(credential: Credential) -> bytes:
    """Return the JSON that `decode_credential` reads. It contains the secret."""
    fields: dict[str, Any] = msgspec.to_builtins(credential)
    return msgspec.json.encode({"type": _provider_of(credential).credential_tag, **fields})


def credential_kind(credential: Credential | None) -> str | None:
    """Return the `credential-type` of a stored credential, which is not secret. Return None if there is no
    credential.
    """
    if credential is None:
        return None
    kind: str = msgspec.to_builtins(credential)["credential-type"]
    return kind


def credential_type(profile: StorageProfile) -> str:
    """Return the `type` of credentials for this profile."""
    return _provider_of(profile).credential_tag


def require_same_provider(profile: StorageProfile, credential: Credential | None) -> None:
    """Raise InvalidStorageCredential if the credential and the profile belong to different providers."""
    if credential is not None and credential.provider != profile.provider:
        raise InvalidStorageCredential(
            f"Storage credential type {_provider_of(credential).credential_tag!r} cannot be used with the storage "
            f"profile type {profile.provider!r}; both must be of the same provider"
        )


@lru_cache(maxsize=2048)
def parse_location(text: str) -> Location:
    """Parse a stored location of any provider. Raises InvalidLocation. The result is cached, because loads with
    credentials need it.

    A location of a package that is installed but not enabled is invalid: it must not import the package.
    """
    for provider in PROVIDERS:
        if provider.scheme.writes(text):
            return provider.scheme.parse(text, escapes_known=True)
    other = imported(text.partition(":")[0].lower(), taken=_NAMES)
    if other is not None and other.scheme.writes(text):
        return other.scheme.parse(text, escapes_known=True)
    names = tuple(name for provider in PROVIDERS for name in provider.scheme.names)
    raise InvalidLocation(f"Location {shown(text)} must start with {alternatives(names)}")


def open_clients(options: ClientOptions) -> StorageClients:
    """Open the clients of all providers of Lakegate, and of those providers of other packages that the rules name.

    This imports their libraries. Raises ProviderUnusable if no installed package has a provider that the rules name.
    """
    others = [require_provided(name, taken=_NAMES) for name in options.rules.extensions or ()]
    return StorageClients({provider.tag: provider.open(options) for provider in (*PROVIDERS, *others)})


def prover_of(profile: StorageProfile) -> Prove | None:
    """Return the function that proves the scope of policies for this profile's provider; None if the provider has no
    policies.
    """
    return _provider_of(profile).prove


def _quoted(types: Iterable[str]) -> str:
    return " or ".join(f"'{each}'" for each in types)


_NAME: Final = re.compile(r"[a-z][a-z0-9+.-]{0,62}", re.ASCII)  # a scheme of RFC 3986, section 3.1, in lower case


class ProviderUnusable(Exception):
    """A package has no valid storage provider under this name. The operator must change or remove the name in the
    settings.
    """


def is_allowed(kind: str, rules: StorageRules) -> bool:
    """Return True if the operator enabled this type of storage."""
    return rules.extensions is None or kind in rules.extensions


def provided(kind: str, *, taken: Set[str]) -> Provider | None:
    """Return the provider of this type; None if no installed package has one.

    `taken` are the types and schemes of Lakegate's own providers. Raises ProviderUnusable.
    """
    if kind in taken or _NAME.fullmatch(kind) is None or kind not in _installed():
        return None
    return require_provided(kind, taken=taken)


def imported(kind: str, *, taken: Set[str]) -> Provider | None:
    """Return the provider of this type if its package has already been imported, else None.

    `open_clients` imports the packages that the operator enabled, before the first request. `taken` is as in
    `provided`.
    """
    if sys.modules.get(_installed().get(kind, "")) is None:
        return None
    return provided(kind, taken=taken)


def require_provided(kind: str, *, taken: Set[str]) -> Provider:
    """Return the provider of this type. Raises ProviderUnusable if there is none, or if it is not valid."""
    if kind in taken:
        raise ProviderUnusable(
            f"The storage type {kind!r} is one of Lakegate's own, so no package can provide it. Remove it from "
            "LAKEGATE__STORAGE__EXTENSIONS"
        )
    return _opened(kind)


@lru_cache(maxsize=1)
def _installed() -> Mapping[str, str]:
    """Return {type: module of its provider} of the storage providers in installed packages."""
    # Packages do not change while a process runs. The cache keeps unknown schemes in requests cheap.
    return modules_of_extensions(ExtensionGroup.STORAGE)


@lru_cache(maxsize=64)
def _opened(kind: str) -> Provider:
    try:
        provider = find_extension(ExtensionGroup.STORAGE, kind)()
    except NoSuchExtension as missing:
        raise ProviderUnusable(str(missing)) from missing
    if not isinstance(provider, Provider):
        raise ProviderUnusable(f"The storage extension {kind!r} returned no gateway.storage.provider.Provider")
    scheme = provider.scheme
    if (provider.tag, provider.credential_tag, scheme.names, provider.aliases) != (kind, kind, (kind,), ()):
        raise ProviderUnusable(
            f"The storage extension {kind!r} must have this name as the type of its profiles and credentials and as "
            "its only scheme, without aliases: other names could be those of other providers"
        )
    if scheme.path_alone:
        raise ProviderUnusable(f"The scheme of the storage extension {kind!r} must require an authority")
    return provider
