# SPDX-License-Identifier: Apache-2.0
"""Create and replace transactions, alone and under concurrency, as the compatibility kit expects them.

`tests/contract/test_transactions.py` tests transactions over several tables.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stack.java_client import (
    OTHER_SCHEMA,
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
    schema,
    set_properties,
    set_ref,
    spec,
)
from tests.support.stack.java_errors import (
    AlreadyExistsException,
    BadRequestException,
    CommitFailedException,
    NoSuchTableException,
)
from tests.support.stack.world import World

pytestmark = pytest.mark.generated  # the kit enumerates the protocol

# The columns of OTHER_SCHEMA as a client numbers them for a table with id and data.
NEW_SCHEMA = schema(column(3, "some_id", "int"))
NEWER_SCHEMA = schema(column(3, "another_id", "int"))


def _written(base: dict[str, Any]) -> list[dict[str, Any]]:
    """Return updates that replace a table's content: a snapshot without parent, as current state."""
    added = new_snapshot(base, parent=None)
    return [added, set_ref(added["snapshot"]["snapshot-id"])]


@pytest.fixture
def table(catalog: JavaCatalog, ns: str) -> JavaTable:
    """Create a table with a snapshot."""
    made = catalog.create_table(ns, "tbl")
    made.append()
    return made


# ---- creating --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3])
def test_create_transaction_creates_the_table_only_with_its_first_commit(
    catalog: JavaCatalog, world: World, ns: str, version: int
) -> None:
    staged = catalog.stage(
        ns,
        "tbl",
        properties={"format-version": str(version), "prop": "x"},
        **{"partition-spec": spec((1, "bucket[16]", "shard")), "write-order": order(1)},
    )
    assert not staged.metadata_location
    assert not catalog.exists("tables", ns, "tbl")
    assert catalog.list("tables", ns) == []
    staged.finish(*_written(staged.metadata))
    now = catalog.load_table(ns, "tbl").metadata
    assert now["format-version"] == version
    assert (now["table-uuid"], now["location"]) == (staged.metadata["table-uuid"], staged.metadata["location"])
    assert (now["current-schema-id"], now["default-spec-id"], now["default-sort-order-id"]) == (0, 0, 1)
    assert now["properties"].items() >= {"prop": "x"}.items()
    assert len(now["snapshots"]) == 1
    assert now["metadata-log"] == [], "a table created by one commit has no previous metadata file"
    folder = now["location"].removeprefix(f"s3://{world.bucket}/") + "/metadata/"
    assert len(world.objects(folder)) == 1


def test_create_transaction_numbers_several_schemas_specs_and_orders(catalog: JavaCatalog, ns: str) -> None:
    staged = catalog.stage(ns, "tbl", **{"partition-spec": spec((1, "identity", "id")), "write-order": order(1)})
    more = schema(*SCHEMA["fields"], column(3, "new_col"))
    staged.finish(
        add_schema(more),
        current_schema(),
        add_spec(spec((1, "identity", "id"), (3, "identity", "new_col"))),
        default_spec(),
        add_order(order(1, 3)),
        default_order(),
    )
    now = catalog.load_table(ns, "tbl").metadata
    assert [each["schema-id"] for each in now["schemas"]] == [0, 1]
    assert [each["spec-id"] for each in now["partition-specs"]] == [0, 1]
    assert [each["order-id"] for each in now["sort-orders"]] == [1, 2]
    assert (now["current-schema-id"], now["default-spec-id"], now["default-sort-order-id"]) == (1, 1, 2)
    assert now["metadata-log"] == []


def test_create_transaction_fails_if_the_table_was_created_concurrently(catalog: JavaCatalog, ns: str) -> None:
    """A create-or-replace that found no table when it began ends the same way."""
    staged = catalog.stage(ns, "tbl", OTHER_SCHEMA)
    made = catalog.create_table(ns, "tbl")
    with raises(AlreadyExistsException, starts="Requirement failed: table already exists"):
        staged.finish()
    assert catalog.load_table(ns, "tbl").metadata == made.metadata


