# SPDX-License-Identifier: Apache-2.0
"""A process for `test_killed_deliveries.py` that changes rows and delivers their tuples, until it kills itself.

The program reads JSON lines, forks a child for each, and writes "ended" after that child has exited. A child writes
`gives` before it grants something, and `gone` after a revocation was confirmed. Both lines go to the pipe directly, so
the parent receives them even if the child is killed next.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor
from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.nouns.privileges import TRAVERSE_REASONS, Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database, commit
from gateway.db.grants import grants
from gateway.db.grants.grant_ends import GrantRow
from gateway.db.pools.rows import columns_of, fetch_all
from gateway.db.principals import users
from gateway.db.tables import namespace_move, tables
from gateway.db.tuples import delivery as delivery_module
from gateway.db.tuples import outbox, ownership
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.tuples.desired_tuples import TRAVERSE, containers_of
from gateway.fga.client import FgaClient
from gateway.fga.relationships import to_wire
from gateway.iceberg.identifiers import Namespace
from tests.support.rows import parts

PRIVILEGES = (Privilege.SELECT, Privilege.MANAGE_GRANTS)
_OUTAGES = (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown)


def die() -> None:
    """Kill this process: no exit handlers run and no connection is closed."""
    os.kill(os.getpid(), signal.SIGKILL)


class Child:
    """One run. `kill_at` is the number of the boundary at which it dies, counted over all tasks; some boundaries are in
    the middle of a write to OpenFGA.
    """

    def __init__(self, order: Mapping[str, Any]) -> None:
        self.chance = random.Random(order["seed"])
        self.kill_at: int = order["kill_at"]
        self.passed = 0
        self.rows = parts.Rows(**{name: _parsed(value) for name, value in order["rows"].items()})
        self.database = Database(order["database_url"], pool_size=6, acquire_timeout=5)
        self.client = FgaClient(
            order["endpoint"], parts.KEY, order["store_id"], order["model_id"], timeout_s=order["timeout"]
        )
        self._write = parts.writing(self.client)
        self.delivery = TupleDelivery(self.database, self._write_or_die, parts.Silent(), settle_seconds=order["settle"])
        delivery_module.commit = self._commit_or_die  # type: ignore[attr-defined]  # a name it imports
        self._locks: dict[str, asyncio.Lock] = {}
        self._places = [self.rows.inner, self.rows.outer]

    def boundary(self) -> bool:
        """Count one boundary; return True if the process must die at it."""
        self.passed += 1
        return self.passed == self.kill_at

    async def _commit_or_die(self, connection: AsyncConnection) -> None:
        if self.boundary():
            die()
        await commit(connection)
        if self.boundary():
            die()

    async def _write_or_die(self, writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        if self.boundary():
            die()
        sent = asyncio.ensure_future(self._write(writes, deletes))
        if self.boundary():
            await asyncio.sleep(self.chance.choice((0.0, 0.001, 0.003, 0.01, 0.05)))
            die()
        await sent
        if self.boundary():
            die()

    async def run(self) -> None:
        """Run random changes in four tasks until the process is killed."""
        await asyncio.gather(*(self._work() for _ in range(4)))

    async def _work(self) -> None:
        while True:
            change = self.chance.choices(
                (
                    self._give,
                    self._take,
                    self._make_table,
                    self._drop_table,
                    self._move_table,
                    self._move_namespace,
                    self._delete_user,
                    self._expire,
                    self._deliver_due,
                ),
                (30, 28, 3, 4, 8, 6, 2, 5, 4),
            )[0]
            with suppress(*_OUTAGES):
                await change()

    def _principal(self) -> Principal:
        if self.chance.random() < 0.25:
            return Principal(PrincipalType.ROLE, str(self.rows.role))
        return Principal(PrincipalType.USER, self.chance.choice(self.rows.users[:2]))

    async def _target(self, connection: AsyncConnection) -> ObjectKey:
        if self.chance.random() < 0.3:
            some = await self._some_table(connection)
            if some is not None:
                return ObjectKey(ObjectType.TABLE, str(some.id))
        return self.rows.objects[self.chance.choice(("warehouse", "inner", "view"))]

    async def _some_table(self, connection: AsyncConnection) -> Any:
        rows = (await connection.execute(text("select id, namespace_id from tables where kind = 'table'"))).all()
        return self.chance.choice(rows) if rows else None

    async def _keys(
        self, connection: AsyncConnection, privilege: Privilege, principal: Principal, on: ObjectKey
    ) -> list[tuple[TupleKey, UUID | None]]:
        place = (await containers_of(connection, [on]))[on]
        above = place.above if privilege in TRAVERSE_REASONS else ()
        keys = [TupleKey(principal, privilege.value, on), *(TupleKey(principal, TRAVERSE, each) for each in above)]
        return [(key, place.warehouse_id) for key in keys]

    async def _commit_change(self, connection: AsyncConnection) -> None:
        """Kill the process before the commit of the rows, if this boundary is chosen."""
        if self.boundary():
            die()

    async def _give(self) -> None:
        principal, privilege = self._principal(), self.chance.choice(PRIVILEGES)
        end = self.chance.choice((None, None, 3600.0, 7200.0, 0.2))
        until = None if end is None else datetime.now(UTC) + timedelta(seconds=end)
        by = self.chance.choice(("a", "b"))
        async with self.database.read() as connection:
            on = await self._target(connection)
        async with self._lock_of(principal, privilege, on):
            _report("gives", principal, privilege, on)
            async with self.database.transaction() as connection:
                if not await self._hold_object(connection, on):
                    return
                if principal.type is PrincipalType.USER and not await users.exist(connection, [principal.id]):
                    return
                change = await grants.grant(
                    connection, privilege=privilege, principal=principal, on=on, by=by, expires_at=until
                )
                shortened = change is grants.Change.SHORTENED
                keys = await self._keys(connection, privilege, principal, on)
                pending = await outbox.enqueue_each(connection, keys, takes_away=shortened)
                await self._commit_change(connection)
            await self.delivery.deliver(pending)

    async def _take(self) -> None:
        async with self.database.read() as connection:
            rows = await fetch_all(connection, GrantRow, text(f"select {columns_of(GrantRow, 'g')} from grants g"))
        if not rows:
            return
        row = self.chance.choice(rows)
        key = grants.tuple_of(row)
        principal, privilege, on = key.subject, Privilege(row.privilege), key.object
        assert isinstance(principal, Principal)
        if privilege is Privilege.OWNERSHIP:
            return
        async with self._lock_of(principal, privilege, on):
            async with self.database.transaction() as connection:
                if not await self._hold_object(connection, on):
                    return
                if not await grants.revoke(connection, privilege=privilege, principal=principal, on=on, by="c"):
                    return
                pending = await outbox.enqueue_each(
                    connection, await self._keys(connection, privilege, principal, on), takes_away=True
                )
                await self._commit_change(connection)
            await self.delivery.deliver(pending)
            _report("gone", principal, privilege, on)

    async def _make_table(self) -> None:
        id, within = uuid4(), self.chance.choice(self._places)
        actor = Actor.user(self.chance.choice(self.rows.users), name=None, email=None, application=False)
        async with self.database.transaction() as connection:
            if not await users.exist(connection, [actor.id]):
                return
            await self._hold(connection, within)
            await parts.add_table(connection, id, self.rows.warehouses[0], within)
            table, parent = ObjectKey(ObjectType.TABLE, str(id)), ObjectKey(ObjectType.NAMESPACE, str(within))
            above = (await containers_of(connection, [table]))[table].above
            pending = await ownership.record_new(
                connection, actor, table, parent, above=above, warehouse_id=self.rows.warehouses[0]
            )
            await self._commit_change(connection)
        await self.delivery.deliver_or_defer(pending)

    async def _drop_table(self) -> None:
        async with self.database.transaction() as connection:
            some = await self._some_table(connection)
            gone = None if some is None else await tables.lock(connection, some.id)
            if some is None or gone is None:
                return
            table = ObjectKey(ObjectType.TABLE, str(some.id))
            above = await tables.containers(connection, some.id)
            await tables.drop(connection, some.id, by="c")
            parent = ObjectKey(ObjectType.NAMESPACE, str(gone.namespace_id))
            pending = await ownership.record_deleted(
                connection, table, parent, above=above, warehouse_id=self.rows.warehouses[0]
            )
            await self._commit_change(connection)
        await self.delivery.deliver(pending)

    async def _move_table(self) -> None:
        async with self.database.transaction() as connection:
            some = await self._some_table(connection)
            now = None if some is None else await tables.lock(connection, some.id)
            if some is None or now is None:
                return
            table = ObjectKey(ObjectType.TABLE, str(some.id))
            old, new = now.namespace_id, self._places[now.namespace_id == self._places[0]]
            await self._hold(connection, new)
            before = await tables.containers(connection, some.id)
            await tables.move(connection, some.id, namespace_id=new, name=str(uuid4()))
            after = await tables.containers(connection, some.id)
            steps = await ownership.record_moved(
                connection,
                table,
                ObjectKey(ObjectType.NAMESPACE, str(old)),
                ObjectKey(ObjectType.NAMESPACE, str(new)),
                above_before=before,
                above_after=after,
                warehouse_id=self.rows.warehouses[0],
            )
            await self._commit_change(connection)
        for step in steps:
            await self.delivery.deliver(step)

    async def _hold_object(self, connection: AsyncConnection, on: ObjectKey) -> bool:
        """Lock the object and its namespace before a grant, as `governance.Grants` does; return False if it is gone."""
        there = await grants.lock_object_shared(connection, on)
        if there and on.type in (ObjectType.TABLE, ObjectType.VIEW):
            await tables.containers(connection, UUID(on.id))
        return there

    async def _hold(self, connection: AsyncConnection, space: UUID) -> None:
        """Lock the namespace with `key share`, as the use cases that change its content do."""
        await connection.execute(text("select id from namespaces where id = :id for key share"), {"id": space})

    async def _move_namespace(self) -> None:
        """Move the inner namespace to the top level, or back into the outer one."""
        parent = parts.resolved_outer(self.rows) if self.chance.random() < 0.5 else None
        above = () if parent is None else parent.namespace.levels
        async with self.database.transaction() as connection:
            subtree = await namespace_move.lock(
                connection, await parts.resolved_inner(connection, self.rows), parent=parent
            )
            if subtree is None:
                # A concurrent task moved it first.
                return
            to = Namespace((*above, str(self.rows.inner)))
            steps = await namespace_move.move(connection, subtree, project_id=self.rows.project, to=to)
            await self._commit_change(connection)
        for step in steps:
            await self.delivery.deliver(step)

    async def _delete_user(self) -> None:
        user = self.chance.choice(self.rows.users)
        async with self.database.transaction() as connection:
            if not await users.delete(connection, user):
                return
            pending = await ownership.record_principal_deleted(connection, Principal(PrincipalType.USER, user), by="c")
            await self._commit_change(connection)
        await self.delivery.deliver(pending)
        async with self.database.transaction() as connection:
            await parts.add_user(connection, user)

    async def _expire(self) -> None:
        async with self.database.transaction() as connection:
            pending, _ = await ownership.record_expired(connection, limit=5)
            await self._commit_change(connection)
        await self.delivery.deliver_or_defer(pending)

    async def _deliver_due(self) -> None:
        async with self.database.transaction() as connection:
            await connection.execute(text("update outbox set not_before = clock_timestamp() where id % 3 = 0"))
        await self.delivery.deliver_due()

    def _lock_of(self, principal: Principal, privilege: Privilege, on: ObjectKey) -> asyncio.Lock:
        """Return the lock that serializes changes of one grant, so that the lines about it are in order."""
        return self._locks.setdefault(f"{principal}{privilege}{on}", asyncio.Lock())


def _report(action: str, principal: Principal, privilege: Privilege, on: ObjectKey) -> None:
    [user, relation, object, _] = parts.seen(to_wire(TupleKey(principal, privilege.value, on)))
    os.write(1, (json.dumps([action, user, relation, object]) + "\n").encode())


def _parsed(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value) if value and "~" in value[0] else [UUID(each) for each in value]
    return UUID(value)


def main() -> None:
    """Fork for each input line, so that Python loads its modules only once."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                asyncio.run(asyncio.wait_for(Child(order).run(), order["at_most"]))
            except TimeoutError:
                os._exit(0)
            except BaseException as surprise:  # reported to the parent, which fails the test
                os.write(1, (json.dumps(["surprise", repr(surprise)[:1500], "", ""]) + "\n").encode())
            os._exit(1)
        _, status = os.waitpid(pid, 0)
        os.write(1, (json.dumps(["ended", str(status), "", ""]) + "\n").encode())


if __name__ == "__main__":
    main()
