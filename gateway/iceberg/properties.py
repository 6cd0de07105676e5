# SPDX-License-Identifier: Apache-2.0
"""Which table properties may be set and removed. Pure.

Settings of metadata files and of data paths that nothing here heeds are refused, because engines would take them for
granted and write where no credential reaches. `write.data.path` and `write.metadata.path` are heeded: they may point
inside the table's own prefix (decision 11 of the design; checked where the prefix is known).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from gateway.iceberg.errors import FailedToSetProperties, ImmutablePropertyModification, ImmutablePropertyRemoval

_METADATA: Final = "write.metadata"
_DATA_PATH: Final = "write.data.path"
_HEEDED: Final = frozenset(
    {
        "write.metadata.previous-versions-max",
        "write.metadata.delete-after-commit.enabled",
        "write.metadata.compression-codec",
        "write.metadata.path",
        _DATA_PATH,
    }
)
_METRICS: Final = "write.metadata.metrics."

#: Data written under one key cannot be read under another, so it is chosen once.
IMMUTABLE_PROPERTIES: Final = frozenset({"encryption.key-id"})


def check_settable(current: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raise FailedToSetProperties (409) for settings nothing heeds and ImmutablePropertyModification (400); a value
    that is there already may be said again.
    """
    changed = [name for name, value in wanted.items() if current.get(name) != value]
    unheeded = sorted(name for name in changed if _is_unheeded(name))
    if unheeded:
        raise FailedToSetProperties(f"These properties are not supported: {', '.join(unheeded)}")
    for name in changed:
        if name in IMMUTABLE_PROPERTIES and name in current:
            raise ImmutablePropertyModification(f"Property {name} cannot be changed once it is set")


def check_removable(current: Mapping[str, str], removals: Iterable[str]) -> None:
    """Raise ImmutablePropertyRemoval (400)."""
    for name in removals:
        if name in IMMUTABLE_PROPERTIES and name in current:
            raise ImmutablePropertyRemoval(f"Property {name} cannot be removed once it is set")


def _is_unheeded(name: str) -> bool:
    if name in _HEEDED or name.startswith(_METRICS):
        return False
    return name.startswith((_METADATA, _DATA_PATH))
