# SPDX-License-Identifier: Apache-2.0
"""Local storage profiles: the location is a directory below one that the operator lists."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from gateway.scope.credential import TemporaryCredential
from gateway.scope.errors import InvalidLocation, InvalidStorageProfile
from gateway.scope.location import DefaultLayout, Location, Scheme, StorageLayout, shown
from gateway.scope.profile import NoVending, StorageRules
from gateway.storage.provider import Provider, opens
from gateway.storage.stored import StoredProfile, decode_stored_profile, require_listed

__all__ = ["LOCAL", "SCHEME", "LocalAccess", "LocalProfile", "decode_local_profile", "directory_location"]

MAX_PATH_BYTES: Final = 3072  # less than the 4,096 that Linux allows: file names are appended

_SETTING: Final = "LAKEGATE__STORAGE_LOCAL_DIRECTORIES"


def _refuse_host(authority: str) -> None:
    if authority:
        raise InvalidLocation(
            f"Location of a local file must have the form file:///path, without the host {shown(authority)}"
        )


SCHEME: Final = Scheme(
    names=("file",),
    check_authority=_refuse_host,
    max_path_bytes=MAX_PATH_BYTES,
    path_noun="a local path",
    root_noun="the root of the file system",
    path_alone=True,
)


def directory_location(directory: str) -> Location:
    """Return the location of an absolute path. Raises InvalidLocation for a relative path, for `.` and `..`, and for
    the root.
    """
    if not directory.startswith("/"):
        raise InvalidLocation(f"Directory {shown(directory)} must be an absolute path")
    return SCHEME.parse(f"file://{directory}", escapes_known=True)


class LocalAccess(msgspec.Struct, frozen=True):
    """The gateway's own access to the files of its machine. It has no secret."""

    provider: ClassVar[str] = "local"

    @property
    def digest(self) -> str:
        """A constant, because all warehouses share this access."""
        return "local"


class LocalProfile(StoredProfile, frozen=True, kw_only=True, tag="local"):
    """A warehouse in a directory of the gateway's machine. `directory` is an absolute path without a trailing slash.

    Construction raises `InvalidLocation` for a path that is not canonical. `check` applies the operator's rules, and
    every access repeats it and refuses symbolic links (`client.py`).
    """

    provider: ClassVar[str] = "local"
    scheme: ClassVar[Scheme] = SCHEME
    place: ClassVar[tuple[str, ...]] = ("directory",)
    credential_kind: ClassVar[str | None] = None
    no_contact: ClassVar[str] = (
        f"The directory cannot be used: the directory in the setting {_SETTING} does not exist, or the machine does "
        "not answer in time"
    )

    directory: str
    storage_layout: StorageLayout = DefaultLayout()

    def __post_init__(self) -> None:
        if self.directory != "/" + "/".join(directory_location(self.directory).segments):
            raise InvalidStorageProfile("Storage profile field 'directory' must not end with a slash")

    @property
    def escapes_known(self) -> bool:
        """Return True: no policy exists in which a character could have a special meaning."""
        return True

    @property
    def downscoping(self) -> NoVending:
        """`NoVending`: the operating system restricts its users; the gateway cannot confine clients."""
        return NoVending(
            reason="a warehouse of type local issues no credentials; clients open its directory directly",
            skipped="a warehouse of type local issues no credentials; clients open its directory directly",
        )

    @property
    def own_access(self) -> LocalAccess:
        """The access of the gateway's process."""
        return LocalAccess()

    def base_location(self) -> Location:
        """Return the location of the directory."""
        return directory_location(self.directory)

    def check(self, rules: StorageRules) -> None:
        """Raise InvalidStorageProfile unless the directory is below one that the operator lists. The texts of the paths
        are compared.

        Raises StorageTypeNotSupported if none is listed.
        """
        if rules.directories is None:
            return
        _require_allowed(rules)
        base = self.base_location()
        if not any(directory_location(each).contains(base, strict=True) for each in rules.directories):
            raise InvalidStorageProfile(
                "Storage profile field 'directory' must be below a directory that the operator lists in the setting "
                f"{_SETTING}"
            )

    def client_properties(
        self, temporary: TemporaryCredential | None, *, refresh_endpoint: str | None
    ) -> dict[str, str]:
        """Return nothing: clients need only the scheme of a location."""
        return {}


def _require_allowed(rules: StorageRules) -> None:
    require_listed(rules.directories, "local", _SETTING)


def decode_local_profile(fields: dict[str, Any], rules: StorageRules) -> LocalProfile:
    """Decode `{"type":"local",…}`. One trailing slash of the directory is dropped.

    Raises `StorageTypeNotSupported` if the operator allows no such warehouses, `InvalidStorageProfile` and
    `InvalidLocation`.
    """
    if isinstance(fields.get("directory"), str):
        fields["directory"] = fields["directory"].removesuffix("/") or "/"
    _require_allowed(rules)
    profile = decode_stored_profile(LocalProfile, fields)
    profile.check(rules)
    return profile


LOCAL: Final = Provider(
    profile=LocalProfile,
    scheme=SCHEME,
    allowed=lambda rules: rules.directories is None or bool(rules.directories),
    decode_profile=decode_local_profile,
    decode_credential=None,
    open=opens("gateway.storage.local.client"),
)
