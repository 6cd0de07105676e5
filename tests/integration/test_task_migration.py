# SPDX-License-Identifier: Apache-2.0
"""Tasks that the version before left in the database are found by this one, under the queues' names of today."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from alembic import command
from sqlalchemy import Connection, text

from gateway.db import task_runs
from gateway.db.engine import Database
from gateway.db.migrate import _config, run_migrations
from gateway.db.task_runs import Task
from gateway.db.tasks import Queue
from tests.integration.parts import Parts, running_parts


@pytest.fixture(scope="module")
def parts() -> Iterator[Parts]:
    with running_parts() as running:
        yield running


def _before(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "0009")


_ROWS = """
insert into projects (id, name, name_key) values ('p', 'p', 'p');
insert into warehouses (id, project_id, name, name_key, profile, base_key, delete_profile, managed_by,
    allowed_format_versions, revision)
values (gen_random_uuid(), 'p', 'w', 'w', '{}', 'w', '{}', 'x', '{2}', gen_random_uuid());
insert into tasks (id, queue, warehouse_id, entity_type, entity_id, payload, status, attempt, heartbeat_at, last_error)
select gen_random_uuid(), queue, w.id, 'table', gen_random_uuid(), '{"location": "s3://b/t/"}', status, attempt, beat,
    told
from warehouses w, (values
    ('purge_table', 'scheduled', 0, null::timestamptz, null),
    ('purge_table', 'running', 2, clock_timestamp() - interval '1 hour', null),
    ('expire_staged_table', 'scheduled', 0, null, null),
    ('purge_table', 'succeeded', 1, null, null),
    ('purge_table', 'failed', 5, null, 'away')) as old (queue, status, attempt, beat, told)
"""


async def test_tasks_of_the_version_before_are_done_by_this_one(parts: Parts) -> None:
    database = Database(parts.database_url, pool_size=2, acquire_timeout=30)
    async with database.engine.begin() as connection:
        await connection.execute(text("drop schema public cascade"))
        await connection.execute(text("create schema public"))
        await connection.run_sync(_before)
        for statement in _ROWS.split(";"):
            await connection.execute(text(statement))
    await run_migrations(parts.database_url)
    found: list[Task] = []
    async with database.transaction() as connection:
        while (task := await task_runs.take(connection, list(Queue), stale_seconds=120)) is not None:
            found.append(task)
        for task in found:
            await task_runs.finish(connection, task)
        rows = (await connection.execute(text("select queue, status, last_error from tasks"))).all()
        logged = (await connection.execute(text("select attempt, status from task_log order by attempt"))).all()
    await database.close()
    assert sorted((task.queue.value, task.attempt) for task in found) == [
        ("expire_staged_table", 1),
        ("tabular_purge", 1),
        ("tabular_purge", 3),
    ]
    assert {task.payload["location"] for task in found} == {"s3://b/t/"}
    assert ("tabular_purge", "failed", "away") in [tuple(row) for row in rows]
    assert [tuple(row) for row in logged] == [(1, "succeeded"), (1, "succeeded"), (2, "failed"), (3, "succeeded")]
