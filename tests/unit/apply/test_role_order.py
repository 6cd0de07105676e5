# SPDX-License-Identifier: Apache-2.0
"""The order of a plan with roles that give access to a table, or that are subjects of a data policy on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product
from typing import Any

from gateway.apply.planner import plan
from gateway.apply.state import Address, Kind, Resource, State
from tests.support.apply_documents import BINDINGS, FIXED, POLICIES, PROJECT, TABLES, USERS, make_change

ROLES = tuple(Address(Kind.ROLE, name, PROJECT) for name in "az")
TABLE, USER, POLICY, BINDING = TABLES[0], USERS[0], POLICIES[0], BINDINGS[0]
#: Grants that are equal before and after the plan.
OF_ROLES = tuple(
    Address(Kind.GRANT, f"{privilege} role:{role.name}", on)
    for role in ROLES
    for privilege, on in (("select", TABLE), ("subject", POLICY))
)
CHANGING = (
    *(Address(Kind.MEMBER, USER, role) for role in ROLES),
    Address(Kind.GRANT, f"select {USER}", TABLE),
    BINDING,
)
LISTS = frozenset(
    {*((Kind.MEMBER, role) for role in ROLES), (Kind.BINDING, POLICY), (Kind.GRANT, TABLE), (Kind.GRANT, POLICY)}
)


def subsets(of: Sequence[Address]) -> Iterator[tuple[Address, ...]]:
    return chain.from_iterable(combinations(of, size) for size in range(len(of) + 1))


def state(addresses: Sequence[Address]) -> State:
    fields = {POLICY: {"applies-to": "subjects"}}
    return State({each: Resource(each, fields.get(each, {})) for each in (*FIXED, POLICY, *ROLES, *addresses)}, LISTS)


def reads_all_values(found: dict[Address, dict[str, Any]]) -> bool:
    roles = [f"role:{role.name}" for role in ROLES if Address(Kind.MEMBER, USER, role) in found]

    def holds(privilege: str, on: Address) -> bool:
        return any(Address(Kind.GRANT, f"{privilege} {each}", on) in found for each in (USER, *roles))

    return holds("select", TABLE) and not (BINDING in found and holds("subject", POLICY))


def test_no_member_of_roles_reads_more_between_two_changes_than_before_or_after_the_plan() -> None:
    """All plans of a user, two roles and a policy: the order must not depend on the names of the roles."""
    for before, after, always in product(subsets(CHANGING), subsets(CHANGING), subsets(OF_ROLES)):
        present = state([*before, *always])
        found: dict[Address, dict[str, Any]] = {each.address: dict(each.fields) for each in present.resources.values()}
        seen = [reads_all_values(found)]
        for change in plan(state([*after, *always]), present, prune=True).changes:
            make_change(found, change)
            seen.append(reads_all_values(found))
        assert not any(seen) or seen[0] or seen[-1], (before, after, always)
