# SPDX-License-Identifier: Apache-2.0
"""Updates of snapshots, refs, statistics, properties and keys."""

from typing import Any

import pytest

from gateway.iceberg.errors import BadRequestException, CatalogError, InvalidTableUpdate, RetryableValidation


def statistics(snapshot_id: int, path: str = "a.puffin", **more: Any) -> dict[str, Any]:
    file = {
        "snapshot-id": snapshot_id,
        "statistics-path": f"s3://lake/t/{path}",
        "file-size-in-bytes": 10,
        "file-footer-size-in-bytes": 4,
        "blob-metadata": [{"type": "x", "snapshot-id": snapshot_id, "sequence-number": 1, "fields": [1]}],
    }
    return {"action": "set-statistics", "statistics": file, **more}


def partition_statistics(snapshot_id: int, path: str = "a.parquet") -> dict[str, Any]:
    file = {"snapshot-id": snapshot_id, "statistics-path": f"s3://lake/t/{path}", "file-size-in-bytes": 10}
    return {"action": "set-partition-statistics", "partition-statistics": file}


@pytest.fixture(scope="module")
def two(table: Any, commit: Any, w: Any) -> Any:
    """Return a table with snapshots 1 and 2 on main and a tag on 1."""
    one = commit(table(), w.snapshot(1), w.ref("main", 1), w.ref("first", 1, "tag")).metadata
    return commit(one, w.snapshot(2, seq=2, parent=1), w.ref("main", 2)).metadata


# ---- snapshots ---------------------------------------------------------------------------------------------------


def test_an_added_snapshot_moves_the_sequence_number_but_not_main(table: Any, commit: Any, w: Any) -> None:
    new = commit(table(), w.snapshot(1, seq=5)).metadata
    assert (new.last_sequence_number, new.current_snapshot_id, new.refs) == (5, None, {})


def test_a_stale_sequence_number_is_a_conflict_to_retry(two: Any, commit: Any, w: Any) -> None:
    with pytest.raises(RetryableValidation) as caught:
        commit(two, w.snapshot(3, seq=2, parent=1))
    assert caught.value.message == (
        "Validation failed, please retry: Cannot add snapshot with sequence number 2 older than last sequence number 2"
    )
    assert caught.value.code == 409


def test_a_snapshot_without_parent_never_lowers_the_last_sequence_number(two: Any, commit: Any, w: Any) -> None:
    new = commit(two, w.snapshot(3, seq=1), w.ref("main", 3)).metadata
    assert (new.last_sequence_number, new.current_snapshot_id) == (2, 3)


def test_a_snapshot_id_is_never_used_twice(two: Any, commit: Any, w: Any) -> None:
    with pytest.raises(InvalidTableUpdate, match="Snapshot already exists for id: 1"):
        commit(two, w.snapshot(1, seq=9))
    with pytest.raises(InvalidTableUpdate, match="Snapshot already exists for id: 5"):
        commit(two, w.snapshot(5, seq=9), w.snapshot(5, seq=10))


def test_a_snapshot_id_with_digits_found_elsewhere_in_the_text_is_new(two: Any, commit: Any, w: Any) -> None:
    """The digits of 170 occur in timestamps of the stored text; a search for digits alone would be wrong."""
    assert commit(two, w.snapshot(170, seq=9)).changed


def test_a_snapshot_is_stored_without_nulls_and_without_sequence_number_zero(table: Any, commit: Any, w: Any) -> None:
    added = w.snapshot(1, seq=0, **{"schema-id": None, "x-new": {"a": None}, "timestamp-ms": w.created_ms + 1})
    added["snapshot"]["parent-snapshot-id"] = None
    members = commit(table(1), added).metadata.snapshots[0].members()
    assert not {"parent-snapshot-id", "schema-id", "sequence-number"} & members.keys()
    assert members["x-new"] == {"a": None}


def test_version_1_stores_no_sequence_numbers(table: Any, commit: Any, w: Any) -> None:
    new = commit(table(1), w.snapshot(1, seq=4)).metadata
    assert (new.snapshots[0].sequence_number, new.last_sequence_number) == (0, 0)


def test_a_snapshot_needs_its_manifests(table: Any, commit: Any, w: Any) -> None:
    with pytest.raises(BadRequestException, match=r"`manifest-list` at `\$\.updates\[0\]\.snapshot`"):
        commit(table(), w.snapshot(1, **{"manifest-list": None}))


def test_a_malformed_snapshot_is_refused_with_its_path(table: Any, commit: Any, w: Any) -> None:
    with pytest.raises(
        BadRequestException, match=r"expected `int \| null`, got `str` at `\$\.updates\[0\]\.snapshot\.schema-id`"
    ):
        commit(table(), w.snapshot(1, **{"schema-id": "0"}))


