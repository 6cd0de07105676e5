# SPDX-License-Identifier: Apache-2.0
"""The cases of `identity_attacks.py`: each attempt is refused with a client error, never with a server error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security.identity_attacks import CASES, REFUSED, Case, Day, controls, dawn
from tests.support.stack.world import World


@pytest.fixture(scope="module")
def day(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    world.strip(world.carol)
    with dawn(world.ready, tmp_path_factory.mktemp("day") / "gateway.log") as day:
        yield day


def test_valid_tokens_are_accepted(day: Day) -> None:
    for what, answer in controls(day):
        assert answer.status_code in (200, 201), (what, answer.text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_every_attack_is_refused(day: Day, case: Case) -> None:
    attempts = list(case.attempts(day))
    assert attempts
    let_in = [(what, answer.status_code, answer.text[:200]) for what, answer in attempts]
    assert [each for each in let_in if each[1] not in REFUSED] == []
