# SPDX-License-Identifier: Apache-2.0
"""PyIceberg and the history of a table: branches, tags, time travel, rollback, expiry and inspection."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table.statistics import BlobMetadata, StatisticsFile

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def rows(*ids: int) -> pa.Table:
    """Return rows of one column."""
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Any, **scan: Any) -> list[int]:
    """Return the ids in a table, sorted."""
    return sorted(table.scan(**scan).to_arrow()["id"].to_pylist())


@pytest.fixture
def table(catalog: Any, ns: str) -> Any:
    """Create a table with three snapshots, of one, two and three rows."""
    table = catalog.create_table((ns, "t"), schema=rows().schema)
    for id in (1, 2, 3):
        table.append(rows(id))
    return table


def test_time_travel_by_snapshot_time_and_name(catalog: Any, table: Any, ns: str) -> None:
    first, second, third = (each.snapshot_id for each in table.snapshots())
    table.manage_snapshots().create_tag(first, "released", max_ref_age_ms=86_400_000).commit()
    found = catalog.load_table((ns, "t"))
    assert ids(found, snapshot_id=second) == [1, 2]
    assert found.snapshot_as_of_timestamp(found.snapshot_by_id(second).timestamp_ms).snapshot_id == second
    assert found.snapshot_by_name("released").snapshot_id == first
    assert sorted(found.scan().use_ref("released").to_arrow()["id"].to_pylist()) == [1]
    assert found.refs()["released"].max_ref_age_ms == 86_400_000
    assert [each.snapshot_id for each in found.history()] == [first, second, third]
    added = found.incremental_append_scan().from_snapshot_id_exclusive(first).to_snapshot_id_inclusive(third)
    assert sorted(added.to_arrow()["id"].to_pylist()) == [2, 3]


def test_branch_write_leaves_main_unchanged(catalog: Any, table: Any, ns: str) -> None:
    head = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_branch(head, "audit", max_snapshot_age_ms=1000, min_snapshots_to_keep=2).commit()
    made = catalog.load_table((ns, "t")).refs()["audit"]
    assert (made.max_snapshot_age_ms, made.min_snapshots_to_keep, made.snapshot_ref_type) == (1000, 2, "branch")
    table.append(rows(4), branch="audit")
    table.delete("id = 1", branch="audit")
    found = catalog.load_table((ns, "t"))
    assert ids(found) == [1, 2, 3]
    assert sorted(found.scan().use_ref("audit").to_arrow()["id"].to_pylist()) == [2, 3, 4]
    assert found.current_snapshot().snapshot_id == head
    found.manage_snapshots().set_current_snapshot(ref_name="audit").commit()
    assert ids(catalog.load_table((ns, "t"))) == [2, 3, 4]
    found.manage_snapshots().remove_branch("audit").commit()
    assert list(catalog.load_table((ns, "t")).refs()) == ["main"]


def test_table_is_rolled_back_to_a_snapshot_and_to_a_time(catalog: Any, table: Any, ns: str) -> None:
    first, second, third = table.snapshots()
    assert first.timestamp_ms < second.timestamp_ms < third.timestamp_ms
    table.manage_snapshots().rollback_to_timestamp(third.timestamp_ms).commit()
    assert ids(catalog.load_table((ns, "t"))) == [1, 2]
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    back = catalog.load_table((ns, "t"))
    assert ids(back) == [1]
    back.append(rows(9))
    assert ids(catalog.load_table((ns, "t"))) == [1, 9]


def test_expired_snapshots_are_removed_except_tagged_ones(catalog: Any, table: Any, ns: str) -> None:
    first, second, third = (each.snapshot_id for each in table.snapshots())
    table.manage_snapshots().create_tag(first, "kept").commit()
    table.maintenance.expire_snapshots().older_than(datetime.now() + timedelta(days=1)).commit()
    found = catalog.load_table((ns, "t"))
    assert {each.snapshot_id for each in found.snapshots()} == {first, third}
    assert ids(found) == [1, 2, 3]
    with pytest.raises(ValueError, match="[Ss]napshot"):
        ids(found, snapshot_id=second)
    found.manage_snapshots().remove_tag("kept").commit()
    found.maintenance.expire_snapshots().by_id(first).commit()
    assert [each.snapshot_id for each in catalog.load_table((ns, "t")).snapshots()] == [third]


def test_metadata_tables_show_the_history(catalog: Any, table: Any, ns: str) -> None:
    table.delete("id = 2")
    inspect = catalog.load_table((ns, "t")).inspect
    snapshots = inspect.snapshots().to_pylist()
    assert [each["operation"] for each in snapshots] == ["append", "append", "append", "delete"]
    assert [each["snapshot_id"] for each in inspect.history().to_pylist()] == [
        each["snapshot_id"] for each in snapshots
    ]
    assert inspect.files()["record_count"].to_pylist() == [1, 1]
    assert sum(inspect.data_files()["record_count"].to_pylist()) == 2
    assert inspect.delete_files().num_rows == 0
    assert sorted(inspect.entries()["status"].to_pylist()) == [1, 1, 2]  # two entries were added, one is deleted
    assert inspect.manifests()["content"].to_pylist() == [0] * inspect.manifests().num_rows
    assert inspect.all_data_files().num_rows > inspect.data_files().num_rows
    [ref] = inspect.refs().to_pylist()
    assert (ref["name"], ref["snapshot_id"]) == ("main", snapshots[-1]["snapshot_id"])
    log = inspect.metadata_log_entries().to_pylist()
    assert log[-1]["file"] == catalog.load_table((ns, "t")).metadata_location
    assert len(log) == 5


def test_snapshot_statistics_are_set_and_removed(catalog: Any, table: Any, ns: str) -> None:
    snapshot = table.current_snapshot().snapshot_id
    blob = BlobMetadata.model_validate(
        {
            "type": "apache-datasketches-theta-v1",
            "snapshot-id": snapshot,
            "sequence-number": 3,
            "fields": [1],
            "properties": {"ndv": "3"},
        }
    )
    file = StatisticsFile.model_validate(
        {
            "snapshot-id": snapshot,
            "statistics-path": f"{table.location()}/metadata/{snapshot}.stats",
            "file-size-in-bytes": 10,
            "file-footer-size-in-bytes": 5,
            "blob-metadata": [blob],
        }
    )
    with table.update_statistics() as change:
        change.set_statistics(file)
    assert catalog.load_table((ns, "t")).metadata.statistics == [file]
    with table.update_statistics() as change:
        change.remove_statistics(snapshot)
    assert catalog.load_table((ns, "t")).metadata.statistics == []
