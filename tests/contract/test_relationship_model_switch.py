# SPDX-License-Identifier: Apache-2.0
"""Changes of the relationship model in a running system: recording, comparison, switch, and rollback."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import subprocess
import threading
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock, patch

import httpx
import pytest
from sqlalchemy import text

from gateway.access.events.unrequested_events import MODEL_ACTIVATED
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Connection, Database
from gateway.db.engine.event_outbox import EventOutbox
from gateway.db.warehouses import models as rows
from gateway.db.warehouses.models import SwitchedMeanwhile
from gateway.features.server.model_changes import Models, NoSuchModel, OpenFgaAddress, TuplesNotWritten, TupleStep
from gateway.fga.compiled import compiled_model, content_hash, model_version
from gateway.fga.model import ModelNotReady, push_model
from gateway.settings import Secret
from gateway.settings.postgres import asyncpg_url
from lakegate.local.ready import Ready
from tests.support.lakegate_command import run_lakegate
from tests.support.stack.lifecycle import until
from tests.support.stack.world import Person, Table, World, error_of

pytestmark = pytest.mark.servers

STORE = "lakegate"


class EndedInTheMiddle(Exception):
    """Interrupts a migration in the middle."""


@asynccontextmanager
async def connected(ready: Ready, **more: Any) -> AsyncIterator[tuple[Models, Database]]:
    """Return the commands' connection to the stack's own PostgreSQL and OpenFGA."""
    database = Database(asyncpg_url(Secret(ready.postgres)), pool_size=2, acquire_timeout=10)
    try:
        yield Models(database, OpenFgaAddress(ready.openfga.url, ready.openfga.token, STORE, 10.0), **more), database
    finally:
        await database.close()


def write_model(ready: Ready, model: dict[str, Any]) -> str:
    """Write a model to OpenFGA without the gateway; return its id."""
    answer = httpx.post(
        f"{ready.openfga.url}/stores/{ready.openfga.store_id}/authorization-models",
        headers={"Authorization": f"Bearer {ready.openfga.token}"},
        json=model,
        timeout=60,
        trust_env=False,
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["authorization_model_id"])


def changed(*, without: tuple[str, str] | None = None, **relations: dict[str, Any]) -> dict[str, Any]:
    """Return the model with other definitions of some relations of tables, or without a relation of a type."""
    model = copy.deepcopy(compiled_model())
    types = {each["type"]: each for each in model["type_definitions"]}
    types["table"]["relations"] |= relations
    if without is not None:
        del types[without[0]]["relations"][without[1]]
    return model


async def recorded(ready: Ready, model: dict[str, Any], version: str) -> str:
    """Write a model and record it; return its id."""
    model_id = await asyncio.to_thread(write_model, ready, model)
    async with connected(ready) as (_, database), database.transaction() as connection:
        await rows.record(
            connection,
            model_id=model_id,
            store_id=ready.openfga.store_id,
            version=version,
            content_hash=content_hash(model),
            by="a test",
        )
    return model_id


async def serving(ready: Ready) -> str:
    async with connected(ready) as (models, _):
        active, _ = await models.known()
        assert active is not None
        return active.model_id


@pytest.fixture
def ours(stack: Ready) -> Iterator[str]:
    """Yield the id of the serving model; switch back to it afterwards."""
    before = asyncio.run(serving(stack))
    yield before

    async def back() -> None:
        async with connected(stack) as (models, _):
            await models.migrate(by="a test", target=before)

    asyncio.run(back())


@pytest.fixture
def reader(world: World, ns: str) -> Iterator[tuple[Person, Table]]:
    """Create a user that may only describe one table."""
    table = world.table(ns)
    world.strip(world.contractor)
    world.grant("describe", world.contractor, "table", table.uuid)
    yield world.contractor, table
    world.strip(world.contractor)


def loads(person: Person, table: Table) -> int:
    return person.get(table.path).status_code


# `describe` alone gives no access to a table, only the relations above.
LESS = changed(
    describes={"tupleToUserset": {"tupleset": {"relation": "parent"}, "computedUserset": {"relation": "describes"}}}
)


@pytest.mark.threat("LG-DIS-13")
def test_recorded_model_decides_every_request_only_after_the_switch(
    stack: Ready, ours: str, reader: tuple[Person, Table]
) -> None:
    async def change() -> tuple[int, tuple[str, ...], list[int], int]:
        less = await recorded(stack, LESS, "test-less")
        async with connected(stack) as (models, _):
            await asyncio.sleep(1.5)
            before = await asyncio.to_thread(loads, *reader)
            compared = await models.compare(less, limit=50)
            assert await serving(stack) == ours, "a comparison must not switch the model"
            assert await models.migrate(by="a test", target=less) == less
            after = [await asyncio.to_thread(loads, *reader) for _ in range(20)]
            assert await models.rollback(by="a test") == ours
            return before, compared.denied_after, after, await asyncio.to_thread(loads, *reader)

    before, lost, after, again = asyncio.run(change())
    person, table = reader
    assert before == 200
    assert f"user {person.id}: can_get_metadata on table {table.uuid}" in lost, (
        "the comparison must list this lost right"
    )
    assert set(after) == {404}, "no request after the acknowledged switch may use the old model"
    assert again == 200


def test_switch_to_an_equal_model_refuses_no_request(
    world: World, stack: Ready, ours: str, reader: tuple[Person, Table]
) -> None:
    twin = asyncio.run(recorded(stack, compiled_model(), "test-twin"))
    seen: list[int] = []
    over = threading.Event()

    def keep_loading() -> None:
        while not over.is_set():
            seen.append(loads(*reader))

    loader = threading.Thread(target=keep_loading)
    loader.start()

    async def switch() -> None:
        async with connected(stack) as (models, _):
            await models.migrate(by="a test", target=twin)

    try:
        until(lambda: len(seen) > 3, "no table was loaded before the deadline")
        asyncio.run(switch())
        so_far = len(seen)
        until(lambda: len(seen) > so_far + 3, "no table was loaded before the deadline")
    finally:
        over.set()
        loader.join(60)
    assert so_far > 4, "no load ran during the switch"
    assert set(seen) == {200}


def test_a_switch_gives_the_server_a_fresh_revision(world: World, stack: Ready, ours: str) -> None:
    async def switch() -> None:
        twin = await recorded(stack, compiled_model(), "test-revision")
        async with connected(stack) as (models, _):
            await models.migrate(by="a test", target=twin)

    before = world.sql("select revision from server")
    asyncio.run(switch())
    assert world.sql("select revision from server") != before


def test_model_without_a_demanded_relation_cannot_be_switched_to(stack: Ready, ours: str) -> None:
    async def refused() -> None:
        lame = await recorded(stack, changed(without=("table", "can_drop")), "test-lame")
        async with connected(stack) as (models, _):
            with pytest.raises(ModelNotReady, match="table#can_drop"):
                await models.migrate(by="a test", target=lame)
            with pytest.raises(NoSuchModel):
                await models.migrate(by="a test", target="01ARZ3NDEKTSV4RRFFQ69G5FAV")

    asyncio.run(refused())
    assert asyncio.run(serving(stack)) == ours


@pytest.mark.threat("LG-DIS-13")
def test_process_refuses_decisions_by_an_incomplete_model(
    stack: Ready, ours: str, reader: tuple[Person, Table]
) -> None:
    """A later version of the gateway could switch the model while this process still runs."""

    async def switch(to: str, expected: str) -> None:
        async with connected(stack) as (_, database), database.transaction() as connection:
            await rows.switch(connection, to=to, expected=expected, by="a test")

    lame = asyncio.run(recorded(stack, changed(without=("table", "can_drop")), "test-forced"))

    def in_all_processes(status: int) -> bool:
        return {loads(*reader) for _ in range(8)} == {status}

    asyncio.run(switch(lame, ours))
    try:
        until(lambda: in_all_processes(503), "a process still decides by the former model")
        answer = reader[0].get(reader[1].path)
        assert error_of(answer)["code"] == 503
        assert "retry-after" in answer.headers
    finally:
        asyncio.run(switch(ours, lame))
    until(lambda: in_all_processes(200), "not every process decides by the serving model")


def test_one_of_two_concurrent_switches_succeeds(stack: Ready, ours: str) -> None:
    async def both() -> tuple[None | BaseException, ...]:
        first = await recorded(stack, compiled_model(), "test-first")
        second = await recorded(stack, compiled_model(), "test-second")

        async def one(to: str) -> None:
            async with connected(stack) as (_, database), database.transaction() as connection:
                await rows.switch(connection, to=to, expected=ours, by="a test")

        return await asyncio.gather(one(first), one(second), return_exceptions=True)

    outcomes = asyncio.run(both())
    assert sorted(type(each).__name__ for each in outcomes) == ["NoneType", SwitchedMeanwhile.__name__]


def test_interrupted_migration_resumes_and_writes_tuples_before_the_switch(
    world: World, stack: Ready, ours: str, reader: tuple[Person, Table]
) -> None:
    key = TupleKey(Principal(PrincipalType.USER, reader[0].id), "describe", ObjectKey(ObjectType.TABLE, reader[1].uuid))
    unmatched = TupleKey(Principal(PrincipalType.USER, "oidc~ghost"), "describe", key.object)
    requested: list[str | None] = []
    interrupted = [True]

    async def keys(connection: Connection, after: str | None, limit: int) -> tuple[Sequence[TupleKey], str | None]:
        requested.append(after)
        if after == "two" and interrupted:
            raise EndedInTheMiddle
        following = {None: "one", "one": "two", "two": None}[after]
        return ([key, unmatched] if after is None else []), following

    steps = {"test-steps": [TupleStep("a step of the test", keys)]}

    async def migrate() -> None:
        twin = await recorded(stack, compiled_model(), "test-steps")
        # As with a model that needs a new tuple: the row exists, the tuple does not.
        gone = {
            "tuple_keys": [
                {"user": f"user:{key.subject.id}", "relation": "describe", "object": f"table:{key.object.id}"}
            ]
        }
        httpx.post(
            f"{stack.openfga.url}/stores/{stack.openfga.store_id}/write",
            headers={"Authorization": f"Bearer {stack.openfga.token}"},
            json={"deletes": gone | {"on_missing": "ignore"}},
            trust_env=False,
            timeout=60,
        ).raise_for_status()
        async with connected(stack, steps=steps) as (models, _):
            with pytest.raises(EndedInTheMiddle):
                await models.migrate(by="a test", target=twin)
            assert await serving(stack) == ours, "an unfinished migration must not switch the model"
            assert requested == [None, "one", "two"]
            interrupted.clear()
            await models.migrate(by="a test", target=twin)
            assert requested == [None, "one", "two", "two"]
            await models.migrate(by="a test", target=twin)
            assert requested == [None, "one", "two", "two"], "completed steps must not run again"

    asyncio.run(migrate())
    on_table = world.tuples(f"table:{key.object.id}")
    assert (f"user:{key.subject.id}", "describe") in on_table
    assert ("user:oidc~ghost", "describe") not in on_table, "a tuple that no row requires must not be written"
    assert loads(*reader) == 200


def test_partial_migration_writes_no_tuples_to_an_unused_store(stack: Ready, ours: str) -> None:
    """Reconciliation recognises a new store by its emptiness: otherwise every missing tuple would count as revoked."""
    requested: list[str | None] = []

    async def keys(connection: Connection, after: str | None, limit: int) -> tuple[Sequence[TupleKey], str | None]:
        requested.append(after)
        return [], None

    async def migrate() -> None:
        at = stack.openfga
        elsewhere = await push_model(at.url, at.token, f"elsewhere-{uuid.uuid4().hex}", ca_bundle=None)
        assert elsewhere.store_id != at.store_id
        async with connected(stack, steps={"test-elsewhere": [TupleStep("a step of the test", keys)]}) as (models, db):
            async with db.transaction() as connection:
                await rows.record(
                    connection,
                    model_id=elsewhere.model_id,
                    store_id=elsewhere.store_id,
                    version="test-elsewhere",
                    content_hash=content_hash(compiled_model()),
                    by="a test",
                )
            switched = AsyncMock()
            with patch.object(models, "_switch", switched):
                await models.migrate(by="a test", target=elsewhere.model_id)
            switched.assert_awaited_once()
            async with db.transaction() as connection:
                gone = text("delete from relationship_models where model_id = :id")
                await connection.execute(gone, {"id": elsewhere.model_id})

    asyncio.run(migrate())
    assert requested == []


def test_a_step_whose_tuples_openfga_refuses_stops_the_switch(
    world: World, stack: Ready, ours: str, reader: tuple[Person, Table]
) -> None:
    key = TupleKey(Principal(PrincipalType.USER, reader[0].id), "describe", ObjectKey(ObjectType.TABLE, reader[1].uuid))

    async def keys(connection: Connection, after: str | None, limit: int) -> tuple[Sequence[TupleKey], str | None]:
        return [key], None

    async def refused() -> None:
        # `describe` of this model cannot be granted to any principal.
        no_describe = copy.deepcopy(compiled_model())
        [table] = [each for each in no_describe["type_definitions"] if each["type"] == "table"]
        table["relations"]["describe"] = {"computedUserset": {"relation": "select"}}
        del table["metadata"]["relations"]["describe"]
        odd = await recorded(stack, no_describe, "test-refused")
        steps = {"test-refused": [TupleStep("a step that fails", keys)]}
        async with connected(stack, steps=steps) as (models, _):
            with pytest.raises(TuplesNotWritten, match="a step that fails"):
                await models.migrate(by="a test", target=odd)

    asyncio.run(refused())
    assert asyncio.run(serving(stack)) == ours
    # The key waits an hour for its retry, which is longer than this stack lives.
    assert world.sql("delete from outbox where object_id = $1 returning 1", key.object.id) != []


def _lakegate(ready: Ready, *arguments: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("LAKEGATE__")}
    settings = {
        "LAKEGATE__PG_DATABASE_URL_WRITE": ready.postgres,
        "LAKEGATE__OPENFGA__ENDPOINT": ready.openfga.url,
        "LAKEGATE__OPENFGA__API_KEY": ready.openfga.token,
    }
    return run_lakegate(*arguments, environment=plain | settings, timeout=500)


@pytest.mark.timeout(600)  # Both models are compared on each of the newest grants, one after the other.
def test_commands_push_compare_switch_and_roll_back(stack: Ready, ours: str) -> None:
    pushed = _lakegate(stack, "model", "push", "--by", "the operator")
    assert pushed.returncode == 0, pushed.stderr
    dry = _lakegate(stack, "model", "migrate", "--to", ours, "--dry-run", "--newest", "15")
    assert dry.returncode == 0, dry.stderr
    assert "0 gained, 0 lost" in dry.stdout
    twin = asyncio.run(recorded(stack, compiled_model(), "test-verbs"))
    compared = _lakegate(stack, "model", "migrate", "--to", twin, "--dry-run", "--newest", "15")
    assert "0 gained, 0 lost" in compared.stdout
    assert not compared.stdout.startswith("0 questions")
    assert asyncio.run(serving(stack)) == ours
    assert (
        f"{twin} is active"
        in _lakegate(stack, "model", "migrate", "--to", twin, "--by", "the operator", "--newest", "1").stdout
    )
    listed = _lakegate(stack, "model", "status").stdout.splitlines()
    assert [line.split()[2] for line in listed if line.startswith("*")] == [twin]
    assert f"{ours} is active" in _lakegate(stack, "model", "rollback").stdout
    unknown = _lakegate(stack, "model", "migrate", "--to", "nothing")
    assert unknown.returncode == 1
    assert "No model nothing is recorded" in unknown.stderr and "Traceback" not in unknown.stderr


def test_a_recorded_model_and_each_switch_are_announced(stack: Ready, ours: str) -> None:
    """A consumer that mirrors rights must know that another model decides about the same grants."""

    async def run() -> tuple[str, list[Any]]:
        outbox = EventOutbox(source="uri:iceberg-catalog-service:lake.example", sinks=("tests",))
        openfga = OpenFgaAddress(stack.openfga.url, stack.openfga.token, STORE, 10.0)
        database = Database(asyncpg_url(Secret(stack.postgres)), pool_size=2, acquire_timeout=10, event_outbox=outbox)
        try:
            models = Models(database, openfga)
            await models.push(by="ops")
            other = await recorded(stack, LESS, "announced")
            await models.migrate(by="ops", target=other)
            await models.migrate(by="ops", target=other)
            await models.rollback(by="ops")
            async with database.transaction() as connection:
                written = text("select * from events where attributes ->> 'objecttype' = 'authorization_model'")
                found = (await connection.execute(written)).all()
                await connection.execute(text("delete from events"))
            return other, [each for each in found if each.type == MODEL_ACTIVATED]
        finally:
            await database.close()

    other, events = asyncio.run(run())
    assert [each.key for each in events] == [other, ours]
    assert [json.loads(each.data)["previous-id"] for each in events] == [ours, other]
    assert json.loads(events[0].data)["version"] == "announced"
    assert {json.loads(each.attributes["actor"])["name"] for each in events} == {"ops"}


def test_the_model_of_this_version_is_recorded_with_its_hash(world: World, ours: str) -> None:
    [row] = world.sql("select * from relationship_models where model_id = $1", ours)
    assert (row["version"], row["content_hash"]) == (model_version(), content_hash(compiled_model()))