# ---- row lineage -------------------------------------------------------------------------------------------------


def test_version_3_counts_assigned_rows(table: Any, commit: Any, w: Any) -> None:
    rows = {"first-row-id": 0, "added-rows": 10}
    one = commit(table(3), w.snapshot(1, **rows), w.ref("main", 1)).metadata
    two = commit(one, w.snapshot(2, seq=2, parent=1, **{"first-row-id": 10, "added-rows": 0})).metadata
    assert (one.next_row_id, two.next_row_id) == (10, 10)


def test_row_ids_before_a_gap_are_not_reused(table: Any, commit: Any, w: Any) -> None:
    new = commit(table(3), w.snapshot(1, **{"first-row-id": 100, "added-rows": 10})).metadata
    assert new.next_row_id == 110


def test_row_ids_already_given_are_a_conflict_to_retry(table: Any, commit: Any, w: Any) -> None:
    one = commit(table(3), w.snapshot(1, **{"first-row-id": 0, "added-rows": 10})).metadata
    with pytest.raises(RetryableValidation, match="first-row-id behind table next-row-id: 9"):
        commit(one, w.snapshot(2, seq=2, parent=1, **{"first-row-id": 9, "added-rows": 1}))


def test_version_3_refuses_snapshots_without_row_ids(table: Any, commit: Any, w: Any) -> None:
    with pytest.raises(InvalidTableUpdate, match="first-row-id is null"):
        commit(table(3), w.snapshot(1))
    with pytest.raises(BadRequestException, match="Invalid added-rows"):
        commit(table(3), w.snapshot(1, **{"first-row-id": 0}))


def test_one_snapshot_leaves_row_ids_to_other_writers(table: Any, commit: Any, w: Any) -> None:
    last = {"first-row-id": 2**47, "added-rows": 2**47}
    one = commit(table(3), w.snapshot(1, **last)).metadata
    assert one.next_row_id == 2**48
    for rows in (
        {"first-row-id": 2**48, "added-rows": 2**48 + 1},
        {"first-row-id": 2**48 + 1, "added-rows": 2**48},
        {"first-row-id": 2**63 - 11, "added-rows": 10},
        {"first-row-id": 2**48, "added-rows": 2**63 - 1},
    ):
        with pytest.raises(InvalidTableUpdate, match=f"Begin with {2**48}, and use at most {2**48}"):
            commit(one, w.snapshot(2, seq=2, parent=1, **rows))
    assert commit(one, w.snapshot(2, seq=2, parent=1, **{"first-row-id": 2**48, "added-rows": 1})).metadata


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("parent", [1, None])
def test_one_snapshot_leaves_sequence_numbers_to_other_writers(
    table: Any, commit: Any, w: Any, version: int, parent: int | None
) -> None:
    rows = {"first-row-id": 0, "added-rows": 0} if version == 3 else {}
    one = commit(table(version), w.snapshot(1, **rows)).metadata
    rows["timestamp-ms"] = w.snapshot(1)["snapshot"]["timestamp-ms"] + 1
    for number in (2 + 2**32, 2**63 - 1):
        with pytest.raises(InvalidTableUpdate, match="Use 2, the next one of the table"):
            commit(one, w.snapshot(2, seq=number, parent=parent, **rows))
    assert commit(one, w.snapshot(2, seq=1 + 2**32, parent=parent, **rows)).metadata.last_sequence_number == 1 + 2**32


def test_no_snapshot_has_the_id_minus_one(table: Any, commit: Any, w: Any) -> None:
    with pytest.raises(InvalidTableUpdate, match="this id means that there is no snapshot"):
        commit(table(2), w.snapshot(-1))


def test_version_3_refuses_a_stale_sequence_number_too(table: Any, commit: Any, w: Any) -> None:
    one = commit(table(3), w.snapshot(1, **{"first-row-id": 0, "added-rows": 1})).metadata
    with pytest.raises(RetryableValidation, match="sequence number"):
        commit(one, w.snapshot(2, seq=1, parent=1, **{"first-row-id": 1, "added-rows": 1}))


# ---- refs --------------------------------------------------------------------------------------------------------


def test_setting_main_makes_a_snapshot_current_and_logs_its_own_timestamp(two: Any, w: Any) -> None:
    assert two.current_snapshot_id == 2
    assert [(e.snapshot_id, e.timestamp_ms) for e in two.snapshot_log] == [
        (1, w.created_ms + 1000),
        (2, w.created_ms + 2000),
    ]


def test_a_rollback_is_logged_at_the_time_of_the_commit(two: Any, commit: Any, w: Any) -> None:
    back = commit(two, w.ref("main", 1), now_ms=w.created_ms + 99_000).metadata
    assert back.current_snapshot_id == 1
    assert [e.snapshot_id for e in back.snapshot_log] == [1, 2, 1]
    assert back.snapshot_log[2].timestamp_ms == back.last_updated_ms == w.created_ms + 99_000


