# SPDX-License-Identifier: Apache-2.0
"""A change by the gateway itself between any two steps of a drift check. PostgreSQL and OpenFGA are real; the test
determines the order of events.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from gateway.access.nouns.privileges import Privilege
from gateway.access.tuples import TupleKey
from gateway.db.engine.database import Database
from gateway.db.engine.event_outbox import EventOutbox
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.db.tuples import outbox
from gateway.db.tuples.outbox import Pending
from gateway.db.warehouses import drift as drift_rows
from gateway.features.tuples import drift
from gateway.features.tuples.drift import DriftKeeper, new_run_id
from gateway.features.tuples.drift_findings import External, Finding, Kind, RepairAction
from gateway.fga.relationships import to_wire
from tests.support.door.world import DoorFixture
from tests.support.rows import delivery_rig as test_delivery
from tests.support.rows.delivery_rig import Rig

pytestmark = pytest.mark.chaos

SELECT = Privilege.SELECT
rig = test_delivery.rig
Change = Callable[[], Awaitable[Any]]


class Counted:
    """Metrics observer that counts the drift found."""

    def __init__(self) -> None:
        self.found = 0

    def drift_found(self, kind: str) -> None:
        self.found += 1

    def drift_repaired(self, action: str) -> None:
        """Ignore it."""

    def drift_checked(self, at: float) -> None:
        """Ignore it."""


def keeper(rig: Rig, counted: Counted, *, adopt: bool = False, revoke_lost: bool = False) -> DriftKeeper:
    return DriftKeeper(
        database=rig.database,
        client=rig.client,
        delivery=rig.delivery,
        door=DoorFixture(resolver=DatabaseResolver(rig.database)).door,  # type: ignore[arg-type]  # the real resolver
        observer=counted,
        external=External.ADOPT if adopt else External.REMOVE,
        revoke_lost=revoke_lost,
    )


def key_of(rig: Rig) -> TupleKey:
    return TupleKey(rig.rows.ann, SELECT.value, rig.rows.objects["warehouse"])


class Between:
    """Runs one change directly before or after a step of the next drift check."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._owed: list[Change] = []
        self.made: list[Pending] = []

    def at(self, step: tuple[Any, str], change: Change, *, after: bool = False) -> None:
        where, name = step
        real = getattr(where, name)
        self._owed.append(change)

        async def stepping(*args: Any, **kwargs: Any) -> Any:
            if not after:
                await self._change()
            answer = await real(*args, **kwargs)
            if after:
                await self._change()
            return answer

        self._monkeypatch.setattr(where, name, stepping)

    async def _change(self) -> None:
        if self._owed:
            self.made += await self._owed.pop()()

    @property
    def happened(self) -> bool:
        return not self._owed


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    return Between(monkeypatch)


STEPS: dict[str, tuple[tuple[Any, str], bool]] = {
    "before the outbox is read": ((drift_rows, "pending"), False),
    "after the outbox was read": ((drift_rows, "pending"), True),
    "after the rows were read": ((drift, "desired_tuples"), True),
    "after the tuples were read": ((DriftKeeper, "_read"), True),
}


@pytest.mark.parametrize("step", STEPS)
async def test_grant_added_during_a_comparison_is_not_missing(
    rig: Rig,
    between: Between,
    step: str,
) -> None:
    counted = Counted()
    where, after = STEPS[step]
    between.at(where, lambda: rig.give(SELECT, rig.rows.ann, "warehouse"), after=after)
    assert await keeper(rig, counted).verify([key_of(rig)]) == []
    assert (between.happened, counted.found) == (True, 0)
    await rig.delivery.deliver(between.made)
    await rig.agree()


@pytest.mark.parametrize("step", STEPS)
async def test_grant_revoked_during_a_comparison_is_not_unwanted(
    rig: Rig,
    between: Between,
    step: str,
) -> None:
    await rig.delivery.deliver(await rig.give(SELECT, rig.rows.ann, "warehouse"))
    counted = Counted()
    where, after = STEPS[step]
    between.at(where, lambda: rig.take(SELECT, rig.rows.ann, "warehouse"), after=after)
    assert await keeper(rig, counted).verify([key_of(rig)]) == []
    assert (between.happened, counted.found) == (True, 0)
    await rig.delivery.deliver(between.made)
    await rig.agree()


@pytest.mark.parametrize("ends", [False, True])
async def test_comparison_finds_drift_without_concurrent_changes(rig: Rig, ends: bool) -> None:
    """Control for the tests above: without concurrent changes the check does find drift."""
    counted = Counted()
    until = in_hours(1) if ends else None
    await rig.client.write([to_wire(key_of(rig), expires_at=until)])
    (found,) = await keeper(rig, counted).verify([key_of(rig)])
    assert (found.kind, counted.found) == (Kind.UNWANTED, 1)
    assert await keeper(rig, counted, adopt=True).repair([found], task="watch_drift", run=new_run_id()) == _done(
        RepairAction.ADOPTED
    )
    await rig.agree()
    assert ("select", "warehouse") in await rig.of(rig.rows.ann)


