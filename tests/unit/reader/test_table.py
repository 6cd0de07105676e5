# SPDX-License-Identifier: Apache-2.0
"""Scans of restricted tables: files, deletes, snapshots and schema changes, with PyIceberg on local files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import expressions as pyi
from pyiceberg import types as iceberg
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.manifest import FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import DataScan, Table

from lakegate.reader import ReadFailed, RestrictedTable, RestrictionNotSupported, decode

SCHEMA = Schema(
    iceberg.NestedField(1, "id", iceberg.LongType(), required=True),
    iceberg.NestedField(2, "mail", iceberg.StringType(), required=False),
    iceberg.NestedField(3, "region", iceberg.StringType(), required=False),
    iceberg.NestedField(4, "age", iceberg.IntegerType(), required=False),
)
ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("mail", pa.string()),
        ("region", pa.string()),
        ("age", pa.int32()),
    ]
)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    """Create a table of two files: regions `eu` and `us`."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("n")
    made = catalog.create_table("n.t", SCHEMA, properties={"format-version": "2"})
    append(made, [1, "a1@x.org", "eu", 30], [2, "b2@x.org", "eu", None])
    append(made, [3, "c3@x.org", "us", 40], [4, None, "us", 50])
    yield made
    catalog.close()


def append(table: Table, *rows: list[Any], schema: pa.Schema = ARROW) -> None:
    table.append(pa.Table.from_arrays([pa.array(each) for each in zip(*rows, strict=True)], schema.names).cast(schema))


def restricted(table: Table, *projections: tuple[int, str], row_filter: Any = None) -> RestrictedTable:
    found: dict[str, Any] = {
        "required-column-projections": [{"field-id": field, "action": action} for field, action in projections]
    }
    if row_filter is not None:
        found["required-row-filter"] = row_filter
    return RestrictedTable(table.metadata, table.io, decode(json.dumps(found)))


def equals(field_id: int, value: Any, kind: str = "eq") -> Any:
    return {"type": kind, "left": {"type": "reference", "id": field_id}, "right": value}


MASKED = (2, "mask-alphanum")


def ids(table: RestrictedTable, **arguments: Any) -> list[int]:
    found: list[int] = table.to_arrow(**arguments)["id"].to_pylist()
    return sorted(found)


def test_rows_are_filtered_and_columns_are_masked(table: Table) -> None:
    found = restricted(table, MASKED, row_filter=equals(3, "eu")).to_arrow()
    assert found.to_pylist() == [
        {"id": 1, "mail": "xn@x.xxx", "region": "eu", "age": 30},
        {"id": 2, "mail": "xn@x.xxx", "region": "eu", "age": None},
    ]


def test_table_without_restrictions_is_read_as_by_pyiceberg(table: Table) -> None:
    assert restricted(table).to_arrow().sort_by("id").equals(table.scan().to_arrow().sort_by("id"))


def test_columns_that_only_the_filters_need_are_not_returned(table: Table) -> None:
    found = restricted(table, MASKED, row_filter=equals(3, "us")).to_arrow(["age", "mail"], row_filter="id > 3")
    assert found.to_pylist() == [{"age": 50, "mail": None}]
    assert found.column_names == ["age", "mail"]


