# SPDX-License-Identifier: Apache-2.0
"""Extract parts of table metadata: for decisions, for loads with `snapshots=refs`, and without statistics of the data.

A document may have 64 MiB, most of it snapshots. Decisions need only the schemas of a table and the properties of a
view. This part, the excerpt, is stored in separate columns, so that no decision reads the document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Raw, Struct, json

from gateway.iceberg import codec
from gateway.iceberg.errors import BadRequestException

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
    """Return the part of a document that decisions need: the schemas of a table, or the properties of a view.

    It is JSON with the member names of the document. Return None for other kinds and for a document that is not a JSON
    object.
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


#: Members that refer to files with values and counts of the table's data.
_STATISTICS: Final[tuple[str, ...]] = ("statistics", "partition-statistics")
#: Counts of rows in snapshots of format version 3. Readers accept snapshots without them.
_COUNTS: Final = frozenset({"first-row-id", "added-rows"})
#: The number of all rows that a table of format version 3 ever had. Readers require the member.
_ROWS: Final = "next-row-id"
_snapshots: Final = json.Decoder(list[dict[str, Raw]])
_summary: Final = json.Decoder(dict[str, Raw])


def without_data(document: bytes) -> bytes:
    """Return the metadata document without statistics: snapshot summaries, statistics files and counts of rows.

    A summary keeps its `operation`, which the specification requires. `document` must be one that this catalog wrote.
    """
    members = codec.decode(document, dict[str, Raw])
    reduced = {name: Raw(b"[]") for name in _STATISTICS if name in members}
    if _ROWS in members:
        reduced[_ROWS] = Raw(b"0")
    if "snapshots" in members:
        reduced["snapshots"] = Raw(codec.encode([_reduced(each) for each in _snapshots.decode(members["snapshots"])]))
    return codec.encode(members | reduced)


def _reduced(snapshot: dict[str, Raw]) -> dict[str, Raw]:
    snapshot = {name: value for name, value in snapshot.items() if name not in _COUNTS}
    if "summary" not in snapshot:
        return snapshot
    summary = {name: value for name, value in _summary.decode(snapshot["summary"]).items() if name == "operation"}
    return snapshot | {"summary": Raw(codec.encode(summary))}


class SnapshotsMode(StrEnum):
    """The snapshots that the response to a load contains (`snapshots` of `loadTable` in the REST specification)."""

    ALL = "all"
    REFS = "refs"

    @classmethod
    def parse(cls, text: str | None) -> SnapshotsMode:
        """Parse the query parameter.

        Without it (None), all snapshots are returned. Raises BadRequestException for an unknown value.
        """
        if text is None:
            return cls.ALL
        try:
            return cls(text)
        except ValueError:
            raise BadRequestException(
                f"The query parameter snapshots must be all or refs, not {text[:20]!r}."
            ) from None


class _OfSnapshot(Struct, rename="kebab"):
    snapshot_id: int


class _Pointers(Struct, rename="kebab"):
    current_snapshot_id: int | None = None
    refs: dict[str, _OfSnapshot] | None = None


#: Members whose elements belong to one snapshot each. The snapshot log is not reduced, as the specification requires.
_REDUCED: Final = ("snapshots", "statistics", "partition-statistics")
_pointers: Final = json.Decoder(_Pointers)
_of_snapshot: Final = json.Decoder(_OfSnapshot)
_texts: Final = json.Decoder(list[Raw])


def referenced_document(document: bytes) -> bytes:
    """Return the metadata document with only the snapshots that a branch or tag points to, and their statistics.

    Only the id of each snapshot is parsed, so the time depends on the size of the document and not on its content. A
    document without other snapshots is returned unchanged. `document` must be one that this catalog wrote.
    """
    members = codec.decode(document, dict[str, Raw])
    keep = _keeper(members)
    reduced: dict[str, Raw] = {name: _only(members[name], keep) for name in _REDUCED if name in members}
    if all(reduced[name] is members[name] for name in reduced):
        return document
    return codec.encode(members | reduced)


def _keeper(members: dict[str, Raw]) -> Callable[[Raw], bool]:
    found = _pointers.decode(codec.encode({n: members[n] for n in ("current-snapshot-id", "refs") if n in members}))
    # Documents of old writers have no refs: there `main` is the current snapshot.
    named = {found.current_snapshot_id} if found.refs is None else {each.snapshot_id for each in found.refs.values()}
    return lambda text: _of_snapshot.decode(text).snapshot_id in named


def _only(array: Raw, keep: Callable[[Raw], bool]) -> Raw:
    texts = _texts.decode(array)
    kept = [text for text in texts if keep(text)]
    return array if len(kept) == len(texts) else Raw(codec.encode(kept))
