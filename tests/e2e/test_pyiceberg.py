# SPDX-License-Identifier: Apache-2.0
"""PyIceberg and the catalog: create, describe, change, find and drop tables, namespaces and views."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import (
    CommitFailedException,
    ForbiddenError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, MonthTransform, YearTransform
from pyiceberg.types import (
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

from tests.support.engines.lake import below, catalog_of
from tests.support.stack.world import World, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

_PURGED_SECONDS = 60

SCHEMA = Schema(
    # The client chooses ids; the catalog assigns fresh ones and must rewrite every reference to them.
    NestedField(10, "id", LongType(), required=True, doc="the key"),
    NestedField(20, "at", TimestamptzType()),
    NestedField(30, "tags", MapType(31, StringType(), 32, ListType(33, StringType()))),
    NestedField(40, "where", StructType(NestedField(41, "city", StringType()), NestedField(42, "zip", IntegerType()))),
    identifier_field_ids=[10],
)


def test_a_table_is_made_with_schema_partitioning_order_and_properties(catalog: Any, ns: str) -> None:
    made = catalog.create_table(
        (ns, "t"),
        schema=SCHEMA,
        partition_spec=PartitionSpec(
            PartitionField(20, 1000, DayTransform(), "day"), PartitionField(10, 1001, BucketTransform(8), "shard")
        ),
        sort_order=SortOrder(SortField(10, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST)),
        properties={"owner-team": "flights", "write.parquet.compression-codec": "zstd"},
    )
    found = catalog.load_table((ns, "t"))
    assert found.metadata == made.metadata
    schema = found.schema()
    assert [(field.field_id, field.name, field.required) for field in schema.fields] == [
        (1, "id", True),
        (2, "at", False),
        (3, "tags", False),
        (4, "where", False),
    ]
    assert str(schema.find_type("tags")) == "map<string, list<string>>"
    assert schema.find_type("where.zip") == IntegerType()
    assert schema.find_field("id").doc == "the key"
    assert schema.identifier_field_names() == {"id"}
    spec = [(schema.find_column_name(each.source_id), str(each.transform)) for each in found.spec().fields]
    assert spec == [("at", "day"), ("id", "bucket[8]")]
    [order] = found.sort_order().fields
    assert (schema.find_column_name(order.source_id), order.direction) == ("id", SortDirection.DESC)
    assert found.properties["owner-team"] == "flights"
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table((ns, "t"), schema=SCHEMA)
    assert catalog.create_table_if_not_exists((ns, "t"), schema=SCHEMA).metadata.table_uuid == found.metadata.table_uuid
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table((unique("absent"), "t"), schema=SCHEMA)


def test_staged_table_is_created_with_its_rows_atomically(world: World, catalog: Any, ns: str) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    with pytest.raises(ZeroDivisionError), catalog.create_table_transaction((ns, "t"), schema=rows.schema) as change:
        change.append(rows)
        raise ZeroDivisionError
    assert not catalog.table_exists((ns, "t"))
    assert catalog.list_tables(ns) == []
    with catalog.create_table_transaction((ns, "t"), schema=rows.schema, properties={"a": "b"}) as change:
        with change.update_schema() as schema:
            schema.add_column("word", StringType())
        with change.update_spec() as spec:
            spec.add_identity("id")
        change.append(rows)
        assert not catalog.table_exists((ns, "t"))
    made = catalog.load_table((ns, "t"))
    assert made.scan().to_arrow().sort_by("id").to_pydict() == {"id": [1, 2, 3], "word": [None] * 3}
    assert (made.properties["a"], made.spec().fields[0].name, len(made.snapshots())) == ("b", "id", 1)


def test_staged_table_fails_against_a_concurrent_creation(catalog: Any, ns: str) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64())})
    late = catalog.create_table_transaction((ns, "t"), schema=rows.schema)
    late.append(rows)
    first = catalog.create_table((ns, "t"), schema=rows.schema)
    with pytest.raises(CommitFailedException, match="table already exists"):
        late.commit_transaction()
    assert catalog.load_table((ns, "t")).metadata.table_uuid == first.metadata.table_uuid
    assert catalog.load_table((ns, "t")).scan().to_arrow().num_rows == 0


def test_schema_evolution_applies_to_old_rows(catalog: Any, ns: str) -> None:
    first = pa.table({"id": pa.array([1], pa.int32()), "word": ["a"], "gone": [1.5]})
    table = catalog.create_table((ns, "t"), schema=first.schema)
    table.append(first)
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.add_column("extra", StructType(NestedField(1, "x", IntegerType())), doc="more")
        change.rename_column("word", "label")
        change.update_column("id", LongType())
        change.delete_column("gone")
    with table.update_schema() as change:
        change.move_first("label")
        change.add_column(("extra", "y"), StringType())
        change.add_column("gone", StringType())
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.union_by_name(pa.schema([("seen", pa.bool_())]))
    found = catalog.load_table((ns, "t"))
    assert [field.name for field in found.schema().fields] == ["label", "id", "extra", "gone", "seen"]
    assert [field.name for field in found.schema().find_type("extra").fields] == ["x", "y"]
    assert str(found.schema().find_type("id")) == "long"
    assert found.scan().to_arrow().to_pylist() == [{"label": "a", "id": 1, "extra": None, "gone": None, "seen": None}]
    # Field ids are never reused: the dropped column and the new one of the same name have different ids.
    gone = {schema.find_field("gone").field_id for schema in found.schemas().values() if "gone" in schema.column_names}
    assert (len(gone), found.metadata.last_column_id) == (2, 8)


def test_partitioning_and_order_evolve(catalog: Any, ns: str) -> None:
    table = catalog.create_table((ns, "t"), schema=SCHEMA)
    with table.update_spec() as change:
        change.add_field("at", DayTransform(), "day")
        change.add_field("id", BucketTransform(4), "shard")
    with table.update_spec() as change:
        change.remove_field("day")
        change.add_field("at", MonthTransform(), "month")
        change.rename_field("shard", "part")
    with table.update_sort_order() as order:
        order.desc("id", IdentityTransform(), NullOrder.NULLS_FIRST)
        order.asc("at", YearTransform(), NullOrder.NULLS_LAST)
    found = catalog.load_table((ns, "t"))
    live = {(each.name, str(each.transform)) for each in found.spec().fields if str(each.transform) != "void"}
    assert live == {("part", "bucket[4]"), ("month", "month")}
    assert len(found.specs()) == 3
    assert [(str(each.transform), each.direction.value) for each in found.sort_order().fields] == [
        ("identity", "desc"),
        ("year", "asc"),
    ]


def test_properties_and_the_format_version_change(catalog: Any, ns: str) -> None:
    table = catalog.create_table((ns, "t"), schema=SCHEMA, properties={"format-version": "1", "a": "1", "b": "2"})
    assert table.format_version == 1
    with table.transaction() as change:
        change.set_properties({"a": "3", "c": "4"})
        change.remove_properties("b")
        change.upgrade_table_version(format_version=2)
    found = catalog.load_table((ns, "t"))
    assert found.format_version == 2
    assert {name: found.properties.get(name) for name in "abc"} == {"a": "3", "b": None, "c": "4"}
    with pytest.raises(ValueError, match="downgrade"), found.transaction() as change:
        change.upgrade_table_version(format_version=1)


def test_namespaces_nest_have_properties_and_are_dropped_when_empty(catalog: Any, ns: str) -> None:
    inner = (ns, "inner")
    catalog.create_namespace(inner, {"team": "flights", "x": "1"})
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(inner)
    catalog.create_namespace_if_not_exists(inner)
    assert catalog.list_namespaces(ns) == [inner]
    assert (ns,) in catalog.list_namespaces()
    result = catalog.update_namespace_properties(inner, removals={"x", "absent"}, updates={"team": "ships"})
    assert (result.removed, result.updated, result.missing) == (["x"], ["team"], ["absent"])
    properties = catalog.load_namespace_properties(inner)
    assert (properties["team"], "x" in properties) == ("ships", False)
    catalog.create_table((*inner, "t"), schema=SCHEMA)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(inner)
    catalog.drop_table((*inner, "t"))
    catalog.drop_namespace(inner)
    assert not catalog.namespace_exists(inner)
    for absent in (catalog.drop_namespace, catalog.load_namespace_properties, catalog.list_tables):
        with pytest.raises(NoSuchNamespaceError):
            absent(inner)


def test_paged_lists_are_complete(world: World, catalog: Any, ns: str) -> None:
    paging = catalog_of(world, world.admin, **{"rest-page-size": "2"})
    names = [f"t{number}" for number in range(5)]
    for name in names:
        world.table(ns, name)
        catalog.create_namespace((ns, f"n{name}"))
    for each in (catalog, paging):
        assert sorted(each.list_tables(ns)) == [(ns, name) for name in names]
        assert sorted(each.list_namespaces(ns)) == [(ns, f"n{name}") for name in names]


def test_a_dropped_table_keeps_its_files_and_a_purged_one_does_not(world: World, catalog: Any, ns: str) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64())})
    kept, purged = (catalog.create_table((ns, name), schema=rows.schema) for name in ("kept", "purged"))
    for table in (kept, purged):
        table.append(rows)
    before = below(world, kept.location())
    catalog.drop_table((ns, "kept"))
    catalog.purge_table((ns, "purged"))
    assert catalog.list_tables(ns) == []
    deadline = time.monotonic() + _PURGED_SECONDS
    while left := below(world, purged.location()):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
    assert below(world, kept.location()) == before
    with pytest.raises(NoSuchTableError):
        catalog.drop_table((ns, "kept"))
    back = catalog.register_table((ns, "back"), kept.metadata_location)
    assert back.scan().to_arrow().to_pydict() == {"id": [1]}
    back.append(rows)
    assert catalog.load_table((ns, "back")).scan().count() == 2


def test_overwriting_registration_replaces_the_table_state(catalog: Any, ns: str) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64())})
    table = catalog.create_table((ns, "t"), schema=rows.schema)
    table.append(rows)
    then = table.metadata_location
    table.append(rows)
    catalog.register_table((ns, "t"), then, overwrite=True)
    assert catalog.load_table((ns, "t")).scan().count() == 1


def test_a_view_is_made_loaded_listed_and_dropped(catalog: Any, ns: str) -> None:
    sql = f"SELECT id FROM {ns}.t"
    version = ViewVersion.model_validate(
        {
            "schema-id": 0,
            "representations": [ViewRepresentation(SQLViewRepresentation(type="sql", sql=sql, dialect="spark"))],
            "default-namespace": (ns,),
        }
    )
    made = catalog.create_view((ns, "v"), schema=SCHEMA, view_version=version, properties={"comment": "all"})
    found = catalog.load_view((ns, "v"))
    assert found.metadata == made.metadata
    assert found.current_version().representations[0].root.sql == sql
    assert (found.schema().column_names[0], found.properties["comment"]) == ("id", "all")
    assert (catalog.list_views(ns), catalog.list_tables(ns)) == ([(ns, "v")], [])
    with pytest.raises(ViewAlreadyExistsError):
        catalog.create_view((ns, "v"), schema=SCHEMA, view_version=version)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table((ns, "v"), schema=SCHEMA)
    catalog.drop_view((ns, "v"))
    assert not catalog.view_exists((ns, "v"))
    with pytest.raises(NoSuchViewError):
        catalog.load_view((ns, "v"))


def test_invisible_objects_do_not_exist_for_pyiceberg(world: World, catalog: Any, ns: str) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64())})
    for name in ("shown", "hidden"):
        catalog.create_table((ns, name), schema=rows.schema).append(rows)
    shown = catalog.load_table((ns, "shown"))
    world.grant("select", world.carol, "table", str(shown.metadata.table_uuid))
    carol = catalog_of(world, world.carol)
    assert carol.list_tables(ns) == [(ns, "shown")]
    assert (carol.table_exists((ns, "hidden")), carol.table_exists((ns, "shown"))) == (False, True)
    for hidden in ("hidden", "never_was"):
        with pytest.raises(NoSuchTableError):
            carol.load_table((ns, hidden))
        with pytest.raises(NoSuchTableError):
            carol.drop_table((ns, hidden))
        with pytest.raises(NoSuchTableError):
            carol.rename_table((ns, hidden), (ns, "mine"))
    read = carol.load_table((ns, "shown"))
    assert read.scan().to_arrow().to_pydict() == {"id": [1]}
    files = below(world, shown.location())
    with pytest.raises(ForbiddenError), read.transaction() as change:
        change.set_properties({"a": "b"})
    with pytest.raises(OSError, match="(?i)access.denied"):
        read.append(rows)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: carol.drop_table((ns, "shown")),
        lambda: carol.purge_table((ns, "shown")),
        lambda: carol.rename_table((ns, "shown"), (ns, "mine")),
        lambda: carol.create_table((ns, "mine"), schema=rows.schema),
        lambda: carol.create_namespace((ns, "mine")),
        lambda: carol.drop_namespace(ns),
    )
    for refused in attempts:
        with pytest.raises(ForbiddenError):
            refused()
    assert below(world, shown.location()) == files
    assert catalog.load_table((ns, "shown")).metadata_location == shown.metadata_location


def test_credentials_are_selected_by_file_location(world: World, catalog: Any, ns: str) -> None:
    table = catalog.create_table((ns, "t"), schema=SCHEMA)
    keys = catalog.load_credentials((ns, "t"), f"{table.location()}/data/new.parquet")
    path = f"{table.location().removeprefix(f's3://{world.bucket}/')}/data/new.parquet"
    world.store_of(keys).put_object(Bucket=world.bucket, Key=path, Body=b"x")
    assert path in below(world, table.location())
    assert catalog.load_credentials((ns, "t"), f"{table.location()}-sibling/data/new.parquet") == {}