def test_setting_an_equal_ref_is_a_no_op(two: Any, commit: Any, w: Any) -> None:
    assert not commit(two, w.ref("main", 2), w.ref("first", 1, "tag")).changed


def test_new_retention_of_main_changes_metadata_and_not_the_log(two: Any, commit: Any, w: Any) -> None:
    new = commit(two, w.ref("main", 2, **{"min-snapshots-to-keep": 3, "max-ref-age-ms": 5})).metadata
    assert new.refs["main"].min_snapshots_to_keep == 3
    assert new.snapshot_log == two.snapshot_log


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"min-snapshots-to-keep": 1}, "Tags do not support setting minSnapshotsToKeep"),
        ({"max-snapshot-age-ms": 1}, "Tags do not support setting maxSnapshotAgeMs"),
    ],
)
def test_tags_have_no_snapshot_retention(two: Any, commit: Any, w: Any, more: Any, message: str) -> None:
    with pytest.raises(InvalidTableUpdate, match=message):
        commit(two, w.ref("t", 1, "tag", **more))
    assert commit(two, w.ref("t", 1, "tag", **{"max-ref-age-ms": 1})).changed


@pytest.mark.parametrize("member", ["min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"])
def test_retention_is_positive(two: Any, commit: Any, w: Any, member: str) -> None:
    with pytest.raises(BadRequestException, match=member):
        commit(two, w.ref("b", 1, **{member: 0}))


def test_main_is_never_a_tag_and_refs_need_a_name_and_a_snapshot(two: Any, commit: Any, w: Any) -> None:
    with pytest.raises(InvalidTableUpdate, match="main must be a branch"):
        commit(two, w.ref("main", 1, "tag"))
    with pytest.raises(BadRequestException, match="the name of a ref is empty"):
        commit(two, w.ref("", 1))
    with pytest.raises(InvalidTableUpdate, match="Cannot set dev to unknown snapshot: 3"):
        commit(two, w.ref("dev", 3))


def test_removing_main_clears_the_current_snapshot_and_keeps_history(two: Any, commit: Any) -> None:
    new = commit(two, {"action": "remove-snapshot-ref", "ref-name": "main"}).metadata
    assert (new.current_snapshot_id, "main" in new.refs) == (None, False)
    assert [e.snapshot_id for e in new.snapshot_log] == [1, 2]
    assert not commit(new, {"action": "remove-snapshot-ref", "ref-name": "main"}).changed


def test_a_replaced_table_keeps_its_history(two: Any, commit: Any, w: Any) -> None:
    gone = {"action": "remove-snapshot-ref", "ref-name": "main"}
    new = commit(two, gone, w.snapshot(3, seq=3), w.ref("main", 3)).metadata
    assert [e.snapshot_id for e in new.snapshot_log] == [1, 2, 3]
    assert len(new.snapshots) == 3


def test_intermediate_snapshots_of_one_commit_are_not_logged(two: Any, commit: Any, w: Any) -> None:
    new = commit(
        two, w.snapshot(3, seq=3, parent=2), w.ref("main", 3), w.snapshot(4, seq=4, parent=3), w.ref("main", 4)
    ).metadata
    assert [e.snapshot_id for e in new.snapshot_log] == [1, 2, 4]
    assert [s.snapshot_id for s in new.snapshots] == [1, 2, 3, 4]


# ---- removal -----------------------------------------------------------------------------------------------------


def test_removing_a_snapshot_removes_its_refs_and_statistics(two: Any, commit: Any, w: Any) -> None:
    base = commit(two, statistics(1), statistics(2), partition_statistics(1), partition_statistics(2)).metadata
    new = commit(base, {"action": "remove-snapshots", "snapshot-ids": [1, 99]}).metadata
    assert [s.snapshot_id for s in new.snapshots] == [2]
    assert new.snapshots[0].parent_snapshot_id == 1
    assert set(new.refs) == {"main"}
    assert [f.snapshot_id for f in new.statistics] == [f.snapshot_id for f in new.partition_statistics] == [2]


def test_removing_an_absent_snapshot_is_a_no_op(two: Any, commit: Any) -> None:
    assert not commit(two, {"action": "remove-snapshots", "snapshot-ids": [99]}).changed


def test_removing_the_current_snapshot_leaves_a_table_without_one(two: Any, commit: Any) -> None:
    new = commit(two, {"action": "remove-snapshots", "snapshot-ids": [2]}).metadata
    assert (new.current_snapshot_id, list(new.refs)) == (None, ["first"])
    assert list(new.snapshot_log) == []


