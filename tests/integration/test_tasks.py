# SPDX-License-Identifier: Apache-2.0
"""Tasks on a real PostgreSQL: how workers take them, how they end, and the log of each attempt."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from gateway.db.engine.database import Database
from gateway.db.tasks import task_runs, tasks
from gateway.db.tasks.task_runs import Task, TaskLost
from gateway.db.tasks.tasks import Cancellation, FileDisposal, Files, PurgedLocation, Queue, Status
from tests.support.rows.parts import Parts, Rows
from tests.support.stack.world import Loop


class Tasks:
    """A database with a few rows, and the statements on tasks, each in a separate transaction."""

    def __init__(self, url: str) -> None:
        self.loop = Loop()
        self.rows = Rows()
        self.database = self.loop.run(self._open(url))

    async def _open(self, url: str) -> Database:
        database = Database(url, pool_size=4, acquire_timeout=30.0)
        async with database.transaction() as connection:
            await self.rows.insert(connection)
        return database

    def do(self, statement: Any, *arguments: Any, **named: Any) -> Any:
        async def run() -> Any:
            async with self.database.transaction() as connection:
                return await statement(connection, *arguments, **named)

        return self.loop.run(run())

    def sql(self, statement: str, **values: Any) -> list[Any]:
        async def run(connection: Any) -> list[Any]:
            result = await connection.execute(text(statement), values)
            return list(result.all()) if result.returns_rows else []

        found: list[Any] = self.do(run)
        return found

    def add(self, queue: Queue = Queue.TABULAR_PURGE, entity: UUID | None = None, **named: Any) -> UUID:
        added = self.do(
            tasks.add,
            queue,
            warehouse_id=self.rows.warehouses[0],
            entity_id=entity or uuid4(),
            payload=PurgedLocation("s3://b/t/", "//b/t/"),
            **named,
        )
        assert isinstance(added, UUID)
        return added

    def take(self, *queues: Queue, stale: float = 120) -> Task | None:
        taken: Task | None = self.do(task_runs.take, queues or tuple(Queue), stale_seconds=stale)
        return taken

    def row(self, id: UUID) -> Any:
        return self.sql("select * from tasks where id = :id", id=id)[0]

    def log(self, id: UUID) -> list[Any]:
        return self.sql("select * from task_log where task_id = :id order by attempt", id=id)

    def silent_for(self, id: UUID, seconds: int) -> None:
        self.sql(
            "update tasks set heartbeat_at = clock_timestamp() - make_interval(secs => :s) where id = :id",
            id=id,
            s=seconds,
        )


@pytest.fixture
def there(parts: Parts) -> Iterator[Tasks]:
    made = Tasks(parts.database_url)
    yield made
    made.loop.run(made.database.close())
    made.loop.close()


def taken(task: Task | None) -> Task:
    assert task is not None
    return task


def test_a_task_is_taken_by_one_worker_and_only_when_it_is_due(there: Tasks) -> None:
    there.add(at=datetime.now(UTC) + timedelta(hours=1))
    due = there.add(Queue.SOFT_DELETION, at=datetime.now(UTC) - timedelta(seconds=1))
    assert there.take(Queue.TABULAR_PURGE) is None
    assert taken(there.take()).id == due
    assert there.take() is None


@pytest.mark.parametrize(
    ("payload", "stored"),
    [
        (FileDisposal(Files.PURGE), '{"files": "purge"}'),
        (FileDisposal(Files.LAST, "s3://b/t/m.json"), '{"files": "last", "last_file": "s3://b/t/m.json"}'),
        (PurgedLocation("s3://b/t/", "b/t/"), '{"location": "s3://b/t/", "location_key": "b/t/"}'),
        (None, "{}"),
    ],
)
def test_a_payload_is_stored_and_read_as_earlier_versions_did(
    there: Tasks, payload: FileDisposal | PurgedLocation | None, stored: str
) -> None:
    entity = {"warehouse_id": there.rows.warehouses[0], "entity_id": uuid4()}
    id = there.do(tasks.add, Queue.SOFT_DELETION, payload=payload, **entity)
    assert there.sql("select payload::text from tasks where id = :id", id=id)[0].payload == stored
    there.sql("update tasks set payload = cast(:stored as jsonb) where id = :id", id=id, stored=stored)
    task = taken(there.take())
    assert payload is None or task.payload(type(payload)) == payload


def test_an_entity_has_one_active_task_of_a_queue(there: Tasks) -> None:
    table = uuid4()
    there.add(entity=table)
    again = {"warehouse_id": there.rows.warehouses[0], "entity_id": table}
    assert there.do(tasks.add, Queue.TABULAR_PURGE, **again) is None
    there.do(task_runs.finish, taken(there.take()))
    assert there.do(tasks.add, Queue.TABULAR_PURGE, **again) is not None


def test_task_keeps_the_path_of_its_object_after_deletion(there: Tasks) -> None:
    id = there.add(Queue.SOFT_DELETION, entity=there.rows.table)
    [row] = there.sql(
        "select levels, name from tables t join namespaces n on n.id = t.namespace_id where t.id = :id",
        id=there.rows.table,
    )
    path = [*row.levels, row.name]
    assert there.row(id).entity_name == path
    there.sql("delete from tables where id = :id", id=there.rows.table)
    purge = there.add(Queue.TABULAR_PURGE, entity=there.rows.table, parent=id)
    assert there.row(purge).entity_name == path
    assert there.row(purge).parent_task_id == id


def test_cancellation_reports_an_already_started_task(there: Tasks) -> None:
    waiting, running, none = uuid4(), uuid4(), uuid4()
    begun = there.add(Queue.SOFT_DELETION, entity=running)
    there.take()
    later = there.add(Queue.SOFT_DELETION, entity=waiting, in_seconds=60)
    cancelled = there.do(tasks.cancel_all, Queue.SOFT_DELETION, [waiting, running, none], reason="undropped")
    assert cancelled == {
        waiting: Cancellation.CANCELLED,
        running: Cancellation.RUNNING,
        none: Cancellation.NONE,
    }
    assert (there.row(later).status, there.row(later).last_error) == ("cancelled", "undropped")
    assert there.row(begun).status == "running"
    assert there.do(tasks.cancel, Queue.SOFT_DELETION, waiting, reason="again") is Cancellation.NONE


def test_each_attempt_is_in_the_log_and_the_fifth_failure_is_the_last(there: Tasks) -> None:
    id = there.add()
    pauses = []
    for attempt in range(1, 6):
        task = taken(there.take())
        assert task.attempt == attempt
        there.do(task_runs.report, task, progress=attempt / 10, details={"deleted": attempt})
        assert there.do(task_runs.fail, task, f"error {attempt}") is (attempt == 5)
        [pause] = there.sql(
            "select extract(epoch from scheduled_for - updated_at) as s from tasks where id = :id", id=id
        )
        pauses.append(round(float(pause.s)))
        there.sql("update tasks set scheduled_for = clock_timestamp() where id = :id", id=id)
    assert pauses[:4] == [10, 20, 40, 80]
    assert there.take() is None
    assert (there.row(id).status, there.row(id).last_error) == ("failed", "error 5")
    log = there.log(id)
    assert [(each.attempt, each.status, each.message) for each in log] == [
        (attempt, "failed", f"error {attempt}") for attempt in range(1, 6)
    ]
    assert [each.progress for each in log] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert [each.execution_details for each in log] == [{"deleted": attempt} for attempt in range(1, 6)]
    assert all(each.started_at <= each.ended_at for each in log)


def test_an_interrupted_attempt_is_logged_and_not_counted(there: Tasks) -> None:
    id = there.add()
    for _ in range(7):
        there.do(task_runs.interrupt, taken(there.take()), "the database was away", in_seconds=0)
    task = taken(there.take())
    assert (task.attempt, task.tries) == (8, 1)
    there.do(task_runs.finish, task)
    assert [each.status for each in there.log(id)] == ["failed"] * 7 + ["succeeded"]


def test_worker_without_heartbeat_loses_its_task(there: Tasks) -> None:
    id = there.add()
    first = taken(there.take())
    assert there.take() is None
    there.silent_for(id, 121)
    second = taken(there.take())
    assert (second.id, second.attempt) == (id, 2)
    for late in (task_runs.finish, task_runs.beat):
        with pytest.raises(TaskLost):
            there.do(late, first)
    with pytest.raises(TaskLost):
        there.do(task_runs.fail, first, "too late")
    there.do(task_runs.finish, second)
    assert [(each.attempt, each.status, each.message) for each in there.log(id)] == [
        (1, "failed", "its worker process died"),
        (2, "succeeded", None),
    ]
    assert (there.row(id).status, there.row(id).progress) == ("succeeded", 1.0)


def test_repeatedly_dying_workers_fail_the_task(there: Tasks) -> None:
    id = there.add()
    for _ in range(5):
        taken(there.take())
        there.silent_for(id, 121)
    assert there.take() is None
    assert there.row(id).status == "failed"
    assert len(there.log(id)) == 5


@pytest.mark.parametrize(("silent", "taken_over"), [(20, False), (40, True)])
def test_task_takeover_timeout_is_configurable(there: Tasks, silent: int, taken_over: bool) -> None:
    there.sql(
        "insert into task_queue_configs (queue, warehouse_id, heartbeat_seconds) values ('tabular_purge', :w, 30)",
        w=there.rows.warehouses[0],
    )
    id = there.add()
    assert taken(there.take()).stale_seconds == 30
    there.silent_for(id, silent)
    assert (there.take() is not None) is taken_over


@pytest.mark.parametrize("end", ["fail", "interrupt", "die"])
def test_stopped_task_is_restarted_at_its_set_time(there: Tasks, end: str) -> None:
    id = there.add()
    task = taken(there.take())
    later = datetime.now(UTC) + timedelta(hours=3)
    there.sql("update tasks set status = 'stopping', scheduled_for = :at where id = :id", id=id, at=later)
    assert there.do(task_runs.beat, task) is True
    if end == "die":
        assert there.do(task_runs.release, stale_seconds=120) == 0
        there.silent_for(id, 121)
        assert there.do(task_runs.release, stale_seconds=120) == 1
    else:
        there.do(task_runs.fail if end == "fail" else task_runs.interrupt, task, "broken")
    assert there.take() is None
    assert (there.row(id).status, there.row(id).scheduled_for) == ("scheduled", later)
    assert [each.status for each in there.log(id)] == ["failed"]


def test_a_running_task_can_be_cancelled(there: Tasks) -> None:
    table = uuid4()
    id = there.add(Queue.SOFT_DELETION, entity=table)
    task = taken(there.take())
    cancelled = there.do(tasks.cancel, Queue.SOFT_DELETION, table, reason="undropped", even_running=True)
    assert cancelled is Cancellation.CANCELLED
    with pytest.raises(TaskLost):
        there.do(task_runs.finish, task)
    assert there.row(id).status == "cancelled"
    assert [(each.attempt, each.status, each.message) for each in there.log(id)] == [(1, "cancelled", "undropped")]


def test_a_task_with_a_former_queue_name_is_taken_under_the_current_name(there: Tasks) -> None:
    there.sql(
        "insert into tasks (id, queue, warehouse_id, entity_type, entity_id, payload) "
        "values (gen_random_uuid(), 'purge_table', :w, 'table', gen_random_uuid(), '{}')",
        w=there.rows.warehouses[0],
    )
    assert taken(there.take()).queue is Queue.TABULAR_PURGE


def test_finished_task_can_have_a_failure_outcome(there: Tasks) -> None:
    id = there.add()
    there.do(task_runs.finish, taken(there.take()), status=Status.CANCELLED, reason="needless")
    assert (there.row(id).status, there.row(id).last_error) == ("cancelled", "needless")
    assert [(each.status, each.message) for each in there.log(id)] == [("cancelled", "needless")]
