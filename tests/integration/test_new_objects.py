# SPDX-License-Identifier: Apache-2.0
"""Tuples of new objects, on real servers: they are written without locks, with those of concurrent requests, and
`traverse` is enqueued only where it may be missing.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DecisionEngineUnavailable, WriteOutcomeUnknown
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, TupleKey
from gateway.db.engine.database import Database
from gateway.db.grants import grants
from gateway.db.tables import namespaces
from gateway.db.tuples import outbox, ownership
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.tuples.desired_tuples import TRAVERSE, containers_of
from gateway.db.tuples.new_tuple_delivery import NewTuples
from gateway.db.tuples.outbox import Pending
from gateway.fga.client import FgaClient
from tests.support.rows.parts import (
    Parts,
    Rows,
    Silent,
    add_table,
    all_desired,
    resolved_inner,
    store,
    tuples,
    writing,
)

pytestmark = pytest.mark.servers

SETTLE = 60.0
"""Seconds within which OpenFGA may still apply a write that was sent; longer than any test takes."""


class Refused(Exception):
    """OpenFGA will never accept the tuples."""


@dataclass
class Gate:
    """A write function that waits while it is closed. It refuses tuples of the objects in `poison`."""

    client: FgaClient
    open: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[set[str]] = field(default_factory=list)
    poison: set[str] = field(default_factory=set)
    lost: bool = False

    async def write(self, writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        objects = {key.object.id for key in (*writes, *deletes)}
        self.calls.append(objects)
        await self.open.wait()
        if objects & self.poison:
            raise Refused
        if self.lost:
            raise WriteOutcomeUnknown("no answer")
        await writing(self.client)(writes, deletes)


@dataclass
class Rig:
    """One database with fresh rows, one empty store, and the writes between them."""

    database: Database
    client: FgaClient
    rows: Rows
    gate: Gate

    def delivery(self, mode: NewTuples = NewTuples.GROUPED) -> TupleDelivery:
        return TupleDelivery(self.database, self.gate.write, Silent(), settle_seconds=SETTLE, new_tuples=mode)

    async def insert(self, connection: AsyncConnection, owner: Principal, *, alone: bool = True) -> list[Pending]:
        """Insert a table in the inner namespace, as a creation does; return the keys to deliver."""
        id = uuid4()
        await namespaces.lock_shared(connection, await resolved_inner(connection, self.rows))
        await add_table(connection, id, self.rows.warehouses[0], self.rows.inner)
        table = ObjectKey(ObjectType.TABLE, str(id))
        above = (await containers_of(connection, [table]))[table].above
        return await ownership.record_new(
            connection,
            Actor.user(owner.id, name=None, email=None, application=False),
            table,
            self.rows.objects["inner"],
            above=above,
            warehouse_id=self.rows.warehouses[0],
            alone=alone,
        )

    async def create(self, owner: Principal, *, alone: bool = True) -> list[Pending]:
        async with self.database.transaction() as connection:
            return await self.insert(connection, owner, alone=alone)

    async def revoke(self, pending: Sequence[Pending], owner: Principal) -> list[Pending]:
        """Revoke the ownership of a created table; return the keys to deliver."""
        async with self.database.transaction() as connection:
            return await self.revoked(connection, pending, owner)

    async def revoked(self, connection: AsyncConnection, created: Sequence[Pending], owner: Principal) -> list[Pending]:
        table = created[0].key.object
        await grants.revoke(connection, privilege=Privilege.OWNERSHIP, principal=owner, on=table, by="oidc~root")
        place = (await containers_of(connection, [table]))[table]
        keys = [
            TupleKey(owner, Privilege.OWNERSHIP.value, table),
            *(TupleKey(owner, TRAVERSE, each) for each in place.above),
        ]
        return await outbox.enqueue(connection, keys, takes_away=True, warehouse_id=self.rows.warehouses[0])

    async def create_quickly(self, owner: Principal) -> list[Pending]:
        """Create a table after another one, so that its tuples are written without a lock; return the keys."""
        await self.delivery().deliver(await self.create(owner))
        self.gate.calls.clear()
        pending = await self.create(owner)
        assert relations(pending) == OWN and all(row.sent_at is not None for row in pending)
        return pending

    async def waiting(self) -> set[str]:
        """Return the relations in the outbox."""
        async with self.database.read() as connection:
            return {row.relation for row in await connection.execute(text("select relation from outbox"))}

    async def agree(self) -> None:
        """Check that OpenFGA holds exactly the desired tuples and that the outbox is empty."""
        async with self.database.read() as connection:
            expected = await all_desired(connection, self.rows)
        assert await tuples(self.client) == expected
        assert await self.waiting() == set()


@pytest.fixture
async def rig(parts: Parts) -> AsyncIterator[Rig]:
    database = Database(parts.database_url, pool_size=10, acquire_timeout=30)
    async with store(parts) as client:
        made = Rig(database, client, Rows(), Gate(client))
        async with database.transaction() as connection:
            await made.rows.insert(connection)
            pending = await outbox.enqueue(connection, made.rows.edges, takes_away=False)
        made.gate.open.set()
        await made.delivery().deliver(pending)
        made.gate.calls.clear()
        yield made
    await database.close()


def relations(pending: Sequence[Pending]) -> list[str]:
    return [row.key.relation for row in pending]


OWN = ["parent", "ownership"]
PATH = ["traverse"] * 4
"""`traverse` on the project, the warehouse and both namespaces."""


@pytest.mark.parametrize("mode", list(NewTuples))
async def test_tuples_of_new_objects_match_the_rows_in_every_mode(rig: Rig, mode: NewTuples) -> None:
    for expected in ([*OWN, *PATH], OWN, OWN):
        pending = await rig.create(rig.rows.ann)
        assert relations(pending) == expected
        assert {row.sent_at is not None for row in pending} == {expected == OWN}
        await rig.delivery(mode).deliver(pending)
        await rig.agree()


async def test_new_object_is_written_without_the_locks_of_its_keys(rig: Rig) -> None:
    await rig.delivery().deliver(await rig.create(rig.rows.ann))
    pending = await rig.create(rig.rows.ann)
    async with rig.database.locked(outbox.lock_names([row.key for row in pending])), asyncio.timeout(20):
        await rig.delivery().deliver(pending)
    await rig.agree()


async def test_concurrent_requests_share_a_write(rig: Rig) -> None:
    await rig.delivery().deliver(await rig.create(rig.rows.ann))
    rig.gate.calls.clear()
    rig.gate.open.clear()
    delivery = rig.delivery()
    sent = [await rig.create(rig.rows.ann) for _ in range(12)]
    tasks = [asyncio.create_task(delivery.deliver(pending)) for pending in sent]
    while not rig.gate.calls:
        await asyncio.sleep(0.01)
    assert not any(task.done() for task in tasks), "a request must not be answered before its tuples are written"
    rig.gate.open.set()
    await asyncio.gather(*tasks)
    assert len(rig.gate.calls) <= 3, "waiting requests must leave together"
    await rig.agree()


async def test_group_larger_than_a_write_is_split(rig: Rig) -> None:
    await rig.delivery().deliver(await rig.create(rig.rows.ann))
    rig.gate.open.clear()
    delivery = rig.delivery()
    sent = [await rig.create(rig.rows.ann) for _ in range(60)]
    tasks = [asyncio.create_task(delivery.deliver(pending)) for pending in sent]
    await asyncio.sleep(0.1)
    rig.gate.open.set()
    await asyncio.gather(*tasks)
    await rig.agree()


async def test_refused_tuple_fails_no_other_request(rig: Rig) -> None:
    await rig.delivery().deliver(await rig.create(rig.rows.ann))
    rig.gate.calls.clear()
    rig.gate.open.clear()
    delivery = rig.delivery()
    sent = [await rig.create(rig.rows.ann) for _ in range(8)]
    bad = sent[5][0].key.object.id
    rig.gate.poison.add(bad)
    tasks = [asyncio.create_task(delivery.deliver(pending)) for pending in sent]
    while not rig.gate.calls:
        await asyncio.sleep(0.01)
    rig.gate.open.set()
    await asyncio.gather(*tasks)
    async with rig.database.read() as connection:
        left = {row.object_id for row in await connection.execute(text("select object_id from outbox"))}
    assert left == {bad}
    present = {object for _, _, object, _ in await tuples(rig.client)}
    assert {f"table:{pending[0].key.object.id}" for pending in sent} - present == {f"table:{bad}"}


async def test_write_without_an_answer_stays_due(rig: Rig) -> None:
    pending = await rig.create_quickly(rig.rows.ann)
    rig.gate.lost = True
    assert not await rig.delivery().deliver_or_defer(pending)
    async with rig.database.read() as connection:
        sent = (await connection.execute(text("select sent_at from outbox"))).all()
    assert len(sent) == 2 and all(row.sent_at is not None for row in sent), "the record of the write must stay"


@pytest.mark.threat("LG-DIS-14")
async def test_revocation_is_not_confirmed_while_the_write_of_a_new_object_is_in_flight(rig: Rig) -> None:
    """The write arrives after the deletion of the tuple by the revocation, which must not be confirmed before that."""
    created = await rig.create_quickly(rig.rows.ann)
    rig.gate.open.clear()
    slow = asyncio.create_task(rig.delivery().deliver(created))
    while not rig.gate.calls:
        await asyncio.sleep(0.01)
    taken = await rig.revoke(created, rig.rows.ann)
    straight = TupleDelivery(rig.database, writing(rig.client), Silent(), settle_seconds=SETTLE)
    with pytest.raises(DecisionEngineUnavailable, match="earlier write"):
        await straight.deliver(taken)
    rig.gate.open.set()
    await slow
    assert await rig.waiting() == {"ownership"}
    await straight.deliver(taken)
    await rig.agree()


async def test_revocation_waits_for_the_end_of_a_write_in_flight(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.db.tuples.delivery._PATIENCE", 400)
    created = await rig.create_quickly(rig.rows.ann)
    rig.gate.open.clear()
    slow = asyncio.create_task(rig.delivery().deliver(created))
    while not rig.gate.calls:
        await asyncio.sleep(0.01)
    taken = await rig.revoke(created, rig.rows.ann)
    straight = TupleDelivery(rig.database, writing(rig.client), Silent(), settle_seconds=SETTLE)
    patient = asyncio.create_task(straight.deliver(taken))
    await asyncio.sleep(0.02)
    rig.gate.open.set()
    await asyncio.gather(slow, patient)
    await rig.agree()


async def test_old_record_is_renewed_before_the_write(rig: Rig) -> None:
    pending = await rig.create_quickly(rig.rows.ann)
    await asyncio.sleep(0.6)
    taken: list[datetime] = []
    plain = rig.gate.write

    async def write(writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        async with rig.database.read() as connection:
            taken.extend(row.sent_at for row in await connection.execute(text("select sent_at from outbox")))
        await plain(writes, deletes)

    await TupleDelivery(rig.database, write, Silent(), settle_seconds=SETTLE).deliver(pending)
    assert len(taken) == 2 and all(pending[0].sent_at is not None and at > pending[0].sent_at for at in taken)
    await rig.agree()


async def test_record_that_counts_as_settled_is_not_renewed(rig: Rig) -> None:
    """After the settling time, a revocation may have been confirmed: the tuple is written under its lock only."""
    created = await rig.create_quickly(rig.rows.ann)
    async with rig.database.transaction() as connection:
        moved = text("update outbox set sent_at = sent_at - make_interval(secs => :s) returning id, sent_at")
        at = {row.id: row.sent_at for row in await connection.execute(moved, {"s": SETTLE})}
    stalled = [replace(row, sent_at=at[row.id], noted=-math.inf) for row in created]
    await rig.delivery().deliver(await rig.revoke(created, rig.rows.ann))
    await rig.delivery().deliver(stalled)
    await rig.agree()


# ---- traverse --------------------------------------------------------------------------------------------------------


async def test_traverse_is_enqueued_while_its_delivery_is_pending(rig: Rig) -> None:
    first = await rig.create(rig.rows.ann)
    assert relations(await rig.create(rig.rows.ann)) == [*OWN, *PATH]
    await rig.delivery().deliver(first)


async def test_another_owner_needs_traverse(rig: Rig) -> None:
    await rig.delivery().deliver(await rig.create(rig.rows.ann))
    assert relations(await rig.create(rig.rows.ben)) == [*OWN, *PATH]


async def test_expiring_grant_is_no_reason_to_omit_traverse(rig: Rig) -> None:
    async with rig.database.transaction() as connection:
        key = rig.rows.objects["table"]
        until = datetime.now(UTC) + timedelta(hours=1)
        await grants.grant(
            connection, privilege=Privilege.SELECT, principal=rig.rows.ann, on=key, by="oidc~root", expires_at=until
        )
    assert relations(await rig.create(rig.rows.ann)) == [*OWN, *PATH]


async def test_grant_that_makes_nothing_visible_is_no_reason_to_omit_traverse(rig: Rig) -> None:
    async with rig.database.transaction() as connection:
        key = rig.rows.objects["table"]
        await grants.grant(connection, privilege=Privilege.PASS_GRANTS, principal=rig.rows.ann, on=key, by="oidc~root")
    assert relations(await rig.create(rig.rows.ann)) == [*OWN, *PATH]


async def test_creation_among_other_changes_enqueues_traverse(rig: Rig) -> None:
    await rig.delivery().deliver(await rig.create(rig.rows.ann))
    assert relations(await rig.create(rig.rows.ann, alone=False)) == [*OWN, *PATH]


async def test_revocation_of_the_last_reason_during_a_creation_keeps_traverse(rig: Rig) -> None:
    first = await rig.create(rig.rows.ann)
    await rig.delivery().deliver(first)
    async with rig.database.transaction() as connection:
        created = await rig.insert(connection, rig.rows.ann)
        assert relations(created) == OWN
        revoking = asyncio.create_task(rig.revoke(first, rig.rows.ann))
        await asyncio.sleep(0.2)
        assert not revoking.done(), "the grant that is the reason must be locked"
    await rig.delivery().deliver(await revoking)
    await rig.delivery().deliver(created)
    await rig.agree()


async def test_creation_during_the_revocation_of_the_last_reason_enqueues_traverse(rig: Rig) -> None:
    first = await rig.create(rig.rows.ann)
    await rig.delivery().deliver(first)
    async with rig.database.transaction() as connection:
        taken = await rig.revoked(connection, first, rig.rows.ann)
        async with asyncio.timeout(20):
            created = await rig.create(rig.rows.ann)
    assert relations(created) == [*OWN, *PATH]
    await rig.delivery().deliver(taken)
    await rig.delivery().deliver(created)
    await rig.agree()


async def test_object_of_the_reason_cannot_move_during_a_creation(rig: Rig) -> None:
    first = await rig.create(rig.rows.ann)
    await rig.delivery().deliver(first)
    move = text("update tables set namespace_id = :outer where id = :id")
    values = {"outer": rig.rows.outer, "id": UUID(first[0].key.object.id)}
    async with rig.database.transaction() as connection:
        assert relations(await rig.insert(connection, rig.rows.ann)) == OWN
        with pytest.raises(DBAPIError, match="lock timeout"):
            async with rig.database.transaction() as mover:
                await mover.execute(text("set local lock_timeout = '200ms'"))
                await mover.execute(move, values)


async def test_deactivated_owner_gets_no_tuples(rig: Rig) -> None:
    await rig.delivery().deliver(await rig.create(rig.rows.ann))
    before = await tuples(rig.client)
    async with rig.database.transaction() as connection:
        statement = (
            "insert into scim_users (id, user_id, provider_id, user_name, user_name_key, active, document) "
            "values (gen_random_uuid(), :id, 'oidc', 'x', 'x', false, '{}')"
        )
        await connection.execute(text(statement), {"id": rig.rows.ann.id})
    try:
        pending = await rig.create(rig.rows.ann)
        assert relations(pending) == [*OWN, *PATH]
        await rig.delivery().deliver(pending)
        new = {seen for seen in await tuples(rig.client) if seen not in before}
        assert {relation for _, relation, _, _ in new} == {"parent"}
    finally:
        async with rig.database.transaction() as connection:
            await connection.execute(text("delete from scim_users"))
