# SPDX-License-Identifier: Apache-2.0
"""Lock 6d: operations without demands are listed by hand, and the list may only shrink."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
import pytest

from gateway.access.demand import Demand
from gateway.access.nouns.relations import Can
from gateway.access.operation import OPERATIONS, Audience, ReadOperation
from tests.support.door import world
from tests.support.door.examples import EXAMPLES
from tests.support.door.world import DoorFixture, request_context

LIST = Path(__file__).with_name("open_operations.txt")

SECURITY = Path(__file__).parents[2] / "SECURITY.md"

#: Lower these numbers together with the list. Raising one must be a deliberate decision.
MOST_OPEN = 30
MOST_ABOUT_ONESELF = 23


def _listed() -> dict[str, tuple[str, str]]:
    lines = [line.split(maxsplit=2) for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return {name: (kind, reason) for kind, name, reason in lines}


def test_the_open_operations_equal_the_list_and_its_reasons() -> None:
    listed = _listed()
    assert {name for name, (kind, _) in listed.items() if kind == "all"} == {
        name for name, operation in OPERATIONS.items() if operation.is_public()
    }
    assert {name: reason for name, (kind, reason) in listed.items() if kind == "authenticated"} == {
        name: operation.open_to.reason
        for name, operation in OPERATIONS.items()
        if operation.open_to is not None and operation.is_open(Audience.AUTHENTICATED)
    }
    assert {name: reason for name, (kind, reason) in listed.items() if kind == "self"} == {
        name: operation.open_to.reason
        for name, operation in OPERATIONS.items()
        if operation.open_to is not None and operation.is_open(Audience.SELF)
    }


def test_the_list_of_open_operations_only_shrinks() -> None:
    kinds = [kind for kind, _ in _listed().values()]
    assert kinds.count("self") <= MOST_ABOUT_ONESELF
    assert len(kinds) - kinds.count("self") <= MOST_OPEN


def test_security_md_lists_each_open_operation_with_its_reason() -> None:
    rows = [line.strip("| ").split(" | ") for line in SECURITY.read_text().splitlines() if line.startswith("| `")]
    documented = {row[0].strip("`"): (row[1], row[2]) for row in rows if len(row) == 3}
    assert documented == _listed()


async def test_an_operation_open_for_the_caller_is_refused_for_another_user() -> None:
    """A handler that admits `UpdateSelf` for `UpdateUser` gains nothing."""
    door_fixture = DoorFixture()
    named = {
        type(example.operation).__name__: example.operation
        for example in EXAMPLES
        if example.operation.is_open(Audience.SELF) and example.operation.target_user() is not None
    }
    assert set(named) == {"UpdateSelf", "DeleteSelf", "ListOwnRoles", "ListAllOwnRoles"}
    for operation in named.values():
        theirs = replace(cast(Any, operation), user=world.BOB)
        with pytest.raises(TypeError, match=f"{type(operation).__name__} is open only to oidc~bob"):
            await door_fixture.door.admit(request_context(), theirs)
        acting = request_context()
        acting.actor = msgspec.structs.replace(acting.actor, assumed_role=world.ROLE_ID, within=world.PROJECT_ID)
        with pytest.raises(TypeError, match="without an assumed role"):
            await door_fixture.door.admit(acting, operation)
        await door_fixture.door.admit(request_context(), operation)


def test_every_operation_without_required_demands_is_listed() -> None:
    """An operation with only optional demands is open, regardless of its declaration."""
    unrequired = {
        type(example.operation).__name__
        for example in EXAMPLES
        if not any(demand.required for demand in example.operation.demands())
    }
    assert unrequired == set(_listed())


@pytest.mark.usefixtures("registers")
async def test_the_door_refuses_an_operation_with_undeclared_lack_of_demands() -> None:
    class Sly(ReadOperation):
        endpoint: ClassVar[str] = "GET /sly"

        def demands(self) -> tuple[Demand, ...]:
            return (Demand(Can.GET_METADATA, world.TABLE, required=False),)

    door_fixture = DoorFixture()
    with pytest.raises(TypeError, match="Sly has no required demand in this request and is not declared open"):
        await door_fixture.door.admit(request_context(), Sly())
    with pytest.raises(TypeError, match="Sly has no required demand in this request"):
        await door_fixture.door.admit_with(request_context(), EXAMPLES[0].operation, Sly())
    assert (door_fixture.judge.calls, door_fixture.audit.buffered) == ([], [])
