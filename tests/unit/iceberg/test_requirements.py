# SPDX-License-Identifier: Apache-2.0
"""Requirements: each kind satisfied and failed with the message clients match, and the rules of a create commit."""

from typing import Any

import pytest

from gateway.iceberg.errors import BadRequestException, CommitFailedException

OTHER_UUID = "00000000-0000-0000-0000-000000000009"
NO_CHANGE = {"action": "remove-properties", "removals": ["absent"]}


@pytest.fixture(scope="module")
def base(table: Any, commit: Any, w: Any) -> Any:
    made = commit(table(), w.snapshot(7), w.ref("main", 7), w.ref("v1", 7, "tag"))
    return made.metadata


@pytest.mark.parametrize(
    "requirement",
    [
        {"type": "assert-table-uuid", "uuid": "0193A5B2-4C1E-7F00-8000-00000000ABCD"},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7},
        {"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": None},
        {"type": "assert-ref-snapshot-id", "ref": "new"},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
        {"type": "assert-default-spec-id", "default-spec-id": 0},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    ],
)
def test_a_satisfied_requirement_accepts_the_commit(base: Any, commit: Any, requirement: Any) -> None:
    assert commit(base, NO_CHANGE, requirements=[requirement]).metadata is base


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        ({"type": "assert-create"}, "table already exists"),
        (
            {"type": "assert-table-uuid", "uuid": OTHER_UUID},
            f"UUID does not match: expected 0193a5b2-4c1e-7f00-8000-00000000abcd != {OTHER_UUID}",
        ),
        (
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 6},
            "branch main has changed: expected id 6 != 7",
        ),
        ({"type": "assert-ref-snapshot-id", "ref": "v1", "snapshot-id": 6}, "tag v1 has changed: expected id 6 != 7"),
        ({"type": "assert-ref-snapshot-id", "ref": "v1", "snapshot-id": None}, "tag v1 was created concurrently"),
        (
            {"type": "assert-ref-snapshot-id", "ref": "dev", "snapshot-id": 6},
            "branch or tag dev is missing, expected 6",
        ),
        (
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1},
            "last assigned field id changed: expected id 1 != 2",
        ),
        ({"type": "assert-current-schema-id", "current-schema-id": 1}, "current schema changed: expected id 1 != 0"),
        (
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
            "last assigned partition id changed: expected id 1000 != 999",
        ),
        (
            {"type": "assert-default-spec-id", "default-spec-id": 1},
            "default partition spec changed: expected id 1 != 0",
        ),
        (
            {"type": "assert-default-sort-order-id", "default-sort-order-id": 1},
            "default sort order changed: expected id 1 != 0",
        ),
    ],
)
def test_a_failed_requirement_is_a_conflict_with_the_reference_message(
    base: Any, commit: Any, requirement: Any, text: str
) -> None:
    with pytest.raises(CommitFailedException) as caught:
        commit(base, NO_CHANGE, requirements=[requirement])
    assert caught.value.message == f"Requirement failed: {text}"
    assert (caught.value.code, caught.value.type) == (409, "CommitFailedException")


def test_requirements_are_checked_before_updates(base: Any, commit: Any) -> None:
    with pytest.raises(CommitFailedException):
        commit(base, {"action": "set-location", "location": "s3://no"}, requirements=[{"type": "assert-create"}])


def test_a_create_commit_may_assert_nothing_but_the_creation(commit: Any) -> None:
    with pytest.raises(BadRequestException, match="Invalid create requirements: assert-table-uuid"):
        commit(None, requirements=[{"type": "assert-create"}, {"type": "assert-table-uuid", "uuid": OTHER_UUID}])


def test_a_commit_to_an_absent_table_needs_assert_create(commit: Any) -> None:
    with pytest.raises(BadRequestException, match="Invalid create requirements: assert-create is missing"):
        commit(None)
