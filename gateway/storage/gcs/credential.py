# SPDX-License-Identifier: Apache-2.0
"""Credentials of Google Cloud Storage, as requests send them and as they are stored encrypted.

Tokens that are made from them are here too.
"""

import re
from datetime import datetime
from typing import Any, ClassVar, Final

import msgspec

from gateway.scope.credential import Credential, Redacted, digest_of
from gateway.scope.errors import InvalidStorageCredential
from gateway.scope.profile import StorageRules
from gateway.storage.stored import StoredCredential, decode_stored_credential

__all__ = [
    "AnyGcsCredential",
    "GcsCredential",
    "GcsServiceAccountKey",
    "GcsSystemIdentity",
    "GcsToken",
    "ServiceAccountKey",
    "decode_gcs_credential",
    "gcs_credential",
]

TOKEN_URI: Final = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
_UNIVERSE: Final = "googleapis.com"
_EMAIL: Final = re.compile(r"[A-Za-z0-9._-]{1,128}@[A-Za-z0-9.-]{1,128}\.gserviceaccount\.com", re.ASCII)
_PEM: Final = re.compile(
    r"-----BEGIN PRIVATE KEY-----\n[A-Za-z0-9+/=\n]{64,8192}-----END PRIVATE KEY-----\n?", re.ASCII
)


class _OfGcs(Redacted):
    """A mixin for all credentials of Google Cloud Storage."""

    __slots__ = ()
    provider: ClassVar[str] = "gcs"


class ServiceAccountKey(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    """The JSON file of a service account's key (IAM documentation, "Create and delete service account keys").

    Addresses in the file are not used: with them, the creator of a warehouse could make the gateway send a signature by
    the key to any server. So a `token_uri` other than Google's is refused. Fields that are not listed here are dropped.
    """

    _shown: ClassVar[tuple[str, ...]] = ("client_email",)

    type: str
    project_id: str
    private_key_id: str
    private_key: str
    client_email: str
    token_uri: str = TOKEN_URI
    universe_domain: str = _UNIVERSE

    def __post_init__(self) -> None:
        if self.type != "service_account":
            raise InvalidStorageCredential(
                "Storage credential field 'key' must be the JSON key file of a service account: its 'type' must be "
                "service_account"
            )
        if self.token_uri != TOKEN_URI or self.universe_domain != _UNIVERSE:
            raise InvalidStorageCredential(
                f"Storage credential field 'key' must have the 'token_uri' {TOKEN_URI} and the 'universe_domain' "
                f"{_UNIVERSE}"
            )
        if not _EMAIL.fullmatch(self.client_email) or not _PEM.fullmatch(self.private_key):
            raise InvalidStorageCredential(
                "Storage credential field 'key' must have the 'client_email' of a service account and its "
                "'private_key' in PEM form"
            )


class GcsServiceAccountKey(_OfGcs, StoredCredential, frozen=True, kw_only=True, tag="service-account-key"):
    """A service account with its key."""

    _shown: ClassVar[tuple[str, ...]] = ("key",)

    key: ServiceAccountKey

    @property
    def digest(self) -> str:
        """A cache key for this credential, without its secret."""
        return digest_of("service-account-key", self.key.client_email, self.key.private_key_id, self.key.private_key)


class GcsSystemIdentity(_OfGcs, StoredCredential, frozen=True, kw_only=True, tag="gcp-system-identity"):
    """The gateway's own cloud identity (service account of the machine, workload identity). The operator must enable
    it.
    """


GcsCredential = GcsServiceAccountKey | GcsSystemIdentity


class GcsToken(_OfGcs, msgspec.Struct, frozen=True, kw_only=True):
    """An access token, downscoped or the gateway's own.

    `expires_at` is timezone-aware, in UTC. `project` is the project of the service account, if it is known.
    """

    _shown: ClassVar[tuple[str, ...]] = ("expires_at",)

    token: str
    expires_at: datetime
    project: str | None = None

    @property
    def digest(self) -> str:
        """A cache key for this credential, without its secret."""
        return digest_of("token", self.token)


AnyGcsCredential = GcsCredential | GcsToken


def gcs_credential(credential: Credential) -> AnyGcsCredential:
    """Return the credential with its type. Raises TypeError for a credential of another provider."""
    if not isinstance(credential, AnyGcsCredential):
        raise TypeError(f"a {type(credential).__name__} is no credential of Google Cloud Storage")
    return credential


_FORMS: Final = (
    "'credential-type' must be service-account-key, with the JSON key file as an object in 'key', or "
    "gcp-system-identity"
)


def decode_gcs_credential(fields: dict[str, Any], rules: StorageRules) -> GcsCredential:
    """Decode `{"credential-type":…}`.

    Raises `InvalidStorageCredential`, whose message never contains a value. Raises `BadRequestException` for a system
    identity that `rules` do not allow.
    """
    credential: GcsCredential = decode_stored_credential(
        GcsCredential,
        fields,
        rules,
        identity=GcsSystemIdentity,
        instead="service-account-key",
        describe=lambda _: _FORMS,
    )
    return credential
