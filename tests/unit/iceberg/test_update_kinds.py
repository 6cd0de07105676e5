# SPDX-License-Identifier: Apache-2.0
"""Kinds of changes in a commit, as authorization uses them."""

import json
from typing import Any

import pytest

from gateway.iceberg import updates as vocabulary
from gateway.iceberg import wire
from gateway.iceberg.kinds import UpdateKind, target_refs, update_kinds


def kinds(*updates: Any, base: Any = None) -> set[str]:
    body = {"requirements": [], "updates": list(updates)}
    return {
        k.value for k in update_kinds(wire.decode(json.dumps(body).encode(), wire.CommitTableRequest).updates, base)
    }


def put(**properties: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": properties}


def summary(operation: str | None, **more: str) -> dict[str, Any]:
    return {"summary": {**({"operation": operation} if operation else {}), **more}}


@pytest.mark.parametrize("operation", ["append", "overwrite", "delete", "replace"])
def test_a_snapshot_has_the_kind_that_its_summary_declares(w: Any, operation: str) -> None:
    assert kinds(w.snapshot(1, **summary(operation)), w.ref("main", 1)) == {operation}


@pytest.mark.parametrize(
    "more",
    [summary(None), summary("sideways"), {"summary": None}, {"summary": {"operation": 1}}, {"snapshot-id": "x"}]
    + [summary("append", **{"deleted-data-files": "1"}), summary("append", **{"deleted-records": "5"})],
)
def test_an_unclear_snapshot_summary_counts_as_an_overwrite(w: Any, more: Any) -> None:
    assert "overwrite" in kinds(w.snapshot(1, **more))
    assert "append" not in kinds(w.snapshot(1, **more))


def test_an_append_that_reports_zero_removed_files_is_an_append(w: Any) -> None:
    assert kinds(w.snapshot(1, **summary("append", **{"deleted-data-files": "0"}))) == {"append"}


def test_an_append_beside_the_current_state_is_an_overwrite(w: Any, table: Any, commit: Any) -> None:
    base = commit(table(), w.snapshot(1), w.ref("main", 1)).metadata
    two = commit(base, w.snapshot(2, seq=2, parent=1), w.ref("main", 2)).metadata
    assert kinds(w.snapshot(3, parent=2), w.ref("main", 3), base=two) == {"append"}
    assert kinds(w.snapshot(3, parent=1), w.ref("main", 3), base=two) == {"append", "overwrite"}
    assert kinds(w.snapshot(3), w.ref("main", 3), base=two) == {"append", "overwrite"}
    chain = (w.snapshot(3, parent=2), w.ref("main", 3), w.snapshot(4, parent=3), w.ref("main", 4))
    assert kinds(*chain, base=two) == {"append"}


def test_the_first_append_of_a_table_is_an_append(w: Any, table: Any) -> None:
    assert kinds(w.snapshot(1), w.ref("main", 1), base=table()) == {"append"}


def test_rolling_main_back_or_dropping_it_is_an_overwrite(w: Any) -> None:
    assert kinds(w.ref("main", 1)) == {"overwrite"}
    assert kinds({"action": "remove-snapshot-ref", "ref-name": "main"}) == {"overwrite"}


def test_setting_main_to_its_current_snapshot_is_ref_management(w: Any, table: Any, commit: Any) -> None:
    base = commit(table(), w.snapshot(1), w.ref("main", 1)).metadata
    assert kinds(w.ref("main", 1, **{"min-snapshots-to-keep": 2}), base=base) == {"refs"}


def test_other_branches_and_tags_are_ref_management(w: Any) -> None:
    assert kinds(w.ref("dev", 1)) == {"refs"}
    assert kinds(w.ref("v1", 1, "tag")) == {"refs"}
    assert kinds({"action": "remove-snapshot-ref", "ref-name": "dev"}) == {"refs"}
    assert kinds(w.snapshot(1), w.ref("dev", 1)) == {"append", "refs"}


@pytest.mark.parametrize(
    "name",
    ["write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"]
    + ["gc.enabled", "owner", "trino.run-as-owner"],
)
def test_some_properties_need_a_privilege_to_set_and_to_remove(name: str) -> None:
    assert kinds(put(**{name: "x"})) == {"alter", "privileged"}
    assert kinds({"action": "remove-properties", "removals": [name]}) == {"alter", "privileged"}
    assert kinds(put(comment="x")) == {"alter"}


STATISTICS = {"snapshot-id": 1}


@pytest.mark.parametrize(
    ("update", "kind"),
    [
        ({"action": "assign-uuid", "uuid": "x"}, "privileged"),
        ({"action": "upgrade-format-version", "format-version": 3}, "privileged"),
        ({"action": "set-location", "location": "s3://x"}, "privileged"),
        ({"action": "add-encryption-key", "encryption-key": {}}, "privileged"),
        ({"action": "remove-encryption-key", "key-id": "k"}, "privileged"),
        ({"action": "remove-snapshots", "snapshot-ids": [1]}, "maintenance"),
        ({"action": "set-statistics", "statistics": {}}, "maintenance"),
        ({"action": "remove-statistics", "snapshot-id": 1}, "maintenance"),
        ({"action": "set-partition-statistics", "partition-statistics": {}}, "maintenance"),
        ({"action": "remove-partition-statistics", "snapshot-id": 1}, "maintenance"),
        ({"action": "remove-partition-specs", "spec-ids": [1]}, "maintenance"),
        ({"action": "remove-schemas", "schema-ids": [1]}, "maintenance"),
        ({"action": "add-schema", "schema": {}}, "alter"),
        ({"action": "set-current-schema", "schema-id": 1}, "alter"),
        ({"action": "add-spec", "spec": {}}, "alter"),
        ({"action": "set-default-spec", "spec-id": 1}, "alter"),
        ({"action": "add-sort-order", "sort-order": {}}, "alter"),
        ({"action": "set-default-sort-order", "sort-order-id": 1}, "alter"),
    ],
)
def test_every_other_update_has_one_kind(update: Any, kind: str) -> None:
    assert kinds(update) == {kind}


def test_every_update_has_a_case_in_these_tests() -> None:
    judged = [m for m in test_every_other_update_has_one_kind.pytestmark if m.name == "parametrize"][0].args[1]
    elsewhere = {"add-snapshot", "set-snapshot-ref", "remove-snapshot-ref", "set-properties", "remove-properties"}
    assert {update["action"] for update, _ in judged} | elsewhere == set(vocabulary.TABLE_ACTIONS)


def test_facts_about_a_commit_are_available_by_name(w: Any) -> None:
    body = [
        put(a="1", b="2"),
        {"action": "remove-properties", "removals": ["c"]},
        w.ref("main", 1),
        w.ref("t", 1, "tag"),
    ]
    updates = wire.decode(json.dumps({"requirements": [], "updates": body}).encode(), wire.CommitTableRequest).updates
    assert target_refs(updates) == {"main", "t"}
    assert UpdateKind.OVERWRITE in update_kinds(updates)
