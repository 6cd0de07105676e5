# SPDX-License-Identifier: Apache-2.0
"""Random pairs of worlds that differ only in facts that one asker may not read, and the answers of the asker."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tests.support.stack.access_lists import WHAT_CAN, WHO_CAN, in_table
from tests.support.stack.explained import EXPLAIN, of_table
from tests.support.stack.role_policies import make_role
from tests.support.stack.world import Person, Table, World, send_until_decided

ACTIONS = ("read_data", "drop", "move", "grant_select", "get_metadata")
_PRIVILEGES = ("select", "modify", "describe", "manage_grants", "pass_grants")
#: The members of answers that differ between any two moments.
_OF_THE_MOMENT = frozenset({"as-of", "revisions", "revision", "warehouse-revision"})


class Fact(NamedTuple):
    """A grant of a privilege on an object, or a membership in a role. Subjects and objects are names of `Place`."""

    subject: str
    privilege: str
    on: str


@dataclass(frozen=True)
class Place:
    """A table with its containers, three roles and the principals of questions.

    The asker may read the grants on the objects in `readable`, which are names such as `table` or `role b`.
    """

    world: World
    table: Table
    users: dict[str, Person]
    roles: dict[str, str]
    asker: Person
    readable: frozenset[str]

    def principal(self, name: str) -> dict[str, str]:
        """Return a principal in the form of requests."""
        return {"user": self.users[name].id} if name in self.users else {"role": self.roles[name]}

    def path(self, on: str) -> str:
        """Return the path of the grants on an object."""
        warehouse = f"/management/v1/warehouse/{self.world.warehouse}"
        if on in self.roles:
            return f"/management/v1/role/{self.roles[on]}/grants"
        return {
            "warehouse": f"{warehouse}/grants",
            "namespace": f"{warehouse}/namespace/{self.world.namespace_id(self.table.namespace)}/grants",
            "table": f"{warehouse}/table/{self.table.uuid}/grants",
        }[on]

    def change(self, kind: str, facts: Iterable[Fact]) -> None:
        """Send `writes` or `deletes` of the facts, one request for each object."""
        some = sorted(facts)
        for on in dict.fromkeys(each.on for each in some):
            entries = [
                {"privilege": each.privilege, "principal": self.principal(each.subject)}
                for each in some
                if each.on == on
            ]
            done = send_until_decided(partial(self.world.admin.post, self.path(on), {kind: entries}))
            assert done.status_code == 204, done.text


def place(world: World, rnd: random.Random) -> Place:
    """Return a new table and new principals. The asker may read the grants on the table and on some of the others."""
    table = world.table(world.namespace())
    roles = {name: make_role(world) for name in ("role a", "role b", "role c")}
    users = {name: world.stranger(name) for name in ("ann", "ben")}
    asker = world.stranger("asker")
    readable = {"table", *rnd.sample(["namespace", *roles], rnd.randint(0, 2))}
    found = Place(world, table, {**users, "asker": asker}, roles, asker, frozenset(readable))
    rights = {Fact("asker", "ownership" if on in roles else "manage_grants", on) for on in readable}
    found.change("writes", rights)
    return found


def facts(rnd: random.Random, of: Place) -> tuple[set[Fact], set[Fact], set[Fact]]:
    """Return (readable facts, hidden ones of the first world, hidden ones of the second world)."""
    subjects = ["ann", "ben", *of.roles]
    pool = [
        Fact(each, privilege, on)
        for each in subjects
        for privilege in _PRIVILEGES
        for on in _CONTAINERS
        # A role of the asker must not give the asker the right to read further grants.
        if each not in of.readable or privilege not in ("manage_grants", "pass_grants")
    ]
    # A role is a member of later roles only. Those of the asker are in no other role: it would have the rights of both.
    names = list(of.roles)
    members = [(each, role) for each in ("ann", "ben") for role in names]
    members += [(inner, outer) for number, inner in enumerate(names) for outer in names[number + 1 :]]
    members = [(inner, outer) for inner, outer in members if inner not in of.readable]
    memberships = [Fact(member, "assignee", role) for member, role in members]
    drawn = {*rnd.sample(pool, rnd.randint(3, 9)), *rnd.sample(memberships, rnd.randint(2, 6))}
    hidden = [each for each in [*pool, *memberships] if not _is_readable(each, of)]
    first = {each for each in drawn if not _is_readable(each, of)}
    second = {each for each in first if rnd.random() < 0.4} | set(rnd.sample(hidden, min(len(hidden), 3)))
    return drawn - first, first, second


_CONTAINERS = ("table", "namespace", "warehouse")


def _is_readable(fact: Fact, of: Place) -> bool:
    # The asker is a member of the roles that it owns.
    return fact.on in of.readable or fact.subject in of.readable


def explanations(of: Place) -> dict[str, Any]:
    """Return the asker's explanations of each action of a user on the table, with the decision."""
    body = {"identity": of.principal("ann")}
    return {
        action: _without_moment(
            _ask(of.asker, EXPLAIN, {**body, "operation": of_table(of.world, of.table.uuid, action)})
        )
        for action in ACTIONS
    }


def who_can(of: Place, action: str) -> Any:
    """Return the asker's list of the principals that may take an action on the table."""
    return _without_moment(_ask(of.asker, WHO_CAN, {"action": action, "object": in_table(of.world, of.table)}))


def what_can(of: Place) -> Any:
    """Return the asker's list of what a user may do on the table."""
    asked = {"principal": of.principal("ann"), "object": in_table(of.world, of.table)}
    return _without_moment(_ask(of.asker, WHAT_CAN, asked))


def rights(of: Place, action: str) -> list[bool]:
    """Return for each principal whether it may take the action on the table."""
    path = "/management/v1/permissions/check"
    operation = of_table(of.world, of.table.uuid, action)
    return [
        bool(_ask(of.world.admin, path, {"operation": operation, "identity": of.principal(each)})["allowed"])
        for each in (*of.users, *of.roles)
    ]


def _ask(asker: Person, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = send_until_decided(lambda: asker.post(path, body))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _without_moment(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in _OF_THE_MOMENT}
