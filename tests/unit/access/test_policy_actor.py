# SPDX-License-Identifier: Apache-2.0
"""Check what policies learn about the caller of a request and about other principals."""

from __future__ import annotations

from uuid import UUID

import pytest

from gateway.access.actor import Actor, ActorKind
from gateway.access.decisions.policy import PolicyActor


@pytest.mark.threat("LG-DEC-45")
@pytest.mark.parametrize(
    ("caller", "known"),
    [
        (Actor.user("partner~gil"), True),
        (Actor.user("partner~gil", groups_known=False), False),
        (Actor.user("partner~gil", engine="oidc~e", subject_proven=False), False),
        (Actor.system("purge"), True),
    ],
)
def test_a_guardrail_reads_whether_the_groups_of_the_caller_are_known(caller: Actor, known: bool) -> None:
    assert PolicyActor.of(caller, ()).groups_known is known
    assert PolicyActor.of(caller, (), is_caller=False).groups_known is False


def test_a_role_has_no_unknown_groups() -> None:
    role = Actor(kind=ActorKind.ROLE, id="", assumed_role=UUID(int=1))
    assert PolicyActor.of(role, (), is_caller=False).groups_known
