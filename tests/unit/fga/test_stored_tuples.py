# SPDX-License-Identifier: Apache-2.0
"""Tuples in OpenFGA: only those in the exact form of the gateway belong to it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import ALL_USERS, MANAGED_ACCESS, Principal, PrincipalType, TupleKey
from gateway.fga.relationships import bare, read_back, to_wire
from gateway.fga.wire import Condition, FgaTuple

ID = "01a1fe72-4e99-725d-80d8-8afc12f93d6e"
OTHER = "01a1fe72-4e99-725d-80d8-8afc12f93d6f"
ALICE = Principal(PrincipalType.USER, "oidc~alice@example.org|1")
ROLE = Principal(PrincipalType.ROLE, OTHER)
OURS = [
    TupleKey(ALICE, "select", ObjectKey(ObjectType.TABLE, ID)),
    TupleKey(ROLE, "traverse", ObjectKey(ObjectType.PROJECT, "analytics")),
    TupleKey(ALICE, "admin", ObjectKey(ObjectType.SERVER, ID)),
    TupleKey(ROLE, "assignee", ObjectKey(ObjectType.ROLE, ID)),
    TupleKey(ObjectKey(ObjectType.WAREHOUSE, OTHER), "parent", ObjectKey(ObjectType.NAMESPACE, ID)),
    TupleKey(ObjectKey(ObjectType.PROJECT, "analytics"), "project", ObjectKey(ObjectType.ROLE, ID)),
]
FLAGS = [
    TupleKey(Principal(PrincipalType.USER, ALL_USERS), MANAGED_ACCESS, ObjectKey(ObjectType.NAMESPACE, ID)),
    TupleKey(Principal(PrincipalType.ROLE, ALL_USERS), MANAGED_ACCESS, ObjectKey(ObjectType.WAREHOUSE, ID)),
]


@pytest.mark.parametrize("key", FLAGS)
def test_a_flag_with_a_wildcard_subject_round_trips(key: TupleKey) -> None:
    assert read_back(to_wire(key)).key == key


@pytest.mark.parametrize("key", OURS)
@pytest.mark.parametrize("end", [None, datetime(2030, 1, 2, 3, 4, 5, 678, UTC)])
def test_every_tuple_that_the_gateway_writes_round_trips(key: TupleKey, end: datetime | None) -> None:
    found = read_back(to_wire(key, expires_at=end))
    assert (found.key, found.known, found.plain, found.expires_at) == (key, True, True, end)
    assert bare(key) == to_wire(key)


@pytest.mark.parametrize(
    ("user", "relation", "on"),
    [
        ("user:*", "select", f"table:{ID}"),
        ("user:*", "managed_access", f"table:{ID}"),
        ("user:a", "managed_access", f"namespace:{ID}"),
        ("user:oidc|alice", "select", f"table:{ID}"),
        ("user:", "select", f"table:{ID}"),
        (f"role:{OTHER}", "select", f"table:{ID}"),
        (f"role:{OTHER.upper()}#assignee", "select", f"table:{ID}"),
        ("role:nobody#assignee", "select", f"table:{ID}"),
        ("user:a", "select", f"table:{ID.upper()}"),
        ("user:a", "select", "table:1"),
        ("user:a", "select", "project:with space"),
        ("user:a", "parent", f"table:{ID}"),
        (f"warehouse:{OTHER}", "parent", f"table:{ID}"),
        (f"namespace:{OTHER}", "select", f"table:{ID}"),
        ("user:a", "traverse", f"table:{ID}"),
        ("user:a", "create", f"table:{ID}"),
        ("user:a", "can_read_data", f"table:{ID}"),
    ],
)
def test_a_tuple_that_no_row_can_require_has_no_key(user: str, relation: str, on: str) -> None:
    assert read_back(FgaTuple(user, relation, on)).key is None


@pytest.mark.parametrize(
    "raw",
    [
        FgaTuple("user:a", "reader", "glossary:terms"),
        FgaTuple("user:a", "can_fly", f"table:{ID}"),
        FgaTuple("group:g#member", "select", f"table:{ID}"),
    ],
)
def test_a_tuple_of_another_model_is_unknown(raw: FgaTuple) -> None:
    assert (read_back(raw).known, read_back(raw).key) == (False, None)


@pytest.mark.parametrize(
    "condition",
    [
        Condition("unexpired", {}),
        Condition("unexpired", {"expires_at": "2030-01-01T00:00:00"}),
        Condition("unexpired", {"expires_at": "tomorrow"}),
        Condition("unexpired", {"expires_at": 5}),
        Condition("unexpired", {"expires_at": "2030-01-01T00:00:00Z", "current_time": "2020-01-01T00:00:00Z"}),
        Condition("office_hours", {"expires_at": "2030-01-01T00:00:00Z"}),
    ],
)
def test_a_condition_that_the_gateway_does_not_write_is_distinguished(condition: Condition) -> None:
    """A condition with its own `current_time` would hold forever."""
    found = read_back(FgaTuple(to_wire(OURS[0]).user, "select", f"table:{ID}", condition))
    assert (found.key, found.plain, found.expires_at) == (OURS[0], False, None)
