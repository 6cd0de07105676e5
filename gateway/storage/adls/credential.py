# SPDX-License-Identifier: Apache-2.0
"""Credentials of Azure storage, as requests send them and as they are stored encrypted.

Signatures that are made from them are here too.
"""

import base64
import binascii
import re
from datetime import datetime
from typing import Any, ClassVar, Final

import msgspec

from gateway.scope.credential import Credential, Redacted, digest_of
from gateway.scope.errors import InvalidStorageCredential
from gateway.scope.profile import StorageRules
from gateway.storage.stored import StoredCredential, decode_stored_credential

__all__ = [
    "AdlsClientCredentials",
    "AdlsCredential",
    "AdlsSas",
    "AdlsSharedKey",
    "AdlsSystemIdentity",
    "AnyAdlsCredential",
    "BearerToken",
    "adls_credential",
    "decode_adls_credential",
]

_GUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_TENANT: Final = re.compile(rf"{_GUID.pattern}|[a-z0-9-]+(\.[a-z0-9-]+)+", re.ASCII)


class _OfAdls(Redacted):
    """A mixin for all credentials of Azure storage. Their `type` in requests is `az`, as in Lakekeeper's clients."""

    __slots__ = ()
    provider: ClassVar[str] = "adls"


class AdlsClientCredentials(_OfAdls, StoredCredential, frozen=True, kw_only=True, tag="client-credentials"):
    """An application of Entra ID with a secret."""

    _shown: ClassVar[tuple[str, ...]] = ("client_id", "tenant_id")

    client_id: str
    tenant_id: str
    client_secret: str

    def __post_init__(self) -> None:
        if not _GUID.fullmatch(self.client_id) or not _TENANT.fullmatch(self.tenant_id):
            raise InvalidStorageCredential(
                "Storage credential field 'client-id' must be a GUID, and 'tenant-id' a GUID or a domain name"
            )
        if not self.client_secret or len(self.client_secret) > 512 or not self.client_secret.isprintable():
            raise InvalidStorageCredential(
                "Storage credential field 'client-secret' must be 1 to 512 printable characters"
            )


class AdlsSharedKey(_OfAdls, StoredCredential, frozen=True, kw_only=True, tag="shared-access-key"):
    """The key of a storage account."""

    key: str

    def __post_init__(self) -> None:
        try:
            length = len(base64.b64decode(self.key, validate=True))
        except (binascii.Error, ValueError):
            length = 0
        if not 32 <= length <= 128:
            raise InvalidStorageCredential(
                "Storage credential field 'key' must be the key of a storage account, in base64"
            )


class AdlsSystemIdentity(_OfAdls, StoredCredential, frozen=True, kw_only=True, tag="azure-system-identity"):
    """The gateway's own cloud identity (managed identity, workload identity). The operator must enable it."""


AdlsCredential = AdlsClientCredentials | AdlsSharedKey | AdlsSystemIdentity


class AdlsSas(_OfAdls, msgspec.Struct, frozen=True, kw_only=True):
    """A shared access signature. `token` is the query string. `expires_at` is timezone-aware, in UTC."""

    _shown: ClassVar[tuple[str, ...]] = ("expires_at",)

    token: str
    expires_at: datetime

    @property
    def digest(self) -> str:
        """A cache key for this credential, without its secret."""
        return digest_of("sas", self.token)


class BearerToken(Redacted):
    """An access token of Entra ID and its expiry."""

    __slots__ = ("expires_at", "token")
    _shown: ClassVar[tuple[str, ...]] = ("expires_at",)

    def __init__(self, token: str, expires_at: datetime) -> None:
        self.token = token
        self.expires_at = expires_at


AnyAdlsCredential = AdlsCredential | AdlsSas


def adls_credential(credential: Credential) -> AnyAdlsCredential:
    """Return the credential with its type. Raises TypeError for a credential of another provider."""
    if not isinstance(credential, AnyAdlsCredential):
        raise TypeError(f"a {type(credential).__name__} is no credential of Azure storage")
    return credential


_FORMS: Final = (
    "'credential-type' must be client-credentials, with 'client-id', 'tenant-id' and 'client-secret', "
    "shared-access-key, with 'key', or azure-system-identity"
)


def decode_adls_credential(fields: dict[str, Any], rules: StorageRules) -> AdlsCredential:
    """Decode `{"credential-type":…}`.

    Raises `InvalidStorageCredential`, whose message never contains a value. Raises `BadRequestException` for a system
    identity that `rules` do not allow.
    """
    credential: AdlsCredential = decode_stored_credential(
        AdlsCredential,
        fields,
        rules,
        identity=AdlsSystemIdentity,
        instead="client-credentials",
        describe=lambda _: _FORMS,
    )
    return credential
