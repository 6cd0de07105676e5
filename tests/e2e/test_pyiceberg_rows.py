# SPDX-License-Identifier: Apache-2.0
"""PyIceberg changes rows, alone and in conflict with concurrent writers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import expressions
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from tests.support.engines.lake import below, catalog_of
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# mypy derives a constructor of each predicate from its pydantic fields, and does not see the one that it inherits.
PREDICATES: Any = expressions
COLUMNS = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "word", StringType()),
    identifier_field_ids=[1],
)
BY_WORD = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "word"))


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    """Return rows of the schema `COLUMNS`."""
    return pa.Table.from_pylist([{"id": id, "word": word} for id, word in pairs], schema=COLUMNS.as_arrow())


def pairs(table: Any, **scan: Any) -> list[tuple[int, str | None]]:
    """Return the rows of a table, sorted."""
    found: Iterable[dict[str, Any]] = table.scan(**scan).to_arrow().to_pylist()
    return sorted((row["id"], row["word"]) for row in found)


def test_rows_are_appended_found_overwritten_and_deleted(catalog: Any, ns: str) -> None:
    table = catalog.create_table((ns, "t"), schema=COLUMNS)
    table.append(rows((1, "a"), (2, "b"), (3, "c")))
    table.append(rows((4, None)))
    expected = PREDICATES.And(PREDICATES.GreaterThanOrEqual("id", 2), PREDICATES.In("word", ["b", "c"]))
    assert pairs(table, row_filter=expected) == [(2, "b"), (3, "c")]
    assert table.scan(selected_fields=("word",), row_filter="id = 1").to_arrow().to_pydict() == {"word": ["a"]}
    assert table.scan(limit=2).to_arrow().num_rows == 2
    table.delete("id = 2")
    assert pairs(table) == [(1, "a"), (3, "c"), (4, None)]
    table.overwrite(rows((3, "C"), (33, "C")), overwrite_filter=PREDICATES.EqualTo("id", 3))
    assert pairs(table) == [(1, "a"), (3, "C"), (4, None), (33, "C")]
    table.overwrite(rows((9, "z")))
    assert pairs(catalog.load_table((ns, "t"))) == [(9, "z")]
    table.delete()
    assert pairs(catalog.load_table((ns, "t"))) == []


def test_upsert_updates_existing_and_inserts_new_rows(catalog: Any, ns: str) -> None:
    table = catalog.create_table((ns, "t"), schema=COLUMNS)
    table.append(rows((1, "a"), (2, "b"), (3, "c")))
    result = table.upsert(rows((2, "B"), (3, "c"), (4, "d")))
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert pairs(catalog.load_table((ns, "t"))) == [(1, "a"), (2, "B"), (3, "c"), (4, "d")]


def test_dynamic_overwrite_replaces_only_its_partitions(catalog: Any, ns: str) -> None:
    table = catalog.create_table((ns, "t"), schema=COLUMNS, partition_spec=BY_WORD)
    table.append(rows((1, "a"), (2, "b"), (3, "b"), (4, "c")))
    table.dynamic_partition_overwrite(rows((22, "b"), (5, "d")))
    found = catalog.load_table((ns, "t"))
    assert pairs(found) == [(1, "a"), (4, "c"), (5, "d"), (22, "b")]
    partitions = found.inspect.partitions().to_pylist()
    assert sorted((each["partition"]["word"], each["record_count"]) for each in partitions) == [
        ("a", 1),
        ("b", 1),
        ("c", 1),
        ("d", 1),
    ]


def test_transaction_is_atomic(world: World, catalog: Any, ns: str) -> None:
    table = catalog.create_table((ns, "t"), schema=COLUMNS)
    before = table.metadata_location
    with pytest.raises(ZeroDivisionError), table.transaction() as change:
        change.set_properties({"a": "b"})
        change.append(rows((1, "a")))
        raise ZeroDivisionError
    assert catalog.load_table((ns, "t")).metadata_location == before
    with table.transaction() as change:
        with change.update_schema() as schema:
            schema.add_column("n", LongType())
        change.append(rows((1, "a"), (2, "b")).append_column("n", pa.array([7, 8], pa.int64())))
        change.delete("id = 2")
        change.set_properties({"a": "b"})
    found = catalog.load_table((ns, "t"))
    assert found.scan().to_arrow().to_pylist() == [{"id": 1, "word": "a", "n": 7}]
    assert found.properties["a"] == "b"
    # One metadata file before the transaction and one after it: no reader could see an intermediate state.
    assert [each.metadata_file for each in found.metadata.metadata_log] == [before]


def test_appends_of_two_writers_are_both_kept(world: World, catalog: Any, ns: str) -> None:
    one = catalog.create_table((ns, "t"), schema=COLUMNS)
    other = catalog_of(world, world.admin).load_table((ns, "t"))
    one.append(rows((1, "a")))
    other.append(rows((2, "b")))  # its base is stale: the client detects the conflict and retries
    assert pairs(one.refresh()) == [(1, "a"), (2, "b")]
    assert len(one.snapshots()) == 2


def test_conflicting_writer_without_retries_fails_and_leaves_no_change(world: World, catalog: Any, ns: str) -> None:
    one = catalog.create_table((ns, "t"), schema=COLUMNS, properties={"commit.retry.num-retries": "0"})
    other = catalog_of(world, world.admin).load_table((ns, "t"))
    one.append(rows((1, "a")))
    before = below(world, one.location())
    with pytest.raises(CommitFailedException):
        other.append(rows((2, "b")))
    assert {key for key in below(world, one.location()) - before if key.endswith(".avro")} == set()
    with pytest.raises(CommitFailedException), other.update_schema() as change:
        change.add_column("n", LongType())
        one.update_schema().add_column("m", LongType()).commit()
    other.refresh()
    assert (pairs(other), other.schema().column_names) == ([(1, "a")], ["id", "word", "m"])
    other.append(rows((2, "b")).append_column("m", pa.array([1], pa.int64())))
    assert pairs(one.refresh()) == [(1, "a"), (2, "b")]


def test_own_files_are_added_only_inside_the_table_location(world: World, catalog: Any, ns: str) -> None:
    table = catalog.create_table((ns, "t"), schema=COLUMNS)
    path = f"{table.location()}/data/own.parquet"
    with table.io.new_output(path).create() as file:
        pa.parquet.write_table(rows((1, "a")), file)
    table.add_files([path])
    assert pairs(catalog.load_table((ns, "t"))) == [(1, "a")]
    elsewhere = f"s3://{world.bucket}/demo/elsewhere/own.parquet"
    with pytest.raises(OSError, match="(?i)access.denied"), table.io.new_output(elsewhere).create() as file:
        pa.parquet.write_table(rows((2, "b")), file)
    assert below(world, f"s3://{world.bucket}/demo/elsewhere") == set()