def test_user_filter_sees_masked_values(table: Table) -> None:
    """A filter on raw values would tell the user whether a row contains a value."""
    found = restricted(table, MASKED)
    assert ids(found, row_filter="mail = 'a1@x.org'") == []
    assert ids(found, row_filter="mail = 'xn@x.xxx'") == [1, 2, 3]
    assert ids(found, row_filter="mail is null") == [4]
    assert ids(found, row_filter="not mail = 'a1@x.org' and age > 30") == [3]
    hidden = restricted(table, (2, "replace-with-null"))
    assert ids(hidden, row_filter="mail is null") == [1, 2, 3, 4]
    fixed = restricted(table, (4, "mask-to-fixed-value"))
    assert ids(fixed, row_filter="age < 1") == [1, 2, 3, 4]
    assert ids(fixed, row_filter=pyi.GreaterThan("age", 1)) == []  # type: ignore[call-arg, arg-type]  # wrong types in PyIceberg


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the expressions by which PyIceberg planned, as text."""
    found: list[str] = []
    original = DataScan.plan_files

    def plan(scan: DataScan) -> Any:
        found.append(str(scan.row_filter))
        return original(scan)

    monkeypatch.setattr(DataScan, "plan_files", plan)
    return found


def test_row_filter_and_unmasked_user_filter_skip_files(
    table: Table, planned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = ArrowScan.to_record_batches

    def batches(scan: ArrowScan, tasks: Any) -> Any:
        read.append(len(tasks := list(tasks)))
        return original(scan, tasks)

    monkeypatch.setattr(ArrowScan, "to_record_batches", batches)
    assert ids(restricted(table, row_filter=equals(3, "eu"))) == [1, 2]
    assert ids(restricted(table, MASKED), row_filter="region = 'us' and mail = 'xn@x.xxx'") == [3]
    assert ids(restricted(table, row_filter=False)) == []
    assert read == [1, 1, 0]
    assert not [each for each in planned if "mail" in each]


def test_user_filter_on_a_masked_column_skips_no_file(table: Table, planned: list[str]) -> None:
    """The bounds of files are those of raw values: to skip a file by them would lose masked rows, or reveal values."""
    assert ids(restricted(table, (4, "mask-to-fixed-value")), row_filter="age = 0 or id = 9") == [1, 2, 3, 4]
    assert not [each for each in planned if "age" in each]


NULL_MAIL = {"type": "is-null", "child": {"type": "reference", "id": 2}}
SOME_MAIL = {"type": "not-null", "child": {"type": "reference", "id": 2}}


@pytest.mark.parametrize(
    ("row_filter", "rows"),
    [
        (equals(3, "eu", "not-eq"), [3, 4]),
        (equals(4, 30, "not-eq"), [2, 3, 4]),
        (equals(4, 40, "gt-eq"), [3, 4]),
        (equals(2, "b", "starts-with"), [2]),
        ({"type": "in", "child": {"type": "reference", "id": 1}, "values": [1, 4]}, [1, 4]),
        ({"type": "not-in", "child": {"type": "reference", "id": 2}, "values": ["a1@x.org"]}, [2, 3, 4]),
        ({"type": "not", "child": equals(3, "eu")}, [3, 4]),
        ({"type": "or", "left": equals(3, "eu"), "right": NULL_MAIL}, [1, 2, 4]),
        ({"type": "and", "left": equals(3, "us"), "right": SOME_MAIL}, [3]),
        (equals(4, None), [2]),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_pushed_filter_keeps_the_rows_of_the_whole_filter(table: Table, row_filter: Any, rows: list[int]) -> None:
    assert ids(restricted(table, row_filter=row_filter)) == rows


def test_deleted_rows_are_not_returned(table: Table) -> None:
    table.delete("id = 1")
    assert ids(restricted(table, MASKED, row_filter=equals(3, "eu"))) == [2]


def test_limit_counts_rows_after_all_filters(table: Table) -> None:
    found = restricted(table, MASKED, row_filter=equals(3, "us"))
    assert found.to_arrow(limit=1).num_rows == 1
    assert found.to_arrow(limit=9).num_rows == 2
    assert found.to_arrow(limit=0).num_rows == 0
    assert found.to_arrow(row_filter="mail is null", limit=1)["id"].to_pylist() == [4]


def test_limit_reads_no_more_files_than_it_needs(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preview of ten rows must not read a whole lake."""
    read: list[int] = []
    original = ArrowScan.to_record_batches

    def batches(scan: ArrowScan, tasks: Any) -> Any:
        read.append(len(tasks := list(tasks)))
        return original(scan, tasks)

    monkeypatch.setattr(ArrowScan, "to_record_batches", batches)
    assert restricted(table, MASKED).to_arrow(limit=2).num_rows == 2
    assert read == [1]


def test_user_filter_on_a_field_inside_of_a_masked_struct_sees_masked_values(tmp_path: Path) -> None:
    inner = iceberg.StructType(
        iceberg.NestedField(3, "street", iceberg.StringType(), required=False),
        iceberg.NestedField(4, "zip", iceberg.IntegerType(), required=False),
    )
    schema = Schema(
        iceberg.NestedField(1, "id", iceberg.LongType(), required=False),
        iceberg.NestedField(2, "home", inner, required=False),
    )
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("n")
    made = catalog.create_table("n.t", schema)
    rows = [{"id": 1, "home": {"street": "First", "zip": 7}}, {"id": 2, "home": None}]
    made.append(pa.Table.from_pylist(rows, schema=made.schema().as_arrow()))
    found = restricted(made, (3, "mask-alphanum"), row_filter=equals(4, 7))
    assert found.to_arrow().to_pylist() == [{"id": 1, "home": {"street": "xxxxx", "zip": 7}}]
    assert ids(found, columns=["id"], row_filter="home.street = 'First'") == []
    assert ids(found, columns=["id"], row_filter="home.street = 'xxxxx' and home.zip = 7") == [1]
    whole = restricted(made, (2, "replace-with-null"))
    assert ids(whole, columns=["id"], row_filter="home.zip = 7") == []
    catalog.close()


