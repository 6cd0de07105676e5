# SPDX-License-Identifier: Apache-2.0
"""Storage profiles of Google Cloud Storage: the location of a warehouse's files and the settings of its credentials.

Locations have the form `gs://bucket/object`. The creator of a warehouse chooses a bucket, and the gateway's identity
may reach more buckets than the creator. So the operator lists the buckets that may be used with this identity. The rule
is checked at every use, because settings can change.
"""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from gateway.scope.credential import AccessLevel, TemporaryCredential
from gateway.scope.errors import InvalidLocation
from gateway.scope.location import BaseLocation, DefaultLayout, Location, Scheme, StorageLayout, shown
from gateway.scope.profile import Downscoping, IdentityRules, NoVending, StorageProfile, StorageRules
from gateway.storage.gcs.access_boundary import build_access_boundary
from gateway.storage.gcs.credential import AnyGcsCredential, GcsSystemIdentity, GcsToken, decode_gcs_credential
from gateway.storage.gcs.proof import prove_scope
from gateway.storage.provider import Provider, opens
from gateway.storage.stored import StoredProfile, base_below, check_key_prefix, decode_stored_profile, identity_disabled

__all__ = [
    "GCS",
    "SCHEME",
    "GcsProfile",
    "check_bucket",
    "decode_gcs_profile",
    "identity_refusal",
]

MAX_NAME_BYTES: Final = 1024  # Cloud Storage documentation, "About Cloud Storage objects", object name requirements
_COMPONENT: Final = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?", re.ASCII)
_IPV4_LIKE: Final = re.compile(r"[0-9]+(\.[0-9]+){3}", re.ASCII)


def check_bucket(name: str) -> None:
    """Raise `InvalidLocation` unless the name is a bucket name (Cloud Storage documentation, "About buckets", bucket
    names).

    The message names the violated rule.
    """
    longest = 222 if "." in name else 63
    if not 3 <= len(name) <= longest or not all(_COMPONENT.fullmatch(part) for part in name.split(".")):
        raise InvalidLocation(
            f"Bucket {shown(name)} is not a valid bucket name. It must have 3 to 63 characters of a-z, 0-9, hyphen, "
            "underscore and dot, and begin and end with a letter or digit"
        )
    if _IPV4_LIKE.fullmatch(name):
        raise InvalidLocation(f"Bucket {shown(name)} must not look like an IP address")
    if name.startswith("goog") or "google" in name:
        raise InvalidLocation(f"Bucket {shown(name)} has a name that Google reserves")


def _check_segment(segment: str) -> None:
    if segment == ".well-known":
        raise InvalidLocation("Path segment '.well-known' is reserved by Google Cloud Storage")


SCHEME: Final = Scheme(
    names=("gs",),
    check_authority=check_bucket,
    max_path_bytes=MAX_NAME_BYTES,
    path_noun="an object name",
    root_noun="the root of a bucket",
    check_segment=_check_segment,
)


MAX_KEY_PREFIX: Final = 896  # leaves 128 of the 1,024 bytes of a name for the names below
TOKEN_SECONDS: Final = 3600
"""Google's tokens live for one hour, and no shorter time can be requested for a downscoped one (IAM documentation,
"Create a short-lived token", and "Downscope with Credential Access Boundaries")."""


