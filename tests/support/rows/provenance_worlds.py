# SPDX-License-Identifier: Apache-2.0
"""Small random worlds for tests of witnesses and repairs: tuples about one user, one table and its containers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from gateway.fga.evaluation import HeldTuple
from tests.support.model_edits import Edited, above, computed

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
#: A cycle of roles. The gateway refuses one.
CYCLE = [
    HeldTuple("role:a#assignee", "assignee", "role:b", None),
    HeldTuple("role:b#assignee", "assignee", "role:a", None),
]
POOL = [
    *(HeldTuple(user, relation, on, until) for relation, on in _GRANTS for user in SUBJECTS for until in (None, SOON)),
    HeldTuple(ALICE, "assignee", "role:a", None),
    HeldTuple(ALICE, "assignee", "role:b", LATER),
    HeldTuple(ALICE, "ownership", "role:b", None),
    *CYCLE,
    HeldTuple("user:*", "managed_access", "namespace:n", None),
    HeldTuple("user:*", "managed_access", "warehouse:w", None),
]
RELATIONS = [
    "can_read_data", "can_drop", "can_move", "can_grant_select", "can_read_assignments", "can_unregister",
    "can_approve_changes", "manages_grants",
]  # fmt: skip
MOST = 7

worlds = st.lists(st.sampled_from(POOL), max_size=MOST, unique_by=lambda each: each[:3])


def random_world(rnd: random.Random) -> list[HeldTuple]:
    """Return at most `MOST` tuples of the pool, each user once for a relation on an object."""
    drawn = rnd.sample(POOL, rnd.randint(0, MOST))
    return list({each[:3]: each for each in drawn}.values())


#: The relations of the table that rules of a random variant combine. None of them follows from one in `RELATIONS`.
_TERMS = [
    "ownership", "select", "pass_grants", "manage_grants", "modify", "describe", "selects", "modifies", "describes",
    "manages_grants", "secures",
]  # fmt: skip
#: The relations of containers that a rule of a random variant can refer to.
_ABOVE = ["ownership", "selects", "modifies", "describes", "manages_grants", "secures"]
_FLAGS = above("managed_access_inheritance")


def random_variant(rnd: random.Random, *, excludes_grants: bool) -> Mapping[str, Any]:
    """Return the shipped model with other, random rules for the relations that the worlds ask about.

    In the shipped model, exclusions name flags only. With `excludes_grants` they name grants too, also in each other.
    """
    edited = Edited()
    for relation in RELATIONS[:-1]:
        edited.rule("table", relation, _random_rule(rnd, 3, excludes_grants=excludes_grants))
    return edited.model


def _random_rule(rnd: random.Random, depth: int, *, excludes_grants: bool) -> dict[str, Any]:
    def part() -> dict[str, Any]:
        return _random_rule(rnd, depth - 1, excludes_grants=excludes_grants)

    kind = rnd.choice(["union", "intersection", "difference", "computed"]) if depth else "computed"
    if kind == "computed":
        return above(rnd.choice(_ABOVE)) if rnd.random() < 0.3 else computed(rnd.choice(_TERMS))
    if kind == "difference":
        return {"difference": {"base": part(), "subtract": part() if excludes_grants else _FLAGS}}
    return {kind: {"child": [part() for _ in range(rnd.randint(2, 3))]}}
