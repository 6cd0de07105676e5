# SPDX-License-Identifier: Apache-2.0
"""HDFS storage profiles: the location is a directory below one that the operator lists.

Locations have the form `hdfs://host[:port]/path`, or `hdfs://nameservice/path` for several name nodes. Hadoop does not
decode `%20` in a path, and neither does this module. The authority is compared exactly: the gateway cannot know that
two spellings reach one name node.

Locations of Hadoop's other file systems, such as `webhdfs://`, are not accepted. They reach the same files under
another name, so overlapping locations would not be found.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, Final

import msgspec

from gateway.scope.credential import TemporaryCredential
from gateway.scope.errors import InvalidLocation, InvalidStorageProfile
from gateway.scope.location import DefaultLayout, Location, Scheme, StorageLayout, shown
from gateway.scope.profile import NoVending, StorageRules, check_authority
from gateway.storage.provider import Provider, opens
from gateway.storage.stored import StoredProfile, decode_stored_profile, require_listed

__all__ = [
    "HDFS",
    "SCHEME",
    "HdfsAccess",
    "HdfsProfile",
    "decode_hdfs_profile",
    "root_location",
]

MAX_PATH_BYTES: Final = 3072  # less than the 8,000 of HdfsConstants.MAX_PATH_LENGTH: file names are appended
MAX_SEGMENT_BYTES: Final = 255  # hdfs-default.xml, dfs.namenode.fs-limits.max-component-length

#: Names that HDFS interprets: `.reserved` gives access to any file by its number, `.snapshot` to deleted files of the
#: directory, and `.Trash` receives what users delete in the directory.
_INTERPRETED: Final = frozenset({".reserved", ".snapshot", ".trash"})


def _check_segment(segment: str) -> None:
    if ":" in segment:
        raise InvalidLocation(f"Path segment {shown(segment)} must not contain a colon, which HDFS does not allow")
    if segment.lower() in _INTERPRETED:
        raise InvalidLocation(f"Path segment {shown(segment)} has a special meaning in HDFS and is not allowed")
    if len(segment.encode()) > MAX_SEGMENT_BYTES:
        raise InvalidLocation(f"Path segment {shown(segment)} is too long: HDFS allows {MAX_SEGMENT_BYTES} bytes")


SCHEME: Final = Scheme(
    names=("hdfs",),
    check_authority=check_authority,
    max_path_bytes=MAX_PATH_BYTES,
    path_noun="an HDFS path",
    root_noun="the root of a file system",
    check_segment=_check_segment,
)


@lru_cache(maxsize=64)
def root_location(text: str) -> Location:
    """Parse a directory of the operator's list. The result is cached, because every access compares it. Raises
    InvalidLocation.
    """
    return SCHEME.parse(text)


_SETTING: Final = "LAKEGATE__STORAGE_HDFS_ROOTS"
_OWN_IDENTITY: Final = "a warehouse of type hdfs issues no credentials; clients open its files with their own identity"


class HdfsAccess(msgspec.Struct, frozen=True):
    """The gateway's own identity in HDFS: a Kerberos principal, or the user name of its process. The profile stores no
    secret.
    """

    provider: ClassVar[str] = "hdfs"

    @property
    def digest(self) -> str:
        """A constant, because all warehouses share this identity."""
        return "hdfs"


class HdfsProfile(StoredProfile, frozen=True, kw_only=True, tag="hdfs"):
    """A warehouse in a directory of HDFS. `location` is `hdfs://host[:port]/path` without a trailing slash.

    Construction raises `InvalidLocation` for a location that is not canonical. `check` applies the operator's rules,
    and every access repeats it (`client.py`).
    """

    provider: ClassVar[str] = "hdfs"
    scheme: ClassVar[Scheme] = SCHEME
    place: ClassVar[tuple[str, ...]] = ("location",)
    credential_kind: ClassVar[str | None] = None
    no_contact: ClassVar[str] = (
        f"The directory cannot be used: the directory in the setting {_SETTING} does not exist, or HDFS does not "
        "answer in time"
    )

    location: str
    storage_layout: StorageLayout = DefaultLayout()

    def __post_init__(self) -> None:
        if self.location != SCHEME.parse(self.location).text:
            raise InvalidStorageProfile(
                "Storage profile field 'location' must start with hdfs:// in lower case and must not end with a slash"
            )

    @property
    def escapes_known(self) -> bool:
        """Return False: paths with pattern characters are refused.

        Hadoop's shell and Ranger's policies read such characters as wildcards.
        """
        return False

    @property
    def downscoping(self) -> NoVending:
        """`NoVending`: the name node restricts its users; the gateway cannot confine clients."""
        return NoVending(reason=_OWN_IDENTITY, skipped=_OWN_IDENTITY)

    @property
    def own_access(self) -> HdfsAccess:
        """The identity of the gateway's process."""
        return HdfsAccess()

    def base_location(self) -> Location:
        """Return the location of the directory."""
        return SCHEME.parse(self.location)

    def check(self, rules: StorageRules) -> None:
        """Raise InvalidStorageProfile unless the directory is below a listed one. Raises StorageTypeNotSupported if
        none is listed.

        The operator chose the name nodes, so the rules for networks do not apply to them.
        """
        if rules.roots is None:
            return
        _require_allowed(rules)
        base = self.base_location()
        if not any(root_location(each).contains(base, strict=True) for each in rules.roots):
            raise InvalidStorageProfile(
                "Storage profile field 'location' must be below a directory that the operator lists in the setting "
                f"{_SETTING}, with the host and port written as there"
            )

    def root(self, rules: StorageRules) -> Location:
        """Return the operator's directory that contains the warehouse: the innermost if several do."""
        base = self.base_location()
        containing = [each for each in map(root_location, rules.roots or ()) if each.contains(base)]
        return max(containing, key=lambda each: len(each.segments), default=base)

    def endpoints(self) -> dict[str, str]:
        """Return the name node, or the name service for several name nodes."""
        return {"name-node": self.base_location().authority}

    def client_properties(
        self, temporary: TemporaryCredential | None, *, refresh_endpoint: str | None
    ) -> dict[str, str]:
        """Return nothing: clients connect with a Hadoop configuration of their own."""
        return {}


def _require_allowed(rules: StorageRules) -> None:
    require_listed(rules.roots, "hdfs", _SETTING)


def decode_hdfs_profile(fields: dict[str, Any], rules: StorageRules) -> HdfsProfile:
    """Decode `{"type":"hdfs",…}`. One trailing slash of the location is dropped.

    Raises `StorageTypeNotSupported` if the operator allows no such warehouses, `InvalidStorageProfile` and
    `InvalidLocation`.
    """
    if isinstance(fields.get("location"), str):
        fields["location"] = fields["location"].removesuffix("/")
    _require_allowed(rules)
    profile = decode_stored_profile(HdfsProfile, fields)
    profile.check(rules)
    return profile


HDFS: Final = Provider(
    profile=HdfsProfile,
    scheme=SCHEME,
    allowed=lambda rules: rules.roots is None or bool(rules.roots),
    decode_profile=decode_hdfs_profile,
    decode_credential=None,
    open=opens("gateway.storage.hdfs.client"),
)
