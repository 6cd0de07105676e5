# SPDX-License-Identifier: Apache-2.0
"""Locations in Azure Data Lake Storage Gen2: `abfss://filesystem@account.host/path`."""

import re
from typing import Final

from gateway.scope.errors import InvalidLocation
from gateway.scope.location import Scheme, shown

__all__ = ["HOST", "HOSTS", "SCHEME", "blob_host", "check_account", "check_filesystem"]

MAX_PATH_BYTES: Final = 1024  # "Naming and referencing containers, blobs, and metadata", blob names
HOSTS: Final = ("dfs.core.windows.net", "dfs.core.usgovcloudapi.net", "dfs.core.chinacloudapi.cn")
"""The hosts of Azure's public and sovereign clouds."""

_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}", re.ASCII)
_FILESYSTEM: Final = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}", re.ASCII)
HOST: Final = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+", re.ASCII)


def check_account(name: str) -> None:
    """Refuse a name that is no storage account ("Storage account overview"). Raises `InvalidLocation`."""
    if not _ACCOUNT.fullmatch(name):
        raise InvalidLocation(f"Storage account {shown(name)} must have 3 to 24 characters of a-z and 0-9")


def check_filesystem(name: str) -> None:
    """Refuse a name that is no container ("Naming and referencing containers, blobs, and metadata").

    Raises `InvalidLocation`.
    """
    if not 3 <= len(name) <= 63 or not _FILESYSTEM.fullmatch(name):
        raise InvalidLocation(
            f"File system {shown(name)} must have 3 to 63 characters of a-z, 0-9 and single hyphens, and begin and end "
            "with a letter or digit"
        )


def blob_host(host: str) -> str:
    """Return the host of the blob service that belongs to a host of the file service: `blob.core.windows.net`."""
    return host.replace("dfs.", "blob.", 1)


def _check_authority(authority: str) -> None:
    filesystem, at, server = authority.partition("@")
    account, _, host = server.partition(".")
    if not at or not HOST.fullmatch(host):
        raise InvalidLocation(f"Location must have the form abfss://filesystem@account.{HOSTS[0]}/path")
    check_filesystem(filesystem)
    check_account(account)


def _check_segment(segment: str) -> None:
    if segment.endswith("."):
        raise InvalidLocation(
            f"Path segment {shown(segment)} must not end with a dot: Azure drops it, so two names are one directory"
        )
    if "%" in segment:
        raise InvalidLocation(
            f"Path segment {shown(segment)} must not contain a percent sign: some of Azure's clients decode names, so "
            "one name is two directories"
        )


SCHEME: Final = Scheme(
    names=("abfss", "abfs", "wasbs", "wasb"),
    check_authority=_check_authority,
    max_path_bytes=MAX_PATH_BYTES,
    path_noun="a path in a file system",
    root_noun="the root of a file system",
    check_segment=_check_segment,
)
