# SPDX-License-Identifier: Apache-2.0
"""S3 credentials, as requests send them and as they are stored encrypted, and temporary credentials made from them."""

import re
from datetime import datetime
from typing import Any, ClassVar

import msgspec

from gateway.scope.credential import Credential, Redacted, digest_of
from gateway.scope.errors import InvalidStorageCredential
from gateway.scope.profile import StorageRules
from gateway.storage.stored import StoredCredential, decode_stored_credential

__all__ = [
    "AnyS3Credential",
    "S3AccessKey",
    "S3AliyunOss",
    "S3CloudflareR2",
    "S3Credential",
    "S3SystemIdentity",
    "S3TemporaryCredential",
    "StsCredential",
    "decode_s3_credential",
    "s3_credential",
]

_R2_ACCOUNT = re.compile(r"[0-9a-f]{32}", re.ASCII)
_ALIASES = {"aws-access-key-id": "access-key-id", "aws-secret-access-key": "secret-access-key"}


class _OfS3(Redacted):
    """A mixin for all credentials of S3 stores."""

    __slots__ = ()
    provider: ClassVar[str] = "s3"


class S3AccessKey(_OfS3, StoredCredential, frozen=True, kw_only=True, tag="access-key"):
    """A static key pair. `external_id` is sent with AssumeRole."""

    _shown: ClassVar[tuple[str, ...]] = ("access_key_id",)

    access_key_id: str
    secret_access_key: str
    external_id: str | None = None

    def __post_init__(self) -> None:
        _check_key_pair(self.access_key_id, self.secret_access_key)
        _check_external_id(self.external_id)


class S3SystemIdentity(_OfS3, StoredCredential, frozen=True, kw_only=True, tag="aws-system-identity"):
    """The gateway's own cloud identity (instance role, web identity). The operator must enable it."""

    _shown: ClassVar[tuple[str, ...]] = ()

    external_id: str | None = None

    def __post_init__(self) -> None:
        _check_external_id(self.external_id)

    @property
    def digest(self) -> str:
        """A cache key for this credential."""
        return digest_of("system-identity", self.external_id or "")


class S3CloudflareR2(_OfS3, StoredCredential, frozen=True, kw_only=True, tag="cloudflare-r2"):
    """An API token of Cloudflare R2: the key pair for the gateway's own files, and the token that creates temporary
    credentials.
    """

    _shown: ClassVar[tuple[str, ...]] = ("access_key_id", "account_id")

    access_key_id: str
    secret_access_key: str
    token: str
    account_id: str

    def __post_init__(self) -> None:
        _check_key_pair(self.access_key_id, self.secret_access_key)
        _check_printable("token", self.token)
        if not _R2_ACCOUNT.fullmatch(self.account_id):
            raise InvalidStorageCredential("Storage credential field 'account-id' must be 32 hexadecimal digits")


class S3AliyunOss(_OfS3, StoredCredential, frozen=True, kw_only=True, tag="aliyun-oss"):
    """A key pair of Alibaba Cloud. `external_id` is sent with AssumeRole."""

    _shown: ClassVar[tuple[str, ...]] = ("access_key_id",)

    access_key_id: str
    secret_access_key: str
    external_id: str | None = None

    def __post_init__(self) -> None:
        _check_key_pair(self.access_key_id, self.secret_access_key)
        _check_external_id(self.external_id)


StsCredential = S3AccessKey | S3SystemIdentity
"""The credentials with which roles are assumed at the STS of AWS and of compatible stores."""
S3Credential = StsCredential | S3CloudflareR2 | S3AliyunOss


class S3TemporaryCredential(_OfS3, msgspec.Struct, frozen=True, kw_only=True):
    """The credential in AssumeRole's response. `expires_at` is timezone-aware, in UTC."""

    _shown: ClassVar[tuple[str, ...]] = ("access_key_id", "expires_at")

    access_key_id: str
    secret_access_key: str
    session_token: str
    expires_at: datetime

    @property
    def digest(self) -> str:
        """A cache key for this credential, without its secret."""
        return digest_of("temporary", self.access_key_id, self.secret_access_key, self.session_token)


AnyS3Credential = S3Credential | S3TemporaryCredential


def s3_credential(credential: Credential) -> AnyS3Credential:
    """Return the credential with its S3 type. Raises TypeError for a credential of another provider."""
    if not isinstance(credential, AnyS3Credential):
        raise TypeError(f"a {type(credential).__name__} is no credential of an S3 store")
    return credential


def decode_s3_credential(fields: dict[str, Any], rules: StorageRules) -> S3Credential:
    """Decode `{"credential-type":…}`; the aliases `aws-access-key-id` and `aws-secret-access-key` are accepted too.

    Raises `InvalidStorageCredential`, whose message never contains a value. Raises `BadRequestException` for a system
    identity that `rules` do not allow.
    """
    for alias, name in _ALIASES.items():
        if alias in fields:
            if name in fields:
                raise InvalidStorageCredential(
                    f"Storage credential contains both {name!r} and its alias {alias!r}. Give only one of them"
                )
            fields[name] = fields.pop(alias)
    credential: S3Credential = decode_stored_credential(
        S3Credential, fields, rules, identity=S3SystemIdentity, instead="access-key", describe=_without_values
    )
    return credential


def _without_values(message: str) -> str:
    """Remove values from a message of msgspec. It quotes unknown tags and field names, which may be a misplaced
    secret.
    """
    text, _, where = message.partition(" - at ")
    if text.startswith("Object contains unknown field"):
        text = (
            "it has an unknown field. Possible fields: access-key-id, secret-access-key, external-id, and for "
            "cloudflare-r2 also token and account-id"
        )
    elif text.startswith("Invalid value"):
        text = "'credential-type' must be access-key, aws-system-identity, cloudflare-r2 or aliyun-oss"
    return f"{text} - at {where}" if where.startswith("`$.") and "unknown" not in text else text


def _check_key_pair(access_key_id: str, secret_access_key: str) -> None:
    _check_printable("access-key-id", access_key_id)
    _check_printable("secret-access-key", secret_access_key)


def _check_printable(name: str, value: str) -> None:
    if not value or not value.isascii() or not value.isprintable() or " " in value or len(value) > 512:
        raise InvalidStorageCredential(
            f"Storage credential field {name!r} must be 1 to 512 printable ASCII characters without spaces"
        )


def _check_external_id(value: str | None) -> None:
    # STS API reference, AssumeRole, parameter ExternalId
    if value is not None and not (2 <= len(value) <= 1224 and all(c.isalnum() or c in "_+=,.@:/-" for c in value)):
        raise InvalidStorageCredential(
            "Storage credential field 'external-id' must have 2 to 1224 characters, each a letter, a digit or one "
            "of _+=,.@:/-"
        )
