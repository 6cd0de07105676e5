# SPDX-License-Identifier: Apache-2.0
"""Extract the part of a metadata document that decisions read. Pure.

A document may have 64 MiB, most of it snapshots. Decisions need only the schemas of a table and the properties of a
view. This part is stored in columns of its own, so that no decision reads the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

_ABSENT: Final = msgspec.Raw(b"null")


class _OfTable(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    current_schema_id: msgspec.Raw = _ABSENT
    schemas: msgspec.Raw = msgspec.Raw(b"[]")
    schema: msgspec.Raw = _ABSENT


class _OfView(msgspec.Struct, frozen=True):
    properties: msgspec.Raw = msgspec.Raw(b"{}")


class _Properties(msgspec.Struct, frozen=True):
    properties: Mapping[str, str] = {}


_TABLE = msgspec.json.Decoder(_OfTable)
_VIEW = msgspec.json.Decoder(_OfView)
_PROPERTIES = msgspec.json.Decoder(_Properties)
_ENCODER = msgspec.json.Encoder()


def excerpt_of(kind: str, document: bytes) -> bytes | None:
    """Return the schemas of a table's document, or the properties of a view's, as JSON with the member names of the
    document.

    Returns None for other kinds and for a document that is not a JSON object.
    """
    if kind not in ("table", "view"):
        return None
    try:
        return _ENCODER.encode((_TABLE if kind == "table" else _VIEW).decode(document))
    except (msgspec.MsgspecError, RecursionError):
        return None


def properties_in(excerpt: bytes) -> Mapping[str, str]:
    """Return the properties in a view's excerpt. Raises msgspec.DecodeError for bytes that are not an excerpt."""
    return _PROPERTIES.decode(excerpt).properties
