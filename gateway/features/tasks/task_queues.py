# SPDX-License-Identifier: Apache-2.0
"""Use cases of task queues: read and change their configuration."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Never, TypeVar

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.management_errors import QueueNotFound, TaskNotSchedulable
from gateway.access.operations.task_bodies import CleanupSettings, PlainSettings, QueueConfig, QueueConfigValues
from gateway.access.operations.task_control import (
    GetQueueConfig,
    GetTaskLogCleanupConfig,
    ScheduleTask,
    SetQueueConfig,
    SetTaskLogCleanupConfig,
)
from gateway.db.tasks import task_queues
from gateway.db.tasks.task_lists import named_queue
from gateway.db.tasks.task_queues import CLEANUP_PERIOD, RETENTION, QueueSettings
from gateway.db.tasks.tasks import Queue
from gateway.features.kit import UseCases
from gateway.iceberg.errors import BadRequestException
from lakegate.value_messages import in_words

_OF_PROJECTS: Final = frozenset({Queue.TASK_LOG_CLEANUP})
_SHORTEST: Final = timedelta(minutes=1)
_LONGEST: Final = timedelta(days=3650)

Settings = TypeVar("Settings", bound=PlainSettings)


class TaskQueues(UseCases):
    """Configuration of the task queues of warehouses and projects."""

    async def get(self, permit: Permit[GetQueueConfig]) -> QueueConfig:
        """Return the configuration of a queue in a warehouse, with defaults for values that are not set. Raises
        QueueNotFound.
        """
        operation = permit.operation
        queue = _of_warehouses(operation.queue)
        async with self._database.read() as connection:
            settings = await task_queues.settings(connection, queue, warehouse_id=operation.warehouse.warehouse_id)
        return _queue_config(queue, settings)

    async def set(self, permit: Permit[SetQueueConfig]) -> None:
        """Replace the configuration of a queue in a warehouse. Raises QueueNotFound."""
        operation = permit.operation
        queue = _of_warehouses(operation.queue)
        _decoded(queue, operation.request.queue_config, PlainSettings)
        settings = QueueSettings(heartbeat_seconds=operation.request.max_seconds_since_last_heartbeat)
        async with self._database.change(permit) as connection:
            await task_queues.configure(connection, queue, settings, warehouse_id=operation.warehouse.warehouse_id)

    async def schedule(self, permit: Permit[ScheduleTask]) -> Never:
        """Raise QueueNotFound for an unknown queue, and TaskNotSchedulable for any other."""
        queue = _of_warehouses(permit.operation.queue)
        raise TaskNotSchedulable(
            f"Tasks of the queue {queue} cannot be scheduled by a request. The gateway creates them when the catalog "
            "changes."
        )

    async def get_cleanup(self, permit: Permit[GetTaskLogCleanupConfig]) -> QueueConfig:
        """Return the configuration of the cleanup of the project's task log."""
        queue = Queue.TASK_LOG_CLEANUP
        async with self._database.read() as connection:
            return _queue_config(
                queue,
                await task_queues.settings(connection, queue, project_id=permit.operation.project.project_id),
            )

    async def set_cleanup(self, permit: Permit[SetTaskLogCleanupConfig]) -> None:
        """Replace the configuration of the cleanup of the project's task log. Omitted values get the defaults."""
        request = permit.operation.request
        queue = Queue.TASK_LOG_CLEANUP
        given = _decoded(queue, request.queue_config, CleanupSettings)
        settings = QueueSettings(
            heartbeat_seconds=request.max_seconds_since_last_heartbeat,
            cleanup_period=_bounded("cleanup-period", given.cleanup_period, CLEANUP_PERIOD),
            retention=_bounded("retention-period", given.retention_period, RETENTION),
        )
        async with self._database.change(permit) as connection:
            await task_queues.configure(connection, queue, settings, project_id=permit.operation.project.project_id)


def _of_warehouses(name: str) -> Queue:
    queue = named_queue(name)
    if queue is None or queue in _OF_PROJECTS:
        names = ", ".join(each.value for each in Queue if each not in _OF_PROJECTS)
        raise QueueNotFound(f"A task queue of warehouses with this name does not exist. Possible queues: {names}.")
    return queue


def _decoded(queue: Queue, config: msgspec.Raw, kind: type[Settings]) -> Settings:
    try:
        settings = msgspec.json.decode(config, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as wrong:
        raise BadRequestException(f"Malformed queue-config of {queue}: {in_words(wrong, kind)}") from None
    if settings.queue_name is not None and named_queue(settings.queue_name) is not queue:
        raise BadRequestException(f"The queue-config names another queue than the path, {queue}.")
    return settings


def _bounded(name: str, given: timedelta | None, default: timedelta) -> timedelta:
    if given is None:
        return default
    if not _SHORTEST <= given <= _LONGEST:
        raise BadRequestException(f"{name} must be a duration from one minute to {_LONGEST.days} days.")
    return given


def _queue_config(queue: Queue, settings: QueueSettings) -> QueueConfig:
    of_cleanup = queue is Queue.TASK_LOG_CLEANUP
    return QueueConfig(
        queue_config=QueueConfigValues(
            queue_name=queue.value,
            cleanup_period=settings.cleanup_period if of_cleanup else None,
            retention_period=settings.retention if of_cleanup else None,
        ),
        max_seconds_since_last_heartbeat=settings.heartbeat_seconds,
    )