def test_first_of_two_create_transactions_to_commit_creates_the_table(catalog: JavaCatalog, ns: str) -> None:
    first, second = catalog.stage(ns, "tbl"), catalog.stage(ns, "tbl", OTHER_SCHEMA)
    second.finish()
    with raises(AlreadyExistsException, starts="Requirement failed: table already exists"):
        first.finish()
    assert catalog.load_table(ns, "tbl").metadata["table-uuid"] == second.metadata["table-uuid"]


def test_create_transaction_fails_if_a_view_was_created_concurrently(catalog: JavaCatalog, ns: str) -> None:
    staged = catalog.stage(ns, "view")
    catalog.create_view(ns, "view")
    with raises(AlreadyExistsException, is_=f"View with same name already exists: {ns}.view"):
        staged.finish()
    assert catalog.exists("views", ns, "view")
    assert not catalog.exists("tables", ns, "view")


# ---- replacing -------------------------------------------------------------------------------------------------------


def test_replacement_keeps_uuid_history_and_location_and_replaces_the_state(
    catalog: JavaCatalog, table: JavaTable
) -> None:
    before = table.metadata
    table.replace(
        *table.replaced_with(NEW_SCHEMA, spec=spec((3, "identity", "some_id")), order=order(3), prop="x"),
        *_written(before),
    )
    now = catalog.load_table(*table.namespace, "tbl").metadata
    assert (now["table-uuid"], now["location"]) == (before["table-uuid"], before["location"])
    assert (now["current-schema-id"], now["default-spec-id"], now["default-sort-order-id"]) == (1, 1, 1)
    assert now["schemas"][1]["fields"] == NEW_SCHEMA["fields"]
    assert now["last-column-id"] == 3
    assert now["properties"].items() >= {**before["properties"], "prop": "x"}.items()
    assert len(now["snapshots"]) == 2
    assert [each["snapshot-id"] for each in now["snapshot-log"]] == [each["snapshot-id"] for each in now["snapshots"]]
    assert "parent-snapshot-id" not in now["snapshots"][1]


def test_first_replacement_adds_one_entry_to_the_metadata_log(catalog: JavaCatalog, ns: str) -> None:
    table = catalog.create_table(ns, "tbl")
    first = table.metadata_location
    table.replace(*table.replaced_with(NEW_SCHEMA))
    assert [each["metadata-file"] for each in table.metadata["metadata-log"]] == [first]


def test_a_replacement_that_changes_nothing_but_the_data_adds_no_ids(table: JavaTable) -> None:
    updates = table.replaced_with(SCHEMA)
    assert {each["action"] for each in updates} <= {
        "set-current-schema", "set-default-spec", "set-default-sort-order", "remove-snapshot-ref",
    }  # fmt: skip
    table.replace(*updates)
    now = table.refresh()
    assert (len(now["schemas"]), len(now["partition-specs"]), len(now["sort-orders"])) == (1, 1, 1)
    assert now["current-snapshot-id"] in (-1, None)
    assert len(now["snapshots"]) == len(now["snapshot-log"]) == 1


def test_replacement_of_a_missing_table_fails(catalog: JavaCatalog, ns: str, table: JavaTable) -> None:
    with raises(NoSuchTableException, is_=f"Table does not exist: {ns}.missing"):
        catalog.load_table(ns, "missing")
    catalog.drop("tables", ns, "tbl")
    with raises(NoSuchTableException, is_=f"Table does not exist: {ns}.tbl"):
        table.replace(*table.replaced_with(NEW_SCHEMA))


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 3), (1, 3), (2, 2)])
def test_a_replacement_may_raise_the_format_version_and_never_lowers_it(
    catalog: JavaCatalog, ns: str, before: int, after: int
) -> None:
    table = catalog.create_table(ns, "tbl", properties={"format-version": str(before)})
    upgrade = {"action": "upgrade-format-version", "format-version": after}
    table.replace(upgrade, *table.replaced_with(NEW_SCHEMA))
    assert table.refresh()["format-version"] == after
    if after > 1:
        with raises(BadRequestException, starts=f"Cannot downgrade v{after} table to v1"):
            table.replace({"action": "upgrade-format-version", "format-version": 1})


# ---- two replacements of one state -----------------------------------------------------------------------------------

SHARD, OTHER_SHARD = spec((1, "bucket[16]", "shard")), spec((1, "bucket[8]", "shard"))

