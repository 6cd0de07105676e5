# SPDX-License-Identifier: Apache-2.0
"""Creation, loading, listing, dropping, renaming and registration of tables, as the compatibility kit expects them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stack.java_client import (
    SCHEMA,
    JavaCatalog,
    JavaTable,
    add_schema,
    column,
    current_schema,
    order,
    raises,
    schema,
    set_properties,
    spec,
)
from tests.support.stack.java_errors import (
    AlreadyExistsException,
    BadRequestException,
    NoSuchNamespaceException,
    NoSuchTableException,
    NoSuchViewException,
    NotFoundException,
)
from tests.support.stack.world import World, unique

pytestmark = pytest.mark.generated  # the kit enumerates the protocol


@pytest.fixture
def table(catalog: JavaCatalog, ns: str) -> JavaTable:
    """Create a table of two columns."""
    return catalog.create_table(ns, "tbl")


# ---- creating --------------------------------------------------------------------------------------------------------


def test_new_table_exists_with_the_requested_schema(catalog: JavaCatalog, ns: str) -> None:
    assert not catalog.exists("tables", ns, "tbl")
    made = catalog.create_table(ns, "tbl").metadata
    assert catalog.exists("tables", ns, "tbl")
    assert made["schemas"] == [{**SCHEMA, "schema-id": 0}]
    assert made["partition-specs"] == [{"spec-id": 0, "fields": []}]
    assert made["sort-orders"] == [{"order-id": 0, "fields": []}]
    assert made["properties"] == {"write.parquet.compression-codec": "zstd"}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_table_with_all_options_is_loaded_as_created(catalog: JavaCatalog, world: World, ns: str, version: int) -> None:
    """The server assigns new column and partition ids: the client's ids have no meaning before the table exists."""
    location = f"s3://{world.bucket}/demo/{unique('given')}"
    requested = schema(column(7, "id", "int", required=True, doc="unique ID"), column(9, "data", "string"))
    made = catalog.create_table(
        ns,
        "tbl",
        {**requested, "identifier-field-ids": [7]},
        **{"partition-spec": spec((9, "bucket[16]", "data_bucket")), "write-order": order(9, 7, id=5)},
        location=location,
        properties={"user": "someone", "format-version": str(version)},
    )
    loaded = catalog.load_table(ns, "tbl").metadata
    assert loaded == made.metadata
    assert (loaded["format-version"], loaded["location"]) == (version, location)
    (kept,) = loaded["schemas"]
    assert [(each["id"], each["name"], each["required"]) for each in kept["fields"]] == [
        (1, "id", True),
        (2, "data", False),
    ]
    assert kept["fields"][0]["doc"] == "unique ID"
    assert kept["identifier-field-ids"] == [1]
    assert loaded["partition-specs"] == [
        {
            "spec-id": 0,
            "fields": [{"source-id": 2, "field-id": 1000, "name": "data_bucket", "transform": "bucket[16]"}],
        }
    ]
    (sorting,) = loaded["sort-orders"]
    assert (sorting["order-id"], [each["source-id"] for each in sorting["fields"]]) == (1, [2, 1])
    assert loaded["default-sort-order-id"] == 1
    assert loaded["properties"].items() >= {"user": "someone"}.items()
    assert "format-version" not in loaded["properties"]


@pytest.mark.parametrize("staged", [False, True])
def test_existing_table_name_is_not_reused(catalog: JavaCatalog, table: JavaTable, staged: bool) -> None:
    (ns,) = table.namespace
    make = catalog.stage if staged else catalog.create_table
    for name in ("tbl", "TBL"):
        with raises(AlreadyExistsException, starts=f"Table already exists: {ns}.{name}"):
            make(ns, name)
    assert catalog.load_table(ns, "tbl").metadata == table.metadata


