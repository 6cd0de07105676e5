# SPDX-License-Identifier: Apache-2.0
"""Random worlds, evaluated by OpenFGA with the model and by a short Python version of the reference's formulas.

The formulas are written as the reference states them: a privilege is its grant, or a privilege that implies it, or the
same privilege on the parent. The model follows each path once instead. Both must agree for every user.
"""

from __future__ import annotations

import random

import pytest

from gateway.fga.client import FgaClient
from gateway.fga.model import push_model
from gateway.fga.wire import FgaTuple
from tests.support.servers.openfga_server import KEY, endpoint

__all__ = ["endpoint"]


pytestmark = [pytest.mark.generated, pytest.mark.integration]

WORLDS = 6
PRIVILEGES = (
    *("ownership", "pass_grants", "manage_grants", "approve_changes", "manage_tags"),
    *("describe", "select", "create", "modify"),
)
GRANTABLE = {
    "server": ("admin", "operator"),
    "project": (
        "project_admin",
        "security_admin",
        "data_admin",
        "role_creator",
        "approve_changes",
        "describe",
        "select",
        "create",
        "modify",
    ),
    "warehouse": PRIVILEGES,
    "namespace": PRIVILEGES,
    "table": tuple(each for each in PRIVILEGES if each != "create"),
    "role": ("assignee", "ownership"),
}


