# SPDX-License-Identifier: Apache-2.0
"""A process that runs tasks until it is killed, for `test_task_worker.py`: `python -m … DATABASE_URL`.

Each task takes a short time. Its effect is a row in `task_marks`, written in the transaction that completes the task.
"""

from __future__ import annotations

import asyncio
import random
import sys

from sqlalchemy import text

from gateway.db.engine.database import Database
from gateway.db.tasks import task_runs
from gateway.db.tasks.task_runs import Task
from gateway.db.tasks.tasks import Queue
from gateway.features.tasks.worker import Worker


async def main(url: str) -> None:
    """Run tasks forever."""
    database = Database(url, pool_size=4, acquire_timeout=30)

    async def mark(task: Task) -> None:
        await asyncio.sleep(random.uniform(0.02, 0.15))
        async with database.transaction() as connection:
            await connection.execute(
                text("insert into task_marks (task_id, attempt) values (:id, :attempt)"),
                {"id": task.id, "attempt": task.attempt},
            )
            await task_runs.finish(connection, task)

    worker = Worker(database, {Queue.TABULAR_PURGE: mark}, slots={Queue.TABULAR_PURGE: 2}, every=0.1)
    print("working", flush=True)
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
