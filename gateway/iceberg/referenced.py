# SPDX-License-Identifier: Apache-2.0
"""Reduce table metadata for a load with `snapshots=refs`. Pure. The result must never be stored."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from msgspec import Raw, Struct, json

from gateway.iceberg import codec
from gateway.iceberg.errors import BadRequestException


class SnapshotsMode(StrEnum):
    """The snapshots that the response to a load contains (`snapshots` of `loadTable` in the REST specification)."""

    ALL = "all"
    REFS = "refs"

    @classmethod
    def parse(cls, text: str | None) -> SnapshotsMode:
        """Parse the query parameter. None means all. Raises BadRequestException for an unknown value."""
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


#: Members whose elements belong to one snapshot each. The snapshot log is not reduced, as the specification demands.
_REDUCED: Final = ("snapshots", "statistics", "partition-statistics")
_pointers: Final = json.Decoder(_Pointers)
_of_snapshot: Final = json.Decoder(_OfSnapshot)
_texts: Final = json.Decoder(list[Raw])


def referenced_document(document: bytes) -> bytes:
    """Return the metadata document with only the snapshots that a branch or tag names, and their statistics.

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
