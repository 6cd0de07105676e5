# SPDX-License-Identifier: Apache-2.0
"""Commits of schema, spec, sort order, data and properties, as the compatibility kit expects them.

Commits carry no base. A commit built on an older state succeeds while its requirements hold. If one does not hold, the
server rejects the commit at once and never retries it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.stack.java_client import (
    SCHEMA,
    JavaCatalog,
    JavaTable,
    add_order,
    add_schema,
    add_spec,
    column,
    current_schema,
    default_order,
    default_spec,
    new_snapshot,
    order,
    raises,
    remove_properties,
    remove_ref,
    schema,
    set_properties,
    set_ref,
    spec,
)
from tests.support.stack.java_errors import BadRequestException, CommitFailedException, JavaException

pytestmark = pytest.mark.generated  # the kit enumerates the protocol

ADDED = schema(*SCHEMA["fields"], column(3, "new_col"))
DELETED = schema(SCHEMA["fields"][0])
WIDENED = schema(column(1, "id", "long"), SCHEMA["fields"][1])

ADD_COLUMN = (add_schema(ADDED), current_schema())
DELETE_COLUMN = (add_schema(DELETED), current_schema())
SHARD = (add_spec(spec((1, "bucket[16]", "id_bucket"))), default_spec())
TRUNCATE = (add_spec(spec((2, "truncate[4]", "data_trunc"))), default_spec())
SORT = (add_order(order(1)), default_order())


@pytest.fixture
def table(catalog: JavaCatalog, ns: str) -> JavaTable:
    """Create a table of two columns, neither partitioned nor sorted."""
    return catalog.create_table(ns, "tbl")


def _now(table: JavaTable) -> dict[str, Any]:
    return table.stale().refresh()


# ---- one change ------------------------------------------------------------------------------------------------------


def test_changed_schema_becomes_current_with_the_next_id(table: JavaTable) -> None:
    table.commit(*ADD_COLUMN)
    now = _now(table)
    assert (now["current-schema-id"], now["last-column-id"]) == (1, 3)
    assert [each["fields"] for each in now["schemas"]] == [SCHEMA["fields"], ADDED["fields"]]


def test_schema_changed_back_reuses_its_former_id(table: JavaTable) -> None:
    table.commit(*ADD_COLUMN)
    table.commit({"action": "set-current-schema", "schema-id": 0})
    now = _now(table)
    assert (now["current-schema-id"], len(now["schemas"]), now["last-column-id"]) == (0, 2, 3)


def test_changed_spec_becomes_default_and_a_restored_spec_keeps_its_id(table: JavaTable) -> None:
    table.commit(*SHARD)
    now = _now(table)
    assert now["default-spec-id"] == 1
    assert now["partition-specs"][1]["fields"] == [
        {"source-id": 1, "field-id": 1000, "name": "id_bucket", "transform": "bucket[16]"}
    ]
    table.commit(default_spec(0))
    assert _now(table)["default-spec-id"] == 0
    table.commit(*TRUNCATE)
    assert [each["fields"][0]["field-id"] for each in _now(table)["partition-specs"][1:]] == [1000, 1001]


def test_new_sort_order_has_id_1_and_a_restored_unsorted_order_id_0(table: JavaTable) -> None:
    table.commit(*SORT)
    assert [each["order-id"] for each in _now(table)["sort-orders"]] == [0, 1]
    table.commit(default_order(0))
    assert _now(table)["default-sort-order-id"] == 0


def test_several_updates_of_one_commit_produce_one_state(table: JavaTable) -> None:
    added = new_snapshot(table.metadata, parent=None)
    id = added["snapshot"]["snapshot-id"]
    table.commit(*ADD_COLUMN, *SHARD, *SORT, set_properties(prop="x"), added, set_ref(id))
    now = _now(table)
    assert now == table.metadata
    assert (now["current-schema-id"], now["default-spec-id"], now["default-sort-order-id"]) == (1, 1, 1)
    assert (now["current-snapshot-id"], now["properties"]["prop"]) == (id, "x")
    assert len(now["metadata-log"]) == 1


def test_properties_are_set_and_removed_and_reserved_ones_are_not_stored(table: JavaTable) -> None:
    table.commit(set_properties(a="1", b="2"), {"action": "set-properties", "updates": {"format-version": "3"}})
    table.commit(remove_properties("a", "missing"))
    now = _now(table)
    assert now["properties"].items() >= {"b": "2"}.items()
    assert not {"a", "format-version"} & set(now["properties"])
    assert now["format-version"] == 2


# ---- commits on an older state ---------------------------------------------------------------------------------------

_BOTH_HOLD = [
    ("a spec, then a schema", SHARD, ADD_COLUMN),
    ("a schema, then a spec", ADD_COLUMN, SHARD),
    ("a sort order, then a schema", SORT, DELETE_COLUMN),
    ("a schema, then a sort order", ADD_COLUMN, SORT),
    ("properties, then a sort order", (set_properties(a="1"),), SORT),
    ("a schema, then properties", ADD_COLUMN, (set_properties(a="1"),)),
]


@pytest.mark.parametrize(("_", "first", "second"), _BOTH_HOLD, ids=[each[0] for each in _BOTH_HOLD])
def test_commit_on_an_older_state_succeeds_while_its_requirements_hold(
    table: JavaTable, _: str, first: Any, second: Any
) -> None:
    late = table.stale()
    table.commit(*first)
    late.commit(*second)
    actions = {each["action"] for each in (*first, *second)}
    now = _now(table)
    assert now["current-schema-id"] == ("add-schema" in actions)
    assert now["default-spec-id"] == ("add-spec" in actions)
    assert now["default-sort-order-id"] == ("add-sort-order" in actions)
    assert ("a" in now["properties"]) == ("set-properties" in actions)
    assert len(now["metadata-log"]) == 2


_CONFLICTS = [
    ("two columns", ADD_COLUMN, ADD_COLUMN, "last assigned field id changed: expected id 2 != 3"),
    ("a column less, then one more", DELETE_COLUMN, ADD_COLUMN, "current schema changed: expected id 0 != 1"),
    ("two specs", SHARD, TRUNCATE, "last assigned partition id changed: expected id 999 != 1000"),
    ("two sort orders", SORT, (add_order(order(2)), default_order()), "default sort order changed"),
]


@pytest.mark.parametrize(("_", "first", "second", "text"), _CONFLICTS, ids=[each[0] for each in _CONFLICTS])
def test_second_of_two_conflicting_changes_fails(table: JavaTable, _: str, first: Any, second: Any, text: str) -> None:
    late = table.stale()
    table.commit(*first)
    with raises(CommitFailedException, starts=f"Requirement failed: {text}"):
        late.commit(*second)
    assert _now(table) == table.metadata, "the second of two conflicting commits must change nothing"


def test_concurrent_change_of_the_default_spec_is_a_conflict(table: JavaTable) -> None:
    table.commit(*SHARD)
    late = table.stale()
    table.commit(default_spec(0))
    with raises(CommitFailedException, starts="Requirement failed: default partition spec changed"):
        late.commit(default_spec(0), set_properties(a="1"))


def test_commit_to_a_recreated_table_of_the_same_name_fails(catalog: JavaCatalog, table: JavaTable) -> None:
    (ns,) = table.namespace
    catalog.drop("tables", ns, "tbl")
    again = catalog.create_table(ns, "tbl")
    with raises(CommitFailedException, starts="Requirement failed: UUID does not match: expected"):
        table.commit(set_properties(a="1"))
    assert catalog.load_table(ns, "tbl").metadata == again.metadata


# ---- removal of unused parts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("branch", [None, "other"])
@pytest.mark.parametrize("update", ["remove-partition-specs", "remove-schemas"])
def test_unused_specs_and_schemas_are_removed(table: JavaTable, update: str, branch: str | None) -> None:
    table.append()
    table.commit(*SHARD).commit(*ADD_COLUMN)
    table.append()
    if branch is not None:
        table.commit(set_ref(table.metadata["current-snapshot-id"], branch))
    ids = {"remove-partition-specs": "spec-ids", "remove-schemas": "schema-ids"}[update]
    late = table.stale()
    table.commit({"action": update, ids: [0]})
    kept = {"remove-partition-specs": "partition-specs", "remove-schemas": "schemas"}[update]
    assert [each.get("spec-id", each.get("schema-id")) for each in _now(table)[kept]] == [1]
    late.commit({"action": update, ids: [0]})
    with raises(BadRequestException, starts="Cannot remove the "):
        table.commit({"action": update, ids: [1]})
    if branch is not None:
        table.append(branch=branch)
        with raises(CommitFailedException, starts=f"Requirement failed: branch {branch} has changed"):
            late.commit({"action": update, ids: [0]})


# ---- data ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_append_sets_the_current_snapshot_and_the_snapshot_log(catalog: JavaCatalog, ns: str, version: str) -> None:
    table = catalog.create_table(ns, "tbl", properties={"format-version": version})
    assert table.metadata["current-snapshot-id"] in (-1, None)
    ids = [table.append(), table.append()]
    now = _now(table)
    assert now["current-snapshot-id"] == ids[-1]
    assert [each["snapshot-id"] for each in now["snapshots"]] == ids
    assert [each["snapshot-id"] for each in now["snapshot-log"]] == ids
    assert now["refs"] == {"main": {"snapshot-id": ids[-1], "type": "branch"}}
    assert now.get("last-sequence-number", 2) == 2


@pytest.mark.parametrize("first", [0, 1])
def test_concurrent_appends_both_succeed_with_client_retries(table: JavaTable, first: int) -> None:
    for _ in range(first):
        table.append()
    late = table.stale()
    table.append()
    expected = "has changed: expected id" if first else "was created concurrently"
    base = late.metadata
    added = new_snapshot(base, parent=base.get("refs", {}).get("main", {}).get("snapshot-id"))
    with raises(CommitFailedException, starts=f"Requirement failed: branch main {expected}"):
        late.commit(added, set_ref(added["snapshot"]["snapshot-id"]))
    late.append()
    assert len(_now(table)["snapshots"]) == first + 2


def test_exactly_one_of_many_appends_to_one_state_succeeds(table: JavaTable) -> None:
    """A server that retries a failed requirement would accept more than one."""

    def attempt(client: JavaTable) -> str:
        added = new_snapshot(client.metadata, parent=None)
        try:
            client.commit(added, set_ref(added["snapshot"]["snapshot-id"]))
        except JavaException as failed:
            assert isinstance(failed, CommitFailedException)
            return failed.sent
        return ""

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(attempt, [table.stale() for _ in range(6)]))
    assert outcomes.count("") == 1
    assert set(outcomes) == {"", "Requirement failed: branch main was created concurrently"}
    assert len(_now(table)["snapshots"]) == 1


@pytest.mark.parametrize("version", ["2", "3"])
def test_outdated_snapshot_can_be_rebuilt_and_sent_again(catalog: JavaCatalog, ns: str, version: str) -> None:
    """Neither asserts the branch: only the sequence number shows that the snapshot was built on an older state."""
    table = catalog.create_table(ns, "tbl", properties={"format-version": version})
    root = table.append()
    late = new_snapshot(table.metadata, parent=root)
    table.append()
    with raises(CommitFailedException, starts="Validation failed, please retry: Cannot add snapshot with sequence"):
        table.commit(late)
    table.commit(new_snapshot(table.metadata, parent=root))
    if version == "3":
        added = new_snapshot(table.metadata, parent=root)
        added["snapshot"]["added-rows"] = 5
        table.commit(added)
        behind = new_snapshot(table.metadata, parent=root)
        behind["snapshot"]["first-row-id"] = 4
        with raises(CommitFailedException, starts="Validation failed, please retry: Cannot add a snapshot with first"):
            table.commit(behind)


def test_branches_and_tags_are_checked_moved_and_removed(table: JavaTable) -> None:
    first = table.append()
    table.commit(set_ref(first, "audit"), set_ref(first, "v1", "tag"))
    late = table.stale()
    second = table.append(branch="audit")
    now = _now(table)
    assert (now["current-snapshot-id"], now["refs"]["audit"]["snapshot-id"]) == (first, second)
    with raises(CommitFailedException, starts=f"Requirement failed: branch audit has changed: expected id {first}"):
        late.commit(set_ref(first, "audit"))
    table.commit(remove_ref("v1"))
    with raises(CommitFailedException, starts="Requirement failed: branch or tag v1 is missing, expected"):
        late.commit(set_ref(first, "v1", "tag"))
    with raises(BadRequestException, contains="main must be a branch"):
        table.commit(set_ref(first, "main", "tag"))


# ---- metadata files --------------------------------------------------------------------------------------------------


def test_metadata_log_length_follows_the_table_property(catalog: JavaCatalog, ns: str) -> None:
    """Counted right after the property changes; `test_metadata_files.py` tests which files are deleted."""
    table = catalog.create_table(ns, "tbl")
    for number in range(4):
        table.commit(set_properties(n=str(number)))
    assert len(table.metadata["metadata-log"]) == 4
    for keep in (2, 1):
        name = "write.metadata.previous-versions-max"
        table.commit({"action": "set-properties", "updates": {name: str(keep)}})
        assert len(_now(table)["metadata-log"]) == keep
    before = table.metadata_location
    table.commit(set_properties(n="last"))
    assert [each["metadata-file"] for each in _now(table)["metadata-log"]] == [before]
