# SPDX-License-Identifier: Apache-2.0
"""The reduced metadata of `snapshots=refs`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.excerpts import SnapshotsMode, referenced_document
from gateway.iceberg.metadata import encode_table_metadata


def test_only_referenced_snapshots_remain_and_the_log_is_complete(table: Any, commit: Any, w: Any) -> None:
    one = commit(table(), w.snapshot(1), w.ref("main", 1)).metadata
    two = commit(one, w.snapshot(2, seq=2, parent=1), w.ref("main", 2)).metadata
    document = encode_table_metadata(two)
    small = msgspec.json.decode(referenced_document(document))
    whole = msgspec.json.decode(document)
    assert [each["snapshot-id"] for each in small["snapshots"]] == [2]
    assert {**small, "snapshots": []} == {**whole, "snapshots": []}


def test_a_document_without_removed_snapshots_keeps_its_bytes(table: Any, commit: Any, w: Any) -> None:
    document = encode_table_metadata(commit(table(), w.snapshot(1), w.ref("main", 1)).metadata)
    assert referenced_document(document) is document


def test_snapshots_of_branches_and_tags_stay_and_other_statistics_are_removed() -> None:
    def statistics(id: int) -> dict[str, object]:
        return {"snapshot-id": id, "statistics-path": "s3://b/x", "unknown": [id]}

    document = msgspec.json.encode(
        {
            "current-snapshot-id": 3,
            "refs": {"main": {"snapshot-id": 3, "type": "branch"}, "old": {"snapshot-id": 1, "type": "tag"}},
            "snapshots": [{"snapshot-id": id, "x": {"kept": id}} for id in (1, 2, 3)],
            "statistics": [statistics(2), statistics(3)],
            "partition-statistics": [statistics(1), statistics(2)],
            "later": {"unknown": True},
        }
    )
    small = msgspec.json.decode(referenced_document(document))
    assert [each["snapshot-id"] for each in small["snapshots"]] == [1, 3]
    assert small["snapshots"][0]["x"] == {"kept": 1}
    assert small["statistics"] == [statistics(3)]
    assert small["partition-statistics"] == [statistics(1)]
    assert small["later"] == {"unknown": True}


def test_a_table_without_refs_treats_the_current_snapshot_as_main() -> None:
    document = msgspec.json.encode({"current-snapshot-id": 7, "snapshots": [{"snapshot-id": 6}, {"snapshot-id": 7}]})
    assert msgspec.json.decode(referenced_document(document))["snapshots"] == [{"snapshot-id": 7}]


def test_the_snapshots_parameter_is_all_or_refs() -> None:
    assert SnapshotsMode.parse(None) is SnapshotsMode.ALL
    assert SnapshotsMode.parse("refs") is SnapshotsMode.REFS
    with pytest.raises(BadRequestException, match="all or refs, not 'REFS'"):
        SnapshotsMode.parse("REFS")
