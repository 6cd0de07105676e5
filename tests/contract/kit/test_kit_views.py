# SPDX-License-Identifier: Apache-2.0
"""Views as the compatibility kit expects them. `test_kit_tables.py` tests their rename and registration."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.stack.java_client import (
    OTHER_SCHEMA,
    SCHEMA,
    SQL,
    JavaCatalog,
    JavaView,
    raises,
    remove_properties,
    set_properties,
    version,
)
from tests.support.stack.java_errors import (
    AlreadyExistsException,
    BadRequestException,
    CommitFailedException,
    IllegalArgumentException,
    JavaException,
    NoSuchViewException,
)
from tests.support.stack.world import World, unique

pytestmark = pytest.mark.generated  # the kit enumerates the protocol

TRINO = ("trino", "select * from ns.tbl")
ANOTHER_SQL = ("spark", "select count(*) from ns.tbl")
ANY_DIALECT = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}


@pytest.fixture
def view(catalog: JavaCatalog, ns: str) -> JavaView:
    """Create a view of one dialect."""
    return catalog.create_view(ns, "view")


def _now(view: JavaView) -> dict[str, Any]:
    return view.stale().refresh()


# ---- creating and loading --------------------------------------------------------------------------------------------


def test_a_new_view_exists_and_has_one_version(catalog: JavaCatalog, ns: str) -> None:
    assert not catalog.exists("views", ns, "view")
    made = catalog.create_view(ns, "view")
    assert catalog.exists("views", ns, "view")
    now = catalog.load_view(ns, "view").metadata
    assert now == made.metadata
    assert now["properties"] == {}
    assert [each["version-id"] for each in now["version-log"]] == [1]
    assert now["schemas"] == [{**SCHEMA, "schema-id": 0}]
    (only,) = now["versions"]
    assert (only["version-id"], only["schema-id"], only["summary"]) == (1, 0, {"operation": "create"})
    assert only["default-namespace"] == ["ns"]
    assert "default-catalog" not in only
    assert only["representations"] == [{"type": "sql", "sql": SQL[1], "dialect": SQL[0]}]


def test_view_with_all_options_is_loaded_as_created(catalog: JavaCatalog, world: World, ns: str) -> None:
    location = f"s3://{world.bucket}/demo/{unique('view')}"
    made = catalog.create_view(
        ns,
        "view",
        location=location,
        properties={"prop1": "val1", "prop2": "val2"},
        **{"view-version": {**version(SQL, TRINO), "default-catalog": "default"}},
    )
    now = catalog.load_view(ns, "view").metadata
    assert now == made.metadata
    assert now["location"] == location
    assert now["properties"] == {"prop1": "val1", "prop2": "val2"}
    (only,) = now["versions"]
    assert only["default-catalog"] == "default"
    assert [(each["dialect"], each["sql"]) for each in only["representations"]] == [SQL, TRINO]


def test_view_metadata_is_written_to_the_path_of_its_property(catalog: JavaCatalog, world: World, ns: str) -> None:
    location = f"s3://{world.bucket}/demo/{unique('view')}"
    properties = {"write.metadata.path": f"{location}/custom"}
    made = catalog.create_view(ns, "view", location=location, properties=properties)
    assert made.metadata_location.startswith(f"{location}/custom/")
    made.replace(ANOTHER_SQL)
    assert catalog.load_view(ns, "view").metadata_location.startswith(f"{location}/custom/")


def test_missing_view_is_no_such_view_even_without_its_namespace(catalog: JavaCatalog, ns: str) -> None:
    with raises(NoSuchViewException, is_=f"View does not exist: {ns}.view"):
        catalog.load_view(ns, "view")
    with raises(NoSuchViewException, is_="View does not exist: non-existing.view"):
        catalog.load_view("non-existing", "view")
    assert not catalog.exists("views", "non-existing", "view")
    assert not catalog.drop("views", ns, "view")
    assert not catalog.drop("views", "non-existing", "view")


def test_view_with_the_name_of_a_view_or_table_already_exists(catalog: JavaCatalog, view: JavaView) -> None:
    (ns,) = view.namespace
    catalog.create_table(ns, "table")
    for name in ("view", "VIEW"):
        with raises(AlreadyExistsException, is_=f"View already exists: {ns}.{name}"):
            catalog.create_view(ns, name, requested=OTHER_SCHEMA)
    with raises(AlreadyExistsException, is_=f"Table with same name already exists: {ns}.table"):
        catalog.create_view(ns, "table", requested=OTHER_SCHEMA)
    assert not catalog.exists("views", ns, "table")
    assert catalog.load_view(ns, "view").metadata == view.metadata


def test_one_of_two_concurrent_view_creations_succeeds(catalog: JavaCatalog, ns: str) -> None:
    def create(requested: Any) -> str:
        try:
            catalog.create_view(ns, "view", requested=requested)
        except JavaException as refused:
            assert isinstance(refused, AlreadyExistsException)
            return refused.sent
        return ""

    with ThreadPoolExecutor(4) as pool:
        outcomes = sorted(pool.map(create, [SCHEMA, OTHER_SCHEMA] * 2))
    assert outcomes == ["", *[f"View already exists: {ns}.view"] * 3]


def _without(member: str) -> dict[str, Any]:
    return {name: value for name, value in version(SQL).items() if name != member}


@pytest.mark.parametrize(
    "more",
    [
        {"view-version": version()},
        {"view-version": _without("representations")},
        {"view-version": _without("default-namespace")},
        {"view-version": version(("", "select 1"))},
        {"view-version": version(("spark", ""))},
        {"view-version": None},
        {"schema": None},
        {"properties": {"version.history.num-entries": "0"}},
        {"properties": {"version.history.num-entries": "9" * 5000}},
        {"properties": {"replace.drop-dialect.allowed": "maybe"}},
        {"properties": {"write.metadata.compression-codec": "lz4"}},
    ],
    ids=[
        "no query", "no representations", "no default namespace", "no dialect", "no text", "no version", "no schema",
        "no history", "endless history", "neither true nor false", "unsupported codec",
    ],
)  # fmt: skip
def test_invalid_view_is_refused(catalog: JavaCatalog, ns: str, more: dict[str, Any]) -> None:
    """The client rejects the first few of them itself."""
    with raises(BadRequestException):
        catalog.create_view(ns, "view", **more)
    assert not catalog.exists("views", ns, "view")


@pytest.mark.parametrize("dialects", [("trino", "trino"), ("trino", "TRINO"), ("spark", "trino", "Trino")])
def test_two_queries_of_one_dialect_are_an_illegal_argument(
    catalog: JavaCatalog, view: JavaView, dialects: tuple[str, ...]
) -> None:
    (ns,) = view.namespace
    twice = [(dialect, f"select {number}") for number, dialect in enumerate(dialects)]
    text = "Invalid view version: Cannot add multiple queries for dialect trino"
    with raises(IllegalArgumentException, contains=text):
        catalog.create_view(ns, "other", **{"view-version": version(*twice)})
    with raises(IllegalArgumentException, contains=text):
        view.replace(*twice)
    assert _now(view) == view.metadata


def test_queries_of_several_dialects_are_stored_unchanged(catalog: JavaCatalog, ns: str) -> None:
    made = catalog.create_view(ns, "view", **{"view-version": version(("Spark", "select 1"), ("TRINO", "select 2"))})
    made.replace(("spark", "select 3"), ("trino", "select 4"))
    dialects = [[each["dialect"] for each in v["representations"]] for v in _now(made)["versions"]]
    assert dialects == [["Spark", "TRINO"], ["spark", "trino"]]


# ---- listing ---------------------------------------------------------------------------------------------------------


def test_views_and_tables_are_listed_separately_in_their_namespaces(catalog: JavaCatalog, world: World) -> None:
    one, two = world.namespace(), world.namespace()
    catalog.create_table(one, "table")
    assert (catalog.list("tables", one), catalog.list("views", one), catalog.list("views", two)) == (["table"], [], [])
    for namespace, name in ((one, "view1"), (two, "view2"), (two, "view3")):
        catalog.create_view(namespace, name)
        assert name in catalog.list("views", namespace), "at once"
    assert (catalog.list("views", one), catalog.list("views", two)) == (["view1"], ["view2", "view3"])
    assert catalog.list("tables", two) == []
    assert catalog.drop("views", two, "view2")
    assert (catalog.list("views", one), catalog.list("views", two)) == (["view1"], ["view3"])
    assert catalog.drop("tables", one, "table")
    assert (catalog.list("tables", one), catalog.list("views", one)) == ([], ["view1"])


# ---- replacing -------------------------------------------------------------------------------------------------------


def test_a_replaced_view_has_a_second_version_schema_and_entry_of_its_history(view: JavaView) -> None:
    """Create-or-replace of an existing view is the same commit."""
    before = view.current
    replaced = view.replacement(("trino", "select 1"), schema=OTHER_SCHEMA)
    view.commit(ANY_DIALECT, *replaced, set_properties(replacedProp1="val1"))
    now = _now(view)
    assert [each["version-id"] for each in now["version-log"]] == [1, 2]
    assert [each["schema-id"] for each in now["schemas"]] == [0, 1]
    assert now["versions"][0] == before
    new = now["versions"][1]
    assert (new["version-id"], new["schema-id"], new["summary"]) == (2, 1, {"operation": "replace"})
    assert new["representations"] == [{"type": "sql", "sql": "select 1", "dialect": "trino"}]
    assert now["current-version-id"] == 2
    assert now["properties"]["replacedProp1"] == "val1"


def test_replacement_by_an_equal_version_keeps_the_version(view: JavaView) -> None:
    view.replace(SQL, ("trino", "select 2"))
    view.replace(SQL, ("trino", "select 2"))
    now = _now(view)
    assert ([each["version-id"] for each in now["versions"]], now["current-version-id"]) == ([1, 2], 2)
    assert [each["version-id"] for each in now["version-log"]] == [1, 2]


def test_one_dialect_can_be_updated_while_the_other_dialects_stay(catalog: JavaCatalog, ns: str) -> None:
    made = catalog.create_view(ns, "view", **{"view-version": version(SQL, TRINO)})
    made.replace(ANOTHER_SQL, TRINO)
    texts = [[(each["dialect"], each["sql"]) for each in v["representations"]] for v in _now(made)["versions"]]
    assert texts == [[SQL, TRINO], [ANOTHER_SQL, TRINO]]


def test_dialect_is_dropped_only_if_the_view_property_allows_it(catalog: JavaCatalog, ns: str) -> None:
    made = catalog.create_view(ns, "view", **{"view-version": version(SQL, TRINO)})
    with raises(BadRequestException, contains="Cannot replace view due to loss of view dialects"):
        made.replace(SQL)
    assert _now(made) == made.metadata
    made.commit(ANY_DIALECT, *made.replacement(SQL))
    assert _now(made)["current-version-id"] == 2


@pytest.mark.parametrize(
    "updates",
    [
        [{"action": "set-current-view-version", "view-version-id": 77}],
        [{"action": "set-current-view-version", "view-version-id": -1}],
        [{"action": "add-view-version", "view-version": version(SQL, number=2, schema_id=77)}],
        [{"action": "add-view-version", "view-version": version(SQL, number=2, schema_id=-1)}],
        [{"action": "add-view-version", "view-version": version(number=2)}],
        [{"action": "assign-uuid", "uuid": "00000000-0000-4000-8000-000000000000"}],
        [{"action": "upgrade-format-version", "format-version": 2}],
        [{"action": "add-spec", "spec": {"fields": []}}],
        [{"action": "set-location", "location": ""}],
    ],
    ids=[
        "current version 77",
        "current version -1",
        "schema 77",
        "schema -1",
        "no representation",
        "another uuid",
        "format version 2",
        "partition spec",
        "no location",
    ],
)
def test_invalid_view_replacement_is_refused(view: JavaView, updates: list[dict[str, Any]]) -> None:
    with raises(BadRequestException):
        view.commit(*updates)
    assert _now(view) == view.metadata


@pytest.mark.parametrize("kept", ["1", "2"])
def test_view_versions_beyond_the_history_size_are_removed(catalog: JavaCatalog, ns: str, kept: str) -> None:
    made = catalog.create_view(ns, "view", properties={"version.history.num-entries": kept})
    for number in range(3):
        made.replace(("spark", f"select {number}"))
    now = _now(made)
    last = list(range(5 - int(kept), 5))
    assert [each["version-id"] for each in now["versions"]] == last
    assert [each["version-id"] for each in now["version-log"]] == last


# ---- properties and location -----------------------------------------------------------------------------------------


def test_properties_of_a_view_change_without_a_new_version(view: JavaView) -> None:
    before = view.metadata
    view.commit(set_properties(key1="val1", key2="val2"), remove_properties("non-existing"))
    assert _now(view)["properties"] == {"key1": "val1", "key2": "val2"}
    view.commit(set_properties(key1="new-val1", key3="val3"), remove_properties("key2"))
    now = _now(view)
    assert now["properties"] == {"key1": "new-val1", "key3": "val3"}
    for same in ("versions", "version-log", "schemas", "current-version-id", "view-uuid"):
        assert now[same] == before[same]


def test_moved_view_writes_its_next_metadata_at_the_new_location(
    catalog: JavaCatalog, world: World, view: JavaView
) -> None:
    location = f"s3://{world.bucket}/demo/{unique('moved')}"
    view.commit({"action": "set-location", "location": location})
    moved = catalog.load_view(*view.namespace, "view")
    assert moved.metadata["location"] == location
    assert moved.metadata_location.startswith(f"{location}/metadata/")
    assert moved.metadata["versions"] == view.metadata["versions"]


def test_a_view_is_created_and_replaced_with_a_location(catalog: JavaCatalog, world: World, ns: str) -> None:
    first, second = (f"s3://{world.bucket}/demo/{unique('place')}" for _ in range(2))
    made = catalog.create_view(ns, "view", location=first)
    assert made.metadata["location"] == first
    made.commit(*made.replacement(ANOTHER_SQL), {"action": "set-location", "location": second})
    assert _now(made)["location"] == second


# ---- concurrent changes ----------------------------------------------------------------------------------------------

_COMMITS: list[tuple[str, Callable[[JavaView, str], object]]] = [
    ("properties", lambda view, at: view.commit(set_properties(a="1"))),
    ("a replacement", lambda view, at: view.replace(ANOTHER_SQL)),
    ("a location", lambda view, at: view.commit({"action": "set-location", "location": at})),
]


@pytest.mark.parametrize(("_", "commit"), _COMMITS, ids=[each[0] for each in _COMMITS])
def test_commit_to_a_dropped_view_is_not_found(
    catalog: JavaCatalog, world: World, view: JavaView, _: str, commit: Callable[[JavaView, str], object]
) -> None:
    (ns,) = view.namespace
    catalog.drop("views", ns, "view")
    with raises(NoSuchViewException, is_=f"View does not exist: {ns}.view"):
        commit(view, f"s3://{world.bucket}/demo/{unique('moved')}")
    catalog.create_table(ns, "view")
    with raises(NoSuchViewException, is_=f"View does not exist: {ns}.view"):
        commit(view, f"s3://{world.bucket}/demo/{unique('moved')}")


def test_commit_to_a_recreated_view_of_the_same_name_fails(catalog: JavaCatalog, view: JavaView) -> None:
    (ns,) = view.namespace
    catalog.drop("views", ns, "view")
    again = catalog.create_view(ns, "view", requested=OTHER_SCHEMA)
    with raises(CommitFailedException, starts="Requirement failed: view UUID does not match"):
        view.replace(ANOTHER_SQL)
    assert catalog.load_view(ns, "view").metadata == again.metadata


def test_second_of_two_replacements_of_version_1_becomes_version_3(view: JavaView) -> None:
    late = view.stale()
    view.replace(("spark", "select 'first'"), ("trino", "select 'first'"), schema=OTHER_SCHEMA)
    late.replace(("spark", "select 'second'"), ("trino", "select 'second'"), schema=OTHER_SCHEMA)
    now = _now(view)
    assert now["current-version-id"] == 3
    assert [each["version-id"] for each in now["versions"]] == [1, 2, 3]
    assert [each["version-id"] for each in now["version-log"]] == [1, 2, 3]
    assert [each["schema-id"] for each in now["schemas"]] == [0, 1], (
        "a schema added by both replacements is stored once"
    )
    assert [each["schema-id"] for each in now["versions"]] == [0, 1, 1]
    assert now["versions"][2]["representations"][0]["sql"] == "select 'second'"


def test_identical_concurrent_replacements_share_one_version(view: JavaView) -> None:
    late = view.stale()
    at: dict[str, Any] = {"timestamp-ms": int(time.time() * 1000)}
    for client in (view, late):
        client.replace(ANOTHER_SQL, **at)
    assert [each["version-id"] for each in _now(view)["versions"]] == [1, 2]


def test_concurrent_property_change_and_replacement_both_succeed(view: JavaView) -> None:
    """Neither asserts more than the UUID of the view."""
    late = view.stale()
    view.commit(set_properties(a="1"))
    late.replace(ANOTHER_SQL)
    now = _now(view)
    assert (now["properties"], now["current-version-id"]) == ({"a": "1"}, 2)


def test_table_replacement_of_a_view_fails(catalog: JavaCatalog, view: JavaView) -> None:
    """Before a replacement of the other kind the client checks for existence, and rejects by the result."""
    (ns,) = view.namespace
    table = catalog.create_table(ns, "table")
    assert catalog.exists("views", ns, "view")
    assert catalog.exists("tables", ns, "table")
    assert not catalog.exists("views", ns, "table")
    assert not catalog.exists("tables", ns, "view")
    as_view = JavaView(catalog, "views", (ns,), "table", view.metadata)
    with raises(NoSuchViewException, is_=f"View does not exist: {ns}.table"):
        as_view.replace(ANOTHER_SQL)
    assert table.stale().refresh() == table.metadata
