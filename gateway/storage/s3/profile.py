# SPDX-License-Identifier: Apache-2.0
"""S3 storage profiles: the location of a warehouse's files and the settings of its credentials.

Locations in S3 and compatible stores have the form `s3://bucket/key`. Unknown fields of a profile are refused.
Otherwise a misspelled `key-prefix` would put a warehouse at the root of its bucket.
"""

import re
from enum import StrEnum
from ipaddress import ip_address
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from gateway.scope.credential import TemporaryCredential
from gateway.scope.endpoint import check_endpoint
from gateway.scope.errors import InvalidLocation, InvalidStorageProfile
from gateway.scope.location import (
    BaseLocation,
    DefaultLayout,
    Location,
    Scheme,
    StorageLayout,
    refuse_pattern_characters,
    shown,
)
from gateway.scope.profile import Downscoping, NoVending, StorageProfile, StorageRules
from gateway.storage.provider import Provider, opens
from gateway.storage.s3.confinement import TRAITS, StoreKind, check_confinement, kind_of, policy_builder, prove
from gateway.storage.s3.credential import S3TemporaryCredential, decode_s3_credential
from gateway.storage.stored import StoredProfile, base_below, check_key_prefix, decode_stored_profile, typed

__all__ = [
    "Flavor",
    "S3",
    "S3Profile",
    "SCHEME",
    "SigningUrlStyle",
    "check_bucket",
    "decode_s3_profile",
]


MAX_KEY_BYTES: Final = 1024  # S3 user guide, "Creating object key names"
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_IPV4_LIKE: Final = re.compile(r"[0-9]+(\.[0-9]+){3}", re.ASCII)
# Suffixes that AWS reserves for other kinds of buckets, whose policies need other ARNs or actions.
_RESERVED_SUFFIXES: Final = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
_RESERVED_PREFIXES: Final = ("xn--", "sthree-", "amzn-s3-demo-")


def check_bucket(name: str) -> None:
    """Raise `InvalidLocation` unless the name is a general purpose bucket name (S3 user guide, "General purpose bucket
    naming rules").

    The message names the violated rule.
    """
    if "@" in name or ":" in name:
        raise InvalidLocation(f"Bucket {shown(name)} must be a plain name, without user, password or port")
    if name.endswith("."):
        raise InvalidLocation(f"Bucket {shown(name)} must not end with a dot")
    if not _BUCKET.fullmatch(name) or ".." in name or ".-" in name or "-." in name:
        raise InvalidLocation(
            f"Bucket {shown(name)} is not a valid bucket name. It must have 3 to 63 characters of a-z, 0-9, dot and "
            "hyphen, and begin and end with a letter or digit. A dot must not be next to another dot or a hyphen"
        )
    if _IPV4_LIKE.fullmatch(name):
        raise InvalidLocation(f"Bucket {shown(name)} must not look like an IP address")
    if name.endswith(_RESERVED_SUFFIXES) or name.startswith(_RESERVED_PREFIXES):
        raise InvalidLocation(
            f"Bucket {shown(name)} has a prefix or suffix that S3 reserves. Only general purpose buckets are supported"
        )


SCHEME: Final = Scheme(
    names=("s3", "s3a", "s3n"),
    check_authority=check_bucket,
    max_path_bytes=MAX_KEY_BYTES,
    path_noun="an object key",
    root_noun="the root of a bucket",
)


MAX_KEY_PREFIX: Final = 896  # leaves 128 of the 1,024 bytes of a key for the names below
MIN_TOKEN_SECONDS: Final = 900  # STS API reference, AssumeRole, parameter DurationSeconds
MAX_TOKEN_SECONDS: Final = 43200
MAX_SESSION_TAGS: Final = 50  # STS API reference, AssumeRole, parameter Tags