def test_a_removed_snapshot_drops_earlier_log_entries(two: Any, commit: Any, w: Any) -> None:
    base = commit(two, w.snapshot(3, seq=3, parent=2), w.ref("main", 3)).metadata
    new = commit(base, {"action": "remove-snapshots", "snapshot-ids": [2]}).metadata
    assert [e.snapshot_id for e in new.snapshot_log] == [3]


# ---- statistics, properties, keys --------------------------------------------------------------------------------


def test_a_snapshot_has_one_statistics_file_of_each_kind(two: Any, commit: Any) -> None:
    new = commit(
        two, statistics(1), statistics(1, "b.puffin"), partition_statistics(1), partition_statistics(1, "b")
    ).metadata
    assert [f.statistics_path for f in new.statistics] == ["s3://lake/t/b.puffin"]
    assert [f.statistics_path for f in new.partition_statistics] == ["s3://lake/t/b"]
    assert not commit(new, statistics(1, "b.puffin"), partition_statistics(1, "b")).changed


def test_the_deprecated_snapshot_id_of_set_statistics_must_agree(two: Any, commit: Any) -> None:
    def of_snapshot(id: int) -> dict[str, Any]:
        return {**statistics(1), "snapshot-id": id}

    assert commit(two, of_snapshot(1)).changed
    with pytest.raises(BadRequestException, match="snapshot-id 2 differs from the snapshot-id"):
        commit(two, of_snapshot(2))


def test_removing_absent_statistics_is_a_no_op(two: Any, commit: Any) -> None:
    base = commit(two, statistics(1), partition_statistics(1)).metadata
    gone = [{"action": a, "snapshot-id": 1} for a in ("remove-statistics", "remove-partition-statistics")]
    new = commit(base, *gone).metadata
    assert (len(new.statistics), len(new.partition_statistics)) == (0, 0)
    assert not commit(new, *gone).changed


def test_properties_are_set_and_removed(two: Any, commit: Any) -> None:
    put = {"action": "set-properties", "updates": {"a": "1", "format-version": "1", "uuid": "x"}}
    new = commit(two, put).metadata
    assert new.properties == {"write.parquet.compression-codec": "zstd", "a": "1"}
    assert not commit(new, put).changed
    gone = commit(new, {"action": "remove-properties", "removals": ["a", "never"]}).metadata
    assert "a" not in gone.properties
    assert not commit(gone, {"action": "remove-properties", "removals": ["a"]}).changed


@pytest.mark.parametrize("value", ["-1", "many", "", "1.5", "٣"])
def test_commit_properties_must_be_counts(two: Any, commit: Any, value: str) -> None:
    put = {"action": "set-properties", "updates": {"commit.retry.num-retries": value}}
    with pytest.raises(BadRequestException, match="must have non-negative integer value"):
        commit(two, put)


def test_encryption_keys_are_added_once_and_removed(two: Any, commit: Any) -> None:
    key = {"key-id": "k", "encrypted-key-metadata": "AAAA", "encrypted-by-id": None, "x-kms": "y"}
    add = {"action": "add-encryption-key", "encryption-key": key}
    new = commit(two, add).metadata
    assert new.encryption_keys[0].members() == {"key-id": "k", "encrypted-key-metadata": "AAAA", "x-kms": "y"}
    assert not commit(new, {**add, "encryption-key": {**key, "encrypted-key-metadata": "BBBB"}}).changed
    gone = commit(new, {"action": "remove-encryption-key", "key-id": "k"}).metadata
    assert len(gone.encryption_keys) == 0
    assert not commit(gone, {"action": "remove-encryption-key", "key-id": "k"}).changed


@pytest.mark.parametrize(
    "update",
    [
        {"action": "set-statistics", "statistics": {}},
        {"action": "set-statistics", "statistics": None},
        {"action": "set-partition-statistics", "partition-statistics": {"snapshot-id": 1}},
        {"action": "add-encryption-key", "encryption-key": {"key-id": "k"}},
        {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "!"}},
        {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "AAA"}},
        {"action": "add-encryption-key", "encryption-key": [1]},
        {**statistics(1), "statistics": {**statistics(1)["statistics"], "blob-metadata": 7}},
        {**statistics(1), "statistics": {**statistics(1)["statistics"], "blob-metadata": [{"type": "x"}]}},
        {"action": "add-snapshot", "snapshot": []},
        {"action": "add-snapshot", "snapshot": {"snapshot-id": 2**63}},
    ],
)
def test_malformed_updates_are_refused_with_400_and_their_path(two: Any, commit: Any, update: Any) -> None:
    with pytest.raises(CatalogError) as caught:
        commit(two, update)
    assert caught.value.code == 400
    assert "$.updates[0]." in caught.value.message
