# SPDX-License-Identifier: Apache-2.0
"""Acting as a role narrows, for every operation that there is: what the person holds beside the role counts nowhere.

`tests/contract/test_assumed_doors.py` asks the same of a running gateway, lists and searches included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gateway.access.actor import Actor
from gateway.access.operations.server import Bootstrap
from gateway.access.operations.steps import AssumeRole
from gateway.access.operations.users import RegisterSelf
from gateway.access.ports import Pin, Question
from gateway.access.relations import Can
from tests.access import world
from tests.access.app import running
from tests.access.examples import EXAMPLES, Example
from tests.access.world import House, Judge

_HEADER = {"x-assume-role": str(world.ROLE_ID)}

#: Everything but what no token is needed for, and what tells by itself who asks: there the header is refused.
_ASKED = [each for each in EXAMPLES if not each.operation.is_public() and not each.operation.authenticates_itself]

#: About the very role that is assumed, and so about oneself.
_OWN = "grants of role"


@dataclass
class ByGuise(Judge):
    """The person holds everything; the role what `role_has` says. Remembers as what somebody was asked about."""

    role_has: bool = False
    guises: list[tuple[Actor, tuple[Question, ...]]] = field(default_factory=list)

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        self.guises.append((actor, tuple(questions)))
        return [actor.assumed_role is None or self.role_has] * len(questions)


def _required(example: Example) -> bool:
    return example.label != _OWN and any(demand.required for demand in example.operation.demands())


async def test_of_everything_a_person_holds_nothing_counts_while_acting_as_an_empty_role() -> None:
    house = House(judge=ByGuise())
    async with running(house) as app:
        closed = [each for each in _ASKED if _required(each)]
        statuses = {each.url: (await app.send(each, **_HEADER)).status_code for each in closed}
        assert app.spy.calls == []
    assert len(closed) > 100
    assert {url for url, status in statuses.items() if status not in (403, 404)} == set()


async def test_nothing_is_asked_about_the_person_but_whether_the_role_may_be_assumed() -> None:
    judge = ByGuise(role_has=True)
    async with running(House(judge=judge)) as app:
        for example in _ASKED:
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


async def test_policies_are_told_of_the_role_by_every_operation() -> None:
    house = House(judge=ByGuise(role_has=True))
    async with running(house) as app:
        for example in _ASKED:
            house.rules.asked.clear()
            await app.send(example, **_HEADER)
            first, *others = house.rules.asked
            assert [each.operation for each in first.questions] == [AssumeRole.name()]
            assert {each.actor.assumed_role for each in others} <= {str(world.ROLE_ID)}, example


async def test_what_needs_no_right_and_changes_something_is_not_done_as_a_role() -> None:
    house = House(judge=ByGuise(role_has=True))
    free = [each for each in _ASKED if each.operation.changes() and not _required(each)]
    async with running(house) as app:
        reached = set()
        for example in free:
            answer = await app.send(example, **_HEADER)
            if app.spy.calls:
                reached.add(app.spy.calls.pop())
            else:
                assert answer.status_code == 403, example
    assert "Bootstrap" in {type(each.operation).__name__ for each in free}
    # A record of oneself gives no right; what changes one's own is asked of the role, and so is somebody else's.
    assert reached == {RegisterSelf.__name__, "UpdateUser", "DeleteUser"}


async def test_an_exchange_that_was_meant_to_be_narrower_is_refused() -> None:
    [example] = [each for each in EXAMPLES if each.operation.authenticates_itself]
    async with running() as app:
        assert (await app.send(example)).status_code != 400
        answer = await app.send(example, **_HEADER)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
        assert app.spy.calls == ["ExchangeToken"]
