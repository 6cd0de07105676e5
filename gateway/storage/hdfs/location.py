# SPDX-License-Identifier: Apache-2.0
"""Locations in HDFS: `hdfs://host[:port]/path`, or `hdfs://nameservice/path` for several name nodes.

Hadoop does not decode `%20` in a path, and neither does this module. The authority is compared exactly: the gateway
cannot know that two spellings reach one name node.

The locations of Hadoop's other file systems, such as `webhdfs://`, are no locations here. They reach the same files
under another name, so their overlap would not be found.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from gateway.scope.errors import InvalidLocation
from gateway.scope.location import Location, Scheme, shown
from gateway.scope.rules import check_authority

__all__ = ["SCHEME", "root_location"]

MAX_PATH_BYTES: Final = 3072  # of 8,000 characters (HdfsConstants.MAX_PATH_LENGTH): file names are appended
MAX_SEGMENT_BYTES: Final = 255  # hdfs-default.xml, dfs.namenode.fs-limits.max-component-length

#: Names that HDFS interprets. `.reserved` reaches any file by its number, `.snapshot` a deleted file of the directory,
#: and `.Trash` receives what users delete in the directory.
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
    """Parse a directory of the operator. Cached, because every access compares them. Raises InvalidLocation."""
    return SCHEME.parse(text)
