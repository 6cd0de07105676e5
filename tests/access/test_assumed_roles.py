# SPDX-License-Identifier: Apache-2.0
"""Assumed roles narrow every operation: the user's own rights do not count.

`tests/contract/test_assumed_role_disclosure.py` tests the same with a running gateway, including lists and searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gateway.access.actor import Actor
from gateway.access.nouns.relations import Can
from gateway.access.operations.server import Bootstrap
from gateway.access.operations.steps import AssumeRole
from gateway.access.operations.users import RegisterSelf
from gateway.access.ports import Pin, Question
from tests.support.door import world
from tests.support.door.app import running
from tests.support.door.examples import EXAMPLES, Example
from tests.support.door.use_cases import FINDING
from tests.support.door.world import DoorFixture, Judge

_HEADER = {"x-assume-role": str(world.ROLE_ID)}

#: All operations except public ones and those that authenticate the caller themselves and refuse the header.
_NON_PUBLIC = [each for each in EXAMPLES if not each.operation.is_public() and not each.operation.authenticates_itself]

#: Operations on the assumed role, and so on the caller itself.
_OWN = "grants of role"


@dataclass
class ByGuise(Judge):
    """The user holds everything; the role holds it if `role_has`. Records the identity of each check."""

    role_has: bool = False
    guises: list[tuple[Actor, tuple[Question, ...]]] = field(default_factory=list)

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        self.guises.append((actor, tuple(questions)))
        return [actor.assumed_role is None or self.role_has] * len(questions)


def _required(example: Example) -> bool:
    return example.label != _OWN and any(demand.required for demand in example.operation.demands())


async def test_the_users_own_grants_do_not_count_while_acting_as_a_role_without_grants() -> None:
    door_fixture = DoorFixture(judge=ByGuise())
    async with running(door_fixture) as app:
        closed = [each for each in _NON_PUBLIC if _required(each)]
        statuses = {each.url: (await app.send(each, **_HEADER)).status_code for each in closed}
        assert set(app.spy.calls) <= FINDING
    assert len(closed) > 100
    # The protocol has no 404 for signatures.
    hidden = {url: 400 if url.endswith("/sign") else 404 for url in statuses}
    assert {url for url, status in statuses.items() if status not in (403, hidden[url])} == set()


async def test_the_only_check_about_the_user_is_the_right_to_assume_the_role() -> None:
    judge = ByGuise(role_has=True)
    async with running(DoorFixture(judge=judge)) as app:
        for example in _NON_PUBLIC:
            judge.guises.clear()
            app.spy.calls.clear()
            await app.send(example, **_HEADER)
            first, *others = judge.guises
            assert first[0].assumed_role is None
            assert [each.relation for each in first[1]] == [Can.READ, Can.ASSUME], example
            assert {each.assumed_role for each, _ in others} <= {world.ROLE_ID}, example
            assert not any(each.instance_admin for each, _ in others), example
            assert others or not _required(example), example
            if not isinstance(example.operation, Bootstrap):
                assert app.spy.calls or not _required(example) or example.operation.is_catalog_mutation(), example


async def test_policies_receive_the_assumed_role_with_every_operation() -> None:
    door_fixture = DoorFixture(judge=ByGuise(role_has=True))
    async with running(door_fixture) as app:
        for example in _NON_PUBLIC:
            door_fixture.rules.calls.clear()
            await app.send(example, **_HEADER)
            first, *others = door_fixture.rules.calls
            assert [each.operation for each in first.questions] == [AssumeRole.name()]
            assert {each.actor.assumed_role for each in others} <= {str(world.ROLE_ID)}, example


async def test_open_operations_that_change_data_are_refused_for_an_assumed_role() -> None:
    door_fixture = DoorFixture(judge=ByGuise(role_has=True))
    free = [each for each in _NON_PUBLIC if each.operation.changes() and not _required(each)]
    async with running(door_fixture) as app:
        reached = set()
        for example in free:
            answer = await app.send(example, **_HEADER)
            if set(app.spy.calls) - FINDING:
                reached.add(app.spy.calls.pop())
            else:
                assert answer.status_code == 403, example
    assert "Bootstrap" in {type(each.operation).__name__ for each in free}
    # Registration of the caller gives no right. Changes of any user record are checked for the role.
    # The end of an access is that of another user here, and is checked for the role too.
    assert reached == {RegisterSelf.__name__, "UpdateUser", "DeleteUser", "EndAccess", "EndBreakGlass"}


async def test_a_token_exchange_with_an_assumed_role_is_refused() -> None:
    [example] = [each for each in EXAMPLES if each.operation.authenticates_itself]
    async with running() as app:
        assert (await app.send(example)).status_code != 400
        answer = await app.send(example, **_HEADER)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
        assert app.spy.calls == ["ExchangeToken"]
