# SPDX-License-Identifier: Apache-2.0
"""Storage profiles: where a warehouse keeps its files and how its credentials are made.

Unknown fields are refused: a misspelled `key-prefix` that is silently ignored would put a warehouse at the root of
its bucket.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import msgspec

from gateway.scope.credential import S3AccessKey, S3Credential, S3SystemIdentity, decode_credential
from gateway.scope.endpoint import ANY_NETWORK, EndpointRules, check_endpoint
from gateway.scope.errors import InvalidLocation, InvalidStorageProfile, StorageTypeNotSupported
from gateway.scope.layout import DefaultLayout, StorageLayout
from gateway.scope.location import BaseLocation, Location, check_bucket, refuse_pattern_characters

__all__ = [
    "Flavor",
    "S3AccessKey",
    "S3Credential",
    "S3Profile",
    "S3SystemIdentity",
    "SigningUrlStyle",
    "decode_credential",
    "decode_profile",
]

MAX_KEY_PREFIX: Final = 896  # leaves 128 of the 1,024 bytes of a key for what lies below
MIN_TOKEN_SECONDS: Final = 900  # STS API reference, AssumeRole, parameter DurationSeconds
MAX_TOKEN_SECONDS: Final = 43200
MAX_SESSION_TAGS: Final = 50  # STS API reference, AssumeRole, parameter Tags

_ROLE_ARN: Final = re.compile(r"arn:[a-z0-9-]+:iam::[0-9]{0,12}:role/[A-Za-z0-9_+=,.@/-]{1,512}", re.ASCII)
_KMS_ARN: Final = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]{1,32}:[0-9]{12}:key/[A-Za-z0-9-]{1,64}", re.ASCII)
_REGION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_TAG_TEXT: Final = re.compile(r"[\w .:/=+@-]*")
_ALIASES: Final = {"s3-url-detection-mode": "remote-signing-url-style"}
_STYLE_ALIASES: Final = {"virtual-host": "virtual_host"}
_FLAVOR_ALIASES: Final = {"minio": "s3-compat"}
_PARTITIONS: Final = (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov"), ("us-iso-", "aws-iso"), ("us-isob-", "aws-iso-b"))
_KNOWN_TYPES: Final = frozenset({"adls", "azdls", "onelake", "gcs", "stackit"})


class Flavor(StrEnum):
    """Whose S3 it is: `aws` knows escapes and variables in policies, an `s3-compat` store is not trusted to."""

    AWS = "aws"
    S3_COMPAT = "s3-compat"


class SigningUrlStyle(StrEnum):
    """How a URL to be signed names its bucket."""

    AUTO = "auto"
    PATH = "path"
    VIRTUAL_HOST = "virtual_host"


class S3Profile(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True, tag_field="type", tag="s3"
):
    """A warehouse on S3 or a compatible store. Seconds are whole seconds; `key_prefix` has neither end's slash.

    Construction checks every field against the others and raises `InvalidStorageProfile`; what an endpoint may lead
    to is checked by `decode_profile`, which knows the operator's rules.
    """

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
        _check_roles(self)
        _check_sessions(self)

    @property
    def escapes_known(self) -> bool:
        """Whether the store takes `${*}`, `${?}`, `${$}` in a policy as the literal characters."""
        return self.flavor is Flavor.AWS and self.endpoint is None

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
        """The schemes a client may write in a location of this warehouse."""
        return ("s3", "s3a", "s3n") if self.allow_alternative_protocols else ("s3",)

    @property
    def session_role_arn(self) -> str | None:
        """The role that vended credentials are sessions of."""
        return self.sts_role_arn or self.assume_role_arn

    def base_location(self) -> BaseLocation:
        """The place below which everything of the warehouse lies; a `Location` when there is a key prefix."""
        if self.key_prefix is None:
            return BaseLocation("s3", self.bucket, ())
        return Location("s3", self.bucket, tuple(self.key_prefix.split("/")))

    def parse_location(self, text: str) -> Location:
        """Read a location a client gave: right scheme, strictly below the base. Raises `InvalidLocation`."""
        scheme = text.partition("://")[0].lower()
        if scheme not in self.scheme_alternatives:
            raise InvalidLocation(
                f"Location scheme {ascii(scheme[:20])} is not allowed in this warehouse: "
                f"use {', '.join(self.scheme_alternatives)}"
            )
        location = Location.parse(text, escapes_known=self.escapes_known)
        base = self.base_location()
        if not base.contains(location, strict=True):
            raise InvalidLocation(f"Location must lie below the warehouse's base location {base.prefix_text!r}")
        return location


def decode_profile(data: bytes | msgspec.Raw, *, endpoints: EndpointRules = ANY_NETWORK) -> S3Profile:
    """Read `{"type":"s3",…}`, aliases of older guides included, and check its endpoints against the operator's rules.

    Raises `InvalidStorageProfile`, `StorageTypeNotSupported`, `InvalidLocation` (bucket and key prefix).
    """
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise InvalidStorageProfile("The storage profile must be a JSON object") from None
    kind = fields.get("type")
    if isinstance(kind, str) and kind in _KNOWN_TYPES:
        raise StorageTypeNotSupported(f"Storage profile type {kind!r} is not supported yet: supported types are s3")
    if kind != "s3":
        raise InvalidStorageProfile("Storage profile field 'type' must be 's3'")
    _resolve_aliases(fields)
    for name in ("endpoint", "sts-endpoint"):
        if fields.get(name) is not None:
            if not isinstance(fields[name], str):
                raise InvalidStorageProfile(f"Storage profile field {name!r} must be a string")
            fields[name] = check_endpoint(fields[name], name, endpoints)
    try:
        return msgspec.convert(fields, type=S3Profile)
    except msgspec.ValidationError as error:
        raise InvalidStorageProfile(f"Invalid storage profile: {error}") from None


@lru_cache(maxsize=512)
def stored_profile(data: bytes) -> S3Profile:
    """As `decode_profile` for what is stored already, by the rules that hold without an operator's. Warehouses are few
    and every load needs one, so it is read once.
    """
    return decode_profile(data)


def _resolve_aliases(fields: dict[str, Any]) -> None:
    for alias, name in _ALIASES.items():
        if alias in fields:
            if name in fields:
                raise InvalidStorageProfile(f"Storage profile gives {name!r} and its alias {alias!r}: give one of them")
            fields[name] = fields.pop(alias)
    for name, aliases in (("flavor", _FLAVOR_ALIASES), ("remote-signing-url-style", _STYLE_ALIASES)):
        if isinstance(fields.get(name), str):
            fields[name] = aliases.get(fields[name], fields[name])
    if isinstance(fields.get("key-prefix"), str):
        # One slash at the end means the same place; nothing at all means the bucket's root.
        fields["key-prefix"] = fields["key-prefix"].removesuffix("/") or None
    for name in ("sts-session-tags", "storage-layout"):
        if fields.get(name, ...) is None:
            del fields[name]


def _check_place(profile: S3Profile) -> None:
    check_bucket(profile.bucket)
    if not _REGION.fullmatch(profile.region):
        raise InvalidStorageProfile(
            "Storage profile field 'region' must be 1 to 64 letters, digits, hyphens and underscores"
        )
    prefix = profile.key_prefix
    if prefix is not None:
        if not prefix or prefix.startswith("/") or prefix.endswith("/"):
            raise InvalidStorageProfile("Storage profile field 'key-prefix' must not be empty or start with a slash")
        if len(prefix.encode()) > MAX_KEY_PREFIX:
            raise InvalidStorageProfile(f"Storage profile field 'key-prefix' must have at most {MAX_KEY_PREFIX} bytes")
        if not profile.escapes_known:
            refuse_pattern_characters(prefix)
        profile.base_location()
    if profile.flavor is Flavor.S3_COMPAT and profile.endpoint is None:
        raise InvalidStorageProfile("Storage profile field 'endpoint' is needed for the flavor s3-compat")


def _check_roles(profile: S3Profile) -> None:
    for name, arn in (("assume-role-arn", profile.assume_role_arn), ("sts-role-arn", profile.sts_role_arn)):
        if arn is not None and not _ROLE_ARN.fullmatch(arn):
            raise InvalidStorageProfile(
                f"Storage profile field {name!r} must be a role ARN such as arn:aws:iam::123456789012:role/name"
            )
    if profile.sts_enabled and profile.flavor is Flavor.AWS and profile.session_role_arn is None:
        raise InvalidStorageProfile(
            "Storage profile needs 'sts-role-arn' or 'assume-role-arn' when 'sts-enabled' is true and the flavor is aws"
        )
    if profile.aws_kms_key_arn is not None and not _KMS_ARN.fullmatch(profile.aws_kms_key_arn):
        raise InvalidStorageProfile(
            "Storage profile field 'aws-kms-key-arn' must be the ARN of a key (…:key/…): policies cannot name an alias"
        )


def _check_sessions(profile: S3Profile) -> None:
    if not MIN_TOKEN_SECONDS <= profile.sts_token_validity_seconds <= MAX_TOKEN_SECONDS:
        raise InvalidStorageProfile(
            f"Storage profile field 'sts-token-validity-seconds' must be {MIN_TOKEN_SECONDS} to {MAX_TOKEN_SECONDS}"
        )
    if len(profile.sts_session_tags) > MAX_SESSION_TAGS:
        raise InvalidStorageProfile(
            f"Storage profile field 'sts-session-tags' must hold at most {MAX_SESSION_TAGS} tags"
        )
    for key, value in profile.sts_session_tags.items():
        if not (1 <= len(key) <= 128 and len(value) <= 256 and _TAG_TEXT.fullmatch(key) and _TAG_TEXT.fullmatch(value)):
            raise InvalidStorageProfile(
                "Storage profile field 'sts-session-tags' must map keys of 1 to 128 to values of at most 256 "
                "characters, each out of letters, digits, spaces and _.:/=+@-"
            )