def test_no_column_name_prevents_a_filter_by_a_removed_column(table: Table) -> None:
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.add_column("__row_filter_3", iceberg.StringType())
        change.delete_column("region")
    assert ids(restricted(table, MASKED, row_filter=equals(3, "eu"))) == [1, 2]


INNER = iceberg.StructType(iceberg.NestedField(90, "x", iceberg.StringType(), required=False))
STRING = iceberg.StringType()


def _list(id: int, element: iceberg.IcebergType) -> iceberg.ListType:
    return iceberg.ListType(id, element, element_required=False)


def _map(id: int, value: iceberg.IcebergType) -> iceberg.MapType:
    return iceberg.MapType(id, STRING, id + 1, value, value_required=False)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (INNER, {"x": "a"}),
        (_list(10, STRING), ["a", None]),
        (_list(10, INNER), [{"x": "a"}, None]),
        (_list(10, _list(20, INNER)), [None, [], [{"x": "a"}]]),
        (_list(10, _map(20, INNER)), [None, [], [("k", {"x": "a"})]]),
        (_map(10, STRING), [("k", "a"), ("l", None)]),
        (_map(10, INNER), [("k", {"x": "a"}), ("l", None)]),
        (_map(10, _list(20, INNER)), [("k", None), ("l", []), ("m", [{"x": "a"}])]),
        (iceberg.StructType(iceberg.NestedField(10, "in", _list(20, INNER), required=False)), {"in": [{"x": "a"}]}),
        (iceberg.StructType(iceberg.NestedField(10, "in", _map(20, INNER), required=False)), {"in": None}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_null_of_each_nested_type_is_read_and_filtered_as_null(
    tmp_path: Path, kind: iceberg.IcebergType, value: Any
) -> None:
    """A null that is read as an empty list would pass a filter that hides null."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("n")
    made = catalog.create_table(
        "n.t",
        Schema(
            iceberg.NestedField(1, "id", iceberg.LongType(), required=False),
            iceberg.NestedField(2, "c", kind, required=False),
        ),
    )
    empty = {"in": []} if isinstance(value, dict) and "in" in value else value[:0] if isinstance(value, list) else value
    rows = [{"id": id, "c": each} for id, each in enumerate([value, None, empty, None, {"in": None}, value])]
    if empty != {"in": []}:
        del rows[4]
    # PyIceberg writes null as an empty list too, so arrow writes the file.
    written = pa.Table.from_pylist(rows, schema=pa.schema(list(zip(("id", "c"), _plain(made), strict=True))))
    pq.write_table(written, tmp_path / "file.parquet", row_group_size=3)
    made.add_files([f"file://{tmp_path}/file.parquet"])

    def kept(predicate: Any) -> Any:
        return sorted(restricted(made, row_filter=predicate).to_arrow().to_pylist(), key=lambda row: row["id"])

    def null(id: int) -> Any:
        return {"type": "is-null", "child": {"type": "reference", "id": id}}

    column = made.schema().find_field("c")
    assert kept(True) == rows
    assert kept(null(column.field_id)) == [row for row in rows if row["c"] is None]
    assert kept({"type": "not", "child": null(column.field_id)}) == [row for row in rows if row["c"] is not None]
    if isinstance(column.field_type, iceberg.StructType) and "in" in value:
        inner = null(column.field_type.fields[0].field_id)
        assert kept(inner) == [row for row in rows if row["c"] is None or row["c"]["in"] is None]
    catalog.close()


def _plain(table: Table) -> list[pa.DataType]:
    """Return the arrow types of a table without field ids, with which PyIceberg does not add a file."""
    found: list[pa.DataType] = schema_to_pyarrow(table.schema(), include_field_ids=False).types
    return found


def test_renamed_column_stays_restricted_and_is_read_by_its_new_name(table: Table) -> None:
    with table.update_schema() as change:
        change.rename_column("mail", "address").rename_column("region", "mail")
    found = restricted(table, MASKED, row_filter=equals(3, "eu"))
    assert found.to_arrow(["address", "mail"]).to_pylist() == [{"address": "xn@x.xxx", "mail": "eu"}] * 2


def test_old_snapshot_has_its_own_columns_and_the_same_restrictions(table: Table) -> None:
    """The filter of an old snapshot uses a column that was added, dropped or renamed later."""
    old = table.metadata.current_snapshot_id
    with table.update_schema() as change:
        change.rename_column("region", "area").add_column("city", iceberg.StringType()).rename_column("age", "region")
    schema = pa.schema([ARROW.field(0), ("mail", pa.string()), ("area", pa.string()), ("region", pa.int32())])
    append(table, [5, "e5@x.org", "eu", 20, "Rome"], schema=schema.append(pa.field("city", pa.string())))
    found = restricted(table, MASKED, (5, "mask-alphanum"), row_filter=equals(3, "eu"))
    now = found.to_arrow()
    assert now.column_names == ["id", "mail", "area", "region", "city"]
    assert sorted(now["id"].to_pylist()) == [1, 2, 5] and "xxxx" in now["city"].to_pylist()
    then = found.to_arrow(snapshot_id=old, row_filter="region = 'eu'")
    assert then.column_names == ["id", "mail", "region", "age"] and then["id"].to_pylist() == [1, 2]
    added = restricted(table, row_filter=equals(5, "Rome"))
    assert ids(added) == [5]
    assert ids(added, snapshot_id=old) == []


def test_filter_on_a_dropped_column_reads_its_values_also_below_a_new_column_of_that_name(table: Table) -> None:
    with table.update_schema() as change:
        change.delete_column("region")
    with table.update_schema() as change:
        change.add_column("region", iceberg.StringType())
    found = restricted(table, (3, "mask-alphanum"), row_filter=equals(3, "eu"))
    assert found.to_arrow().to_pylist()[0] == {"id": 1, "mail": "a1@x.org", "age": 30, "region": None}
    assert ids(found) == [1, 2]


def test_promoted_column_is_filtered_and_masked_by_its_new_type(table: Table) -> None:
    with table.update_schema() as change:
        change.update_column("age", iceberg.LongType())
    table.append(table.scan(row_filter="id = 1").to_arrow())
    big = restricted(table, row_filter=equals(4, 2**40, "lt"))
    assert ids(big) == [1, 1, 3, 4]
    assert ids(restricted(table, (4, "sha-256-global"), row_filter=equals(4, 40))) == [3]


def test_each_scan_has_another_salt(table: Table) -> None:
    found = restricted(table, (2, "sha-256-query-local"))
    first, second = (found.to_arrow(["mail"], row_filter="id = 1").to_pylist() for _ in range(2))
    assert first != second


def test_wrong_arguments_and_restrictions_are_refused(table: Table) -> None:
    found = restricted(table)
    for arguments in (
        {"columns": ["none"]},
        {"columns": "id"},
        {"snapshot_id": 1},
        {"limit": -1},
        {"row_filter": "x = 1"},
    ):
        with pytest.raises(ValueError):
            found.scan(**arguments)
    with pytest.raises(RestrictionNotSupported, match="required"):
        restricted(table, (1, "replace-with-null"))
    with pytest.raises(RestrictionNotSupported, match="no schema"):
        restricted(table, row_filter=equals(99, "x"))


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (OSError("AWS Error ACCESS_DENIED during HeadObject operation: secret"), "credentials have ended"),
        (PermissionError("secret"), "credentials have ended"),
        (FileNotFoundError("secret"), "is missing"),
        (OSError("AWS Error NETWORK_CONNECTION: secret"), "could not be fetched"),
        (pa.ArrowInvalid("secret"), "damaged"),
        (ValueError("PyIceberg does not yet support equality deletes: secret"), "equality deletes"),
        (pa.ArrowNotImplementedError("secret"), "does not read a file or a type"),
        (IndexError("secret"), "unexpected error"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_failed_read_names_the_true_cause(
    table: Table, monkeypatch: pytest.MonkeyPatch, error: Exception, cause: str
) -> None:
    def fails(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(ArrowScan, "to_record_batches", fails)
    with pytest.raises(ReadFailed, match=cause) as failed:
        restricted(table, MASKED).to_arrow()
    assert "secret" not in str(failed.value)
    assert ("credentials" in str(failed.value)) == ("credentials" in cause)


def test_file_of_another_format_is_named_as_the_cause(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    original = DataScan.plan_files

    def plan(scan: DataScan) -> Any:
        tasks = list(original(scan))
        tasks[0].file._data[2] = FileFormat.AVRO
        return tasks

    monkeypatch.setattr(DataScan, "plan_files", plan)
    with pytest.raises(ReadFailed, match="format AVRO"):
        restricted(table, MASKED).to_arrow()


def test_errors_of_reading_contain_no_value_and_no_path(table: Table) -> None:
    found = restricted(table, MASKED)
    for file in table.inspect.files()["file_path"].to_pylist():
        Path(file.removeprefix("file://")).write_bytes(b"PAR1 secret PAR1")
    with pytest.raises(ReadFailed) as failed:
        found.to_arrow()
    assert failed.value.__context__ is None
    assert "secret" not in str(failed.value) and "lake" not in str(failed.value)
    assert "x.org" not in repr(found)
