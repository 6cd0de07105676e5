# SPDX-License-Identifier: Apache-2.0
"""Checks of the caller's own rights: equal cost for absent and invisible objects, and few calls for many checks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any
from uuid import uuid4

import pytest

from gateway.access.nouns.cards import ACTIONS
from gateway.access.nouns.refs import ObjectType, Ref, Table, TabularRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import AbsentLocation
from gateway.access.operations.checks import BatchCheck, Check
from gateway.access.ports import Question
from gateway.features.grants.checks import Checks
from gateway.features.grants.partial_checks import openings
from gateway.fga.compiled import compiled_model
from gateway.iceberg.identifiers import TableIdentifier
from tests.support.door import world
from tests.support.door.world import DoorFixture, Judge, request_context
from tests.support.kits import kit_of

REFS: dict[ObjectType, Ref] = {
    ObjectType.NAMESPACE: world.NAMESPACE,
    ObjectType.TABLE: world.TABLE,
    ObjectType.VIEW: world.VIEW,
    ObjectType.GENERIC_TABLE: world.GENERIC_TABLE,
}
ABSENT = TabularRef(Table, world.WAREHOUSE_ID, TableIdentifier(world.INNER, "absent"))
MANY = (Can.READ_DATA, Can.WRITE_DATA, Can.COMMIT, Can.DROP, Can.RENAME, Can.GET_METADATA, Can.READ_COLUMNS)

Terms = frozenset[frozenset[str]]


def _ways(model: Mapping[str, Any], type: str, relation: str) -> Terms:
    """Return the sets of grants, on the object or above, each of which gives a relation.

    A grant has the same name at every level above. An exclusion (`but not`) counts as given.
    """
    definitions = {each["type"]: each for each in model["type_definitions"]}

    def of(name: str, node: Mapping[str, Any]) -> Terms:
        [(kind, inner)] = node.items()
        match kind:
            case "this":
                return frozenset({frozenset({name})})
            case "computedUserset":
                return of(inner["relation"], definitions[type]["relations"][inner["relation"]])
            case "tupleToUserset":
                return frozenset({frozenset({f"{inner['computedUserset']['relation']} above"})})
            case "union":
                return frozenset(term for child in inner["child"] for term in of(name, child))
            case "intersection":
                children = [of(name, child) for child in inner["child"]]
                return frozenset(frozenset().union(*some) for some in product(*children))
            case "difference":
                return of(name, inner["base"])
        raise AssertionError(kind)

    return of(relation, definitions[type]["relations"][relation])


#: Relations that give no right of their own, so that their holders may not see the object.
UNSEEN = {Can.ENFORCE, Can.BREAK_GLASS, Can.CONFIRM_BREAK_GLASS, Can.REQUEST_ACCESS}


@pytest.mark.parametrize("type", REFS)
@pytest.mark.parametrize("relation", sorted(UNSEEN))
def test_holders_of_some_relations_need_no_visibility(type: ObjectType, relation: Can) -> None:
    assert openings(relation, REFS[type]) == ()


@pytest.mark.parametrize("type", REFS)
def test_the_shipped_model_gives_each_holder_of_a_relation_a_prerequisite(type: ObjectType) -> None:
    """Otherwise a batch check would refuse what the door allows.

    A computed relation at a parent implies the same relations as at the object: `selects above` gives `describes
    above`.
    """
    model = compiled_model()
    implied = {"approves above", "selects above", "modifies above", "creates above", "describes above", "secures above"}
    for relation in ACTIONS[type] - UNSEEN:
        ways = openings(relation, REFS[type])
        assert ways, relation
        opened = [term for way, _ in ways for term in _ways(model, type.value, way.value)]
        for term in _ways(model, type.value, relation.value):
            wider = term | ({"describes above"} if term & implied else set())
            assert any(each <= wider for each in opened), f"{relation} by {set(term)} implies none of {ways}"


async def _run_checks(door_fixture: DoorFixture, checks: list[Check]) -> tuple[list[int], list[int], list[int]]:
    """Return the number of checks in each call to OpenFGA and to OPA, and of tables in each column statement."""
    permit = await door_fixture.door.admit(request_context(), BatchCheck(tuple(checks)))
    door_fixture.judge.calls.clear()
    door_fixture.rules.calls.clear()
    answer = await Checks(kit_of(door=door_fixture.door)).batch(permit)
    assert not any(each.allowed for each in answer.results)
    return (
        [len(questions) for questions in door_fixture.judge.calls],
        [len(request.questions) for request in door_fixture.rules.calls],
        [len(ids) for ids in door_fixture.resolver.looked_for_columns],
    )


def _door_fixture() -> DoorFixture:
    door_fixture = DoorFixture(judge=Judge(answer=lambda question: False))
    door_fixture.resolver.validity = {
        "absent": {ABSENT: AbsentLocation(world.PROJECT_ID, (world.OUTER_ID, world.INNER_ID))}
    }
    return door_fixture


@pytest.mark.threat("LG-DIS-18")
@pytest.mark.parametrize("count", [1, 2, 3, len(MANY)])
async def test_absent_and_invisible_tables_get_the_same_calls(count: int) -> None:
    relations = MANY[-count:]
    invisible = await _run_checks(_door_fixture(), [Check(world.TABLE, relation) for relation in relations])
    absent = await _run_checks(_door_fixture(), [Check(ABSENT, relation) for relation in relations])
    assert absent == invisible
    assert invisible[0], "expected at least one check"


async def test_many_checks_on_an_invisible_table_become_one_visibility_check() -> None:
    door_fixture = _door_fixture()
    assert await _run_checks(door_fixture, [Check(world.TABLE, relation) for relation in MANY]) == ([1], [], [])
    [[question]] = door_fixture.judge.calls
    assert question.relation is Can.INCLUDE_IN_LIST
    grants = [Check(world.TABLE, each) for each in (*MANY, Can.GRANT_SELECT, Can.GRANT_DESCRIBE, Can.MANAGE_TAGS)]
    assert await _run_checks(_door_fixture(), grants) == ([3], [], [])


async def test_a_list_of_absent_names_gets_the_same_calls_as_one_of_invisible_names() -> None:
    ids = [uuid4() for _ in range(12)]
    names = [TabularRef(Table, world.WAREHOUSE_ID, TableIdentifier(world.INNER, str(id))) for id in ids]
    door_fixture = _door_fixture()
    for name in names:
        door_fixture.resolver.rows[name] = world.table_row
    invisible = await _run_checks(door_fixture, [Check(name, Can.INCLUDE_IN_LIST) for name in names])
    assert await _run_checks(_door_fixture(), [Check(name, Can.INCLUDE_IN_LIST) for name in names]) == invisible


async def test_rights_on_an_invisible_object_are_still_reported() -> None:
    """A holder of manage_grants may grant rights on a table that is invisible to that holder."""
    held = {Can.READ_ASSIGNMENTS, Can.GRANT_SELECT, Can.READ_GRANTS}

    def holds(question: Question) -> bool:
        return question.relation in held

    door_fixture = DoorFixture(judge=Judge(answer=holds))
    requested = [Check(world.TABLE, relation) for relation in (*MANY, *held)]
    permit = await door_fixture.door.admit(request_context(), BatchCheck(tuple(requested)))
    found = (await Checks(kit_of(door=door_fixture.door)).batch(permit)).results
    assert {check.relation for check, each in zip(requested, found, strict=True) if each.allowed} == held


async def test_every_right_on_a_visible_table_is_reported() -> None:
    door_fixture = DoorFixture()
    ref = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID)
    permit = await door_fixture.door.admit(
        request_context(), BatchCheck(tuple(Check(ref, relation) for relation in MANY))
    )
    assert all(each.allowed for each in (await Checks(kit_of(door=door_fixture.door)).batch(permit)).results)
