# SPDX-License-Identifier: Apache-2.0
"""Lock 7b: the gateway's own tasks and repeated responses pass the door, and no request can name them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, cast

import pytest

from gateway.access.actor import Actor
from gateway.access.demand import Demand
from gateway.access.door.request_context import RequestContext
from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.relations import Can
from gateway.access.operation import (
    OPERATIONS,
    UNROUTED,
    Audience,
    Durability,
    HttpOperation,
    PublicAudience,
    ReadOperation,
    Step,
    SystemTask,
)
from gateway.access.operations.steps import RepeatAnswer
from gateway.api.answers import EmptyResponse
from gateway.api.build import build_api  # noqa: F401 - the import serves every operation
from gateway.api.serves import REPEATED_BY, SERVED, serves
from tests.support.door import world
from tests.support.door.examples import EXAMPLES
from tests.support.door.world import DoorFixture, request_context

RECORDED_SUCCESS = RecordedSuccess(204, {}, 1)

#: Operations with a response body that is not repeated, and why.
NOT_REPEATED = {
    "UnregisterTable": "the table is gone, and with it every right that could be asked about its metadata: 422",
    "FindTagOfDryRun": "part of the dry run of an access request",
    "TryAccessRequest": "a dry run has no effect, so it runs again",
}


@pytest.fixture
def registers(registers: None) -> Iterator[None]:
    """Restore the register of unrouted operations as well."""
    unrouted = dict(UNROUTED)
    yield
    UNROUTED.clear()
    UNROUTED.update(unrouted)


def _context(actor: Actor, recorded_success: RecordedSuccess | None = None) -> RequestContext:
    return RequestContext(actor=actor, request_id="request-1", recorded_success=recorded_success)


def test_no_route_serves_an_unrouted_operation() -> None:
    assert UNROUTED
    assert set(UNROUTED) & set(OPERATIONS) == set()
    assert {operation.__name__ for operation in SERVED} & set(UNROUTED) == set()
    for operation in UNROUTED.values():
        with pytest.raises(TypeError, match="has no route"):
            serves(cast("type[HttpOperation]", operation))


@pytest.mark.usefixtures("registers")
def test_system_operations_must_declare_their_tasks_or_their_occasion() -> None:
    all_users = PublicAudience(Audience.ALL)
    with pytest.raises(TypeError, match="must define system_tasks"):
        type("Idle", (SystemTask,), {})
    with pytest.raises(TypeError, match="must define occasion"):
        type("Echo", (Step,), {})
    with pytest.raises(TypeError, match="must not define open_to|must define neither open_to"):
        type("Open", (Step,), {"occasion": "echo", "open_to": all_users})
    with pytest.raises(TypeError, match="must not define open_to|must define neither open_to"):
        type("OpenTask", (SystemTask,), {"system_tasks": frozenset({"x"}), "open_to": all_users})
    with pytest.raises(TypeError, match="declared twice"):
        type("RepeatAnswer", (Step,), {"occasion": "repeat"})
    with pytest.raises(TypeError, match="declared twice"):
        type("RepeatAnswer", (ReadOperation,), {"endpoint": "GET /again", "open_to": all_users})
    with pytest.raises(TypeError, match="must not define continue_reason"):
        type(
            "Watch",
            (SystemTask,),
            {"system_tasks": frozenset({"x"}), "durability": Durability.BUFFERED, "continue_reason": "it only looks"},
        )

    with pytest.raises(TypeError, match="must define neither open_to nor demands"):

        class Demanding(SystemTask):
            system_tasks: ClassVar[frozenset[str]] = frozenset({"demanding"})

            def demands(self) -> tuple[Demand, ...]:
                return (Demand(Can.READ, world.ROLE),)


@pytest.mark.usefixtures("registers")
async def test_a_task_is_admitted_only_for_its_own_worker() -> None:
    class SweepFloor(SystemTask):
        system_tasks: ClassVar[frozenset[str]] = frozenset({"sweep"})

    door_fixture = DoorFixture()
    permit = await door_fixture.door.admit(_context(Actor.system("sweep")), SweepFloor())
    assert permit.actor.id == "system~sweep"
    assert door_fixture.judge.calls == [], "the system principal has no tuples, so it must cause no checks"
    assert door_fixture.rules.calls[0].actor.kind == "system"
    for actor in (Actor.system("other"), Actor.user("system~sweep"), world.ALICE, Actor.anonymous()):
        with pytest.raises(TypeError, match="SweepFloor cannot be requested by"):
            await door_fixture.door.admit(_context(actor), SweepFloor())
    with pytest.raises(TypeError, match="SweepFloor cannot be requested by"):
        await door_fixture.door.admit_with(request_context(), EXAMPLES[0].operation, SweepFloor())


@pytest.mark.usefixtures("registers")
async def test_policies_apply_to_the_system_principal() -> None:
    class SweepFloor(SystemTask):
        system_tasks: ClassVar[frozenset[str]] = frozenset({"sweep"})

    door_fixture = DoorFixture()
    door_fixture.rules.answer = world.DENIED
    with pytest.raises(Exception, match="The house is closed"):
        await door_fixture.door.admit(_context(Actor.system("sweep")), SweepFloor())


async def test_the_system_principal_is_refused_every_routed_operation() -> None:
    door_fixture = DoorFixture()
    for example in EXAMPLES:
        with pytest.raises(TypeError, match="cannot be requested by system~purge"):
            await door_fixture.door.admit(_context(Actor.system("purge")), example.operation)
    assert door_fixture.audit.buffered == []


async def test_a_response_is_repeated_only_for_a_recorded_success() -> None:
    door_fixture = DoorFixture()
    with pytest.raises(TypeError, match="needs a recorded success"):
        await door_fixture.door.admit(request_context(), RepeatAnswer("drop_table"))
    context = _context(world.ALICE, RECORDED_SUCCESS)
    await door_fixture.door.admit(context, RepeatAnswer("drop_table"))
    assert context.may_answer(frozenset({OPERATIONS["DropTable"]}))
    assert context.may_answer(frozenset({OPERATIONS["DeleteRole"]}))
    for reading in ("LoadTable", "GetRole", "BatchCheck"):
        assert not context.may_answer(frozenset({OPERATIONS[reading]})), "a read must have no recorded response"
    forged = request_context()
    forged.admitted.add(RepeatAnswer)
    assert not forged.may_answer(frozenset({OPERATIONS["DropTable"]}))


def test_every_change_with_a_response_body_declares_how_to_repeat_it() -> None:
    silent = {
        operation.__name__
        for operation, handler in SERVED.items()
        if operation.uses_idempotency_keys()
        and handler.response_class is not EmptyResponse
        and handler.opt[REPEATED_BY] is None
    }
    assert silent == set(NOT_REPEATED)
