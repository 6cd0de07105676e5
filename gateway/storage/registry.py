# SPDX-License-Identifier: Apache-2.0
"""The storage providers, and functions that decode a profile, credential or location of any provider.

Only this module names providers. It does no I/O and imports no client of a store: a subprocess with little memory
validates metadata files with it (`examine.py`). A provider imports its client when it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from gateway.scope.credential import Credential
from gateway.scope.errors import (
    InvalidLocation,
    InvalidStorageCredential,
    InvalidStorageProfile,
    StorageTypeNotSupported,
)
from gateway.scope.location import Location, alternatives, shown
from gateway.scope.profile import StorageProfile
from gateway.scope.rules import STORED, StorageRules
from gateway.storage.adls.profile import ADLS
from gateway.storage.gcs.profile import GCS
from gateway.storage.hdfs.profile import HDFS
from gateway.storage.local.profile import LOCAL
from gateway.storage.provider import ClientOptions, Prove, Provider, StorageClients
from gateway.storage.s3.profile import S3

__all__ = [
    "PROVIDERS",
    "credential_kind",
    "credential_type",
    "catalog_defaults",
    "decode_credential",
    "decode_profile",
    "encode_credential",
    "open_clients",
    "parse_location",
    "prover_of",
    "require_same_provider",
    "soft_deletion_defaults",
    "stored_profile",
]

PROVIDERS: Final[tuple[Provider, ...]] = (S3, GCS, ADLS, LOCAL, HDFS)

# Types that clients of Lakekeeper use, for a better message than "wrong type".
_OTHER_PROFILES: Final = ("onelake", "stackit")

_BY_TYPE: Final = {kind: provider for provider in PROVIDERS for kind in (provider.tag, *provider.aliases)}
_CREDENTIAL_TYPES: Final = {provider.tag: provider.credential_tag for provider in PROVIDERS}


def decode_profile(data: bytes | msgspec.Raw, *, rules: StorageRules = STORED) -> StorageProfile:
    """Decode `{"type":…}` by the rules of its provider and of the operator.

    Raises `InvalidStorageProfile`, `StorageTypeNotSupported`, and `InvalidLocation` for the base location.
    """
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise InvalidStorageProfile("The storage profile must be a JSON object") from None
    kind = fields.get("type")
    types = [provider.tag for provider in PROVIDERS if provider.allowed(rules)]
    if kind in _OTHER_PROFILES:
        raise StorageTypeNotSupported(
            f"Storage profile type {kind!r} is not supported. Supported types: {', '.join(types)}"
        )
    if not isinstance(kind, str) or kind not in _BY_TYPE:
        raise InvalidStorageProfile(f"Storage profile field 'type' must be {_quoted(types)}")
    provider = _BY_TYPE[kind]
    return provider.decode_profile(fields | {"type": provider.tag}, rules)


@lru_cache(maxsize=512)
def stored_profile(data: bytes) -> StorageProfile:
    """Decode a stored profile as `decode_profile` does, without the operator's rules. Cached: warehouses are few, and
    every load needs one.
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
    if not isinstance(kind, str) or kind not in readers:
        raise InvalidStorageCredential(f"Storage credential field 'type' must be {_quoted(readers)}")
    return readers[kind](fields, rules)


def catalog_defaults(profile: StorageProfile) -> Mapping[str, str]:
    """Return the properties that all clients of a warehouse get with its configuration."""
    return _BY_TYPE[profile.provider].catalog_defaults(profile)


def soft_deletion_defaults(profile: StorageProfile) -> Mapping[str, str]:
    """Return the further properties for the clients of a warehouse that keeps dropped tables."""
    return _BY_TYPE[profile.provider].soft_deletion_defaults(profile)


def encode_credential(credential: Credential) -> bytes:
    """Return the JSON that `decode_credential` reads. It contains the secret."""
    fields: dict[str, Any] = msgspec.to_builtins(credential)
    return msgspec.json.encode({"type": _CREDENTIAL_TYPES[credential.provider], **fields})


def credential_kind(credential: Credential | None) -> str | None:
    """Return the `credential-type` of a stored credential, which is no secret; None without a credential."""
    if credential is None:
        return None
    kind: str = msgspec.to_builtins(credential)["credential-type"]
    return kind


def credential_type(profile: StorageProfile) -> str:
    """Return the `type` of credentials for this profile."""
    return _CREDENTIAL_TYPES[profile.provider]


def require_same_provider(profile: StorageProfile, credential: Credential | None) -> None:
    """Raise InvalidStorageCredential if the credential is of another provider than the profile."""
    if credential is not None and credential.provider != profile.provider:
        raise InvalidStorageCredential(
            f"Storage credential type {_CREDENTIAL_TYPES[credential.provider]!r} cannot be used with the storage "
            f"profile type {profile.provider!r}; both must be of the same provider"
        )


@lru_cache(maxsize=2048)
def parse_location(text: str) -> Location:
    """Parse a stored location of any provider. Raises InvalidLocation. Cached: loads with credentials need one."""
    for provider in PROVIDERS:
        if provider.scheme.writes(text):
            return provider.scheme.parse(text, escapes_known=True)
    names = tuple(name for provider in PROVIDERS for name in provider.scheme.names)
    raise InvalidLocation(f"Location {shown(text)} must start with {alternatives(names)}")


def open_clients(options: ClientOptions) -> StorageClients:
    """Open a client of every provider. This imports their libraries."""
    return StorageClients({provider.tag: provider.open(options) for provider in PROVIDERS})


def prover_of(profile: StorageProfile) -> Prove | None:
    """Return the function that proves the policies of this profile's provider, None if it has no policies."""
    return _BY_TYPE[profile.provider].prove


def _quoted(types: Iterable[str]) -> str:
    return " or ".join(f"'{each}'" for each in types)