async def test_an_adopted_grant_and_a_lost_one_are_announced(rig: Rig) -> None:
    """A consumer that mirrors grants learns of no request for either."""
    outbox = EventOutbox(source="uri:iceberg-catalog-service:lake.example", sinks=("kafka",))
    announcing = Database(rig.parts.database_url, pool_size=5, acquire_timeout=30, event_outbox=outbox)
    repairing = keeper(replace(rig, database=announcing), Counted(), adopt=True, revoke_lost=True)
    until = in_hours(1)
    try:
        await rig.client.write([to_wire(key_of(rig), expires_at=until)])
        await repairing.repair([await _found(rig, repairing)], task="watch_drift", run=new_run_id())
        await rig.client.write(deletes=[to_wire(key_of(rig))])
        await repairing.repair([await _found(rig, repairing)], task="watch_drift", run=new_run_id())
        async with announcing.read() as connection:
            written = text("select type, attributes, data from events where key = :key order by sequence")
            events = (await connection.execute(written, {"key": key_of(rig).object.id})).all()
    finally:
        await announcing.close()
    given = f"select:user:{rig.rows.ann.id}"
    assert [(each.type, json.loads(each.data)) for each in events] == [
        ("changeGrants", {"writes": [given], "deletes": [], "write_ends": [until.isoformat()]}),
        ("changeGrants", {"writes": [], "deletes": [given], "write_ends": []}),
    ]
    assert {each.attributes["projectid"] for each in events} == {rig.rows.project}
    assert json.loads(events[0].attributes["actor"])["principal"] == "system~watch_drift"


def in_hours(hours: int) -> datetime:
    return datetime.now(UTC).replace(microsecond=0) + timedelta(hours=hours)


def _done(action: RepairAction) -> dict[RepairAction, int]:
    return dict.fromkeys(RepairAction, 0) | {action: 1}


async def _found(rig: Rig, keeper: DriftKeeper) -> Finding:
    (found,) = await keeper.verify([key_of(rig)])
    return found


@pytest.mark.parametrize("step", ["before it is repaired", "before the tuple is read", "after the tuple was read"])
async def test_tuple_revoked_since_detection_is_not_adopted(
    rig: Rig,
    between: Between,
    step: str,
) -> None:
    """The tuple is found without a grant, then granted and revoked in the regular way. The revocation must prevail."""
    await rig.client.write([to_wire(key_of(rig))])
    adopting = keeper(rig, Counted(), adopt=True)
    found = await _found(rig, adopting)

    async def given_and_taken() -> list[Pending]:
        await rig.give(SELECT, rig.rows.ann, "warehouse")
        return await rig.take(SELECT, rig.rows.ann, "warehouse")

    if step == "before it is repaired":
        between.made += await given_and_taken()
    else:
        between.at((DriftKeeper, "_read"), given_and_taken, after=step.startswith("after"))
    assert await adopting.repair([found], task="watch_drift", run=new_run_id()) == _done(RepairAction.REMOVED)
    assert between.happened
    await deliver_all(rig)
    assert await rig.of(rig.rows.ann) == {}
    await rig.agree()


@pytest.mark.parametrize("delivered", [True, False])
async def test_grant_renewed_since_detection_is_not_revoked(
    rig: Rig,
    delivered: bool,
) -> None:
    """With `revoke_lost`, as after a restore, a missing tuple counts as revoked. A later grant must stay."""
    await rig.delivery.deliver(await rig.give(SELECT, rig.rows.ann, "warehouse"))
    await rig.client.write(deletes=[to_wire(key_of(rig))])
    restored = keeper(rig, Counted(), revoke_lost=True)
    found = await _found(rig, restored)
    assert found.kind is Kind.MISSING
    given = await rig.give(SELECT, rig.rows.ann, "warehouse", by="oidc~another")
    if delivered:
        await rig.delivery.deliver(given)
    assert await restored.repair([found], task="reconcile_tuples", run=new_run_id()) == _done(RepairAction.WRITTEN)
    await deliver_all(rig)
    assert ("select", "warehouse") in await rig.of(rig.rows.ann)
    await rig.agree()


async def test_grant_missing_in_openfga_is_revoked_on_request(rig: Rig) -> None:
    await rig.delivery.deliver(await rig.give(SELECT, rig.rows.ann, "warehouse"))
    await rig.client.write(deletes=[to_wire(key_of(rig))])
    restored = keeper(rig, Counted(), revoke_lost=True)
    found = await _found(rig, restored)
    assert await restored.repair([found], task="reconcile_tuples", run=new_run_id()) == _done(RepairAction.REVOKED)
    assert await rig.of(rig.rows.ann) == {}
    await rig.agree()


async def test_grant_extended_since_detection_keeps_its_expiry(rig: Rig) -> None:
    early, late = in_hours(1), in_hours(2)
    await rig.delivery.deliver(await rig.give(SELECT, rig.rows.ann, "warehouse", until=late))
    await rig.client.write(deletes=[to_wire(key_of(rig))])
    await rig.client.write([to_wire(key_of(rig), expires_at=early)])
    restored = keeper(rig, Counted(), revoke_lost=True)
    found = await _found(rig, restored)
    assert found.kind is Kind.OTHER_CONDITION
    await rig.give(SELECT, rig.rows.ann, "warehouse", until=in_hours(3))
    assert await restored.repair([found], task="reconcile_tuples", run=new_run_id()) == _done(RepairAction.WRITTEN)
    await deliver_all(rig)
    await rig.agree()


async def deliver_all(rig: Rig) -> None:
    """Deliver all rows of the outbox."""
    async with rig.database.read() as connection:
        waiting = await outbox.waiting(connection)
    await rig.delivery.deliver(waiting)