_REGION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_TAG_TEXT: Final = re.compile(r"[\w .:/=+@-]*")
_ALIASES: Final = {"s3-url-detection-mode": "remote-signing-url-style"}
_STYLE_ALIASES: Final = {"virtual-host": "virtual_host"}
_FLAVOR_ALIASES: Final = {"minio": "s3-compat"}
_PARTITIONS: Final = (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov"), ("us-iso-", "aws-iso"), ("us-isob-", "aws-iso-b"))


class Flavor(StrEnum):
    """The flavor of the store. `aws` supports escapes and variables in policies; an `s3-compat` store may not."""

    AWS = "aws"
    S3_COMPAT = "s3-compat"


class SigningUrlStyle(StrEnum):
    """The form in which a URL to sign contains the bucket."""

    AUTO = "auto"
    PATH = "path"
    VIRTUAL_HOST = "virtual_host"


class S3Profile(StoredProfile, frozen=True, kw_only=True, tag="s3"):
    """A warehouse on S3 or a compatible store. Durations are whole seconds. `key_prefix` has no leading or trailing
    slash.

    Construction checks the fields and raises `InvalidStorageProfile`. `decode_s3_profile` checks the endpoints by the
    operator's rules.
    """

    provider: ClassVar[str] = "s3"
    scheme: ClassVar[Scheme] = SCHEME
    place: ClassVar[tuple[str, ...]] = ("bucket", "key_prefix")
    credential_kind: ClassVar[str | None] = "access-key"
    no_contact: ClassVar[str] = (
        "The storage cannot be used at its endpoint. Possible causes: the host name cannot be resolved; the "
        "operator does not allow its network (LAKEGATE__STORAGE_ENDPOINT_NETWORKS); no server answers in time; the "
        "server is not an S3 store; the bucket does not exist"
    )

    bucket: str
    region: str
    sts_enabled: bool = False
    key_prefix: str | None = None
    endpoint: str | None = None
    sts_endpoint: str | None = None
    flavor: Flavor = Flavor.AWS
    path_style_access: bool = False
    assume_role_arn: str | None = None
    sts_role_arn: str | None = None
    sts_token_validity_seconds: int = 3600
    sts_session_tags: dict[str, str] = {}
    remote_signing_enabled: bool = True
    remote_signing_url_style: SigningUrlStyle = SigningUrlStyle.AUTO
    allow_alternative_protocols: bool = False
    push_s3_delete_disabled: bool = True
    aws_kms_key_arn: str | None = None
    legacy_md5_behavior: bool = False
    storage_layout: StorageLayout = DefaultLayout()

    def __post_init__(self) -> None:
        _check_place(self)
        check_confinement(self, aws_flavor=self.flavor is Flavor.AWS)
        _check_sessions(self)

    @property
    def escapes_known(self) -> bool:
        """Return True if the store reads `${*}`, `${?}` and `${$}` in a policy as literal characters."""
        return TRAITS[self.kind].escapes

    @property
    def kind(self) -> StoreKind:
        """The kind of store, by flavor and endpoint."""
        return kind_of(self.endpoint, aws_flavor=self.flavor is Flavor.AWS)

    @property
    def partition(self) -> str:
        """The partition of this profile's ARNs (IAM user guide, "Amazon Resource Names")."""
        if self.flavor is Flavor.AWS:
            for start, partition in _PARTITIONS:
                if self.region.startswith(start):
                    return partition
        return "aws"

    @property
    def scheme_alternatives(self) -> tuple[str, ...]:
        """The schemes that a client may use in a location of this warehouse."""
        return ("s3", "s3a", "s3n") if self.allow_alternative_protocols else ("s3",)

    @property
    def session_role_arn(self) -> str | None:
        """The role whose sessions are vended."""
        return self.sts_role_arn or self.assume_role_arn

    @property
    def downscoping(self) -> Downscoping | NoVending:
        """The confinement by sessions with a policy of the store's kind, or NoVending if `sts-enabled` is false."""
        if not self.sts_enabled:
            return NoVending(
                reason="sts-enabled is false in the storage profile",
                skipped="sts-enabled is false, so this warehouse issues no credentials",
            )
        return Downscoping(
            self.sts_token_validity_seconds,
            self.session_role_arn,
            policy_builder(self),
            levels=TRAITS[self.kind].levels,
        )

    def base_location(self) -> BaseLocation:
        """Return the location that contains the whole warehouse. It is a `Location` if the profile has a key prefix."""
        return base_below(SCHEME, self.bucket, self.key_prefix)

    def parse_location(self, text: str) -> Location:
        """Parse a location of a client, which has an allowed scheme and is strictly below the base location. Raises
        `InvalidLocation`.
        """
        scheme = text.partition("://")[0].lower()
        if scheme not in self.scheme_alternatives:
            raise InvalidLocation(
                f"Location scheme {ascii(scheme[:20])} is not allowed in this warehouse. Allowed schemes: "
                f"{', '.join(self.scheme_alternatives)}"
            )
        location = SCHEME.parse(text, escapes_known=self.escapes_known)
        return self.require_below(location)

    def check(self, rules: StorageRules) -> None:
        """Check the endpoints as they are written. The addresses of host names are checked at each connection."""
        for field, url in (("endpoint", self.endpoint), ("sts-endpoint", self.sts_endpoint)):
            if url is not None:
                check_endpoint(url, field, rules.endpoints)

    def moved(self, new: StorageProfile) -> list[str]:
        """Return those of bucket, key prefix and region that differ in `new`."""
        fields = super().moved(new)
        # With a custom endpoint, the region does not determine the location: it is only part of the signature.
        if isinstance(new, S3Profile) and new.endpoint is None and new.region != self.region:
            fields.append("region")
        return fields

    def endpoints(self) -> dict[str, str]:
        """Return the custom endpoints of the store and of STS. AWS's own endpoints are left out."""
        named = {"endpoint": self.endpoint, "sts_endpoint": self.sts_endpoint}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def encryption_properties(self) -> dict[str, str]:
        """Return the properties that make clients encrypt new files with the key of the profile."""
        if self.aws_kms_key_arn is None:
            return {}
        return {"s3.sse.type": "kms", "s3.sse.key": self.aws_kms_key_arn}

    @property
    def soft_deletion_properties(self) -> dict[str, str]:
        """Return the properties that keep clients from deleting the files of dropped tables.

        Spark itself deletes the files after `DROP TABLE … PURGE`. A warehouse with soft deletion keeps such a table
        restorable.
        """
        return {"s3.delete-enabled": "false"} if self.push_s3_delete_disabled else {}

    def client_properties(
        self, temporary: TemporaryCredential | None, *, refresh_endpoint: str | None
    ) -> dict[str, str]:
        """Return region, endpoint and path style. With `temporary` also keys, expiry (milliseconds since 1970) and
        refresh.

        Java, PyIceberg and DuckDB read the same values under different names; all are included.
        """
        properties = {
            "s3.region": self.region,  # PyIceberg
            "client.region": self.region,  # Java
            "region": self.region,  # DuckDB
        }
        if self.endpoint is not None:
            # ClickHouse needs the slash: it removes this text from a location to find the key (ClickHouse issue 93283).
            properties["s3.endpoint"] = f"{self.endpoint}/" if self.path_style_access else self.endpoint
        # Without path style a client resolves the bucket as part of a host name, which fails for a store at an IP
        # address or a plain host name.
        if self.path_style_access:
            properties["s3.path-style-access"] = "true"
            properties["s3.force-virtual-addressing"] = "false"  # PyIceberg's name for the opposite of path style
        elif TRAITS[self.kind].virtual_hosts_only:
            properties["s3.force-virtual-addressing"] = "true"  # otherwise path style, for a custom endpoint
        properties |= self.encryption_properties
        if temporary is None:
            return properties
        if not isinstance(temporary, S3TemporaryCredential):
            raise TypeError(f"a {type(temporary).__name__} is no session of an S3 store")
        expires_ms = str(int(temporary.expires_at.timestamp() * 1000))
        properties |= {
            "s3.access-key-id": temporary.access_key_id,
            "s3.secret-access-key": temporary.secret_access_key,
            "s3.session-token": temporary.session_token,
            "s3.session-token-expires-at-ms": expires_ms,
            "expiration-time": expires_ms,
        }
        if refresh_endpoint is not None:
            properties["client.refresh-credentials-endpoint"] = refresh_endpoint
            properties["client.refresh-credentials-enabled"] = "true"
        return properties


def decode_s3_profile(fields: dict[str, Any], rules: StorageRules) -> S3Profile:
    """Decode `{"type":"s3",…}`, including aliases of older guides, and check the endpoints by the operator's rules.

    Raises `InvalidStorageProfile`, and `InvalidLocation` for bucket and key prefix.
    """
    _resolve_aliases(fields)
    for name in ("endpoint", "sts-endpoint"):
        if fields.get(name) is not None:
            if not isinstance(fields[name], str):
                raise InvalidStorageProfile(f"Storage profile field {name!r} must be a string")
            fields[name] = check_endpoint(fields[name], name, rules.endpoints)
    if not fields.get("path-style-access", False) and _is_address(fields.get("endpoint")):
        # A bucket name cannot precede an IP address in a host name. AWS clients use path style for IP addresses by
        # themselves.
        fields["path-style-access"] = True
    return decode_stored_profile(S3Profile, fields, nullable=("sts-session-tags",))


def _is_address(endpoint: str | None) -> bool:
    """Return True if the host of a checked endpoint is an IP address."""
    try:
        ip_address(urlsplit(endpoint or "").hostname or "")
    except ValueError:
        return False
    return True


def _resolve_aliases(fields: dict[str, Any]) -> None:
    for alias, name in _ALIASES.items():
        if alias in fields:
            if name in fields:
                raise InvalidStorageProfile(
                    f"Storage profile contains both {name!r} and its alias {alias!r}. Give only one of them"
                )
            fields[name] = fields.pop(alias)
    for name, aliases in (("flavor", _FLAVOR_ALIASES), ("remote-signing-url-style", _STYLE_ALIASES)):
        if isinstance(fields.get(name), str):
            fields[name] = aliases.get(fields[name], fields[name])


def _check_place(profile: S3Profile) -> None:
    check_bucket(profile.bucket)
    if not _REGION.fullmatch(profile.region):
        raise InvalidStorageProfile(
            "Storage profile field 'region' must be 1 to 64 letters, digits, hyphens and underscores"
        )
    prefix = profile.key_prefix
    if prefix is not None:
        check_key_prefix(prefix, MAX_KEY_PREFIX)
        if not profile.escapes_known:
            refuse_pattern_characters(prefix)
        profile.base_location()
    if profile.flavor is Flavor.S3_COMPAT and profile.endpoint is None:
        raise InvalidStorageProfile("Storage profile field 'endpoint' is required if 'flavor' is s3-compat")


def _check_sessions(profile: S3Profile) -> None:
    if not MIN_TOKEN_SECONDS <= profile.sts_token_validity_seconds <= MAX_TOKEN_SECONDS:
        raise InvalidStorageProfile(
            f"Storage profile field 'sts-token-validity-seconds' must be from {MIN_TOKEN_SECONDS} to "
            f"{MAX_TOKEN_SECONDS}"
        )
    if len(profile.sts_session_tags) > MAX_SESSION_TAGS:
        raise InvalidStorageProfile(
            f"Storage profile field 'sts-session-tags' must contain at most {MAX_SESSION_TAGS} tags"
        )
    for key, value in profile.sts_session_tags.items():
        if not (1 <= len(key) <= 128 and len(value) <= 256 and _TAG_TEXT.fullmatch(key) and _TAG_TEXT.fullmatch(value)):
            raise InvalidStorageProfile(
                "Storage profile field 'sts-session-tags' has an invalid tag. Keys must have 1 to 128 characters "
                "and values at most 256, each a letter, a digit, a space or one of _.:/=+@-"
            )


S3: Final = Provider(
    profile=S3Profile,
    scheme=SCHEME,
    allowed=lambda rules: True,
    decode_profile=decode_s3_profile,
    decode_credential=decode_s3_credential,
    open=opens("gateway.storage.s3.client"),
    prove=lambda profile, location, level, keys: prove(typed(profile, S3Profile), location, level, keys),
    catalog_defaults=lambda profile: typed(profile, S3Profile).encryption_properties,
    soft_deletion_defaults=lambda profile: typed(profile, S3Profile).soft_deletion_properties,
)
