# SPDX-License-Identifier: Apache-2.0
"""Compare changed rights by profiles with every principal and object, on small random worlds."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.access.decisions.recorded_grants import Grant, Place, World
from gateway.access.nouns.cards import ACTIONS, GRANTABLE
from gateway.access.nouns.privileges import TRAVERSE_REASONS
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.fga.compiled import compiled_model
from gateway.fga.evaluation import Evaluation, HeldTuple, ModelRules
from gateway.fga.model_diff import compare_models
from gateway.fga.world_diff import Incomplete, changed_access
from tests.support.changed_rights import changed_rights
from tests.support.model_edits import Edited, above, computed, edited_models

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
SHIPPED = compiled_model()
RULES = ModelRules(SHIPPED)
USERS = [Principal(PrincipalType.USER, name) for name in ("ann", "ben", "cid", "dee")]
ROLES = [Principal(PrincipalType.ROLE, name) for name in ("r0", "r1", "r2")]
NONE = Principal(PrincipalType.USER, "without")
T = ObjectType
TREE = {
    ObjectKey(T.SERVER, "s"): None,
    ObjectKey(T.PROJECT, "p"): ObjectKey(T.SERVER, "s"),
    ObjectKey(T.WAREHOUSE, "w"): ObjectKey(T.PROJECT, "p"),
    ObjectKey(T.NAMESPACE, "n"): ObjectKey(T.WAREHOUSE, "w"),
    ObjectKey(T.NAMESPACE, "nn"): ObjectKey(T.NAMESPACE, "n"),
    ObjectKey(T.NAMESPACE, "m"): ObjectKey(T.WAREHOUSE, "w"),
    ObjectKey(T.TABLE, "t"): ObjectKey(T.NAMESPACE, "nn"),
    ObjectKey(T.TABLE, "t2"): ObjectKey(T.NAMESPACE, "n"),
    ObjectKey(T.TABLE, "t3"): ObjectKey(T.NAMESPACE, "m"),
    ObjectKey(T.VIEW, "v"): ObjectKey(T.NAMESPACE, "n"),
    **{ObjectKey(T.ROLE, each.id): ObjectKey(T.PROJECT, "p") for each in ROLES},
}
EDGES = {T.PROJECT: "server", T.WAREHOUSE: "project", T.ROLE: "project"}


def random_world(seed: int) -> World:
    chance = random.Random(seed)
    places = {
        key: Place(up, key.id, key.type in (T.WAREHOUSE, T.NAMESPACE) and chance.random() < 0.25)
        for key, up in TREE.items()
    }
    grants: dict[Grant, None] = {}
    for _ in range(chance.randint(0, 9)):
        on = chance.choice(list(TREE))
        who = chance.choice([*USERS, *ROLES])
        privilege = chance.choice(GRANTABLE[on.type])
        expires = chance.random() < 0.2 and not (on.type is T.ROLE and who.type is PrincipalType.ROLE)
        if on.type is T.ROLE and who.id == on.id:
            continue
        grants[Grant(who, privilege.value, on, expires)] = None
        up = TREE[on]
        while privilege in TRAVERSE_REASONS and up is not None:
            if up.type in (T.PROJECT, T.WAREHOUSE, T.NAMESPACE):
                grants[Grant(who, "traverse", up, expires)] = None
            up = TREE[up]
    return World(list(grants), places)


def rights(model: ModelRules, world: World, who: Principal) -> set[tuple[str, ObjectKey]]:
    """Return all rights of a principal by a check of each action on each object."""
    user = f"user:{who.id}"
    held = [] if who.type is PrincipalType.USER else [HeldTuple(user, "assignee", f"role:{who.id}", None)]
    for key, place in world.places.items():
        if place.above is not None:
            parent = f"{place.above.type}:{place.above.id}"
            held.append(HeldTuple(parent, EDGES.get(key.type, "parent"), f"{key.type}:{key.id}", None))
        if place.flagged:
            held.append(HeldTuple("user:*", "managed_access", f"{key.type}:{key.id}", None))
    for grant in world.grants:
        members = "#assignee" if grant.principal.type is PrincipalType.ROLE else ""
        subject = f"{grant.principal.type}:{grant.principal.id}{members}"
        end = datetime.max.replace(tzinfo=UTC) if grant.expires else None
        held.append(HeldTuple(subject, grant.relation, f"{grant.object.type}:{grant.object.id}", end))
    check = Evaluation(model, held, user, NOW)
    return {(a.value, key) for key in TREE for a in ACTIONS[key.type] if check.holds(a.value, f"{key.type}:{key.id}")}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(edited_models(), st.integers(0, 2**32))
def test_rows_equal_a_check_of_everything(after: Mapping[str, Any], seed: int) -> None:
    world = random_world(seed)
    diff = compare_models(SHIPPED, after, world.nested_namespaces())
    rows = changed_access(SHIPPED, after, diff, world)
    rules = ModelRules(after)
    for who in (*USERS, *ROLES, NONE):
        before, then = rights(RULES, world, who), rights(rules, world, who)
        found = [changed_rights(rows, None if who == NONE else who, TREE, gained=each) for each in (True, False)]
        assert found == [then - before, before - then], (who, rows)


def simple(*grants: tuple[Principal, str, ObjectKey]) -> World:
    return World([Grant(*each, False) for each in grants], {key: Place(up, key.id) for key, up in TREE.items()})


WAREHOUSE, NESTED, TABLE = ObjectKey(T.WAREHOUSE, "w"), ObjectKey(T.NAMESPACE, "nn"), ObjectKey(T.TABLE, "t")
ROLE = ObjectKey(T.ROLE, "r0")


def test_row_names_the_highest_object_and_its_exceptions() -> None:
    """Members of a role with `create` on the warehouse read all tables, except one that they could read before."""
    after = Edited().also("table", "selects", above("creates")).model
    world = simple(
        (ROLES[0], "create", WAREHOUSE),
        (USERS[0], "assignee", ROLE),
        (USERS[1], "assignee", ROLE),
        (USERS[1], "select", TABLE),
    )
    rows = changed_access(SHIPPED, after, compare_models(SHIPPED, after), world)
    assert [(row.object, row.principals, row.apart_from) for row in rows] == [
        (WAREHOUSE, (ROLES[0], USERS[0]), ()),
        (WAREHOUSE, (USERS[1],), (TABLE,)),
    ]
    assert {kind for kind, _ in rows[0].below} == {"table"}
    reads = next(each for each in rows[0].because if "can_read_data" in each.actions)
    assert (reads.kind, reads.gained, reads.grants) == ("table", True, (("create", WAREHOUSE, ROLES[0]),))


def test_right_of_every_user_has_a_row_without_principals() -> None:
    after = Edited().also("namespace", "describes", computed("managed_access")).model
    world = simple()
    flagged = World([], {**world.places, NESTED: Place(TREE[NESTED], "nn", True)})
    rows = changed_access(SHIPPED, after, compare_models(SHIPPED, after), flagged)
    assert [(row.object, row.principals, row.gains) for row in rows] == [
        (NESTED, (), True),
        (NESTED, tuple(ROLES), True),
    ]


def test_model_whose_rights_do_not_follow_from_grants_is_refused() -> None:
    after = Edited().subject("table", "select", {"type": "user", "wildcard": {}}).model
    with pytest.raises(Incomplete, match="table#select grants to all users"):
        changed_access(SHIPPED, after, compare_models(SHIPPED, after), simple())
    after = Edited().also("role", "assignee", above("secures", "project")).model
    with pytest.raises(Incomplete, match="who is in a role"):
        changed_access(SHIPPED, after, compare_models(SHIPPED, after), simple())
