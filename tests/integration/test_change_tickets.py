# SPDX-License-Identifier: Apache-2.0
"""Tickets on a real PostgreSQL: one ticket per statement, one use per approval, no decision by the requester."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import msgspec
import pytest
from sqlalchemy import Select, text

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.change_tickets import ChangeTicket, TicketStatus
from gateway.db.engine.database import Connection, Database
from gateway.db.warehouses import change_tickets
from gateway.db.warehouses.change_tickets import NewTicket
from gateway.features.approvals.change_approval import (
    Approval,
    ChangeApproval,
    ChangePending,
    ChangePendingForbidden,
    ChangeRejected,
    VerifierUnavailableBeforeChange,
)
from gateway.features.approvals.change_proposals import ChangingPermit, Proposal
from gateway.verification.panel import Panel, Seat
from gateway.verification.port import Approved, ChangeKind, Pending, ProposedChange, Rejected, Verdict
from tests.support.kits import kit_of
from tests.support.rows.parts import Parts, Rows

pytestmark = pytest.mark.servers

ADD_COLUMN = {"action": "add-schema", "schema": {"type": "struct", "fields": [{"id": 2, "name": "b"}]}}


class Asked:
    """A verifier that answers what the test sets, and fails if that is None."""

    name = "contract"

    def __init__(self) -> None:
        self.answer: Verdict | None = Pending(("a steward has to look at it",))

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        return True

    async def verify(self, change: ProposedChange) -> Verdict:
        if self.answer is None:
            raise ConnectionError
        return self.answer

    async def close(self) -> None:
        """Do nothing."""


class _Delegate:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection


async def _digest(connection: Connection, id: UUID) -> str:
    found = await connection.execute(text("select digest from change_tickets where id = :id"), {"id": id})
    return str(found.scalar_one())


class World:
    """The rows, an approval with one verifier, and shortcuts."""

    def __init__(self, database: Database, rows: Rows) -> None:
        self.database, self.rows = database, rows
        self.verifier = Asked()
        self.details: dict[str, str] = {}

    def permit(self, user: str = "oidc~ann") -> ChangingPermit:
        return cast(
            ChangingPermit,
            SimpleNamespace(
                actor=SimpleNamespace(id=user),
                operation=SimpleNamespace(is_catalog_mutation=lambda: True),
                pending_audit=SimpleNamespace(add_details=lambda **more: self.details.update(more)),
            ),
        )

    def proposal(self, user: str = "oidc~ann", **changed: Any) -> Proposal:
        change = ProposedChange(
            kind=ChangeKind.COMMIT,
            object_type="table",
            object_id=str(self.rows.table),
            warehouse_id=str(self.rows.warehouses[0]),
            warehouse_name="w0",
            namespace=("sales",),
            name="orders",
            principal=user,
            request_id=str(uuid4()),
            updates=(ADD_COLUMN,),
            before=msgspec.Raw(b'{"current-schema-id":0,"last-column-id":1}'),
        )
        on = ObjectKey(ObjectType.TABLE, str(self.rows.table))
        return Proposal(msgspec.structs.replace(change, **changed), on)

    async def ask(self, *proposals: Proposal, user: str = "oidc~ann", lifetime: float = 3600.0) -> Approval:
        panel = Panel([Seat(verifier=self.verifier, timeout=10.0)])
        approval = ChangeApproval(kit_of(database=self.database, panel=panel, ticket_lifetime=lifetime))
        return await approval.require(self.permit(user), proposals or [self.proposal(user)])

    async def pending(self, *proposals: Proposal, user: str = "oidc~ann", lifetime: float = 3600.0) -> UUID:
        """Ask, and return the id of the ticket in the error."""
        with pytest.raises((ChangePending, ChangePendingForbidden)) as raised:
            await self.ask(*proposals, user=user, lifetime=lifetime)
        id = self.details["change_tickets"]
        assert id in raised.value.message
        assert "Run the same statement again" in raised.value.message
        assert isinstance(self.verifier.answer, Pending)
        assert f"contract: {self.verifier.answer.reasons[0]}" in raised.value.message
        return UUID(id)

    async def decide(self, id: UUID, *, by: str = "oidc~ben", status: TicketStatus = TicketStatus.APPROVED) -> bool:
        async with self.database.transaction() as connection:
            return await change_tickets.decide(
                connection, id, status=status, by=by, comment="not before the release", lifetime=3600.0
            )

    async def ticket(self, id: UUID) -> ChangeTicket:
        async with self.database.read() as connection:
            found = await change_tickets.get(connection, self.rows.warehouses[0], id)
        assert found is not None
        return found

    async def use(self, approval: Approval, *, hold: asyncio.Event | None = None) -> None:
        async with self.database.transaction() as connection:
            await approval.use(connection)
            if hold is not None:
                await hold.wait()

    async def expire(self, id: UUID) -> None:
        statement = "update change_tickets set expires_at = clock_timestamp() - interval '1 second' where id = :id"
        async with self.database.transaction() as connection:
            await connection.execute(text(statement), {"id": id})


@pytest.fixture
async def world(parts: Parts) -> AsyncIterator[World]:
    database, rows = Database(parts.database_url, pool_size=5, acquire_timeout=10), Rows()
    async with database.transaction() as connection:
        await rows.insert(connection)
    yield World(database, rows)
    await database.close()


async def test_same_statement_run_again_waits_on_the_same_ticket(world: World) -> None:
    assert await world.pending() == await world.pending()


async def test_concurrent_runs_of_one_statement_open_one_ticket(world: World) -> None:
    results = await asyncio.gather(*(world.ask() for _ in range(4)), return_exceptions=True)
    assert {type(each) for each in results} == {ChangePending}
    async with world.database.read() as connection:
        page = await change_tickets.page(connection, world.rows.warehouses[0], status=None, after=None, limit=10)
    assert len(page) == 1


async def test_ticket_of_another_principal_does_not_let_a_change_through(world: World) -> None:
    ticket = await world.pending()
    assert await world.decide(ticket)
    assert await world.pending(user="oidc~cid") != ticket


async def test_change_of_another_base_schema_needs_an_approval_of_its_own(world: World) -> None:
    assert await world.decide(await world.pending())
    moved_on = world.proposal(before=msgspec.Raw(b'{"current-schema-id":1,"last-column-id":2}'))
    await world.pending(moved_on)


async def test_approved_change_goes_through_once(world: World) -> None:
    ticket = await world.pending()
    assert await world.decide(ticket)
    approval = await world.ask()
    await world.use(approval)
    assert (await world.ticket(ticket)).status is TicketStatus.USED
    with pytest.raises(ChangePending, match="another run of the statement has used it"):
        await world.use(approval)
    assert await world.pending() != ticket


async def test_two_concurrent_runs_cannot_use_one_approval(world: World) -> None:
    assert await world.decide(await world.pending())
    one, other = await world.ask(), await world.ask()
    commit = asyncio.Event()
    first = asyncio.create_task(world.use(one, hold=commit))
    second = asyncio.create_task(world.use(other))
    await asyncio.sleep(0)
    commit.set()
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["ChangePending", "NoneType"]


async def test_run_that_asks_while_another_one_uses_the_approval_gets_a_ticket(world: World) -> None:
    id = await world.pending()
    assert await world.decide(id)
    approval = await world.ask()

    class Overtaken(_Delegate):
        """A connection that reads after another transaction has used the ticket."""

        async def execute(self, statement: Any, *values: Any) -> Any:
            if isinstance(statement, Select):
                await world.use(approval)
            return await self.connection.execute(statement, *values)

    async with world.database.transaction() as connection:
        new = NewTicket(
            digest=await _digest(connection, id),
            warehouse_id=world.rows.warehouses[0],
            on=world.proposal().on,
            name="orders",
            kind="commit",
            principal="oidc~ann",
            reasons=["contract: a steward has to look at it"],
            change=b"{}",
        )
        opened = await change_tickets.open_ticket(cast(Any, Overtaken(connection)), new, lifetime=60.0)
    assert (opened.id, opened.status) == (id, TicketStatus.APPROVED)


async def test_failed_change_leaves_its_approval_for_the_next_run(world: World) -> None:
    ticket = await world.pending()
    assert await world.decide(ticket)
    approval = await world.ask()
    with pytest.raises(RuntimeError):
        async with world.database.transaction() as connection:
            await approval.use(connection)
            raise RuntimeError
    assert (await world.ticket(ticket)).status is TicketStatus.APPROVED


async def test_requester_cannot_decide_and_nobody_decides_twice(world: World) -> None:
    ticket = await world.pending()
    assert not await world.decide(ticket, by="oidc~ann")
    assert await world.decide(ticket)
    assert not await world.decide(ticket, status=TicketStatus.REJECTED)
    assert (await world.ticket(ticket)).status is TicketStatus.APPROVED


async def test_rejection_by_an_approver_shows_its_comment(world: World) -> None:
    assert await world.decide(await world.pending(), status=TicketStatus.REJECTED)
    with pytest.raises(ChangeRejected, match="not before the release"):
        await world.ask()


async def test_expired_approval_holds_no_longer(world: World) -> None:
    ticket = await world.pending()
    assert await world.decide(ticket)
    approval = await world.ask()
    await world.expire(ticket)
    with pytest.raises(ChangePending, match="has expired"):
        await world.use(approval)
    assert (await world.ticket(ticket)).status is TicketStatus.LAPSED
    assert await world.pending() != ticket


async def test_approval_lapses_when_a_verifier_asks_something_else(world: World) -> None:
    ticket = await world.pending()
    assert await world.decide(ticket)
    world.verifier.answer = Pending(("column b holds personal data",))
    assert await world.pending() != ticket
    assert (await world.ticket(ticket)).status is TicketStatus.LAPSED


async def test_verifier_that_rejects_overrules_an_approval(world: World) -> None:
    assert await world.decide(await world.pending())
    world.verifier.answer = Rejected(("column a is protected",))
    with pytest.raises(ChangeRejected, match=r"commit of the table sales\.orders: contract: column a is protected"):
        await world.ask()
    world.verifier.answer = Approved()
    assert (await world.ask()).tickets == ()


async def test_silent_verifier_refuses_with_429_and_is_no_approval(world: World) -> None:
    assert await world.decide(await world.pending())
    world.verifier.answer = None
    with pytest.raises(VerifierUnavailableBeforeChange) as raised:
        await world.ask()
    assert (raised.value.code, raised.value.retry_after_s) == (429, 5)


async def test_transaction_waits_for_the_approval_of_all_its_tables(world: World) -> None:
    both = (world.proposal(), world.proposal(name="lines", object_id=str(world.rows.view)))
    with pytest.raises(ChangePending):
        await world.ask(*both)
    first, second = (UUID(id) for id in world.details["change_tickets"].split(","))
    assert await world.decide(first)
    with pytest.raises(ChangePending) as raised:
        await world.ask(*both)
    assert str(second) in raised.value.message
    assert str(first) not in raised.value.message
    assert await world.decide(second)
    await world.use(await world.ask(*both))
    assert {(await world.ticket(id)).status for id in (first, second)} == {TicketStatus.USED}


async def test_creation_waits_with_403_because_clients_take_409_for_an_existing_table(world: World) -> None:
    created = world.proposal(kind=ChangeKind.CREATE, object_id=None, before=None)
    with pytest.raises(ChangePendingForbidden) as raised:
        await world.ask(created)
    assert raised.value.code == 403


async def test_change_with_a_nul_character_gets_a_ticket(world: World) -> None:
    await world.pending(world.proposal(updates=({"action": "set-properties", "updates": {"a": "\0"}},)))


async def test_sweep_deletes_tickets_long_after_their_end(world: World) -> None:
    kept, old = await world.pending(), await world.pending(user="oidc~cid")
    async with world.database.transaction() as connection:
        await connection.execute(
            text("update change_tickets set expires_at = expires_at - interval '91 days' where id = :id"), {"id": old}
        )
        await change_tickets.sweep(connection, older_than_days=90, limit=10)
        page = await change_tickets.page(connection, world.rows.warehouses[0], status=None, after=None, limit=10)
    assert [each.id for each in page] == [kept]