class World:
    """A random tree with random grants, and the reference's evaluation of it."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        name = f"w{seed}"
        self.users = [f"user:{name}-u{n}" for n in range(4)]
        self.parents = {f"project:{name}": f"server:{name}", f"warehouse:{name}": f"project:{name}"}
        spaces = [f"warehouse:{name}"]
        for number in range(4):
            self.parents[f"namespace:{name}-{number}"] = chance.choice(spaces)
            spaces.append(f"namespace:{name}-{number}")
        for number in range(4):
            self.parents[f"table:{name}-{number}"] = chance.choice(spaces[1:])
        roles = [f"role:{name}-{n}" for n in range(3)]
        for role in roles:
            self.parents[role] = f"project:{name}"
        self.project, self.objects = f"project:{name}", [f"server:{name}", *self.parents]
        self.grants: set[tuple[str, str, str]] = set()
        subjects = [*self.users, *[f"{role}#assignee" for role in roles]]
        for _ in range(18):
            object_ = chance.choice(self.objects)
            relation = chance.choice(GRANTABLE[object_.split(":")[0]])
            subject = chance.choice(subjects)
            if subject != f"{object_}#assignee":  # OpenFGA rejects this self-reference
                self.grants.add((subject, relation, object_))
        self.managed = {each for each in spaces if chance.random() < 0.25}

    def tuples(self) -> list[FgaTuple]:
        edges = []
        for child, parent in self.parents.items():
            kind = parent.split(":")[0]
            relation = "parent" if child.startswith(("namespace", "table")) else kind
            edges.append(FgaTuple(parent, relation, child))
        flags = [FgaTuple("user:*", "managed_access", each) for each in self.managed]
        return [*edges, *flags, *[FgaTuple(*grant) for grant in self.grants]]

    def subjects_of(self, user: str) -> set[str]:
        """Return the user and every role that contains the user, directly or indirectly."""
        found = {user}
        while True:
            more = {f"{o}#assignee" for s, _, o in self.grants if s in found and o.startswith("role:")}
            if more <= found:
                return found
            found |= more

    def judge(self, user: str) -> Judge:
        return Judge(self, self.subjects_of(user))


class Judge:
    """The rights of one user by the formulas of the reference."""

    def __init__(self, world: World, subjects: set[str]) -> None:
        self.world = world
        self.held = {(relation, object_) for subject, relation, object_ in world.grants if subject in subjects}

    def has(self, relation: str, object_: str) -> bool:
        """Return True if the relation is granted, implied by another on the object, or inherited from the parent."""
        if (relation, object_) in self.held:
            return True
        kind, parent = object_.split(":")[0], self.world.parents.get(object_, "")
        implied: dict[str, tuple[str, ...]]
        if kind == "server":
            return False
        if kind == "project":
            if relation == "project_admin":
                return self.has("operator", parent)
            implied = {
                "security_admin": ("project_admin",),
                "data_admin": ("project_admin",),
                "role_creator": ("security_admin",),
                "describe": ("select", "create", "approve_changes", "data_admin", "security_admin"),
                "select": ("modify",),
                "create": ("data_admin",),
                "modify": ("project_admin",),
            }
            return any(self.has(each, object_) for each in implied.get(relation, ()))
        implied = {
            "describe": ("select", "approve_changes", *(() if kind == "table" else ("create",))),
            "select": ("modify",),
            "create": ("ownership",),
            "modify": ("ownership",),
        }
        if any(self.has(each, object_) for each in implied.get(relation, ())):
            return True
        if kind == "warehouse":
            above = {"modify": ("modify", "data_admin"), "manage_grants": ("security_admin",)}
            above |= {"manage_tags": ("security_admin",)}
            above |= {each: (each,) for each in ("approve_changes", "describe", "select", "create")}
            if relation == "manage_grants" and ("ownership", object_) in self.held:
                return True
            return any(self.has(each, parent) for each in above.get(relation, ()))
        if relation == "manage_grants" and ("ownership", object_) in self.held and not self.bound(parent):
            return True
        inherited = ("manage_grants", "approve_changes", "manage_tags", "describe", "select", "create", "modify")
        return relation in inherited and self.has(relation, parent)

    def bound(self, container: str) -> bool:
        """Return True if managed access is on for the container or one above it."""
        while container.startswith(("warehouse", "namespace")):
            if container in self.world.managed:
                return True
            container = self.world.parents[container]
        return False

    def may(self, object_: str) -> dict[str, bool]:
        """Return the decisions for actions that together cover every privilege and grant right of the type."""
        kind = object_.split(":")[0]
        has = {relation: self.has(relation, object_) for relation in GRANTABLE[kind]}
        if kind == "server":
            return {"can_create_project": has["admin"] or has["operator"]}
        if kind == "role":
            parent = self.world.parents[object_]
            manages = has["ownership"] or self.has("security_admin", parent)
            member = has["assignee"] or has["ownership"]
            return {"can_assume": member, "can_delete": manages, "can_grant_assignee": manages}
        if kind == "project":
            admin = self.has("admin", self.world.parents[object_])
            return {
                "can_get_metadata": has["describe"] or has["role_creator"] or admin,
                "can_create_warehouse": has["create"],
                "can_delete": has["modify"],
                "can_create_role": has["role_creator"],
                "can_grant_project_admin": has["project_admin"] or admin,
                "can_grant_select": has["security_admin"] or admin,
            }
        accepted = {
            f"can_grant_{each}": has["manage_grants"] or (has.get(each, False) and has["pass_grants"])
            for each in ("describe", "select", "modify")
        }
        common = {"can_get_metadata": has["describe"], "can_manage_tags": has["manage_tags"], **accepted}
        common["can_change_ownership"] = has["manage_grants"]
        secures = self.has("security_admin", self.world.project)
        common["can_approve_changes"] = has["approve_changes"] or secures
        common["can_grant_approve_changes"] = common["can_grant_enforcer"] = common["can_grant_manage_tags"] = secures
        if kind == "table":
            return {**common, "can_read_data": has["select"], "can_commit": has["modify"], "can_drop": has["modify"]}
        return {**common, "can_create_namespace": has["create"], "can_delete": has["modify"]}


@pytest.mark.threat("LG-DIS-15")
async def test_openfga_and_the_formulas_of_the_reference_agree_on_random_worlds(endpoint: str) -> None:
    pushed = await push_model(endpoint, KEY, "differential")
    client = FgaClient(endpoint, KEY, pushed.store_id, pushed.model_id, timeout_s=30)
    yes = 0
    for seed in range(WORLDS):
        world = World(seed)
        await client.write(world.tuples())
        expected = {
            FgaTuple(user, action, object_): answer
            for user in world.users
            for object_ in world.objects
            for action, answer in world.judge(user).may(object_).items()
        }
        answers = await client.batch_check(list(expected), context={"current_time": "2026-03-04T12:00:00Z"})
        differing = [
            (check, expected_answer)
            for (check, expected_answer), got in zip(expected.items(), answers, strict=True)
            if expected_answer != got
        ]
        assert differing == [], f"world {seed}: {sorted(world.grants)}, managed {world.managed}"
        yes += sum(answers)
    await client.aclose()
    assert yes > 300, "the random cases contain too few allows"
