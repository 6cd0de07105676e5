# SPDX-License-Identifier: Apache-2.0
"""A creator reads its own writes while OpenFGA is slow, on a real PostgreSQL and a real OpenFGA."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx
import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey
from gateway.access.nouns.relations import Can
from gateway.access.ports import Question
from gateway.access.tuples import Principal, TupleKey
from gateway.db.engine.database import Database
from gateway.db.grants import grants
from gateway.db.tuples import outbox, ownership
from gateway.db.tuples.outbox import Pending
from gateway.db.tuples.undelivered import PendingCreations
from gateway.fga.client import FgaClient
from gateway.fga.pending_checks import CreationAwareRelationships
from gateway.fga.relationships import FgaRelationships, to_wire
from lakegate.local.ready import Ready
from tests.support.rows.parts import HELD, Parts, Proxy, Rows, delivery, store
from tests.support.servers.toxic import second_gateway

pytestmark = pytest.mark.servers

NEW = ("inner", "table")


@dataclass
class Rig:
    """Rows of which OpenFGA has all edges, except those of the new namespace `inner` and of its new table."""

    database: Database
    client: FgaClient
    rows: Rows

    def above(self, name: str) -> list[ObjectKey]:
        path = ["project", "warehouse", "outer", "inner"]
        return [self.rows.objects[each] for each in path[: path.index("inner") + (name == "table")]]

    async def create(self, name: str, owner: Principal) -> list[Pending]:
        """Record the creation of an object without its delivery."""
        async with self.database.transaction() as connection:
            above = self.above(name)
            return await ownership.record_new(
                connection,
                Actor.user(owner.id),
                self.rows.objects[name],
                above[-1],
                above=above,
                warehouse_id=self.rows.warehouses[0],
            )

    async def pending(self, name: str) -> set[tuple[str, ObjectKey]]:
        found = await PendingCreations(self.database).pending([self.rows.objects[name]])
        return {(key.relation, key.object) for key in found}

    async def ask(self, who: Principal, *questions: tuple[Can, str]) -> list[bool]:
        plain = FgaRelationships(self.client)
        asking = CreationAwareRelationships(plain, plain, PendingCreations(self.database))
        asked = [Question(can, self.rows.objects[name]) for can, name in questions]
        return await asking.check(Actor.user(who.id), asked, now=datetime.now(UTC))

    def of(self, *names: str) -> set[tuple[str, ObjectKey]]:
        return {(relation, self.rows.objects[name]) for name in names for relation in ("parent", "ownership")}


@pytest.fixture
async def rig(parts: Parts) -> AsyncIterator[Rig]:
    rows = Rows()
    database = Database(parts.database_url, pool_size=3, acquire_timeout=30)
    async with store(parts) as client:
        async with database.transaction() as connection:
            await rows.insert(connection)
        new = {rows.objects[name] for name in NEW}
        await client.write([to_wire(edge) for edge in rows.edges if edge.object not in new])
        yield Rig(database, client, rows)
    await database.close()


ON_TABLE: Sequence[tuple[Can, str]] = ((Can.GET_METADATA, "table"), (Can.COMMIT, "table"), (Can.CREATE_TABLE, "inner"))


async def test_a_creator_uses_new_objects_before_openfga_has_their_tuples(rig: Rig) -> None:
    ann, ben = rig.rows.ann, rig.rows.ben
    made = [*await rig.create("inner", ann), *await rig.create("table", ann)]
    assert await rig.pending("table") == rig.of("inner", "table")
    assert await rig.pending("inner") == rig.of("inner")
    assert await rig.ask(ann, *ON_TABLE) == [True, True, True]
    assert await rig.ask(ben, *ON_TABLE) == [False, False, False]
    await delivery(rig.database, rig.client).deliver(made)
    assert await rig.pending("table") == set()
    assert await rig.ask(ann, *ON_TABLE) == [True, True, True]


async def test_a_revoked_creation_is_not_sent(rig: Rig) -> None:
    ann, table = rig.rows.ann, rig.rows.objects["table"]
    await rig.create("inner", rig.rows.ben)
    await rig.create("table", ann)
    assert await rig.ask(ann, (Can.COMMIT, "table")) == [True]
    async with rig.database.transaction() as connection:
        await grants.revoke(connection, privilege=Privilege.OWNERSHIP, principal=ann, on=table, by="oidc~root")
    assert await rig.pending("table") == rig.of("inner", "table") - {("ownership", table)}, "no row requires it"
    assert await rig.ask(ann, (Can.COMMIT, "table")) == [False]
    async with rig.database.transaction() as connection:
        key = TupleKey(ann, "ownership", table)
        await outbox.enqueue(connection, [key], takes_away=True, warehouse_id=rig.rows.warehouses[0])
    assert await rig.pending("table") == rig.of("inner")


async def test_a_moved_object_and_other_grants_are_not_sent(rig: Rig) -> None:
    ann, of = rig.rows.ann, rig.rows.objects
    async with rig.database.transaction() as connection:
        await grants.grant(connection, privilege=Privilege.OWNERSHIP, principal=ann, on=of["view"], by="oidc~root")
        key = TupleKey(ann, "ownership", of["view"])
        await outbox.enqueue(connection, [key], takes_away=False, warehouse_id=rig.rows.warehouses[0])
    assert await rig.pending("view") == set(), "a grant is no creation"
    await rig.create("table", ann)
    assert await rig.pending("table") == rig.of("table")
    async with rig.database.transaction() as connection:
        above = rig.above("table")
        await ownership.record_moved(
            connection,
            of["table"],
            of["outer"],
            of["inner"],
            above_before=above[:-1],
            above_after=above,
            warehouse_id=rig.rows.warehouses[0],
        )
    assert await rig.pending("table") == set()


async def test_an_absent_object_has_no_creation(rig: Rig) -> None:
    absent = ObjectKey(rig.rows.objects["table"].type, str(uuid4()))
    assert await PendingCreations(rig.database).pending([absent]) == {}


@pytest.mark.timeout(300)
async def test_the_next_request_of_a_creator_succeeds_while_openfga_is_slow(stack: Ready, tmp_path: Path) -> None:
    """A gateway whose writes to OpenFGA are held; the other gateway of the stack cannot deliver either."""
    admin, carol = ({"Authorization": f"Bearer {stack.users[name].token}"} for name in ("admin", "carol"))
    proxy = Proxy(stack.openfga.url)
    schema = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
    rows = await asyncpg.connect(stack.postgres)
    async with proxy.serving() as endpoint, AsyncExitStack() as within:
        with ExitStack() as held:
            options = {"OPENFGA__ENDPOINT": endpoint, "OPENFGA__TIMEOUT": "1"}
            gateway = second_gateway(stack, tmp_path / "log", **options)
            base, _ = await asyncio.to_thread(held.enter_context, gateway)
            client = await within.enter_async_context(httpx.AsyncClient(base_url=base, timeout=60, trust_env=False))
            config = (await client.get("/catalog/v1/config?warehouse=demo", headers=admin)).raise_for_status().json()
            prefix = config["defaults"]["prefix"]
            grant = {"writes": [{"type": "create", "user": stack.users["carol"].id}]}
            url = f"/management/v1/permissions/warehouse/{prefix}/assignments"
            (await client.post(url, json=grant, headers=admin)).raise_for_status()
            proxy.plan = lambda _: HELD
            space = f"new{uuid4().hex[:8]}"
            spaces = f"/catalog/v1/{prefix}/namespaces"

            async def send(method: str, path: str, body: object = None) -> int:
                await rows.execute("update outbox set not_before = clock_timestamp() + interval '1 hour'")
                answer = await client.request(method, path, json=body, headers=carol)
                await rows.execute("update outbox set not_before = clock_timestamp() + interval '1 hour'")
                return answer.status_code

            assert await send("POST", spaces, {"namespace": [space]}) == 200
            assert await send("POST", f"{spaces}/{space}/properties", {"updates": {"a": "b"}}) == 200
            assert await send("POST", f"{spaces}/{space}/tables", {"name": "t", "schema": schema}) == 200
            assert await send("HEAD", f"{spaces}/{space}/tables/t") == 204
            assert await send("GET", f"{spaces}/{space}/tables/t") == 200
            commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
            assert await send("POST", f"{spaces}/{space}/tables/t", commit) == 200
            assert await rows.fetchval("select count(*) from outbox") > 0, "the creations are still pending"
            proxy.plan = lambda _: 0.0
            proxy.release()
            await rows.execute("update outbox set not_before = clock_timestamp()")
            await rows.close()