_BOTH = [
    ("the same schema", {}, {}),
    ("another schema, then the same", {"wanted": NEW_SCHEMA}, {}),
    ("the same schema, then another", {}, {"wanted": NEW_SCHEMA}),
    ("another spec, then the same", {"spec": SHARD}, {}),
    ("the same spec, then another", {}, {"spec": SHARD}),
    ("another order, then the same", {"order": order(1)}, {}),
    ("the same order, then another", {}, {"order": order(1)}),
    ("two orders", {"order": order(1)}, {"order": order(2)}),
]


@pytest.mark.parametrize(("_", "first", "second"), _BOTH, ids=[each[0] for each in _BOTH])
def test_both_of_two_replacements_succeed_and_the_last_one_wins(
    table: JavaTable, _: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """A replacement overwrites concurrent changes by design."""
    uuid, late = table.metadata["table-uuid"], table.stale()
    for attempt, (client, request) in enumerate(((table, first), (late, second))):
        updates = client.replaced_with(
            request.get("wanted", SCHEMA), spec=request.get("spec"), order=request.get("order")
        )
        client.replace(*updates, *_written(client.metadata), set_properties(**{f"p{attempt}": "x"}))
    now = table.refresh()
    assert now["table-uuid"] == uuid
    assert len(now["snapshots"]) == 3
    assert now["current-snapshot-id"] == late.metadata["current-snapshot-id"] == now["snapshots"][-1]["snapshot-id"]
    assert now["properties"].items() >= {"p0": "x", "p1": "x"}.items()
    current = {each["schema-id"]: each["fields"] for each in now["schemas"]}[now["current-schema-id"]]
    assert current == second.get("wanted", SCHEMA)["fields"]
    default = {each["spec-id"]: each["fields"] for each in now["partition-specs"]}[now["default-spec-id"]]
    assert [each["transform"] for each in default] == (["bucket[16]"] if "spec" in second else [])
    sorting = {each["order-id"]: each["fields"] for each in now["sort-orders"]}[now["default-sort-order-id"]]
    assert sorting == second.get("order", order())["fields"]


_CONFLICTS = [
    ("two schemas", {"wanted": NEW_SCHEMA}, {"wanted": NEWER_SCHEMA}, "last assigned field id changed"),
    ("two specs", {"spec": SHARD}, {"spec": OTHER_SHARD}, "last assigned partition id changed"),
]


@pytest.mark.parametrize(("_", "first", "second", "text"), _CONFLICTS, ids=[each[0] for each in _CONFLICTS])
def test_second_of_two_replacements_with_the_same_new_ids_fails(
    table: JavaTable, _: str, first: dict[str, Any], second: dict[str, Any], text: str
) -> None:
    late = table.stale()
    table.replace(*table.replaced_with(first.get("wanted", SCHEMA), spec=first.get("spec")))
    with raises(CommitFailedException, starts=f"Requirement failed: {text}"):
        late.replace(*late.replaced_with(second.get("wanted", SCHEMA), spec=second.get("spec")))
    assert table.stale().refresh() == table.metadata


def test_identical_schema_of_two_replacements_is_added_once(table: JavaTable) -> None:
    """Engines that assert no ids do this: the server reuses the identical schema and reports no conflict."""
    for client in (table, table.stale()):
        client.replace(*client.replaced_with(SCHEMA), add_schema(SCHEMA), current_schema(0))
    assert len(table.refresh()["schemas"]) == 1


def test_replacement_overwrites_concurrent_appends(
    table: JavaTable,
) -> None:
    late, writer = table.stale(), table.stale()
    appended = table.append()
    late.replace(*late.replaced_with(SCHEMA), *_written(late.metadata))
    now = table.refresh()
    assert appended in {each["snapshot-id"] for each in now["snapshots"]}
    assert now["current-snapshot-id"] == late.metadata["current-snapshot-id"] != appended
    added = new_snapshot(writer.metadata, parent=writer.metadata["current-snapshot-id"])
    with raises(CommitFailedException, starts="Requirement failed: branch main has changed"):
        writer.commit(added, set_ref(added["snapshot"]["snapshot-id"]))