def test_default_values_of_columns_are_kept_and_need_version_3(catalog: JavaCatalog, ns: str) -> None:
    default = {"initial-default": 42, "write-default": 43}
    requested = schema(column(1, "id", "int"), column(2, "answer", "int", **default))
    made = catalog.create_table(ns, "tbl", requested, properties={"format-version": "3"})
    (kept,) = catalog.load_table(ns, "tbl").metadata["schemas"]
    assert kept == {**requested, "schema-id": 0}
    added = column(3, "city", "string", **{"initial-default": "?", "write-default": "?"})
    made.commit(add_schema(schema(*requested["fields"], added)), current_schema())
    assert catalog.load_table(ns, "tbl").metadata["schemas"][1]["fields"][2] == added
    with raises(BadRequestException, contains="answer"):
        catalog.create_table(ns, "other", requested, properties={"format-version": "2"})


def test_variants_are_for_version_3_when_created_and_when_added(catalog: JavaCatalog, ns: str) -> None:
    requested = schema(column(1, "id", "int"), column(2, "v", "variant"))
    made = catalog.create_table(ns, "three", requested, properties={"format-version": "3"})
    assert made.metadata["schemas"][0]["fields"][1]["type"] == "variant"
    more = schema(*requested["fields"], column(3, "w", "variant"))
    assert made.commit(add_schema(more), current_schema()).metadata["current-schema-id"] == 1
    with raises(BadRequestException, contains="variant is not supported until v3"):
        catalog.create_table(ns, "two", requested, properties={"format-version": "2"})
    two = catalog.create_table(ns, "two")
    with raises(BadRequestException, contains="variant is not supported until v3"):
        two.commit(add_schema(schema(*SCHEMA["fields"], column(3, "v", "variant"))), current_schema())


@pytest.mark.parametrize("name", ["dotted.name", "two words", "a%b", "ünï", "semi;colon", "q'uote", "~", "star*"])
def test_names_in_java_encoding_are_found(catalog: JavaCatalog, ns: str, name: str) -> None:
    made = catalog.create_table(ns, name)
    assert catalog.exists("tables", ns, name)
    assert catalog.list("tables", ns) == [name]
    assert catalog.load_table(ns, name).metadata == made.metadata
    assert made.commit(set_properties(a="1")).metadata["properties"]["a"] == "1"
    catalog.rename("tables", (ns, name), (ns, "plain"))
    assert catalog.drop("tables", ns, "plain")


@pytest.mark.parametrize("name", ["a/b", "a+b", "a\\b", "", ".", "..", " a", "a%41"])
def test_ambiguously_readable_table_names_are_refused(catalog: JavaCatalog, ns: str, name: str) -> None:
    for make in (catalog.create_table, catalog.stage, catalog.create_view):
        with raises(BadRequestException):
            make(ns, name)


# ---- loading ---------------------------------------------------------------------------------------------------------


def test_missing_table_is_no_such_table_even_without_its_namespace(catalog: JavaCatalog, table: JavaTable) -> None:
    """Clients probe `ns.tbl.files` as table `files` of namespace `ns.tbl` and continue only at this response."""
    (ns,) = table.namespace
    with raises(NoSuchTableException, is_=f"Table does not exist: {ns}.missing"):
        catalog.load_table(ns, "missing")
    with raises(NoSuchTableException, is_="Table does not exist: non-existing.tbl"):
        catalog.load_table("non-existing", "tbl")
    for metadata_table in ("files", "snapshots", "all_entries"):
        with raises(NoSuchTableException, is_=f"Table does not exist: {ns}.tbl.{metadata_table}"):
            catalog.load_table(ns, "tbl", metadata_table)
    assert not catalog.exists("tables", "non-existing", "tbl")


def test_a_load_does_not_read_the_metadata_file(catalog: JavaCatalog, world: World, table: JavaTable) -> None:
    """The only omitted expectation of the kit (`docs/protocol.md`): an error for the missing file."""
    key = table.metadata_location.removeprefix(f"s3://{world.bucket}/")
    world.s3.delete_object(Bucket=world.bucket, Key=key)
    assert catalog.load_table(*table.namespace, "tbl").metadata == table.metadata


# ---- listing and dropping --------------------------------------------------------------------------------------------


