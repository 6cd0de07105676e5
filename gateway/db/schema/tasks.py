# SPDX-License-Identifier: Apache-2.0
"""The tables of tasks, of their ended attempts, and of the configuration of their queues."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from gateway.db.schema.base import metadata, now

#: The states are literals, because a generic plan cannot use the partial indexes with parameters.
ACTIVE_TASKS = text("status in ('scheduled', 'running', 'stopping')")

_ACTIVE_OF_PROJECT = text("status in ('scheduled', 'running', 'stopping') and entity_id is null")

_ONE_OWNER = "(warehouse_id is null) <> (project_id is null)"

tasks = Table(
    "tasks",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("queue", Text, nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE")),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE")),
    Column("entity_type", Text),
    Column("entity_id", UUID(as_uuid=True)),
    Column("entity_name", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column("parent_task_id", UUID(as_uuid=True)),
    Column("status", Text, nullable=False, server_default="scheduled"),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("interruptions", Integer, nullable=False, server_default="0"),
    Column("scheduled_for", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("picked_up_at", DateTime(timezone=True)),
    Column("heartbeat_at", DateTime(timezone=True)),
    Column("progress", Float, nullable=False, server_default="0"),
    Column("execution_details", JSONB),
    Column("payload", JSONB, nullable=False),
    Column("last_error", Text),
    now("created_at"),
    now("updated_at", nullable=True),
    Column("finished_at", DateTime(timezone=True), index=True),
    CheckConstraint(
        "status in ('scheduled', 'running', 'stopping', 'succeeded', 'failed', 'cancelled')", name="status"
    ),
    CheckConstraint(_ONE_OWNER, name="belongs"),
    Index("tasks_active_key", "queue", "entity_type", "entity_id", unique=True, postgresql_where=ACTIVE_TASKS),
    Index("tasks_active_project_key", "queue", "project_id", unique=True, postgresql_where=_ACTIVE_OF_PROJECT),
    Index("tasks_due_idx", "scheduled_for", postgresql_where=ACTIVE_TASKS),
    Index("tasks_warehouse_id_idx", "warehouse_id", "created_at", "id"),
    Index("tasks_project_id_idx", "project_id", "created_at", "id"),
    Index("tasks_entity_id_idx", "entity_id"),
)
"""Background work that any process may run.

`attempt` is the number of starts. `interruptions` is the number of starts that ended without a fault of the task, which
do not count as attempts. A task concerns one entity of a warehouse, or a project. `entity_name` is the entity's path at
the creation of the task, because the entity may be deleted later. `last_error` is the message of the last attempt.
Ended rows stay until `task_log_cleanup` deletes them.
"""

task_log = Table(
    "task_log",
    metadata,
    Column("task_id", UUID(as_uuid=True), ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("status", Text, nullable=False),
    Column("scheduled_for", DateTime(timezone=True), nullable=False),
    Column("started_at", DateTime(timezone=True)),
    now("ended_at"),
    Column("message", Text),
    Column("progress", Float, nullable=False, server_default="0"),
    Column("execution_details", JSONB),
    CheckConstraint("status in ('succeeded', 'failed', 'cancelled')", name="status"),
)
"""Ended attempts, one row each, written in the transaction that ends the attempt."""

task_queue_configs = Table(
    "task_queue_configs",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("queue", Text, nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE")),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE")),
    Column("config", JSONB, nullable=False, server_default=text("'{}'")),
    Column("heartbeat_seconds", BigInteger),
    now("updated_at"),
    CheckConstraint(_ONE_OWNER, name="belongs"),
    UniqueConstraint("warehouse_id", "queue"),
    UniqueConstraint("project_id", "queue"),
)
"""The configuration of a queue in one warehouse or project; the defaults apply without a row.

A task without a heartbeat for longer than `heartbeat_seconds` is taken over by another worker.
"""
