# SPDX-License-Identifier: Apache-2.0
"""Small random worlds for tests of witnesses and repairs: tuples about one user, one table and its containers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from gateway.fga.evaluation import HeldTuple

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
SOON, LATER = NOW + timedelta(hours=1), NOW + timedelta(hours=2)
ALICE = "user:alice"
EDGES = [
    HeldTuple("server:s", "server", "project:p", None),
    HeldTuple("project:p", "project", "warehouse:w", None),
    HeldTuple("warehouse:w", "parent", "namespace:n", None),
    HeldTuple("namespace:n", "parent", "table:t", None),
]
SUBJECTS = [ALICE, "role:a#assignee", "role:b#assignee", "user:bob"]
_GRANTS = [
    ("ownership", "table:t"), ("select", "table:t"), ("pass_grants", "table:t"), ("manage_grants", "namespace:n"),
    ("ownership", "namespace:n"), ("modify", "warehouse:w"), ("describe", "warehouse:w"), ("data_admin", "project:p"),
    ("security_admin", "project:p"), ("operator", "server:s"),
]  # fmt: skip
POOL = [
    *(HeldTuple(user, relation, on, until) for relation, on in _GRANTS for user in SUBJECTS for until in (None, SOON)),
    HeldTuple(ALICE, "assignee", "role:a", None),
    HeldTuple(ALICE, "assignee", "role:b", LATER),
    HeldTuple(ALICE, "ownership", "role:b", None),
    HeldTuple("role:a#assignee", "assignee", "role:b", None),
    HeldTuple("role:b#assignee", "assignee", "role:a", None),
    HeldTuple("user:*", "managed_access", "namespace:n", None),
    HeldTuple("user:*", "managed_access", "warehouse:w", None),
]
RELATIONS = [
    "can_read_data", "can_drop", "can_move", "can_grant_select", "can_read_assignments", "can_unregister",
    "can_approve_changes", "manages_grants",
]  # fmt: skip
MOST = 7

worlds = st.lists(st.sampled_from(POOL), max_size=MOST, unique_by=lambda each: each[:3])
