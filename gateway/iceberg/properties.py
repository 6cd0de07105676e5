# SPDX-License-Identifier: Apache-2.0
"""Which table properties may be set and removed. Pure.

Settings of metadata files and of data paths that nothing here heeds are refused, because engines would take them for
granted and write where no credential reaches. `write.data.path` and `write.metadata.path` are heeded: they may point
inside the table's own prefix, which is checked where the prefix is known.

A value that this catalog itself acts upon must be one it understands: a misspelt `gc.enabled` must not decide about
files. Values of tables that were registered with such a mistake are read for the safer meaning, and can be corrected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from gateway.iceberg.errors import (
    BadRequestException,
    FailedToSetProperties,
    ImmutablePropertyModification,
    ImmutablePropertyRemoval,
)
from gateway.iceberg.metadata_file import uses_gzip

PREVIOUS_VERSIONS_MAX: Final = "write.metadata.previous-versions-max"
DEFAULT_PREVIOUS_VERSIONS: Final = 100
DELETE_AFTER_COMMIT: Final = "write.metadata.delete-after-commit.enabled"
GC_ENABLED: Final = "gc.enabled"
HISTORY_SIZE: Final = "version.history.num-entries"
DEFAULT_HISTORY_SIZE: Final = 10
DROP_DIALECT_ALLOWED: Final = "replace.drop-dialect.allowed"

_METADATA: Final = "write.metadata"
_DATA_PATH: Final = "write.data.path"
_HEEDED: Final = frozenset(
    {
        PREVIOUS_VERSIONS_MAX,
        DELETE_AFTER_COMMIT,
        "write.metadata.compression-codec",
        "write.metadata.path",
        _DATA_PATH,
    }
)
_METRICS: Final = "write.metadata.metrics."

_COUNTS: Final = (
    "commit.retry.num-retries",
    "commit.retry.min-wait-ms",
    "commit.retry.max-wait-ms",
    "commit.retry.total-timeout-ms",
    PREVIOUS_VERSIONS_MAX,
)
_FLAGS: Final = (GC_ENABLED, DELETE_AFTER_COMMIT)
_LARGEST_COUNT: Final = 2**31 - 1

#: Data written under one key cannot be read under another, so it is chosen once.
IMMUTABLE_PROPERTIES: Final = frozenset({"encryption.key-id"})


def check_settable(current: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raise FailedToSetProperties (409) for settings nothing heeds, ImmutablePropertyModification and, for values the
    catalog acts upon and does not understand, BadRequestException or UnsupportedCompressionCodec (400); a value that is
    there already may be said again.
    """
    changed = {name: value for name, value in wanted.items() if current.get(name) != value}
    unheeded = sorted(name for name in changed if _is_unheeded(name))
    if unheeded:
        raise FailedToSetProperties(f"These properties are not supported: {', '.join(unheeded)}")
    for name in changed:
        if name in IMMUTABLE_PROPERTIES and name in current:
            raise ImmutablePropertyModification(f"Property {name} cannot be changed once it is set")
    for name in _COUNTS:
        _require_count(changed, name, "Table property")
    for name in _FLAGS:
        _require_flag(changed, name, "Table property")
    uses_gzip(changed)


def check_settable_on_view(current: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """The same for a view's properties; raises BadRequestException or UnsupportedCompressionCodec (400)."""
    changed = {name: value for name, value in wanted.items() if current.get(name) != value}
    if _count(changed.get(HISTORY_SIZE, "1")) in (None, 0):
        raise BadRequestException(f"{HISTORY_SIZE} must be positive but was {changed[HISTORY_SIZE][:80]}")
    _require_flag(changed, DROP_DIALECT_ALLOWED, "View property")
    uses_gzip(changed)


def previous_versions_kept(properties: Mapping[str, str]) -> int:
    """How many metadata files before the current one a table's log names: at least 1 (as the reference has it)."""
    count = _count(properties.get(PREVIOUS_VERSIONS_MAX, ""))
    return max(1, DEFAULT_PREVIOUS_VERSIONS if count is None else count)


def view_versions_kept(properties: Mapping[str, str]) -> int:
    """How many versions a view keeps: at least 1."""
    return _count(properties.get(HISTORY_SIZE, "")) or DEFAULT_HISTORY_SIZE


def flag(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    """A property as a truth value. What is neither true nor false is false, as in engines: each of these flags allows
    something to be taken away.
    """
    text = properties.get(name)
    return default if text is None else text.strip().lower() == "true"


def check_removable(current: Mapping[str, str], removals: Iterable[str]) -> None:
    """Raise ImmutablePropertyRemoval (400)."""
    for name in removals:
        if name in IMMUTABLE_PROPERTIES and name in current:
            raise ImmutablePropertyRemoval(f"Property {name} cannot be removed once it is set")


def _is_unheeded(name: str) -> bool:
    if name in _HEEDED or name.startswith(_METRICS):
        return False
    return name.startswith((_METADATA, _DATA_PATH))


def _require_count(properties: Mapping[str, str], name: str, noun: str) -> None:
    text = properties.get(name)
    if text is not None and _count(text) is None:
        raise BadRequestException(
            f"{noun} {name} must have non-negative integer value up to {_LARGEST_COUNT}, not {text[:80]!r}"
        )


def _require_flag(properties: Mapping[str, str], name: str, noun: str) -> None:
    text = properties.get(name)
    if text is not None and text.strip().lower() not in ("true", "false"):
        raise BadRequestException(f"{noun} {name} must be true or false, not {text[:80]!r}")


def _count(text: str) -> int | None:
    """A 32-bit number as engines read it: digits only."""
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        return None
    return number if (number := int(text)) <= _LARGEST_COUNT else None
