# SPDX-License-Identifier: Apache-2.0
"""Lock 6f and 6g: demands of operations exist in the model and are required by `serve`, and policy inputs match the
schema of the policies.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import gateway
from gateway.access.decisions.policy import PolicyRequest
from gateway.access.nouns import relations as relations_module
from gateway.access.nouns.cards import ACTIONS, GRANTABLE, VISIBLE_BY, policy_operation_name
from gateway.access.nouns.privileges import TRAVERSE_REASONS, Privilege, granting
from gateway.access.nouns.refs import TABULARS, ObjectType, Table, TabularRef, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import OPERATIONS, Operation
from gateway.access.operations import checks
from gateway.fga.compiled import actions_of, compiled_model, grantable_of
from gateway.iceberg.errors import BadRequestException
from gateway.opa.schema import SCHEMA_FILE
from tests.support.door import world
from tests.support.door.examples import EXAMPLES
from tests.support.door.world import DoorFixture, request_context

RESERVED = Path(__file__).with_name("reserved_relations.txt")

#: Lower this together with the list.
MOST_RESERVED = 12

#: Types with lists that `Door.visible` filters by row.
FILTERED = (ObjectType.PROJECT, ObjectType.WAREHOUSE, ObjectType.NAMESPACE, *sorted(TABULARS))

#: Types of task targets: the use case checks them with `Door.visible`.
OF_TASKS = (ObjectType.TABLE, ObjectType.VIEW)

#: Demanded together with another relation, so that no operation has this action.
UNNAMED = {
    ObjectType.PROJECT: {"can_include_in_list"},
    ObjectType.WAREHOUSE: {"can_include_in_list", "can_list_everything", "can_use"},
    ObjectType.NAMESPACE: {"can_include_in_list", "can_list_everything"},
    ObjectType.TABLE: {"can_include_in_list"},
    ObjectType.COLUMN: {"can_read_data"},
    ObjectType.VIEW: {"can_include_in_list"},
    ObjectType.GENERIC_TABLE: {"can_include_in_list"},
    ObjectType.ROLE: {"can_assume"},
}


def _demanded() -> dict[str, set[str]]:
    """Return the relations checked at the door, by type: demands of the examples, visibility, and list filters."""
    requested: dict[str, set[str]] = {}
    for example in EXAMPLES:
        for demand in example.operation.demands():
            requested.setdefault(demand.on.type, set()).update(demand.relations)
    for type, relation in VISIBLE_BY.items():
        requested.setdefault(type, set()).add(relation)
    for type in FILTERED:
        requested[type].add(Can.INCLUDE_IN_LIST)
    requested[ObjectType.VIEW].add(Can.SELECT)  # by a caller who reads through a view
    requested[ObjectType.TABLE].add(Can.READ_COLUMNS)  # of a caller who may not read all columns
    requested.setdefault(ObjectType.COLUMN, set()).add(Can.READ_DATA)  # and then on its columns
    requested[ObjectType.TABLE].add(Can.ENFORCE)  # and of the engine that acts for the user
    # Of a caller on the data policies of a table.
    requested.setdefault(ObjectType.DATA_POLICY, set()).update((Can.SKIP_POLICY, Can.BE_SUBJECT))
    for type in (ObjectType.PROJECT, ObjectType.WAREHOUSE):
        requested[type].add(Can.DELEGATE)  # of an engine about itself, at a token exchange and at each use
    for type, relations in ACTIONS.items():
        requested.setdefault(type, set()).update(relations & {Can.REQUEST_ACCESS})  # of a caller that does not see it
    for type in OF_TASKS:
        requested[type] |= {Can.GET_TASKS, Can.CONTROL_TASKS}
    return requested


def _reserved() -> set[str]:
    return {line for line in RESERVED.read_text().splitlines() if line and not line.startswith("#")}


def test_every_demanded_relation_exists_in_the_compiled_model_on_that_type() -> None:
    actions = actions_of(compiled_model())
    missing = {f"{type}#{each}" for type, names in _demanded().items() for each in names - actions.get(type, set())}
    assert missing == set()


def test_serve_requires_every_checkable_action_in_the_model() -> None:
    """`serve` requires `ACTIONS` in the model, and `batch-check` accepts them."""
    action_names = {type.value: {each.value for each in names} for type, names in ACTIONS.items() if names}
    assert action_names == {
        type: names for type, names in actions_of(compiled_model()).items() if type in set(ObjectType)
    }


def test_policy_operation_names_of_actions_are_existing_operations() -> None:
    """A rule for `drop_table` must apply to a check of `drop`; a name without an operation matches no rule."""
    names = {operation.name() for operation in OPERATIONS.values()}
    for type, relations in _demanded().items():
        unnamed = {each for each in relations if policy_operation_name(ObjectType(type), Can(each)) not in names}
        assert unnamed <= UNNAMED.get(ObjectType(type), set()), type


def test_every_action_of_the_model_is_demanded_or_reserved() -> None:
    every = {f"{type}#{name}" for type, names in actions_of(compiled_model()).items() for name in names}
    demanded = {f"{type}#{name}" for type, names in _demanded().items() for name in names}
    reserved = _reserved()
    assert every - demanded - reserved == set(), "these relations are neither demanded nor reserved"
    assert reserved - every == set(), "these reserved relations are not in the model"
    assert reserved & demanded == set(), "these relations are demanded now: remove them from the reserved ones"


def test_the_list_of_reserved_relations_only_shrinks() -> None:
    assert len(_reserved()) <= MOST_RESERVED


def test_grantable_privileges_equal_the_assignable_relations_of_the_model() -> None:
    """The model may define more relations, which cannot be granted yet."""
    assignable, demanded = grantable_of(compiled_model()), _demanded()
    for type, privileges in GRANTABLE.items():
        assert {privilege.value for privilege in privileges} <= assignable[type], type
        for privilege in privileges:
            # The right to grant on a column is decided on its table.
            on = ObjectType.TABLE if type is ObjectType.COLUMN else type
            assert granting(privilege) in demanded[on], (type, privilege)


def test_every_privilege_can_be_granted_somewhere() -> None:
    assert {privilege for privileges in GRANTABLE.values() for privilege in privileges} == set(Privilege)
    assert set(Privilege) >= TRAVERSE_REASONS


def test_relation_names_appear_in_code_only_as_members_of_can() -> None:
    """A relation as literal text would escape the tests above."""
    names = {each.value for each in Can}
    root = Path(gateway.__file__).parent
    written: set[str] = set()
    for file in (*root.glob("access/**/*.py"), *root.glob("features/**/*.py")):
        if file == Path(relations_module.__file__):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and node.value in names:
                written.add(f"{file.relative_to(root)}:{node.lineno}")
    assert written == set()


def test_a_check_of_an_action_outside_the_model_is_400() -> None:
    with pytest.raises(BadRequestException, match="can_drop does not apply to a warehouse"):
        checks.Check(WarehouseRef(world.WAREHOUSE_ID), Can.DROP)
    for name in ACTIONS[ObjectType.TABLE]:
        checks.Check(TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID), name)


# ---- 6g: policies ----


class _Schema:
    """The part of JSON Schema that `input.json` uses; any other keyword is an error."""

    def __init__(self, text: str) -> None:
        self._root = json.loads(text)

    def check(self, value: Any) -> None:
        """Raise AssertionError with the path if `value` is invalid."""
        self._check(value, self._root, "$")

    def _check(self, value: Any, schema: dict[str, Any], at: str) -> None:
        known = {"$schema", "$defs", "$ref", "anyOf", "type", "properties", "required", "items", "additionalProperties"}
        assert set(schema) <= known | {"description", "enum"}, (
            f"the schema uses keywords that this validator does not know: {sorted(set(schema) - known)}"
        )
        if "$ref" in schema:
            return self._check(value, self._root["$defs"][schema["$ref"].removeprefix("#/$defs/")], at)
        if "anyOf" in schema:
            assert any(self._fits(value, each, at) for each in schema["anyOf"]), (
                f"{at}: {value!r} matches no alternative"
            )
            return None
        kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
        if "type" in schema:
            assert type(value) is kinds[schema["type"]], f"{at}: {value!r} is not of type {schema['type']}"
        assert value in schema.get("enum", (value,)), f"{at}: {value!r} is none of the enumerated values"
        if isinstance(value, dict):
            self._object(value, schema, at)
        for index, each in enumerate(value if isinstance(value, list) else ()):
            self._check(each, schema["items"], f"{at}[{index}]")
        return None

    def _object(self, value: dict[str, Any], schema: dict[str, Any], at: str) -> None:
        missing = set(schema.get("required", ())) - set(value)
        assert not missing, f"{at}: {missing} missing"
        for name, each in value.items():
            more = schema.get("additionalProperties", False)
            inner = schema.get("properties", {}).get(name, more)
            assert inner is not False, f"{at}: {name} is unknown"
            self._check(each, {} if inner is True else inner, f"{at}.{name}")

    def _fits(self, value: Any, schema: dict[str, Any], at: str) -> bool:
        try:
            self._check(value, schema, at)
        except AssertionError:
            return False
        return True


@pytest.fixture(scope="module")
def schema() -> _Schema:
    return _Schema(SCHEMA_FILE.read_text())


async def _request(operation: Operation, *, absent: bool = False) -> PolicyRequest:
    door_fixture = DoorFixture()
    if absent:
        door_fixture.resolver.rows.clear()
        door_fixture.judge.answer = lambda _: False
    try:
        await door_fixture.door.admit(request_context(), operation)
    except Exception:
        assert absent
    return door_fixture.rules.calls[0]


def _as_sent(request: PolicyRequest) -> Any:
    return json.loads(msgspec.json.encode(request))


@pytest.mark.parametrize("absent", [False, True], ids=["present", "absent"])
async def test_every_policy_input_is_valid_by_the_policy_schema(schema: _Schema, absent: bool) -> None:
    for example in EXAMPLES:
        if example.operation.is_public():
            continue
        request = await _request(example.operation, absent=absent)
        schema.check(_as_sent(request))
        parts = example.operation.parts() or (example.operation,)
        assert [question.operation for question in request.questions] == [part.name() for part in parts]
        for part, question in zip(parts, request.questions, strict=True):
            about = [*(demand.on for demand in part.demands()), *part.further_refs()]
            assert question.resource.type == (about[0].type if about else ObjectType.SERVER)
            assert (question.resource.id is None) is (absent or not about)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("actor", "kind"), None),
        (("actor", "groups"), []),
        (("questions", 0, "resource", "namespace"), "sales"),
        (("questions", 0, "facts", "purge"), {"nested": 1}),
        (("questions", 0, "operation"), 1),
        (("context", "time"), 1),
    ],
)
async def test_the_policy_schema_rejects_unknown_fields_and_types(
    schema: _Schema, path: tuple[str | int, ...], value: Any
) -> None:
    plain = _as_sent(await _request(EXAMPLES[0].operation))
    at: Any = plain
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(AssertionError):
        schema.check(plain)
