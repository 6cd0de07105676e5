# SPDX-License-Identifier: Apache-2.0
"""Delivery of tuples from PostgreSQL to OpenFGA, both real: the desired tuples, the changes of revisions, and late
writes. The tests call the gateway's code directly, so no other process delivers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.dependency_errors import ConditionConflict, DecisionEngineUnavailable, WriteOutcomeUnknown
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.resolved import Resolution
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.engine.decision_revalidation import revalidate_decision
from gateway.db.engine.event_outbox import EventOutbox
from gateway.db.grants import grants
from gateway.db.principals import roles, users
from gateway.db.tables import tables as table_rows
from gateway.db.tuples import managed_access, outbox, ownership
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.tuples.desired_tuples import containers_of
from gateway.features.tuples.watch import expire_some
from gateway.fga.client import FgaClient
from gateway.fga.relationships import rfc3339
from tests.support.clock import quickest
from tests.support.rows import parts
from tests.support.rows.delivery_rig import SETTLE, Rig, rig
from tests.support.rows.parts import (
    HELD,
    Proxy,
    Silent,
    delivery,
    tuples,
    writing,
)

__all__ = ["rig"]


pytestmark = pytest.mark.servers

SELECT, DESCRIBE, ASSIGNEE, OWNERSHIP = Privilege.SELECT, Privilege.DESCRIBE, Privilege.ASSIGNEE, Privilege.OWNERSHIP


def soon(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


# ---- desired tuples --------------------------------------------------------------------------------------------------


async def test_tuple_expiry_is_the_latest_of_its_rows_or_none(rig: Rig) -> None:
    ann, early, late = rig.rows.ann, soon(600), soon(1200)

    async def end() -> str | None:
        return (await rig.of(ann))["select", "table"]

    await rig.delivery.deliver(await rig.give(SELECT, ann, "table", until=early, by="a"))
    assert await end() == rfc3339(early)
    await rig.delivery.deliver(await rig.give(SELECT, ann, "table", until=late, by="b"))
    assert await end() == rfc3339(late)
    await rig.delivery.deliver(await rig.give(SELECT, ann, "table", by="c"))
    assert await end() is None
    await rig.delivery.deliver(await rig.give(SELECT, ann, "table", until=early, by="c"))
    assert await end() == rfc3339(late), "the expiry must be the latest of the remaining rows"
    await rig.agree()
    await rig.delivery.deliver(await rig.take(SELECT, ann, "table"))
    assert await rig.of(ann) == {}
    await rig.agree()


async def test_visibility_tuple_ends_with_its_last_reason(rig: Rig) -> None:
    ann, early, late = rig.rows.ann, soon(600), soon(1200)
    way = [("traverse", name) for name in ("project", "warehouse", "outer", "inner")]

    async def ends() -> list[str | None]:
        held = await rig.of(ann)
        return [held.get(each, "gone") for each in way]

    await rig.delivery.deliver(await rig.give(SELECT, ann, "table", until=early))
    assert await ends() == [rfc3339(early)] * 4
    await rig.delivery.deliver(await rig.give(DESCRIBE, ann, "view", until=late))
    assert await ends() == [rfc3339(late)] * 4
    await rig.delivery.deliver(await rig.give(OWNERSHIP, ann, "outer"))
    assert await ends() == [None, None, rfc3339(late), rfc3339(late)]
    await rig.delivery.deliver(await rig.take(DESCRIBE, ann, "view"))
    assert await ends() == [None, None, rfc3339(early), rfc3339(early)]
    await rig.delivery.deliver(await rig.take(SELECT, ann, "table"))
    assert await ends() == [None, None, "gone", "gone"]
    await rig.agree()


async def test_many_concurrent_expiry_changes_all_apply(rig: Rig) -> None:
    """OpenFGA refuses the combined write as a whole: most tuples need one call and some need two."""
    people = [Principal(PrincipalType.USER, f"oidc~p{number}") for number in range(30)]
    late = soon(1200)
    for number, person in enumerate(people):
        pending = await rig.give(SELECT, person, "table", until=soon(600) if number % 7 == 0 else None)
        if number % 2 == 0:
            await rig.delivery.deliver(pending)
    for person in people:
        await rig.give(SELECT, person, "table", until=late)
    await rig.give(SELECT, people[3], "view", until=late)
    await rig.take(SELECT, people[5], "table")
    async with rig.database.transaction() as connection:
        rows = await outbox.waiting(connection)
    await rig.delivery.deliver(rows)
    await rig.agree()
    assert (await rig.of(people[7]))["select", "table"] == rfc3339(late)


async def test_crash_during_an_expiry_change_is_redelivered(rig: Rig) -> None:
    ann, late = rig.rows.ann, soon(1200)
    await rig.delivery.deliver(await rig.give(SELECT, ann, "warehouse", until=soon(600)))
    write, calls = writing(rig.client), []

    async def dies_in_between(writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        await write(writes, deletes)
        calls.append(1)
        raise KeyboardInterrupt

    pending = await rig.give(SELECT, ann, "warehouse", until=late)
    with pytest.raises(KeyboardInterrupt):
        await TupleDelivery(rig.database, dies_in_between, Silent(), settle_seconds=0.3).deliver(pending)
    assert calls == [1]
    assert ("select", "warehouse") not in await rig.of(ann)
    await asyncio.sleep(0.4)
    await delivery(rig.database, rig.client, settle_seconds=0.3).deliver(pending)
    assert (await rig.of(ann))["select", "warehouse"] == rfc3339(late)
    await rig.agree()


@pytest.mark.parametrize(("times", "at_once"), [(1, True), (99, False)])
async def test_direct_write_of_the_same_tuple_delays_delivery_only_briefly(rig: Rig, times: int, at_once: bool) -> None:
    """Between the two calls that change an expiry, a third party writes the deleted tuple, once or every time."""
    ann, late = rig.rows.ann, soon(1200)
    await rig.delivery.deliver(await rig.give(SELECT, ann, "warehouse", until=soon(600)))
    write, stranger, left = writing(rig.client), soon(9000), [times]

    async def contended(writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        await write(writes, deletes)
        if deletes and left[0]:
            left[0] -= 1
            await write({key: stranger for key in deletes if key.relation == SELECT.value}, ())

    pending = await rig.give(SELECT, ann, "warehouse", until=late)
    await TupleDelivery(rig.database, contended, Silent()).deliver(pending)
    waiting = await rig.waiting()
    assert (waiting == []) is at_once
    async with rig.database.read() as connection:
        ends = await connection.execute(text("select not_before < clock_timestamp() + interval '1 minute' from outbox"))
        assert all(ends.scalars()), "the refused delivery must have a time for its retry"
    await rig.delivery.deliver(pending)
    assert (await rig.of(ann))["select", "warehouse"] == rfc3339(late)
    await rig.agree()


async def test_write_without_expiry_change_takes_one_call(rig: Rig) -> None:
    write, calls = writing(rig.client), []

    async def counting(writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        calls.append((len(writes), len(deletes)))
        await write(writes, deletes)

    counted = TupleDelivery(rig.database, counting, Silent())
    await counted.deliver(await rig.give(SELECT, rig.rows.ann, "table", until=soon(600)))
    await counted.deliver(await rig.take(SELECT, rig.rows.ann, "table"))
    assert calls == [(5, 0), (0, 5)]


# ---- revisions ------------------------------------------------------------------------------------------------------


async def test_grants_advance_no_revision(rig: Rig) -> None:
    for privilege, on in ((SELECT, "table"), (SELECT, "warehouse"), (SELECT, "project"), (ASSIGNEE, "role")):
        assert await rig.moved(await rig.give(privilege, rig.rows.ann, on, until=soon(600))) == set()
        assert await rig.moved(await rig.give(privilege, rig.rows.ann, on)) == set(), (
            "a later expiry must change no revision"
        )


@pytest.mark.parametrize(
    ("privilege", "on", "revisions"),
    [
        (SELECT, "table", {"warehouse", "server"}),
        (SELECT, "view", {"warehouse", "server"}),
        (SELECT, "inner", {"warehouse", "server"}),
        (SELECT, "other", {"second", "server"}),
        (SELECT, "warehouse", {"warehouse", "server"}),
        (Privilege.MANAGE_GRANTS, "table", {"warehouse"}),
        (SELECT, "project", {"server"}),
        (Privilege.OPERATOR, "server", {"server"}),
        (ASSIGNEE, "role", {"server"}),
        (OWNERSHIP, "role", {"server"}),
    ],
)
async def test_revocation_advances_the_revision_of_its_object(
    rig: Rig, privilege: Privilege, on: str, revisions: set[str]
) -> None:
    """The last reason below the project also ends its traverse tuple, which belongs to the global revision."""
    await rig.delivery.deliver(await rig.give(privilege, rig.rows.ann, on))
    moved, taken = await rig.changed(rig.take(privilege, rig.rows.ann, on))
    assert moved == revisions, "cached allows must end even if OpenFGA cannot be written"
    assert await rig.moved(taken) == revisions


async def test_visibility_kept_by_another_reason_advances_no_global_revision(rig: Rig) -> None:
    await rig.delivery.deliver(await rig.give(SELECT, rig.rows.ann, "table"))
    await rig.delivery.deliver(await rig.give(SELECT, rig.rows.ann, "other"))
    moved, taken = await rig.changed(rig.take(SELECT, rig.rows.ann, "table"))
    assert moved == {"warehouse"}
    assert await rig.moved(taken) == {"warehouse"}


async def test_revocation_covered_by_another_row_advances_no_revision(rig: Rig) -> None:
    """Only `take` ends the rows of all grantors; one grantor may still shorten the expiry of the own row."""
    await rig.delivery.deliver(await rig.give(SELECT, rig.rows.ann, "table", by="a"))
    await rig.delivery.deliver(await rig.give(SELECT, rig.rows.ann, "table", by="b"))
    assert await rig.moved(await rig.give(SELECT, rig.rows.ann, "table", by="a", until=soon(60))) == set()


async def test_shortened_expiry_advances_revisions(rig: Rig) -> None:
    await rig.delivery.deliver(await rig.give(SELECT, rig.rows.ann, "table"))
    for seconds in (600, 60):
        moved, shortened = await rig.changed(rig.give(SELECT, rig.rows.ann, "table", until=soon(seconds)))
        assert moved == {"warehouse", "server"}
        assert await rig.moved(shortened) == {"warehouse", "server"}


Change = Callable[[Rig, AsyncConnection], Awaitable[object]]


def executing(statement: str) -> Change:
    async def change(rig: Rig, connection: AsyncConnection) -> None:
        await connection.execute(text(statement), {"role": rig.rows.role, "ann": rig.rows.ann.id})

    return change


def _above(rig: Rig) -> list[ObjectKey]:
    return [rig.rows.objects[name] for name in ("project", "warehouse", "outer", "inner")]


async def _moved_table(rig: Rig, connection: AsyncConnection) -> None:
    of, above = rig.rows.objects, _above(rig)
    await ownership.record_moved(
        connection,
        of["table"],
        of["inner"],
        of["outer"],
        above_before=above,
        above_after=above[:-1],
        warehouse_id=rig.rows.warehouses[0],
    )


async def _deleted(rig: Rig, connection: AsyncConnection, name: str) -> None:
    of, above = rig.rows.objects, _above(rig)
    within = rig.rows.warehouses[0]
    if name == "table":
        await ownership.record_deleted(connection, of["table"], of["inner"], above=above, warehouse_id=within)
        await connection.execute(text("delete from tables where id = :id"), {"id": rig.rows.table})
    else:
        await ownership.record_deleted(connection, of["role"], of["project"], above=(), warehouse_id=None)


#: Each change that takes rights away, with the revisions that it changes by itself. Ann holds `select` on the table.
TAKING: dict[str, tuple[Change, set[str]]] = {
    "a deletion of the user": (
        lambda rig, connection: ownership.record_principal_deleted(connection, rig.rows.ann, by="oidc~root"),
        {"warehouse", "server"},
    ),
    "a deactivation of the user": (
        lambda rig, connection: ownership.record_suspended(connection, rig.rows.ann.id, inactive=True),
        # The directory's row is the reason for which the tuples are not desired any more; here it stays active.
        {"warehouse"},
    ),
    "the directory's deactivation": (
        executing("update scim_users set active = false where user_id = :ann"),
        {"server"},
    ),
    "an activation by the directory": (
        executing("update scim_users set active = true where user_id = :ann"),
        set(),
    ),
    "another source of a role": (executing("update roles set source_id = 'other' where id = :role"), {"server"}),
    "another name of a role": (executing("update roles set name = 'other' where id = :role"), set()),
    "a move of the table": (_moved_table, {"warehouse"}),
    "managed access": (
        lambda rig, connection: outbox.enqueue(
            connection,
            managed_access.keys(rig.rows.objects["inner"]),
            takes_away=True,
            warehouse_id=rig.rows.warehouses[0],
        ),
        {"warehouse"},
    ),
    "a drop of the only visible table": (
        lambda rig, connection: _deleted(rig, connection, "table"),
        {"warehouse", "server"},
    ),
    "a deletion of a role": (lambda rig, connection: _deleted(rig, connection, "role"), {"server"}),
}


@pytest.mark.threat("LG-DIS-05")
async def test_changes_that_take_rights_away_advance_revisions_before_their_delivery(rig: Rig) -> None:
    advanced = {}
    for kind, (change, _) in TAKING.items():
        async with rig.database.transaction() as connection:
            await rig.rows.insert(connection)
            await connection.execute(
                text(
                    "insert into scim_users (id, provider_id, user_id, user_name, user_name_key, active, document) "
                    "values (gen_random_uuid(), 'oidc', :ann, 'ann', 'ann', true, '')"
                ),
                {"ann": rig.rows.ann.id},
            )
        await rig.give(SELECT, rig.rows.ann, "table")
        advanced[kind] = (await rig.changed(_commit(rig, change)))[0]
    assert advanced == {kind: expected for kind, (_, expected) in TAKING.items()}


async def _commit(rig: Rig, change: Change) -> None:
    async with rig.database.transaction() as connection:
        await change(rig, connection)


async def test_drop_of_a_table_whose_namespace_stays_visible_advances_no_revision_by_itself(rig: Rig) -> None:
    """No decision finds the dropped table, so frequent drops must not end the cached decisions about others twice."""
    await rig.give(SELECT, rig.rows.ann, "table")
    await rig.give(SELECT, rig.rows.ann, "view")
    moved, _ = await rig.changed(_commit(rig, lambda rig, connection: _deleted(rig, connection, "table")))
    assert moved == set()


async def test_decision_of_the_same_transaction_does_not_see_its_own_revision(rig: Rig) -> None:
    permit: Any = Overtaken(rig, await last_resolution(rig), 99)
    await rig.give(Privilege.OPERATOR, rig.rows.ann, "server")
    async with rig.database.transaction() as connection:
        on = rig.rows.objects["server"]
        await grants.revoke(connection, privilege=Privilege.OPERATOR, principal=rig.rows.ann, on=on, by="oidc~root")
        key = TupleKey(rig.rows.ann, Privilege.OPERATOR.value, on)
        await outbox.enqueue(connection, [key], takes_away=True)
        assert await revalidate_decision(connection, permit) is permit.resolution
    assert permit.decided == 0


async def test_revocations_in_two_warehouses_and_deliveries_do_not_deadlock(rig: Rig) -> None:
    """Each transaction and each delivery changes the revisions of both warehouses and of the server."""
    people = [Principal(PrincipalType.USER, id) for id in rig.rows.users]

    async def give_and_take(who: Principal) -> None:
        for _ in range(10):
            for on in ("table", "other", "project"):
                await rig.give(SELECT, who, on, until=soon(600))
            async with rig.database.transaction() as connection:
                pending = await ownership.record_principal_deleted(connection, who, by="oidc~root")
            await rig.delivery.deliver(pending)

    await asyncio.gather(*(give_and_take(who) for who in people))


@dataclass
class Overtaken:
    """The part of a permit that `revalidate_decision` reads, for a caller whose rights stay. `moves` is the number of
    new decisions that are each overtaken by an unrelated revocation.
    """

    rig: Rig
    resolution: Resolution
    moves: int
    decided: int = 0
    operation: object = field(default_factory=lambda: SimpleNamespace(is_of_catalog=lambda: False))

    async def revalidate(self) -> Resolution:
        self.decided += 1
        found = await last_resolution(self.rig)
        if self.decided <= self.moves:
            await revoked_concurrently(self.rig)
        return found


async def last_resolution(rig: Rig) -> Resolution:
    return Resolution(rows={}, now=datetime.now(UTC), revision=(await rig.revisions())[0])


async def revoked_concurrently(rig: Rig) -> None:
    await rig.delivery.deliver(await rig.give(Privilege.OPERATOR, rig.rows.ann, "server"))
    await rig.delivery.deliver(await rig.take(Privilege.OPERATOR, rig.rows.ann, "server"))


@pytest.mark.parametrize("moves", [0, 1, 2])
async def test_unaffected_user_is_not_refused_during_foreign_revocations(rig: Rig, moves: int) -> None:
    """One repaired drift changes a revision three times within moments: on detection, delivery and repair."""
    permit: Any = Overtaken(rig, await last_resolution(rig), moves)
    await revoked_concurrently(rig)
    async with rig.database.transaction() as connection:
        still_valid = await revalidate_decision(connection, permit)
    assert permit.decided == moves + 1
    assert still_valid.revision == (await rig.revisions())[0], "the returned revision must be the current one"


async def test_revalidation_fails_after_repeated_concurrent_changes(rig: Rig) -> None:
    permit: Any = Overtaken(rig, await last_resolution(rig), 99)
    await revoked_concurrently(rig)
    with pytest.raises(DecisionEngineUnavailable, match="changed during each attempt"):
        async with rig.database.transaction() as connection:
            await revalidate_decision(connection, permit)
    assert permit.decided == 3


async def test_decision_without_concurrent_revocation_is_made_once(rig: Rig) -> None:
    permit: Any = Overtaken(rig, await last_resolution(rig), 99)
    async with rig.database.transaction() as connection:
        assert await revalidate_decision(connection, permit) is permit.resolution
    assert permit.decided == 0


# ---- writes with unknown outcome -------------------------------------------------------------------------------------


@pytest.mark.threat("LG-DIS-14")
async def test_late_write_does_not_restore_a_revoked_tuple(rig: Rig) -> None:
    """The write of a grant arrives after its revocation. The revocation must not be confirmed before that."""
    ann = rig.rows.ann
    proxy = Proxy(rig.parts.openfga_url)
    async with proxy.serving() as endpoint:
        slow = FgaClient(endpoint, parts.KEY, *_ids(rig.client), timeout_s=1.0)
        await slow.ping()  # connects first, so that the write is sent at once
        proxy.plan = lambda body: HELD if '"writes"' in body else 0.0
        given = await rig.give(SELECT, ann, "table")
        behind = delivery(rig.database, slow, settle_seconds=SETTLE)
        with pytest.raises(WriteOutcomeUnknown):
            await behind.deliver(given)
        taken = await rig.take(SELECT, ann, "table")
        straight = delivery(rig.database, rig.client, settle_seconds=SETTLE)
        with pytest.raises(DecisionEngineUnavailable, match="earlier write"):
            await straight.deliver(taken)
        async with rig.database.read() as connection:
            pending = (await connection.execute(text("select relation from outbox where takes_away"))).all()
        assert {row.relation for row in pending} == {"select", "traverse"}, "the tuples must be pending"
        proxy.release()
        await proxy.drained()
        assert ("select", "table") in await rig.of(ann), "OpenFGA must have carried out the late write"
        await slow.aclose()
    await rig.settle()
    before = await rig.revisions()
    await straight.deliver([*given, *taken])
    assert await rig.of(ann) == {}
    assert (await rig.revisions())[:2] != before[:2]
    await rig.agree()


async def test_background_delivery_completes_without_a_request(rig: Rig) -> None:
    ann = rig.rows.ann
    proxy = Proxy(rig.parts.openfga_url)
    async with proxy.serving() as endpoint:
        slow = FgaClient(endpoint, parts.KEY, *_ids(rig.client), timeout_s=1.0)
        await slow.ping()  # connects first, so that the write is sent at once
        proxy.plan = lambda body: HELD if '"writes"' in body else 0.0
        assert not await delivery(rig.database, slow, settle_seconds=SETTLE).deliver_or_defer(
            await rig.give(SELECT, ann, "table")
        ), "a grant that is stored but undelivered must succeed"
        straight = delivery(rig.database, rig.client, settle_seconds=SETTLE)
        with pytest.raises(DecisionEngineUnavailable):
            await straight.deliver(await rig.take(SELECT, ann, "table"))
        proxy.release()
        await proxy.drained()
        await slow.aclose()
    await rig.settle()
    async with rig.database.transaction() as connection:
        await connection.execute(text("update outbox set not_before = clock_timestamp()"))
    while await straight.deliver_due():
        pass
    assert await rig.of(ann) == {}
    await rig.agree()


async def test_late_deletion_does_not_remove_a_renewed_grant(rig: Rig) -> None:
    ann = rig.rows.ann
    await rig.delivery.deliver(await rig.give(SELECT, ann, "table"))
    proxy = Proxy(rig.parts.openfga_url)
    async with proxy.serving() as endpoint:
        slow = FgaClient(endpoint, parts.KEY, *_ids(rig.client), timeout_s=1.0)
        await slow.ping()  # connects first, so that the write is sent at once
        proxy.plan = lambda _: HELD
        taken = await rig.take(SELECT, ann, "table")
        with pytest.raises(WriteOutcomeUnknown):
            await delivery(rig.database, slow, settle_seconds=SETTLE).deliver(taken)
        straight = delivery(rig.database, rig.client, settle_seconds=SETTLE)
        given = await rig.give(SELECT, ann, "table")
        await straight.deliver(given)
        assert ("select", "table") in await rig.of(ann)
        assert set(await rig.waiting()) == {row.key for row in given}, "the deliveries must stay in the outbox"
        proxy.release()
        await proxy.drained()
        await slow.aclose()
    assert ("select", "table") not in await rig.of(ann), "OpenFGA must have carried out the late deletion"
    await rig.settle()
    await straight.deliver([*taken, *given])
    assert ("select", "table") in await rig.of(ann)
    await rig.agree()


async def test_unsent_write_needs_no_settling_time(rig: Rig) -> None:
    """No write was sent, so the following revocation is confirmed at once."""
    given = await rig.give(SELECT, rig.rows.ann, "table")
    with parts.closed_port() as port:
        absent = FgaClient(f"http://127.0.0.1:{port}", parts.KEY, *_ids(rig.client), timeout_s=10)
        with pytest.raises(DecisionEngineUnavailable):
            await delivery(rig.database, absent, settle_seconds=60).deliver(given)
        await absent.aclose()
    await delivery(rig.database, rig.client, settle_seconds=60).deliver(await rig.take(SELECT, rig.rows.ann, "table"))
    assert await rig.of(rig.rows.ann) == {}


async def test_concurrent_deliveries_of_one_key_match_the_rows_and_are_confirmed(rig: Rig) -> None:
    lock = asyncio.Lock()

    async def change(number: int) -> None:
        async with lock:
            pending = await (rig.take if number % 2 else rig.give)(SELECT, rig.rows.ann, "table")
        await rig.delivery.deliver(pending)

    await asyncio.gather(*(change(number) for number in range(24)))
    await rig.agree()


async def test_tuple_delivered_by_another_process_is_not_written_again(rig: Rig) -> None:
    """A second write could be the late one, and no row would be left that records it."""
    given = await rig.give(SELECT, rig.rows.ann, "table")
    await rig.delivery.deliver(given)

    async def refuses(writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        raise ConditionConflict("the tuple exists already, so no write was expected")

    await TupleDelivery(rig.database, refuses, Silent()).deliver(given)


# ---- moves ----------------------------------------------------------------------------------------------------------


async def test_move_steps_complete_in_order_in_any_process(rig: Rig) -> None:
    rows = rig.rows
    people = [Principal(PrincipalType.USER, f"oidc~m{number}") for number in range(60)]
    for person in people:
        await rig.delivery.deliver(await rig.give(SELECT, person, "table"))
    async with rig.database.transaction() as connection:
        await table_rows.move(connection, rows.table, namespace_id=rows.outer, name="moved")
        steps = await ownership.record_moved(
            connection,
            rows.objects["table"],
            rows.objects["inner"],
            rows.objects["other"],
            above_before=[rows.objects["warehouse"], rows.objects["outer"], rows.objects["inner"]],
            above_after=[rows.objects["second"], rows.objects["other"]],
            warehouse_id=rows.warehouses[0],
        )
        await connection.execute(
            text("update tables set namespace_id = :n, warehouse_id = :w where id = :t").bindparams(
                n=rows.other, w=rows.warehouses[1], t=rows.table
            )
        )
        await connection.execute(text("update outbox set not_before = clock_timestamp()"))
    sizes = [len(step) for step in steps]
    assert sizes == [120, 2, 180]
    order = {row.id: number for number, step in enumerate(steps) for row in step}
    seen: list[int] = []
    async with rig.database.transaction() as first, rig.database.transaction() as second:
        for connection in (first, second, second):
            seen += [order[row.id] for row in await outbox.due(connection, limit=90)]
    assert set(seen) == {0}, "no process may deliver a later step before the earlier one"
    finished = delivery(rig.database, rig.client)
    left: list[int] = []
    while await finished.deliver_due():
        async with rig.database.read() as connection:
            left.append((await connection.execute(text("select min(step) from outbox"))).scalar_one())
    assert left == sorted(left[:-1]) + [None]
    await rig.agree()


# ---- deletions and expiry --------------------------------------------------------------------------------------------


async def test_a_deleted_user_leaves_no_tuple(rig: Rig) -> None:
    ann = rig.rows.ann
    held = [
        (SELECT, "table"),
        (SELECT, "other"),
        (SELECT, "project"),
        (ASSIGNEE, "role"),
        (Privilege.OPERATOR, "server"),
        (Privilege.MANAGE_GRANTS, "view"),
    ]
    for privilege, on in held:
        await rig.delivery.deliver(await rig.give(privilege, ann, on))
    await rig.delivery.deliver(await rig.give(SELECT, rig.rows.ben, "table"))
    async with rig.database.transaction() as connection:
        assert await users.delete(connection, ann.id)
        pending = await ownership.record_principal_deleted(connection, ann, by="oidc~root")
    assert await rig.moved(pending) == {"server", "warehouse", "second"}
    assert await rig.of(ann) == {}
    await rig.agree()
    async with rig.database.read() as connection:
        ended = await grants.history(connection, principal=ann, limit=100)
        assert not await users.exist(connection, [ann.id])
    assert [row.ended_because for row in ended] == ["principal deleted"] * len(held)
    assert ("select", "table") in await rig.of(rig.rows.ben)


async def test_a_deleted_role_leaves_no_tuple_as_object_or_as_principal(rig: Rig) -> None:
    rows = rig.rows
    role = Principal(PrincipalType.ROLE, str(rows.role))
    await rig.delivery.deliver(await rig.give(ASSIGNEE, rows.ann, "role"))
    await rig.delivery.deliver(await rig.give(OWNERSHIP, rows.ben, "role"))
    await rig.delivery.deliver(await rig.give(ASSIGNEE, role, "role_above"))
    await rig.delivery.deliver(await rig.give(SELECT, role, "inner"))
    async with rig.database.transaction() as connection:
        assert await roles.delete(connection, rows.role) == rows.project
        gone = await ownership.record_deleted(
            connection, rows.objects["role"], rows.objects["project"], above=(), warehouse_id=None, by="oidc~root"
        )
        gone += await ownership.record_principal_deleted(connection, role, by="oidc~root")
    await rig.delivery.deliver(gone)
    assert await rig.of(role) == {}
    assert not any(str(rows.role) in "".join(map(str, each)) for each in await tuples(rig.client))
    await rig.agree()


async def test_existence_check_waits_for_a_concurrent_user_deletion(rig: Rig) -> None:
    ann = rig.rows.ann
    async with rig.database.transaction() as deleting:
        assert await users.delete(deleting, ann.id)

        async def known() -> set[str]:
            async with rig.database.transaction() as connection:
                return await users.exist(connection, [ann.id, rig.rows.ben.id])

        requested = asyncio.create_task(known())
        await asyncio.sleep(0.3)
        assert not requested.done()
    assert await requested == {rig.rows.ben.id}


@pytest.mark.threat("LG-DEC-16")
async def test_a_dropped_object_leaves_no_tuple(rig: Rig) -> None:
    rows = rig.rows
    await rig.delivery.deliver(await rig.give(SELECT, rows.ann, "table"))
    await rig.delivery.deliver(await rig.give(Privilege.MANAGE_GRANTS, rows.ben, "table", until=soon(60)))
    table = rows.objects["table"]
    async with rig.database.transaction() as connection:
        above = (await containers_of(connection, [table]))[table].above
        await table_rows.drop(connection, rows.table, by="oidc~root")
        gone = await ownership.record_deleted(
            connection, table, rows.objects["inner"], above=above, warehouse_id=rows.warehouses[0]
        )
    await rig.delivery.deliver(gone)
    assert await rig.of(rows.ann) == {}
    assert not any(str(rows.table) in each[2] for each in await tuples(rig.client))
    await rig.agree()


async def test_expired_grant_moves_to_history_without_a_revision_change(rig: Rig) -> None:
    ann = rig.rows.ann
    await rig.delivery.deliver(await rig.give(SELECT, ann, "table", until=soon(600)))
    await rig.delivery.deliver(await rig.give(SELECT, ann, "view", until=soon(600)))
    before = await rig.revisions()
    assert not await expire_some(rig.delivery, rig.database)
    end = soon(-1)
    async with rig.database.transaction() as connection:
        over_now = "update grants set expires_at = :end where object_id = :table"
        await connection.execute(text(over_now), {"end": end, "table": rig.rows.objects["table"].id})
    assert await expire_some(rig.delivery, rig.database)
    assert not await expire_some(rig.delivery, rig.database)
    assert ("select", "table") not in await rig.of(ann)
    assert ("traverse", "inner") in await rig.of(ann)
    await rig.agree()
    assert await rig.revisions() == before
    async with rig.database.read() as connection:
        [over] = await grants.history(connection, principal=ann, limit=5)
    assert (over.ended_because, over.ended_at) == ("expired", end)


async def test_an_expired_grant_is_announced_once_with_its_place(rig: Rig) -> None:
    """Consumers that mirror grants cannot see the end of one that nobody revokes."""
    ann, table = rig.rows.ann, rig.rows.objects["table"]
    for giver in ("a", "b"):
        await rig.delivery.deliver(await rig.give(SELECT, ann, "table", until=soon(600), by=giver))
    outbox = EventOutbox(source="uri:iceberg-catalog-service:lake.example", sinks=("kafka", "nats"))
    announcing = Database(rig.parts.database_url, pool_size=2, acquire_timeout=30, event_outbox=outbox)
    over_now = "update grants set expires_at = :end where object_id = :table and granted_by = any(:by)"
    written = "select * from events where key = :table and type = 'expireGrant' order by sequence"
    try:
        for by in ("a", "b"):
            async with rig.database.transaction() as connection:
                await connection.execute(text(over_now), {"end": soon(-1), "table": table.id, "by": [by]})
            assert await expire_some(rig.delivery, announcing)
            assert not await expire_some(rig.delivery, announcing)
        async with rig.database.read() as connection:
            first, last = (await connection.execute(text(written), {"table": table.id})).all()
            sinks = text("select sink from event_deliveries where sequence = :sequence order by sink")
            assert (await connection.execute(sinks, {"sequence": last.sequence})).scalars().all() == ["kafka", "nats"]
    finally:
        await announcing.close()
    data = json.loads(last.data)
    assert (data["privilege"], data["principal-type"], data["principal"]) == ("select", "user", ann.id)
    assert [json.loads(each.data)["still-granted"] for each in (first, last)] == [True, False]
    assert last.attributes["warehouseid"] == last.attributes["prefix"] == str(rig.rows.warehouses[0])
    assert (last.attributes["projectid"], last.attributes["tabularid"]) == (rig.rows.project, table.id)
    assert json.loads(last.attributes["actor"]) == {"type": "principal", "principal": "system~grant_expiry"}


async def test_refused_move_step_delays_delivery_only_briefly(rig: Rig) -> None:
    key = TupleKey(rig.rows.ann, "select", ObjectKey(ObjectType.TABLE, str(uuid4())))
    async with rig.database.transaction() as connection:
        first = await outbox.enqueue(connection, [key], takes_away=True, step=0)
        second = await outbox.enqueue(connection, [key], takes_away=True, step=1)
        await connection.execute(text("update outbox set not_before = clock_timestamp()"))
    async with rig.database.transaction() as connection:
        assert [row.id for row in await outbox.due(connection, limit=9)] == [first[0].id]
        await outbox.postpone(connection, [first[0].id], seconds=3600)
    async with rig.database.transaction() as connection:
        assert [row.id for row in await outbox.due(connection, limit=9)] == [second[0].id]


def _ids(client: FgaClient) -> tuple[str, str]:
    return client._url.rpartition("/")[2], client.model_id


async def test_due_deliveries_are_found_quickly_behind_a_large_change(rig: Rig) -> None:
    """A dropped tree leaves thousands of keys of one transaction; the query must not compare each pair of keys."""
    left = """
        insert into outbox (subject_type, subject_id, relation, object_type, object_id, takes_away, not_before)
        select 'warehouse', gen_random_uuid()::text, 'parent', 'namespace', gen_random_uuid()::text, true,
            clock_timestamp() - interval '1 second' from generate_series(1, 10000)
    """
    async with rig.database.transaction() as connection:
        await connection.execute(text(left))

    async def look() -> None:
        async with rig.database.transaction() as connection:
            assert len(await outbox.due(connection, limit=90)) == 90

    assert await quickest(look) < 3
    async with rig.database.transaction() as connection:
        await connection.execute(
            text("delete from outbox where object_type = 'namespace' and subject_type = 'warehouse'")
        )
