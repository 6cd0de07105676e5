# SPDX-License-Identifier: Apache-2.0
"""Task workers on a real PostgreSQL: failing tasks, shutdown, killed workers, and lost database connections."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.db.engine.database import Database
from gateway.db.migrate import run_migrations
from gateway.db.tasks import task_lists, task_queues, task_runs, tasks
from gateway.db.tasks.task_queues import QueueSettings
from gateway.db.tasks.task_runs import Task
from gateway.db.tasks.tasks import Payload, PurgedLocation, Queue, Status
from gateway.features.tasks.worker import Handler, Worker, report
from gateway.storage.errors import StorageUnavailable
from gateway.worker_processes import die_with_parent
from lakegate.local import account, postgres, ready
from lakegate.local.children import Children
from tests.support.rows.parts import Parts, Rows, free_port

pytestmark = pytest.mark.servers


class RecordingObserver:
    """Metrics observer that records the outcomes."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[str, str]] = []
        self.counts: Mapping[tuple[str, str], int] = {}

    def task_attempted(self, queue: str, outcome: str, seconds: float) -> None:
        assert seconds >= 0
        self.outcomes.append((queue, outcome))

    def tasks_counted(self, counts: Mapping[tuple[str, str], int]) -> None:
        self.counts = counts


class WorkerStack:
    """A database with a few rows and tasks."""

    def __init__(self, database: Database, rows: Rows) -> None:
        self.database = database
        self.rows = rows
        self.observer = RecordingObserver()

    async def sql(self, statement: str, **values: Any) -> list[Any]:
        async with self.database.transaction() as connection:
            result = await connection.execute(text(statement), values)
            return list(result.all()) if result.returns_rows else []

    async def add(self, queue: Queue = Queue.TABULAR_PURGE, payload: Payload | None = None) -> UUID:
        async with self.database.transaction() as connection:
            added = await tasks.add(
                connection, queue, warehouse_id=self.rows.warehouses[0], entity_id=uuid4(), payload=payload
            )
        assert added is not None
        return added

    async def row(self, id: UUID) -> Any:
        return (await self.sql("select * from tasks where id = :id", id=id))[0]

    async def log(self, id: UUID) -> list[Any]:
        return await self.sql("select * from task_log where task_id = :id order by attempt", id=id)

    async def done(self, task: Task) -> None:
        async with self.database.transaction() as connection:
            await task_runs.finish(connection, task)

    def worker(self, handlers: Mapping[Queue, Handler], **named: Any) -> Worker:
        return Worker(self.database, handlers, observer=self.observer, every=0.05, **named)


@pytest.fixture
async def stack(parts: Parts) -> AsyncIterator[WorkerStack]:
    async with opened(parts.database_url) as made:
        yield made


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[WorkerStack]:
    database, rows = Database(url, pool_size=6, acquire_timeout=30.0), Rows()
    async with database.transaction() as connection:
        await rows.insert(connection)
    yield WorkerStack(database, rows)
    await database.close()