class GcsProfile(StoredProfile, frozen=True, kw_only=True, tag="gcs"):
    """A warehouse in a bucket of Google Cloud Storage. `key_prefix` has no leading or trailing slash.

    Construction checks the fields and raises `InvalidStorageProfile`, and `InvalidLocation` for bucket and prefix.
    """

    provider: ClassVar[str] = "gcs"
    scheme: ClassVar[Scheme] = SCHEME
    place: ClassVar[tuple[str, ...]] = ("bucket", "key_prefix")
    credential_kind: ClassVar[str | None] = "service-account-key"
    no_contact: ClassVar[str] = (
        "The storage cannot be used. Possible causes: the bucket does not exist; the service account is deleted or "
        "disabled; Google's servers do not answer in time"
    )

    bucket: str
    key_prefix: str | None = None
    sts_enabled: bool = True
    storage_layout: StorageLayout = DefaultLayout()

    def __post_init__(self) -> None:
        check_bucket(self.bucket)
        prefix = self.key_prefix
        if prefix is None:
            return
        check_key_prefix(prefix, MAX_KEY_PREFIX)
        self.base_location()

    @property
    def escapes_known(self) -> bool:
        """Return True: a condition compares the start of a name, in which no character has a special meaning."""
        return True

    @property
    def downscoping(self) -> Downscoping | NoVending:
        """The confinement by tokens with an access boundary, or NoVending if `sts-enabled` is false."""
        if not self.sts_enabled:
            return NoVending(
                reason="sts-enabled is false in the storage profile",
                skipped="sts-enabled is false, so this warehouse issues no credentials",
            )
        return Downscoping(TOKEN_SECONDS, None, build_access_boundary, shortest_seconds=TOKEN_SECONDS)

    def base_location(self) -> BaseLocation:
        """Return the location that contains the whole warehouse. It is a `Location` if the profile has a key prefix."""
        return base_below(SCHEME, self.bucket, self.key_prefix)

    def check(self, rules: StorageRules) -> None:
        """Do nothing: the profile contains no server to check."""

    def client_properties(
        self, temporary: TemporaryCredential | None, *, refresh_endpoint: str | None
    ) -> dict[str, str]:
        """Return token, its expiry (milliseconds since 1970) and refresh properties. Without `temporary`, return
        nothing.
        """
        if temporary is None:
            return {}
        if not isinstance(temporary, GcsToken):
            raise TypeError(f"a {type(temporary).__name__} is no token of Google Cloud Storage")
        expires_ms = str(int(temporary.expires_at.timestamp() * 1000))
        properties = {
            "gcs.oauth2.token": temporary.token,
            "gcs.oauth2.token-expires-at": expires_ms,
            "expiration-time": expires_ms,
        }
        if temporary.project is not None:
            properties["gcs.project-id"] = temporary.project
        if refresh_endpoint is not None:
            properties["gcs.oauth2.refresh-credentials-endpoint"] = refresh_endpoint
            properties["gcs.oauth2.refresh-credentials-enabled"] = "true"
        return properties


def decode_gcs_profile(fields: dict[str, Any], rules: StorageRules) -> GcsProfile:
    """Decode `{"type":"gcs",…}`. Raises `InvalidStorageProfile`, and `InvalidLocation` for bucket and key prefix."""
    return decode_stored_profile(GcsProfile, fields)


def _prove(profile: StorageProfile, location: Location, level: AccessLevel, other_keys: Sequence[str]) -> list[str]:
    boundary = build_access_boundary(location, level)
    return [str(violation) for violation in prove_scope(boundary, location, level, other_keys)]


GCS: Final = Provider(
    profile=GcsProfile,
    scheme=SCHEME,
    allowed=lambda rules: True,
    decode_profile=decode_gcs_profile,
    decode_credential=decode_gcs_credential,
    open=opens("gateway.storage.gcs.client"),
    prove=_prove,
)


def identity_refusal(profile: GcsProfile, credential: AnyGcsCredential, rules: IdentityRules) -> str | None:
    """Return the reason why the credential may not be used for the bucket of this profile; None if it may."""
    if not isinstance(credential, GcsSystemIdentity) or rules.allows_directly(profile.bucket):
        return None
    if not rules.enabled:
        return identity_disabled(GcsSystemIdentity, "service-account-key")
    return (
        f"The operator does not allow the gateway's own identity for the bucket {profile.bucket!r}. The operator can "
        "list it in LAKEGATE__GCS_SYSTEM_CREDENTIALS_BUCKETS"
    )
