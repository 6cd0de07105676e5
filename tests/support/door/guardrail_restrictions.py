# SPDX-License-Identifier: Apache-2.0
"""A door whose guardrails restrict a table."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.access.decisions.policy import PolicyAnswer
from gateway.obligations.guardrails import StatedObligations, understood
from tests.support.door.data_restrictions import TRUSTED, People, fixture
from tests.support.door.world import DoorFixture

MASKING = {"column_masks": [{"column": "email", "action": "mask-alphanum"}]}


def guarded(stated: dict[str, Any], judge: People | None = None, **options: Any) -> DoorFixture:
    """Return a house whose guardrails state these obligations for every question."""
    bound = options.pop("bound", ())
    house = fixture(judge or People(engine_has=TRUSTED), *bound, governed=options.pop("governed", False))
    house.rules.answer = PolicyAnswer(allow=True, obligations=understood(msgspec.convert(stated, StatedObligations)))
    return house
