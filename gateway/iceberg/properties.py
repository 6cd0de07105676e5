# SPDX-License-Identifier: Apache-2.0
"""Rules for setting and removing properties of tables and views. Pure.

The catalog rejects `write.metadata…` and `write.data.path…` settings that it does not implement. Engines would rely on
them and write to locations that their credentials do not cover. It implements `write.data.path` and
`write.metadata.path`. They must point inside the table's own prefix, which the use cases check.

The value of a property that the catalog itself evaluates must be valid: a misspelt `gc.enabled` must not decide whether
files are deleted. Registered tables may have invalid values. These have the safer meaning, and can be corrected.
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
_SUPPORTED_PROPERTIES: Final = frozenset(
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

#: A key id is immutable, because data that was encrypted with one key cannot be read with another.
IMMUTABLE_PROPERTIES: Final = frozenset({"encryption.key-id"})


def check_settable(current: Mapping[str, str], requested: Mapping[str, str]) -> None:
    """Raise an error if a table property must not be set. Values that `current` already has are accepted.

    Raises FailedToSetProperties (409) for settings that the catalog does not implement. Raises
    ImmutablePropertyModification, BadRequestException or UnsupportedCompressionCodec (400) for a changed immutable
    property and for invalid values of properties that the catalog evaluates.
    """
    changed = {name: value for name, value in requested.items() if current.get(name) != value}
    unsupported = sorted(name for name in changed if _is_ignored_property(name))
    if unsupported:
        raise FailedToSetProperties(f"These properties are not supported: {', '.join(unsupported)}")
    for name in changed:
        if name in IMMUTABLE_PROPERTIES and name in current:
            raise ImmutablePropertyModification(f"Cannot modify immutable property '{name}'")
    for name in _COUNTS:
        _require_count(changed, name, "Table property")
    for name in _FLAGS:
        _require_flag(changed, name, "Table property")
    uses_gzip(changed)


def check_settable_on_view(current: Mapping[str, str], requested: Mapping[str, str]) -> None:
    """Raise BadRequestException or UnsupportedCompressionCodec (400) if a view property has an invalid value.

    Values that `current` already has are accepted.
    """
    changed = {name: value for name, value in requested.items() if current.get(name) != value}
    if _count(changed.get(HISTORY_SIZE, "1")) in (None, 0):
        raise BadRequestException(f"{HISTORY_SIZE} must be positive but was {changed[HISTORY_SIZE][:80]}")
    _require_flag(changed, DROP_DIALECT_ALLOWED, "View property")
    uses_gzip(changed)


def previous_versions_kept(properties: Mapping[str, str]) -> int:
    """Return the number of previous metadata files that a table's log keeps.

    It is at least 1, as in the Java reference implementation.
    """
    count = _count(properties.get(PREVIOUS_VERSIONS_MAX, ""))
    return max(1, DEFAULT_PREVIOUS_VERSIONS if count is None else count)


def view_versions_kept(properties: Mapping[str, str]) -> int:
    """Return the number of versions that a view keeps: at least 1."""
    return _count(properties.get(HISTORY_SIZE, "")) or DEFAULT_HISTORY_SIZE


def flag(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return a property as a bool. A missing property has the value `default`.

    Values other than `true` and `false` are False, as in engines. Each of these flags permits a removal, so False is
    the safer meaning.
    """
    text = properties.get(name)
    return default if text is None else text.strip().lower() == "true"


def check_removable(current: Mapping[str, str], removals: Iterable[str]) -> None:
    """Raise ImmutablePropertyRemoval (400) if `current` has an immutable property that is in `removals`."""
    for name in removals:
        if name in IMMUTABLE_PROPERTIES and name in current:
            raise ImmutablePropertyRemoval(f"Cannot remove immutable property '{name}'")


def _is_ignored_property(name: str) -> bool:
    if name in _SUPPORTED_PROPERTIES or name.startswith(_METRICS):
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
    """Parse a 32-bit number that consists of digits only, as engines do. Return None for any other text."""
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        return None
    return number if (number := int(text)) <= _LARGEST_COUNT else None
