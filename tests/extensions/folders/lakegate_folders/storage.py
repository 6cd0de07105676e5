# SPDX-License-Identifier: Apache-2.0
"""A storage type `folder`: warehouses on volumes that the operator mounts, with locations `folder://volume/path`.

The environment variable LAKEGATE_FOLDERS_VOLUMES lists the volumes, such as `fast=/mnt/nvme,slow=/mnt/disk`.
This module is pure: `files.py`, which does the I/O, is imported when the provider is opened.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec

from gateway.scope.credential import TemporaryCredential
from gateway.scope.errors import InvalidLocation, InvalidStorageProfile
from gateway.scope.location import BaseLocation, DefaultLayout, Location, Scheme, StorageLayout, shown
from gateway.scope.profile import NoVending, StorageProfile, StorageRules
from gateway.storage.provider import ClientOptions, Provider, StorageClient

_VOLUME = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)
_NO_KEYS = "a warehouse of type folder issues no credentials; clients open the volume directly"


def _check_volume(authority: str) -> None:
    if _VOLUME.fullmatch(authority) is None:
        raise InvalidLocation(f"Location must name a volume in lower case, and not {shown(authority)}")


SCHEME = Scheme(
    names=("folder",),
    check_authority=_check_volume,
    max_path_bytes=1024,
    path_noun="a path of a volume",
    root_noun="the root of a volume",
)


class FolderAccess(msgspec.Struct, frozen=True):
    """The gateway's own access to the volumes. It has no secret."""

    provider: ClassVar[str] = "folder"

    @property
    def digest(self) -> str:
        """A constant: there is only one such access."""
        return "folder"


class FolderProfile(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="kebab",
    forbid_unknown_fields=True,
    tag_field="type",
    tag="folder",
):
    """A warehouse in a folder of a volume. Construction raises InvalidLocation for a path that is not canonical."""

    provider: ClassVar[str] = "folder"
    credential_kind: ClassVar[str | None] = None
    no_contact: ClassVar[str] = (
        "The volume cannot be used: it is not mounted, or not listed in LAKEGATE_FOLDERS_VOLUMES"
    )

    volume: str
    path: str
    storage_layout: StorageLayout = DefaultLayout()

    def __post_init__(self) -> None:
        self.base_location()

    @property
    def escapes_known(self) -> bool:
        """True: no policy gives a character a special meaning."""
        return True

    @property
    def downscoping(self) -> NoVending:
        """`NoVending`: the operating system restricts its users."""
        return NoVending(reason=_NO_KEYS, skipped=_NO_KEYS)

    @property
    def own_access(self) -> FolderAccess:
        """The access of the gateway's process."""
        return FolderAccess()

    def base_location(self) -> BaseLocation:
        """Return the folder."""
        return SCHEME.parse(f"folder://{self.volume}/{self.path}", escapes_known=True)

    def parse_location(self, text: str) -> Location:
        """Parse a location strictly below the folder. Raises InvalidLocation."""
        location = SCHEME.parse(text, escapes_known=True)
        base = self.base_location()
        if not base.contains(location, strict=True):
            raise InvalidLocation(f"Location must be below the base location of the warehouse, {base.prefix_text!r}")
        return location

    def check(self, rules: StorageRules) -> None:
        """Do nothing: the list of volumes is checked with each access."""

    def moved(self, new: StorageProfile) -> list[str]:
        """Return the fields that refer to another folder in `new`."""
        if not isinstance(new, FolderProfile):
            return ["type"]
        return [name for name in ("volume", "path") if getattr(self, name) != getattr(new, name)]

    def endpoints(self) -> dict[str, str]:
        """Return nothing: a volume has no endpoint."""
        return {}

    def client_properties(
        self, temporary: TemporaryCredential | None, *, refresh_endpoint: str | None
    ) -> dict[str, str]:
        """Return nothing: clients mount the volume themselves."""
        return {}


def _decode_profile(fields: dict[str, Any], rules: StorageRules) -> FolderProfile:
    try:
        return msgspec.convert(fields, type=FolderProfile)
    except msgspec.ValidationError as error:
        raise InvalidStorageProfile(f"Invalid storage profile: {error}") from None


def _open(options: ClientOptions) -> StorageClient:
    from .files import FolderFiles

    return StorageClient(files=FolderFiles(seconds=options.total_seconds), sessions=None, close=lambda: None)


def provider() -> Provider:
    """Return the provider: the function that the entry point names."""
    return Provider(
        profile=FolderProfile,
        scheme=SCHEME,
        allowed=lambda _: True,
        decode_profile=_decode_profile,
        decode_credential=None,
        open=_open,
    )
