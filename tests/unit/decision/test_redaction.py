# SPDX-License-Identifier: Apache-2.0
"""Metadata for callers that may describe a table under data policies and not read it."""

from __future__ import annotations

import json

from gateway.iceberg.excerpts import without_data


def test_summaries_and_statistics_are_left_out_and_everything_else_stays() -> None:
    document = {
        "format-version": 2,
        "properties": {"owner": "x"},
        "current-snapshot-id": 3055729675574597004,
        "snapshots": [
            {
                "snapshot-id": 3055729675574597004,
                "manifest-list": "s3://a/b.avro",
                "summary": {"operation": "append", "total-records": "7", "added-partitions": "region=EU"},
            },
            {"snapshot-id": 2, "manifest-list": "s3://a/c.avro"},
        ],
        "statistics": [{"snapshot-id": 2, "statistics-path": "s3://a/s.puffin"}],
        "partition-statistics": [{"snapshot-id": 2, "statistics-path": "s3://a/p.parquet"}],
    }
    found = json.loads(without_data(json.dumps(document).encode()))
    assert found["statistics"] == found["partition-statistics"] == []
    assert found["snapshots"][0]["summary"] == {"operation": "append"}
    assert found["snapshots"][0]["snapshot-id"] == 3055729675574597004
    assert found["snapshots"][1] == document["snapshots"][1]  # type: ignore[index]  # a list of this test
    kept = set(document) - {"snapshots", "statistics", "partition-statistics"}
    assert {name: found[name] for name in kept} == {name: document[name] for name in kept}


def test_a_document_without_snapshots_is_unchanged() -> None:
    assert json.loads(without_data(b'{"format-version":1}')) == {"format-version": 1}


def test_counts_of_rows_of_format_version_3_are_left_out() -> None:
    snapshot = {"snapshot-id": 2, "manifest-list": "s3://a/c.avro", "first-row-id": 777, "added-rows": 888}
    document = {"format-version": 3, "next-row-id": 999, "snapshots": [snapshot]}
    found = without_data(json.dumps(document).encode())
    assert not any(count in found for count in (b"777", b"888", b"999"))
    assert json.loads(found)["next-row-id"] == 0, "readers require the member"