def test_each_namespace_lists_its_own_tables_and_no_dropped_one(catalog: JavaCatalog, world: World) -> None:
    one, two = world.namespace(), world.namespace()
    assert catalog.list("tables", one) == []
    for namespace, name in ((one, "a"), (two, "b"), (one, "c")):
        catalog.create_table(namespace, name)
        assert name in catalog.list("tables", namespace), "at once"
    assert (catalog.list("tables", one), catalog.list("tables", two)) == (["a", "c"], ["b"])
    assert catalog.drop("tables", one, "a")
    assert (catalog.list("tables", one), catalog.list("tables", two)) == (["c"], ["b"])
    catalog.create_table(one, "a")
    assert catalog.list("tables", one) == ["a", "c"]


@pytest.mark.parametrize("purge", [None, True, False])
def test_dropped_table_is_gone_and_a_repeated_drop_returns_false(
    catalog: JavaCatalog, world: World, table: JavaTable, purge: bool | None
) -> None:
    (ns,) = table.namespace
    assert not catalog.drop("tables", ns, "missing", purge=purge)
    assert not catalog.drop("tables", "non-existing", "tbl", purge=purge)
    assert catalog.drop("tables", ns, "tbl", purge=purge)
    assert not catalog.exists("tables", ns, "tbl")
    assert not catalog.drop("tables", ns, "tbl", purge=purge)
    with raises(NoSuchTableException, is_=f"Table does not exist: {ns}.tbl"):
        table.commit(set_properties(a="1"))
    if purge is False:
        assert world.objects(table.metadata["location"].removeprefix(f"s3://{world.bucket}/"))


# ---- renaming --------------------------------------------------------------------------------------------------------


def test_a_rename_changes_the_name_and_no_metadata(catalog: JavaCatalog, world: World, table: JavaTable) -> None:
    (ns,) = table.namespace
    other = world.namespace()
    for source, destination in (((ns, "tbl"), (ns, "renamed")), ((ns, "renamed"), (other, "moved"))):
        catalog.rename("tables", source, destination)
        assert not catalog.exists("tables", *source)
        moved = catalog.load_table(*destination)
        assert (moved.metadata, moved.metadata_location) == (table.metadata, table.metadata_location)
    assert (catalog.list("tables", ns), catalog.list("tables", other)) == ([], ["moved"])


@pytest.mark.parametrize("kind", ["tables", "views"])
def test_rename_of_a_missing_source_fails(catalog: JavaCatalog, ns: str, kind: str) -> None:
    noun = kind.removesuffix("s").capitalize()
    missing = NoSuchTableException if kind == "tables" else NoSuchViewException
    with raises(missing, contains=f"{noun} does not exist"):
        catalog.rename(kind, (ns, "missing"), (ns, "renamed"))
    assert not catalog.exists(kind, ns, "renamed")


@pytest.mark.parametrize("kind", ["tables", "views"])
def test_rename_into_a_missing_namespace_fails(catalog: JavaCatalog, ns: str, kind: str) -> None:
    _make(catalog, kind, ns, "x")
    with raises(NoSuchNamespaceException, contains="Namespace does not exist: non_existing"):
        catalog.rename(kind, (ns, "x"), ("non_existing", "x"))
    assert catalog.exists(kind, ns, "x")


@pytest.mark.parametrize("onto", ["tables", "views"])
@pytest.mark.parametrize("kind", ["tables", "views"])
def test_rename_onto_a_table_or_view_fails(catalog: JavaCatalog, ns: str, kind: str, onto: str) -> None:
    """`contains "Table already exists"` for tables, the whole text for views."""
    first, second = _make(catalog, kind, ns, "one"), _make(catalog, onto, ns, "two")
    noun = onto.removesuffix("s").capitalize()
    with raises(AlreadyExistsException, is_=f"Cannot rename {ns}.one to {ns}.two. {noun} already exists"):
        catalog.rename(kind, (ns, "one"), (ns, "two"))
    assert catalog.load(kind, [ns], "one").metadata == first
    assert catalog.load(onto, [ns], "two").metadata == second


