# SPDX-License-Identifier: Apache-2.0
"""Limits for the size of requests and of table and view metadata. Pure.

Each limit is checked before the work that it bounds: bytes before decompression, values before parsing, entries before
a scan. The values of a JSON text are counted by its commas and brackets, which is as fast as reading memory. The result
is never smaller than the number of values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.iceberg.codec import Parts
from gateway.iceberg.errors import MetadataTooLarge, PayloadTooLarge

MAX_COMPARISONS: Final = 2_000_000
"""Maximum number of entries that the updates of one commit may scan in total: about one second of CPU time."""

MAX_NAMESPACE_PROPERTY_BYTES: Final = 1024 * 1024
"""Maximum size of a namespace's properties: the UTF-8 bytes of all names and values."""


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of one process. Sizes are in bytes. A "value" is an element of an array or a member of an object."""

    request_values: int = 200_000
    file_bytes: int = 64 * 1024 * 1024
    document_bytes: int = 64 * 1024 * 1024
    document_values: int = 4_000_000
    snapshots: int = 100_000
    structures: int = 10_000
    properties: int = 10_000


class Measured(Struct, frozen=True, kw_only=True):
    """The sizes of those parts of table or view metadata that can grow.

    `histories` are the arrays with one entry per snapshot or commit, `structures` those with one entry per schema,
    spec, sort order, key or view version. Their keys are the nouns of error messages. `refs` is the number of refs.
    """

    histories: Mapping[str, Parts[Any]]
    structures: Mapping[str, Parts[Any]]
    properties: Mapping[str, str]
    refs: int = 0

    @property
    def size(self) -> int:
        """Estimate the size of the document in bytes without encoding it."""
        arrays = (*self.histories.values(), *self.structures.values())
        return sum(parts.size for parts in arrays) + sum(len(k) + len(v) + 6 for k, v in self.properties.items())


def property_bytes(properties: Mapping[str, str]) -> int:
    """Return the number of bytes of all property names and values in UTF-8."""
    return sum(len(name.encode()) + len(value.encode()) for name, value in properties.items())


def count_values(text: bytes) -> int:
    """Return an upper bound of the number of values in a JSON text, by counting commas and brackets, even inside
    strings.
    """
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def refuse_many_values(body: bytes, limits: Limits) -> None:
    """Raise PayloadTooLarge if a request body contains more values than `limits.request_values`."""
    if len(body) > limits.request_values and (found := count_values(body)) > limits.request_values:
        raise PayloadTooLarge(
            f"The request body has about {found} values; at most {limits.request_values} are allowed. Send the "
            "change in several requests."
        )


def refuse_large_document(text: bytes, limits: Limits, noun: str) -> None:
    """Raise MetadataTooLarge if a document exceeds the limit of bytes or of values. Nothing is parsed.

    `noun` begins the message: "Table" or "View".
    """
    if len(text) > limits.document_bytes:
        raise MetadataTooLarge(
            f"{noun} metadata has {len(text)} bytes; at most {limits.document_bytes} are allowed. Expire snapshots "
            "or versions to make it smaller."
        )
    if len(text) > limits.document_values and (found := count_values(text)) > limits.document_values:
        raise MetadataTooLarge(
            f"{noun} metadata has about {found} values; at most {limits.document_values} are allowed. Expire "
            "snapshots or versions to make it smaller."
        )


def refuse_growth(limits: Limits, now: Measured, before: Measured | None) -> None:
    """Raise MetadataTooLarge if an array, the properties, the refs or the size exceed a limit and grew in this change.

    Metadata above a limit that was lowered later may stay and shrink. Otherwise an expiry of snapshots would fail
    because of the size that it reduces.
    """
    for limit, of in ((limits.snapshots, "histories"), (limits.structures, "structures")):
        arrays: Mapping[str, Parts[Any]] = getattr(now, of)
        old: Mapping[str, Parts[Any]] = {} if before is None else getattr(before, of)
        for name, parts in arrays.items():
            was = old.get(name)
            if parts is was or not parts.longer_than(limit):
                continue
            if was is None or parts.length > was.length:
                raise MetadataTooLarge(
                    f"The metadata would have {parts.length} {name}; at most {limit} are allowed. Remove or expire "
                    "some of them first."
                )
    count, had = len(now.properties), 0 if before is None else len(before.properties)
    if count > max(limits.properties, had):
        raise MetadataTooLarge(
            f"The metadata would have {count} properties; at most {limits.properties} are allowed. Remove some of "
            "them first."
        )
    if now.refs > max(limits.structures, 0 if before is None else before.refs):
        raise MetadataTooLarge(
            f"The metadata would have {now.refs} refs; at most {limits.structures} are allowed. Remove some of the "
            "branches or tags first."
        )
    size = now.size
    if size > limits.document_bytes and (before is None or size > before.size):
        raise MetadataTooLarge(
            f"The metadata would have about {size} bytes; at most {limits.document_bytes} are allowed. Expire "
            "snapshots or versions first."
        )