@asynccontextmanager
async def working(worker: Worker) -> AsyncIterator[None]:
    running = asyncio.create_task(worker.run())
    yield
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def until(true: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not await true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def test_failing_queue_does_not_block_slots_of_other_queues(stack: WorkerStack) -> None:
    """The failing task gets the status `failed` after five attempts, each with an entry in its log."""
    at_once, most = 0, 0
    two = asyncio.Event()

    async def purge(task: Task) -> None:
        nonlocal at_once, most
        if task.stored_payload:
            raise ZeroDivisionError("of the test")
        at_once += 1
        most = max(most, at_once)
        if at_once == 2:
            two.set()
        await asyncio.wait_for(two.wait(), 60)
        await asyncio.sleep(0.1)
        at_once -= 1
        await stack.done(task)

    async def quick(task: Task) -> None:
        await stack.done(task)

    broken = await stack.add(payload=PurgedLocation("s3://broken/", "broken"))
    others = [await stack.add() for _ in range(5)]
    swift = await stack.add(Queue.SOFT_DELETION)

    async def all_over() -> bool:
        # The delays between attempts are minutes, so make the next attempt due now.
        await stack.sql("update tasks set scheduled_for = clock_timestamp() where status = 'scheduled' and attempt > 0")
        return str((await stack.row(broken)).status) == "failed"

    handlers = {Queue.TABULAR_PURGE: purge, Queue.SOFT_DELETION: quick}
    async with working(stack.worker(handlers, slots={Queue.TABULAR_PURGE: 2})):
        await until(all_over)
        await until(lambda: _all_succeeded(stack, [*others, swift]))
        await until(lambda: _is_counted(stack, 5 + 1 + 5))
    assert most == 2
    log = await stack.log(broken)
    assert [(each.attempt, each.status) for each in log] == [(attempt, "failed") for attempt in range(1, 6)]
    assert all(each.message.startswith("ZeroDivisionError (error id ") for each in log)
    outcomes = [outcome for queue, outcome in stack.observer.outcomes if queue == "tabular_purge"]
    assert sorted(outcomes) == ["ended"] * 5 + ["failed"] * 4 + ["given_up"]


async def _is_counted(stack: WorkerStack, attempts: int) -> bool:
    """Return True if the metrics show this number of attempts; they are updated shortly after the task's row."""
    return len(stack.observer.outcomes) >= attempts


async def _all_succeeded(stack: WorkerStack, ids: list[UUID]) -> bool:
    return all([(await stack.row(id)).status == "succeeded" for id in ids])


async def test_queue_with_zero_slots_runs_no_tasks(stack: WorkerStack) -> None:
    async def end(task: Task) -> None:
        await stack.done(task)

    left, done = await stack.add(), await stack.add(Queue.SOFT_DELETION)
    handlers = {Queue.TABULAR_PURGE: end, Queue.SOFT_DELETION: end}
    async with working(stack.worker(handlers, slots={Queue.TABULAR_PURGE: 0})):
        await until(lambda: _all_succeeded(stack, [done]))
    assert (await stack.row(left)).attempt == 0


@pytest.mark.parametrize("away", [DecisionEngineUnavailable("OPA"), StorageUnavailable("the store")])
async def test_dependency_outage_does_not_count_as_an_attempt(stack: WorkerStack, away: Exception) -> None:
    async def out(task: Task) -> None:
        raise away

    id = await stack.add()
    worker = stack.worker({Queue.TABULAR_PURGE: out})
    for attempt in range(1, 8):
        assert await worker.work_once()
        row = await stack.row(id)
        assert (row.status, row.attempt, row.interruptions) == ("scheduled", attempt, attempt)
        assert row.scheduled_for > row.updated_at
        await stack.sql("update tasks set scheduled_for = clock_timestamp() where id = :id", id=id)
    assert {outcome for _, outcome in stack.observer.outcomes} == {"interrupted"}


async def test_stopped_task_ends_and_is_restarted_when_due(stack: WorkerStack) -> None:
    async def long(task: Task) -> None:
        if task.attempt > 1:
            await stack.done(task)
            return
        for piece in range(1000):
            await report(stack.database, task, progress=piece / 1000, details={"pieces": piece})
            await asyncio.sleep(0.02)

    id = await stack.add()
    async with working(stack.worker({Queue.TABULAR_PURGE: long})):

        async def well_begun() -> bool:
            return float((await stack.row(id)).progress) > 0.002

        await until(well_begun)
        await stack.sql(
            "update tasks set status = 'stopping', scheduled_for = clock_timestamp() + interval '1 hour' "
            "where id = :id",
            id=id,
        )

        async def stopped() -> bool:
            return str((await stack.row(id)).status) == "scheduled"

        await until(stopped)
        [attempt] = await stack.log(id)
        assert (attempt.status, attempt.message) == ("cancelled", "stopped by request")
        assert attempt.progress > 0 and attempt.execution_details["pieces"] > 0
        await stack.sql("update tasks set scheduled_for = clock_timestamp() where id = :id", id=id)
        await until(lambda: _all_succeeded(stack, [id]))
        await until(lambda: _is_counted(stack, 2))
    assert [outcome for _, outcome in stack.observer.outcomes] == ["stopped", "ended"]


async def test_a_handler_ends_as_soon_as_another_worker_has_its_task(stack: WorkerStack) -> None:
    ended = asyncio.Event()

    async def endless(task: Task) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    id = await stack.add()
    async with working(stack.worker({Queue.TABULAR_PURGE: endless}, beat=0.1)):

        async def running() -> bool:
            return str((await stack.row(id)).status) == "running"

        await until(running)
        await stack.sql("update tasks set attempt = attempt + 1 where id = :id", id=id)
        await asyncio.wait_for(ended.wait(), 60)

        async def is_counted() -> bool:
            return ("tabular_purge", "lost") in stack.observer.outcomes

        await until(is_counted)
    assert (await stack.row(id)).status == "running"


async def test_ending_process_releases_its_tasks_at_once(stack: WorkerStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.features.tasks.worker._SHUTDOWN_SECONDS", 60.0)  # for a machine that stalls at times
    begun = asyncio.Event()

    async def endless(task: Task) -> None:
        begun.set()
        await asyncio.sleep(60)

    id = await stack.add()
    async with working(stack.worker({Queue.TABULAR_PURGE: endless})):
        await asyncio.wait_for(begun.wait(), 60)
    row = await stack.row(id)
    assert (row.status, row.attempt, row.interruptions) == ("scheduled", 1, 1)
    assert row.scheduled_for <= row.updated_at
    [attempt] = await stack.log(id)
    assert (attempt.status, attempt.message) == ("failed", "its worker process was stopped")


async def test_lost_connections_do_not_prevent_task_completion(stack: WorkerStack) -> None:
    """All of the worker's connections are closed while the task runs and while its outcome is written."""
    begun = []

    async def flaky(task: Task) -> None:
        begun.append(task.attempt)
        if task.attempt == 1:
            await stack.sql("update projects set name = name")
            with suppress(Exception):
                await stack.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = current_user")
            await stack.sql("select 1")
            await stack.sql("select 1")
        await stack.done(task)

    id = await stack.add()
    async with working(stack.worker({Queue.TABULAR_PURGE: flaky}, beat=0.05)):

        async def over() -> bool:
            with suppress(Exception):
                await stack.sql("update tasks set scheduled_for = clock_timestamp() where status = 'scheduled'")
                return str((await stack.row(id)).status) == "succeeded"
            return False

        await until(over)
    assert [each.status for each in await stack.log(id)] == ["failed"] * (len(begun) - 1) + ["succeeded"]


async def test_every_project_is_cleaned_up_once_by_many_processes(stack: WorkerStack) -> None:
    async def see_to_it() -> None:
        await stack.worker({}).maintain()

    await asyncio.gather(*(see_to_it() for _ in range(8)))
    [first] = await stack.sql("select * from tasks where queue = 'task_log_cleanup'")
    assert (first.project_id, first.warehouse_id, first.status) == (stack.rows.project, None, "scheduled")
    assert ("task_log_cleanup", "scheduled") in stack.observer.counts

    async with stack.database.transaction() as connection:
        task = await task_runs.take(connection, [Queue.TASK_LOG_CLEANUP], stale_seconds=120)
        assert task is not None and task.project_id == stack.rows.project
        await task_runs.finish(connection, task)
        await task_queues.schedule_cleanups(connection, project_id=stack.rows.project)
    await asyncio.gather(*(see_to_it() for _ in range(8)))
    [ended, later] = await stack.sql("select * from tasks where queue = 'task_log_cleanup' order by created_at")
    assert (later.scheduled_for - ended.finished_at).total_seconds() == 86400

    async with stack.database.transaction() as connection:
        given = QueueSettings(cleanup_period=timedelta(hours=2), retention=timedelta(days=1))
        await task_queues.configure(connection, Queue.TASK_LOG_CLEANUP, given, project_id=stack.rows.project)
        assert await task_queues.settings(connection, Queue.TASK_LOG_CLEANUP, project_id=stack.rows.project) == given
    row = await stack.row(later.id)
    assert (row.scheduled_for - row.created_at).total_seconds() == 7200


async def test_only_old_ended_tasks_of_the_project_are_removed_with_their_log(stack: WorkerStack) -> None:
    old, young, waiting = await stack.add(), await stack.add(), await stack.add()
    worker = stack.worker({Queue.TABULAR_PURGE: stack.done})
    while await worker.work_once():
        pass
    await stack.sql("update tasks set finished_at = now() - interval '91 days' where id = :id", id=old)
    await stack.sql("update tasks set status = 'scheduled', finished_at = null where id = :id", id=waiting)
    await stack.sql("update task_log set ended_at = now() - interval '91 days' where task_id = :id", id=waiting)
    other = str(uuid4())
    await stack.sql("insert into projects (id, name, name_key) values (:id, 'other', 'other')", id=other)
    for project, removed in ((other, 0), (stack.rows.project, 2), (stack.rows.project, 0)):
        async with stack.database.transaction() as connection:
            assert (
                await task_queues.remove_ended(connection, project, older_than=timedelta(days=90), limit=100) == removed
            )
    assert {row.id for row in await stack.sql("select id from tasks")} == {young, waiting}
    assert {row.task_id for row in await stack.sql("select task_id from task_log")} == {young}


async def test_task_restarted_during_log_cleanup_is_not_removed(stack: WorkerStack) -> None:
    id = await stack.add()
    await stack.sql(
        "update tasks set status = 'failed', finished_at = now() - interval '91 days' where id = :id", id=id
    )
    cleaning: asyncio.Task[int]

    async def clean() -> int:
        async with stack.database.transaction() as connection:
            return await task_queues.remove_ended(
                connection, stack.rows.project, older_than=timedelta(days=90), limit=100
            )

    async def ended_or_waits() -> bool:
        waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'DELETE FROM tasks%'"
        return cleaning.done() or bool(await stack.sql(waits))

    async with stack.database.transaction() as connection:
        await task_lists.reschedule(connection, [id], at=None)
        cleaning = asyncio.create_task(clean())
        await until(ended_or_waits, 60)
    assert await cleaning == 0
    assert (await stack.row(id)).status == "scheduled"


def _spawn(url: str) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.support.load.task_child", url],
        stdout=subprocess.PIPE,
        preexec_fn=die_with_parent(signal.SIGKILL),
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"working\n"
    return child


@pytest.mark.parametrize(("kills", "count"), [(4, 60), pytest.param(40, 400, marks=pytest.mark.long)])
async def test_every_task_ends_once_despite_killed_workers(
    stack: WorkerStack, parts: Parts, kills: int, count: int
) -> None:
    await stack.sql("drop table if exists task_marks")
    await stack.sql("create table task_marks (task_id uuid, attempt int)")
    await stack.sql(
        "insert into task_queue_configs (queue, warehouse_id, heartbeat_seconds) values ('tabular_purge', :w, 1)",
        w=stack.rows.warehouses[0],
    )
    ids: list[UUID] = []
    chance = random.Random(count)
    children = [await asyncio.to_thread(_spawn, parts.database_url) for _ in range(2)]
    deaths = "select 1 from task_log where message = 'its worker process died'"
    try:
        # Continue past `kills` until one worker was killed during a task. How many tasks a worker completes before it
        # dies depends on the machine.
        for number in range(10 * kills):
            if number >= kills and await stack.sql(deaths):
                break
            ids += [await stack.add() for _ in range(count // kills)]
            await asyncio.sleep(chance.uniform(0.05, 0.4))
            victim = children.pop(chance.randrange(2))
            victim.kill()
            victim.wait()
            children.append(await asyncio.to_thread(_spawn, parts.database_url))
        await until(lambda: _all_succeeded(stack, ids), 120)
    finally:
        for child in children:
            child.kill()
            child.wait()
    marks = await stack.sql("select task_id, attempt from task_marks")
    assert sorted(mark.task_id for mark in marks) == sorted(ids), "each task must end once"
    logged = await stack.sql("select task_id, attempt, status, message from task_log order by task_id, attempt")
    of: dict[UUID, list[Any]] = {}
    for row in logged:
        of.setdefault(row.task_id, []).append(row)
    died = 0
    for mark in marks:
        *before, last = of[mark.task_id]
        assert [each.attempt for each in (*before, last)] == list(range(1, mark.attempt + 1))
        assert last.status == "succeeded"
        assert {(each.status, each.message) for each in before} <= {("failed", "its worker process died")}
        died += len(before)
    assert died > 0, "no kill hit a running task, so the test proves nothing"


async def test_tasks_continue_after_a_database_restart() -> None:
    """A real PostgreSQL stops and starts again while one task runs and further tasks wait."""
    with tempfile.TemporaryDirectory(prefix="lakegate-test-", ignore_cleanup_errors=True) as scratch:
        (Path(scratch) / "logs").mkdir()
        data = Path(scratch) / "postgres"
        try:
            async with Children(Path(scratch) / "logs") as children:
                made, port = ready.generate(), free_port()
                part = postgres.Postgres(data, port, made, programs=None, fast=True)
                server = await part.start(children)
                url = postgres.url(postgres.GATEWAY_ROLE, made.postgres_gateway, port)
                url = url.replace("postgresql:", "postgresql+asyncpg:")
                await run_migrations(url)
                async with opened(url) as stack:
                    begun, go_on = asyncio.Event(), asyncio.Event()

                    async def slow(task: Task) -> None:
                        begun.set()
                        await go_on.wait()
                        await stack.done(task)

                    ids = [await stack.add() for _ in range(3)]
                    async with working(stack.worker({Queue.TABULAR_PURGE: slow}, beat=0.1)):
                        await asyncio.wait_for(begun.wait(), 60)
                        os.kill(server.pid, signal.SIGINT)
                        await asyncio.wait_for(server.exited, 60)
                        go_on.set()
                        await asyncio.sleep(0.5)
                        await part.start(children)

                        async def over() -> bool:
                            with suppress(Exception):
                                await stack.sql(
                                    "update tasks set scheduled_for = clock_timestamp() where status = 'scheduled'"
                                )
                                return await _all_succeeded(stack, ids)
                            return False

                        await until(over, 120)
                    log = await stack.log(ids[0])
                    assert [each.status for each in log[:-1]] == [Status.FAILED] * (len(log) - 1)
                    assert log[-1].status == Status.SUCCEEDED
        finally:
            account.remove_data(data)
