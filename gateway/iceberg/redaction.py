# SPDX-License-Identifier: Apache-2.0
"""Remove from table metadata what is computed from the rows. Pure. The result must never be stored."""

from __future__ import annotations

from typing import Final

from msgspec import Raw, json

from gateway.iceberg import codec

#: Members that refer to files with values and counts of the table's data.
_STATISTICS: Final[tuple[str, ...]] = ("statistics", "partition-statistics")
#: Counts of rows in snapshots of format version 3. Readers accept snapshots without them.
_COUNTS: Final = frozenset({"first-row-id", "added-rows"})
#: The number of all rows that a table of format version 3 ever had. Readers require the member.
_ROWS: Final = "next-row-id"
_snapshots: Final = json.Decoder(list[dict[str, Raw]])
_summary: Final = json.Decoder(dict[str, Raw])


def without_data(document: bytes) -> bytes:
    """Return the metadata document without summaries of snapshots, statistics files and counts of rows.

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
