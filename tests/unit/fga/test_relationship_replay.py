# SPDX-License-Identifier: Apache-2.0
"""Recorded decisions are decided by two models on grants: on the recorded path, with the recorded roles."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gateway.access.audit.audit_record import AuditedActor, AuditedDecision, AuditedResource
from gateway.access.audit.audited_inputs import CallerInputs, DecisionInputs
from gateway.access.decisions.recorded_grants import Grant, Place, World
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.fga.compiled import compiled_model
from gateway.fga.relationship_replay import Related, RelationshipReplay

SERVER, PROJECT, WAREHOUSE = (
    ObjectKey(type, type.value) for type in (ObjectType.SERVER, ObjectType.PROJECT, ObjectType.WAREHOUSE)
)
OUTER, INNER = (ObjectKey(ObjectType.NAMESPACE, name) for name in ("outer", "inner"))
TABLE = ObjectKey(ObjectType.TABLE, "table")
ROLE = ObjectKey(ObjectType.ROLE, "0195c0de-0000-7000-8000-0000000000aa")
ANN, BEN = (Principal(PrincipalType.USER, f"oidc~{name}") for name in ("ann", "ben"))
MEMBERS = Principal(PrincipalType.ROLE, ROLE.id)
PLACES = {
    SERVER: Place(None, "server"),
    PROJECT: Place(SERVER, "p"),
    WAREHOUSE: Place(PROJECT, "w"),
    OUTER: Place(WAREHOUSE, "outer"),
    INNER: Place(OUTER, "inner"),
    ROLE: Place(PROJECT, "role"),
}
INPUTS = DecisionInputs(warehouse_id="warehouse", project_id="project", namespace_ids=["outer", "inner"])


def wider() -> dict[str, Any]:
    """Return a model in which `select` also gives `can_drop` on tables."""
    model: dict[str, Any] = copy.deepcopy(compiled_model())
    (table,) = (each for each in model["type_definitions"] if each["type"] == "table")
    rule = table["relations"]["can_drop"]
    table["relations"]["can_drop"] = {"union": {"child": [rule, {"computedUserset": {"relation": "selects"}}]}}
    return model


def replay(*grants: tuple[Principal, str, ObjectKey]) -> RelationshipReplay:
    world = World([Grant(*each, expires=False) for each in grants], PLACES)
    return RelationshipReplay(compiled_model(), wider(), world)


def drop(
    *, resources: tuple[ObjectKey, ...] = (TABLE,), inputs: DecisionInputs = INPUTS, **more: Any
) -> AuditedDecision:
    return AuditedDecision(
        operation="drop_table",
        outcome="forbidden",
        determined_by="openfga",
        relations=("can_drop",),
        resources=tuple(AuditedResource(type=each.type.value, id=each.id or None) for each in resources),
        inputs=inputs,
        **more,
    )


def user(principal: Principal, role: str | None = None) -> AuditedActor:
    return AuditedActor(kind="user", id=principal.id, assumed_role=role)


GAINED, NEITHER, BOTH = Related(False, True, ("can_drop",)), Related(False, False), Related(True, True)


@pytest.mark.parametrize("on", [TABLE, INNER, OUTER, WAREHOUSE, PROJECT])
def test_grant_on_each_object_of_the_recorded_path_counts(on: ObjectKey) -> None:
    some = replay((ANN, "select", on))
    assert some.related(user(ANN), CallerInputs(), drop()) == GAINED
    assert some.related(user(BEN), CallerInputs(), drop()) == NEITHER
    elsewhere = DecisionInputs(warehouse_id="other", project_id="else", namespace_ids=["moved"])
    expected = GAINED if on is TABLE else NEITHER
    assert some.related(user(ANN), CallerInputs(), drop(inputs=elsewhere)) == expected


def test_recorded_roles_count_and_an_assumed_role_counts_alone() -> None:
    some = replay((MEMBERS, "select", INNER), (ANN, "modify", TABLE))
    member = CallerInputs(roles=(ROLE.id,))
    assert some.related(user(BEN), CallerInputs(), drop()) == NEITHER
    assert some.related(user(BEN), member, drop()) == GAINED
    assert some.related(user(ANN), member, drop()) == BOTH
    assert some.related(user(ANN, ROLE.id), member, drop()) == GAINED


def test_demands_on_several_objects_must_all_hold() -> None:
    some = replay((ANN, "select", TABLE), (ANN, "create", OUTER))
    both = DecisionInputs(
        warehouse_id="warehouse",
        project_id="project",
        namespace_ids=["outer", "inner"],
        demands=(("can_drop", 0), ("can_create_table", 1)),
    )
    assert some.related(user(ANN), CallerInputs(), drop(resources=(TABLE, INNER), inputs=both)) == GAINED
    refused = replay((ANN, "select", TABLE))
    found = refused.related(user(ANN), CallerInputs(), drop(resources=(TABLE, INNER), inputs=both))
    assert found == Related(False, False, ("can_drop",))
    unknown = ObjectKey(ObjectType.TABLE, "unknown")
    assert some.related(user(ANN), CallerInputs(), drop(resources=(TABLE, unknown), inputs=both)) is None


def test_what_models_alone_do_not_decide_is_left_out() -> None:
    some = replay((ANN, "select", TABLE))
    assert some.related(AuditedActor(kind="system", id="purge"), CallerInputs(), drop()) is None
    assert some.related(user(ANN), CallerInputs(), drop(failure="RestrictedWithoutEnforcer")) is None
    assert some.related(user(ANN), CallerInputs(), drop(obligations={"readable_columns": 2})) is None
    assert some.related(user(ANN), CallerInputs(), drop(resources=(ObjectKey(ObjectType.TABLE, ""),))) == NEITHER
