# SPDX-License-Identifier: Apache-2.0
"""Delivery of renames to OpenFGA: steps in order, and an honest error if delivery fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.tuples.outbox import Pending
from gateway.features.tables.renames import Renames
from gateway.iceberg.errors import CommitStateUnknownException
from tests.support.kits import kit_of

_KEY = TupleKey(Principal(PrincipalType.USER, "oidc~a"), "traverse", ObjectKey(ObjectType.NAMESPACE, "n"))
STEPS = [[Pending(number, _KEY, number > 1, None)] for number in (1, 2, 3)]


class Delivery:
    """Record delivered steps; fail at one id."""

    def __init__(self, *, fails_at: int = 0, error: type[Exception] = DecisionEngineUnavailable) -> None:
        self.given: list[int] = []
        self._fails_at = fails_at
        self._error = error

    async def deliver(self, pending: Sequence[Pending]) -> None:
        self.given += [each.id for each in pending]
        if self._fails_at in self.given:
            raise self._error("away")


def _renames(delivery: Delivery) -> Renames:
    return Renames(kit_of(delivery=delivery))


async def test_the_steps_of_a_move_are_delivered_in_their_order() -> None:
    delivery = Delivery()
    await _renames(delivery)._deliver(STEPS)
    assert delivery.given == [1, 2, 3]


@pytest.mark.parametrize("error", [DecisionEngineUnavailable, DatabaseUnavailable])
async def test_a_recorded_rename_missing_in_openfga_is_an_unknown_commit_state(
    error: type[Exception],
) -> None:
    delivery = Delivery(fails_at=2, error=error)
    with pytest.raises(CommitStateUnknownException, match="is recorded, but the access rights are not updated"):
        await _renames(delivery)._deliver(STEPS)
    assert delivery.given == [1, 2]