def test_drop_after_rename_keeps_the_new_table_of_the_old_name(
    catalog: JavaCatalog, world: World, table: JavaTable
) -> None:
    (ns,) = table.namespace
    catalog.rename("tables", (ns, "tbl"), (ns, "away"))
    again = catalog.create_table(ns, "tbl")
    assert not again.metadata["location"].startswith(table.metadata["location"])
    assert not table.metadata["location"].startswith(again.metadata["location"])
    assert catalog.drop("tables", ns, "away", purge=True)
    gone = table.metadata_location.removeprefix(f"s3://{world.bucket}/")
    deadline = time.monotonic() + 60
    while any(key == gone for key, _ in world.objects(gone)):
        assert time.monotonic() < deadline, "the purge did not run before the deadline"
        time.sleep(0.2)
    key = again.metadata_location.removeprefix(f"s3://{world.bucket}/")
    assert world.s3.head_object(Bucket=world.bucket, Key=key)
    again.append()


# ---- registering -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tables", "views"])
def test_table_dropped_without_purge_is_registered_unchanged(catalog: JavaCatalog, ns: str, kind: str) -> None:
    _make(catalog, kind, ns, "x")
    before = catalog.load(kind, [ns], "x")
    assert catalog.drop(kind, ns, "x", purge=False if kind == "tables" else None)
    again = catalog.register(kind, ns, "x", before.metadata_location)
    assert (again.metadata, again.metadata_location) == (before.metadata, before.metadata_location)
    assert catalog.exists(kind, ns, "x")


@pytest.mark.parametrize("onto", ["tables", "views"])
@pytest.mark.parametrize("kind", ["tables", "views"])
def test_registration_under_a_taken_name_fails(catalog: JavaCatalog, ns: str, kind: str, onto: str) -> None:
    _make(catalog, kind, ns, "gone")
    file = catalog.load(kind, [ns], "gone").metadata_location
    catalog.drop(kind, ns, "gone", purge=False if kind == "tables" else None)
    there = _make(catalog, onto, ns, "there")
    with raises(AlreadyExistsException, is_=_taken(kind, onto, f"{ns}.there")):
        catalog.register(kind, ns, "there", file)
    assert catalog.load(onto, [ns], "there").metadata == there


def test_missing_metadata_file_is_reported_as_missing(catalog: JavaCatalog, ns: str) -> None:
    _make(catalog, "tables", ns, "gone")
    location = catalog.load("tables", [ns], "gone").metadata["location"]
    catalog.drop("tables", ns, "gone", purge=False)
    file = f"{location}/metadata/{unique('nowhere')}.metadata.json"
    with raises(NotFoundException, is_=f"Failed to open input stream for file: {file}"):
        catalog.register("tables", ns, "missing", file)
    assert not catalog.exists("tables", ns, "missing")


# ---- tables and views with each other's name -------------------------------------------------------------------------


def _taken(kind: str, onto: str, name: str) -> str:
    noun = onto.removesuffix("s").capitalize()
    return f"{noun} already exists: {name}" if kind == onto else f"{noun} with same name already exists: {name}"


def _make(catalog: JavaCatalog, kind: str, ns: str, name: str) -> Any:
    made = catalog.create_table(ns, name) if kind == "tables" else catalog.create_view(ns, name)
    return made.metadata


@pytest.mark.parametrize("make", ["create_table", "stage"])
def test_table_with_the_name_of_a_view_already_exists(catalog: JavaCatalog, ns: str, make: str) -> None:
    """A create-or-replace of a table gets the same response: there is no table to load, and none can be created."""
    catalog.create_view(ns, "view")
    with raises(NoSuchTableException, is_=f"Table does not exist: {ns}.view"):
        catalog.load_table(ns, "view")
    assert not catalog.exists("tables", ns, "view")
    with raises(AlreadyExistsException, is_=f"View with same name already exists: {ns}.view"):
        getattr(catalog, make)(ns, "view")
    assert catalog.exists("views", ns, "view")


