# SPDX-License-Identifier: Apache-2.0
"""Spark and the versions of the table format: the features of each version, and upgrades."""

from __future__ import annotations

import pytest

from tests.support.engines.spark import Session, SparkRefused, metadata
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


def test_format_version_1_table_is_upgraded_twice_with_its_rows(world: World, ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(f"CREATE TABLE {table} (id INT, v STRING) TBLPROPERTIES ('format-version' = '1')")
    admin.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    assert metadata(world, ns, "t")["format-version"] == 1
    admin.sql(f"UPDATE {table} SET v = 'B' WHERE id = 2")
    admin.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')")
    admin.sql(f"INSERT INTO {table} VALUES (3, 'c'), (4, 'd')")
    admin.sql(f"DELETE FROM {table} WHERE id = 3")
    admin.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '3')")
    admin.sql(f"INSERT INTO {table} VALUES (5, 'e')")
    assert admin.sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "a"), (2, "B"), (4, "d"), (5, "e")]
    found = metadata(world, ns, "t")
    assert (found["format-version"], found["next-row-id"] >= 5) == (3, True)
    ids = [id for (id,) in admin.sql(f"SELECT _row_id FROM {table}")]
    assert len(set(ids)) == 4
    with pytest.raises(SparkRefused, match="downgrade"):
        admin.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '2')")
    with pytest.raises(SparkRefused, match="unsupported format version"):
        admin.sql(f"CREATE TABLE lake.{ns}.next (id INT) TBLPROPERTIES ('format-version' = '9')")


def test_format_version_3_rows_keep_their_ids(world: World, ns: str, admin: Session) -> None:
    table = f"lake.{ns}.t"
    admin.sql(
        f"CREATE TABLE {table} (id INT, v STRING) TBLPROPERTIES "
        "('format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"
    )
    admin.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    lineage = f"SELECT id, v, _row_id, _last_updated_sequence_number FROM {table} ORDER BY id"
    assert admin.sql(lineage) == [(1, "a", 0, 1), (2, "b", 1, 1), (3, "c", 2, 1)]
    admin.sql(f"DELETE FROM {table} WHERE id = 2")
    admin.sql(f"UPDATE {table} SET v = 'C' WHERE id = 3")
    admin.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    result = admin.sql(lineage)
    assert result[:2] == [(1, "a", 0, 1), (3, "C", 2, 3)]
    assert (result[2][:2], result[2][2] >= 3, result[2][3]) == ((4, "d"), True, 4)
    vectors = admin.sql(
        f"SELECT file_format, record_count, content_offset > 0, referenced_data_file IS NOT NULL "
        f"FROM {table}.delete_files"
    )
    assert vectors == [("PUFFIN", 2, True, True)]
    admin.sql(f"CALL lake.system.rewrite_data_files(table => '{ns}.t', options => map('rewrite-all', 'true'))")
    assert admin.sql(lineage) == result
    found = metadata(world, ns, "t")
    assert [each["first-row-id"] for each in found["snapshots"][:2]] == [0, 3]
    assert found["next-row-id"] > result[2][2]


def test_types_of_format_version_3_need_that_version(ns: str, admin: Session) -> None:
    admin.sql(f"CREATE TABLE lake.{ns}.t (id INT, doc VARIANT) TBLPROPERTIES ('format-version' = '3')")
    admin.sql(f'INSERT INTO lake.{ns}.t SELECT 1, parse_json(\'{{"a": {{"b": [5, 6]}}}}\')')
    assert admin.sql(f"SELECT variant_get(doc, '$.a.b[1]', 'int') FROM lake.{ns}.t") == [(6,)]
    with pytest.raises(SparkRefused, match="variant is not supported until v3"):
        admin.sql(f"CREATE TABLE lake.{ns}.old (doc VARIANT) TBLPROPERTIES ('format-version' = '2')")
