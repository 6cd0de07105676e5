# SPDX-License-Identifier: Apache-2.0
"""Lock 6d: what needs no right is written down by hand, and the list may only shrink."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from gateway.access.demand import Demand
from gateway.access.operation import OPERATIONS, Operation
from gateway.access.relations import Can
from tests.access import world
from tests.access.examples import EXAMPLES
from tests.access.world import House, entrance

LIST = Path(__file__).with_name("open_operations.txt")

#: Lower this together with the list. Raising it is the decision that the list exists to make visible.
MOST = 17


def _listed() -> dict[str, tuple[str, str]]:
    lines = [line.split(maxsplit=2) for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return {name: (kind, reason) for kind, name, reason in lines}


def test_the_operations_that_are_open_are_the_listed_ones_with_their_reasons() -> None:
    listed = _listed()
    assert {name for name, (kind, _) in listed.items() if kind == "all"} == {
        name for name, operation in OPERATIONS.items() if operation.open_to_all
    }
    assert {name: reason for name, (kind, reason) in listed.items() if kind == "authenticated"} == {
        name: operation.open_to_authenticated
        for name, operation in OPERATIONS.items()
        if operation.open_to_authenticated
    }


def test_the_list_only_shrinks() -> None:
    assert len(_listed()) <= MOST


def test_what_requires_nothing_is_on_the_list() -> None:
    """An operation all of whose demands are optional is open, whatever it calls itself."""
    unrequired = {
        type(example.operation).__name__
        for example in EXAMPLES
        if not any(demand.required for demand in example.operation.demands())
    }
    assert unrequired == set(_listed())


@pytest.mark.usefixtures("registers")
async def test_the_door_refuses_what_requires_nothing_and_does_not_say_so() -> None:
    class Sly(Operation):
        endpoint: ClassVar[str] = "GET /sly"

        def demands(self) -> tuple[Demand, ...]:
            return (Demand(Can.GET_METADATA, world.TABLE, required=False),)

    house = House()
    with pytest.raises(TypeError, match="Sly requires nothing here and is not declared open"):
        await house.door.admit(entrance(), Sly())
    with pytest.raises(TypeError, match="Sly requires nothing here"):
        await house.door.admit_with(entrance(), EXAMPLES[0].operation, Sly())
    assert (house.judge.asked, house.audit.buffered) == ([], [])
