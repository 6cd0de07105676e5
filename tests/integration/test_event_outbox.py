# SPDX-License-Identifier: Apache-2.0
"""The outbox of change events on a real PostgreSQL: an event exists exactly if its change was committed, in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from sqlalchemy import event as sqlalchemy_event
from sqlalchemy import text
from uuid_utils.compat import uuid7

from gateway.access.audit.audit_record import IssuedCredential
from gateway.access.dependency_errors import OutOfTime
from gateway.access.door.permit import Permit
from gateway.access.door.request_context import Deadline
from gateway.access.events.event_building import event_id
from gateway.access.operation import Operation
from gateway.access.operations.tables import CommitTable, CommitTransaction, DropTable
from gateway.db.audit import audit_log
from gateway.db.engine.database import Database
from gateway.db.engine.event_outbox import EventOutbox
from gateway.iceberg.errors import CatalogError
from tests.support.door import world
from tests.support.door.examples import EXAMPLES
from tests.support.door.world import DoorFixture, request_context
from tests.support.rows.parts import Parts, Rows

pytestmark = pytest.mark.servers

SOURCE = "uri:iceberg-catalog-service:lake.example"
OUTBOX = EventOutbox(source=SOURCE, sinks=("kafka", "nats"))


@pytest.fixture
async def databases(parts: Parts) -> AsyncIterator[list[Database]]:
    """Yield the databases of two worker processes with two sinks, and of one without a sink."""
    async with AsyncExitStack() as stack:
        made = []
        for outbox in (OUTBOX, OUTBOX, None):
            made.append(Database(parts.database_url, pool_size=5, acquire_timeout=30, event_outbox=outbox))
            stack.push_async_callback(made[-1].close)
        # Without a row of the server no revision differs from that of the permits.
        await _execute(made[0], "truncate events, server, audit_log restart identity cascade")
        yield made


@pytest.fixture
def database(databases: list[Database]) -> Database:
    return databases[0]


async def _execute(database: Database, statement: str, **values: object) -> Sequence[Any]:
    async with database.transaction() as connection:
        result = await connection.execute(text(statement), values)
        return result.all() if result.returns_rows else ()


async def _permit(operation: Operation, fixture: DoorFixture | None = None) -> Permit[Operation]:
    return await (fixture or DoorFixture()).door.admit(request_context(), operation)


async def _changed(database: Database, permit: Permit[Operation]) -> None:
    async with database.change(permit):
        pass


async def _written(database: Database) -> list[tuple[str, str]]:
    """Return (type, sink) of every waiting delivery, in the order of events and sinks."""
    rows = await _execute(
        database, "select type, sink from events join event_deliveries using (sequence) order by 1, 2"
    )
    events = await _execute(database, "select count(*) from events")
    assert events[0][0] * len(OUTBOX.sinks) == len(rows)
    return [(row.type, row.sink) for row in rows]


DROPPED = [("dropTable", "kafka"), ("dropTable", "nats")]


async def test_a_committed_change_waits_once_for_each_sink(database: Database) -> None:
    permit = await _permit(DropTable(world.TABLE))
    await _changed(database, permit)
    assert await _written(database) == DROPPED
    (row,) = await _execute(database, "select * from events")
    assert (row.source, row.key, row.data) == (SOURCE, str(world.TABLE_ID), b"null")
    assert (row.attributes["traceid"], row.attributes["tabularid"]) == (permit.request_id, row.key)
    assert (row.id.version, row.id.variant) == (7, "specified in RFC 4122")


async def test_a_change_that_is_rolled_back_leaves_no_event(database: Database) -> None:
    with pytest.raises(ValueError, match="in the use case"):
        async with database.change(await _permit(DropTable(world.TABLE))):
            raise ValueError("in the use case")
    permit = await _permit(DropTable(world.TABLE))
    # The time of the request ends after the statement that writes the event, and before COMMIT.
    async with asyncio.timeout(60) as timer:
        pass
    permit._deadline = Deadline(timer)
    with pytest.raises(OutOfTime):
        await _changed(database, permit)
    assert await _written(database) == []


async def test_a_change_that_is_refused_at_the_end_leaves_no_event(database: Database) -> None:
    fixture = DoorFixture()
    permit = await _permit(DropTable(world.TABLE), fixture)
    await _execute(database, "insert into server (id, revision) values (gen_random_uuid(), gen_random_uuid())")
    fixture.judge.answer = lambda question: question.relation.value != "can_drop"
    with pytest.raises(CatalogError):
        await _changed(database, permit)
    assert await _written(database) == []


async def test_a_change_that_is_decided_anew_writes_its_event_once(database: Database) -> None:
    await _execute(database, "insert into server (id, revision) values (gen_random_uuid(), gen_random_uuid())")
    (server,) = await _execute(database, "select revision from server")
    permit = await _permit(DropTable(world.TABLE))
    stale = permit.resolution

    async def decided_anew() -> Any:
        return msgspec.structs.replace(stale, revision=server.revision)

    permit._revalidate = decided_anew
    await _changed(database, permit)
    assert await _written(database) == DROPPED


async def test_a_repeated_transaction_writes_its_events_once(database: Database) -> None:
    """A transaction whose answer was lost is repeated for the same permit."""
    permit = await _permit(DropTable(world.TABLE))
    await _changed(database, permit)
    await _changed(database, permit)
    assert await _written(database) == DROPPED


async def test_a_transaction_of_two_tables_writes_numbered_events_in_order(database: Database) -> None:
    operation = next(
        each.operation
        for each in EXAMPLES
        if type(each.operation) is CommitTransaction and len(each.operation.parts()) > 1
    )
    permit = await _permit(operation)
    permit.pending_audit.add_details(table_id=str(UUID(int=1)))
    await _changed(database, permit)
    rows = await _execute(database, "select key, attributes from events order by sequence")
    assert [row.key for row in rows] == [str(world.TABLE_ID), str(UUID(int=1))]
    assert [(row.attributes["numevents"], row.attributes["sequencenumber"]) for row in rows] == [("2", "0"), ("2", "1")]


async def test_without_a_sink_nothing_is_written_and_the_statement_is_unchanged(databases: list[Database]) -> None:
    statements: list[str] = []

    def heard(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    without = databases[2]
    sqlalchemy_event.listen(without.engine.sync_engine, "before_cursor_execute", heard)
    await _changed(without, await _permit(DropTable(world.TABLE)))
    assert statements and not any("event" in statement for statement in statements)
    assert await _written(databases[0]) == []


async def test_events_of_one_table_have_the_order_of_its_concurrent_commits(databases: list[Database]) -> None:
    """Two processes commit to one table at once. Each transaction learns its place from the row that it locks."""
    rows = Rows()
    async with databases[0].transaction() as connection:
        await rows.insert(connection)
    await _execute(databases[0], "truncate server cascade")
    operation = next(each.operation for each in EXAMPLES if type(each.operation) is CommitTable)
    places: dict[str, int] = {}

    async def commit(number: int) -> None:
        permit = await _permit(operation)
        async with databases[number % 2].change(permit) as connection:
            await connection.execute(text("select pg_sleep(0.001 * :number)"), {"number": number % 3})
            changed = await connection.execute(
                text("update tables set version = version + 1 where id = :id returning version"), {"id": rows.table}
            )
            permit.pending_audit.add_details(place=str(changed.scalar_one()))
        places[str(permit.pending_audit.record.id)] = int(permit.pending_audit.record.detail["place"])

    await asyncio.gather(*(commit(number) for number in range(40)))
    # The first 48 bits of both ids are equal, and so is the request; the audit record tells the place.
    ordered = await _execute(databases[0], "select id from events order by sequence")
    assert len(ordered) == len(places) == 40

    by_event = {event_id(UUID(record), 0): place for record, place in places.items()}
    found = [by_event[row.id] for row in ordered]
    assert found == sorted(found)


async def test_a_vended_credential_has_one_event_that_is_durable_with_its_record(database: Database) -> None:
    """Requests that receive the credential from the cache announce it no second time."""
    issued = IssuedCredential(
        id=uuid7(),
        request_id="first",
        principal=world.ALICE.id,
        assumed_role=None,
        engine=None,
        view_owner=None,
        project_id="project",
        warehouse_id=world.WAREHOUSE_ID,
        kind="table",
        table_id=world.TABLE_ID,
        prefix="s3://lake/orders/",
        level="read",
        provider="s3",
        session_name="lakegate-1",
        policy_digest="0" * 64,
        seconds=900,
        expires_at=datetime.now(UTC) + timedelta(seconds=900),
    )
    records = [(await _permit(DropTable(world.TABLE))).pending_audit.record for _ in range(2)]
    quiet = EventOutbox(source=SOURCE, sinks=OUTBOX.sinks)
    await database.execute_repeatable(*audit_log.batch(records[:1], [issued], quiet))
    assert await _written(database) == []
    talking = EventOutbox(source=SOURCE, sinks=OUTBOX.sinks, credentials_vended=True)
    await database.execute_repeatable(*audit_log.batch(records[:1], [issued], talking))
    again = msgspec.structs.replace(issued, request_id="second")
    await database.execute_repeatable(*audit_log.batch(records[1:], [again, again], talking))
    assert await _written(database) == [("vendCredentials", "kafka"), ("vendCredentials", "nats")]
    (row,) = await _execute(database, "select * from events")
    assert row.key == row.attributes["tabularid"] == str(world.TABLE_ID)
    assert (row.attributes["traceid"], row.attributes["prefix"]) == ("first", str(world.WAREHOUSE_ID))
    assert set(json.loads(row.data)) == {
        "level", "prefix", "provider", "session-name", "engine", "view-owner", "expires-at",
    }  # fmt: skip
    assert await _execute(database, "select count(*) from audit_log") == [(2,)]