def test_table_commit_or_drop_does_not_change_a_view_and_vice_versa(catalog: JavaCatalog, ns: str) -> None:
    view, table = catalog.create_view(ns, "view"), catalog.create_table(ns, "tbl")
    assert not catalog.drop("tables", ns, "view")
    assert not catalog.drop("views", ns, "tbl")
    as_table = JavaTable(catalog, "tables", (ns,), "view", table.metadata)
    with raises(NoSuchTableException, is_=f"Table does not exist: {ns}.view"):
        as_table.commit(set_properties(a="1"))
    with raises(NoSuchTableException, is_=f"Table does not exist: {ns}.view"):
        as_table.replace(set_properties(a="1"))
    assert catalog.load_view(ns, "view").metadata == view.metadata


# ---- properties that the server evaluates ----------------------------------------------------------------------------

_ODD_PROPERTIES = [
    ("write.metadata.previous-versions-max", "-1"),
    ("write.metadata.previous-versions-max", "many"),
    ("write.metadata.previous-versions-max", "2147483648"),
    ("write.metadata.delete-after-commit.enabled", "flase"),
    ("write.metadata.compression-codec", "lz4"),
    ("gc.enabled", "off"),
    ("commit.retry.num-retries", "-1"),
    ("commit.retry.total-timeout-ms", "soon"),
]


@pytest.mark.parametrize(("name", "value"), _ODD_PROPERTIES, ids=[f"{n}={v}" for n, v in _ODD_PROPERTIES])
def test_invalid_value_of_an_evaluated_property_is_refused(
    catalog: JavaCatalog, table: JavaTable, name: str, value: str
) -> None:
    (ns,) = table.namespace
    for make in (catalog.create_table, catalog.stage):
        with raises(BadRequestException, contains=name):
            make(ns, "other", properties={name: value})
    with raises(BadRequestException, contains=name):
        table.commit({"action": "set-properties", "updates": {name: value}})
    assert catalog.load_table(ns, "tbl").metadata == table.metadata


@pytest.mark.parametrize("version", ["0", "4", "-1", "two", "2.0", ""])
def test_unknown_format_version_is_refused(catalog: JavaCatalog, ns: str, version: str) -> None:
    with raises(BadRequestException):
        catalog.create_table(ns, "tbl", properties={"format-version": version})


@pytest.mark.parametrize(
    "transform", ["juggle[2", "bucket[0]", "bucket[-1]", "bucket", "truncate[2147483648]", "day()"]
)
def test_invalid_transform_is_refused_in_specs_and_sort_orders(
    catalog: JavaCatalog, table: JavaTable, transform: str
) -> None:
    (ns,) = table.namespace
    sorting = order(1)
    sorting["fields"][0]["transform"] = transform
    attempts: list[Callable[[], object]] = [
        lambda: catalog.create_table(ns, "other", **{"partition-spec": spec((1, transform, "p"))}),
        lambda: catalog.create_table(ns, "other", **{"write-order": sorting}),
        lambda: table.commit({"action": "add-spec", "spec": spec((1, transform, "p"))}),
        lambda: table.commit({"action": "add-sort-order", "sort-order": sorting}),
    ]
    for attempt in attempts:
        with raises(BadRequestException, starts="Invalid"):
            attempt()


def test_unknown_transform_is_kept(catalog: JavaCatalog, ns: str) -> None:
    made = catalog.create_table(ns, "tbl", **{"partition-spec": spec((1, "juggle[2]", "juggled"))})
    made.commit(set_properties(a="1"))
    assert catalog.load_table(ns, "tbl").metadata["partition-specs"][0]["fields"][0]["transform"] == "juggle[2]"


def test_immutable_property_is_neither_changed_nor_removed(catalog: JavaCatalog, ns: str) -> None:
    made = catalog.create_table(ns, "tbl", properties={"encryption.key-id": "k1"})
    for verb, update in (
        ("modify", {"action": "set-properties", "updates": {"encryption.key-id": "k2"}}),
        ("remove", {"action": "remove-properties", "removals": ["encryption.key-id"]}),
    ):
        with raises(BadRequestException, starts=f"Cannot {verb} immutable property 'encryption.key-id'"):
            made.commit(update)
    assert catalog.load_table(ns, "tbl").metadata["properties"]["encryption.key-id"] == "k1"
