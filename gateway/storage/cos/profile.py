# SPDX-License-Identifier: Apache-2.0
"""Storage profiles and credentials of Tencent Cloud Object Storage (COS).

Locations have the form `cosn://bucket/object`, as the Hadoop connector of the store writes them. A profile names no
server: the address follows from bucket and region. The gateway confines no credentials of this store, so clients use
keys of their own.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

import msgspec

from gateway.scope.credential import TemporaryCredential
from gateway.scope.errors import InvalidLocation, InvalidStorageCredential, InvalidStorageProfile
from gateway.scope.location import BaseLocation, DefaultLayout, Scheme, StorageLayout, shown
from gateway.scope.profile import NoVending, StorageRules
from gateway.storage.provider import Provider, opens
from gateway.storage.stored import StoredCredential, StoredProfile, base_below, check_key_prefix, decode_stored_profile

__all__ = ["COS", "SCHEME", "CosProfile", "CosSecretKey"]

# COS documentation, "Bucket Overview": the name and the id of the account, and the limit of the domain name.
_BUCKET: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?-[1-9][0-9]{4,11}", re.ASCII)
_REGION: Final = re.compile(r"[a-z]{2}(?:-[a-z0-9]{1,16}){1,3}", re.ASCII)
_MAX_HOST: Final = 60
_MAX_KEY_PREFIX: Final = 722  # leaves 128 of the 850 bytes of a key for the names below


def _check_bucket(name: str) -> None:
    if not _BUCKET.fullmatch(name):
        raise InvalidLocation(
            f"Bucket {shown(name)} is not a valid bucket name. It must have the form name-appid, with a-z, 0-9 and "
            "hyphen in the name"
        )


SCHEME: Final = Scheme(
    names=("cosn",),
    check_authority=_check_bucket,
    max_path_bytes=850,
    path_noun="an object key",
    root_noun="the root of a bucket",
)


class CosSecretKey(StoredCredential, frozen=True, kw_only=True, tag="secret-key"):
    """A key of an account, or of one of its users."""

    provider: ClassVar[str] = "cos"
    _shown: ClassVar[tuple[str, ...]] = ("secret_id",)

    secret_id: str
    secret_key: str


def _decode_credential(fields: dict[str, Any], _rules: StorageRules) -> CosSecretKey:
    """Raise InvalidStorageCredential without the decoder's message, which may quote a misplaced secret."""
    try:
        return msgspec.convert(fields, type=CosSecretKey)
    except msgspec.ValidationError:
        raise InvalidStorageCredential(
            "Invalid storage credential: 'credential-type' must be secret-key, with the texts 'secret-id' and "
            "'secret-key'"
        ) from None


class CosProfile(StoredProfile, frozen=True, kw_only=True, tag="cos"):
    """A warehouse in a bucket of COS. `key_prefix` has no leading or trailing slash.

    Construction checks the fields and raises `InvalidStorageProfile`, and `InvalidLocation` for bucket and prefix.
    """

    provider: ClassVar[str] = "cos"
    scheme: ClassVar[Scheme] = SCHEME
    place: ClassVar[tuple[str, ...]] = ("bucket", "region", "key_prefix")
    credential_kind: ClassVar[str | None] = "secret-key"
    no_contact: ClassVar[str] = (
        "The storage cannot be used. Possible causes: the bucket does not exist in this region; the key is deleted or "
        "disabled; the store does not answer in time"
    )

    bucket: str
    region: str
    key_prefix: str | None = None
    storage_layout: StorageLayout = DefaultLayout()

    def __post_init__(self) -> None:
        _check_bucket(self.bucket)
        if not _REGION.fullmatch(self.region):
            raise InvalidStorageProfile(
                f"Storage profile field 'region' must be a region such as ap-guangzhou, and not {shown(self.region)}"
            )
        if len(self.host) > _MAX_HOST:
            raise InvalidStorageProfile(
                f"Storage profile field 'bucket' is too long: {self.host} must have at most {_MAX_HOST} characters"
            )
        if self.key_prefix is not None:
            check_key_prefix(self.key_prefix, _MAX_KEY_PREFIX)
        self.base_location()

    @property
    def host(self) -> str:
        """Return the host of the bucket."""
        return f"{self.bucket}.cos.{self.region}.myqcloud.com"

    @property
    def escapes_known(self) -> bool:
        """True: without policies, no character has a special meaning."""
        return True

    @property
    def downscoping(self) -> NoVending:
        """`NoVending`: the gateway has no policy that confines a key of this store to one location."""
        reason = "a warehouse of type cos issues no credentials; clients use keys of their own"
        return NoVending(reason=reason, skipped=reason)

    def base_location(self) -> BaseLocation:
        """Return the location that contains the whole warehouse; a `Location` if there is a key prefix."""
        return base_below(SCHEME, self.bucket, self.key_prefix)

    def check(self, rules: StorageRules) -> None:
        """Do nothing: a profile names no server."""

    def client_properties(
        self, temporary: TemporaryCredential | None, *, refresh_endpoint: str | None
    ) -> dict[str, str]:
        """Return the region, by the name that the Hadoop connector reads."""
        return {"fs.cosn.bucket.region": self.region}


COS: Final = Provider(
    profile=CosProfile,
    scheme=SCHEME,
    allowed=lambda rules: True,
    decode_profile=lambda fields, _rules: decode_stored_profile(CosProfile, fields),
    decode_credential=_decode_credential,
    open=opens("gateway.storage.cos.client"),
)
