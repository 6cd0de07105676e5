# SPDX-License-Identifier: Apache-2.0
"""Tasks: queues under the names clients know, a log of attempts, progress, tasks of projects, configured queues"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0009"
branch_labels = None
depends_on = None

_NOW = sa.text("clock_timestamp()")
_ACTIVE_BEFORE = sa.text("status in ('scheduled', 'running')")
_ACTIVE = sa.text("status in ('scheduled', 'running', 'stopping')")


def upgrade() -> None:
    op.add_column("tasks", sa.Column("project_id", sa.Text(), nullable=True))
    op.add_column("tasks", sa.Column("parent_task_id", sa.UUID(), nullable=True))
    op.add_column(
        "tasks", sa.Column("entity_name", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False)
    )
    op.add_column("tasks", sa.Column("interruptions", sa.Integer(), server_default="0", nullable=False))
    op.add_column("tasks", sa.Column("picked_up_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("tasks", sa.Column("progress", sa.Float(), server_default="0", nullable=False))
    op.add_column("tasks", sa.Column("execution_details", postgresql.JSONB(), nullable=True))
    op.add_column("tasks", sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True))
    op.alter_column("tasks", "entity_type", nullable=True)
    op.alter_column("tasks", "entity_id", nullable=True)
    op.create_foreign_key(
        op.f("tasks_project_id_fkey"), "tasks", "projects", ["project_id"], ["id"], ondelete="CASCADE"
    )
    _of_warehouses(ondelete="CASCADE")
    op.drop_constraint(op.f("tasks_status_check"), "tasks", type_="check")
    op.create_check_constraint(
        op.f("tasks_status_check"),
        "tasks",
        "status in ('scheduled', 'running', 'stopping', 'succeeded', 'failed', 'cancelled')",
    )
    op.create_check_constraint(op.f("tasks_belongs_check"), "tasks", "(warehouse_id is null) <> (project_id is null)")
    op.execute("update tasks set queue = 'tabular_purge' where queue = 'purge_table'")
    op.execute("update tasks set progress = 1 where status = 'succeeded'")
    _indexes(_ACTIVE)
    op.create_index(
        "tasks_active_project_key",
        "tasks",
        ["queue", "project_id"],
        unique=True,
        postgresql_where=sa.text("status in ('scheduled', 'running', 'stopping') and entity_id is null"),
    )
    op.create_index("tasks_warehouse_id_idx", "tasks", ["warehouse_id", "created_at", "id"])
    op.create_index("tasks_project_id_idx", "tasks", ["project_id", "created_at", "id"])
    op.create_index("tasks_entity_id_idx", "tasks", ["entity_id"])
    _logs_and_configurations()
    # A process of the version before may still schedule purges while this one serves.
    op.execute(
        """
        create function rename_task_queue() returns trigger language plpgsql as $$
        begin
            new.queue := 'tabular_purge';
            return new;
        end $$
        """
    )
    op.execute(
        """
        create trigger tasks_rename_queue before insert on tasks
        for each row when (new.queue = 'purge_table') execute function rename_task_queue()
        """
    )


def _logs_and_configurations() -> None:
    op.create_table(
        "task_log",
        sa.Column("task_id", sa.UUID(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("scheduled_for", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("progress", sa.Float(), server_default="0", nullable=False),
        sa.Column("execution_details", postgresql.JSONB(), nullable=True),
        sa.CheckConstraint("status in ('succeeded', 'failed', 'cancelled')", name=op.f("task_log_status_check")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("task_log_task_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("task_id", "attempt", name=op.f("task_log_pkey")),
    )
    op.create_table(
        "task_queue_configs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("warehouse_id", sa.UUID(), nullable=True),
        sa.Column("project_id", sa.Text(), nullable=True),
        sa.Column("config", postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("heartbeat_seconds", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.CheckConstraint(
            "(warehouse_id is null) <> (project_id is null)", name=op.f("task_queue_configs_belongs_check")
        ),
        sa.ForeignKeyConstraint(
            ["warehouse_id"],
            ["warehouses.id"],
            name=op.f("task_queue_configs_warehouse_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("task_queue_configs_project_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("task_queue_configs_pkey")),
        sa.UniqueConstraint("warehouse_id", "queue", name=op.f("task_queue_configs_warehouse_id_queue_key")),
        sa.UniqueConstraint("project_id", "queue", name=op.f("task_queue_configs_project_id_queue_key")),
    )


def _indexes(active: sa.TextClause) -> None:
    op.drop_index("tasks_active_key", table_name="tasks")
    op.drop_index("tasks_due_idx", table_name="tasks")
    op.create_index(
        "tasks_active_key", "tasks", ["queue", "entity_type", "entity_id"], unique=True, postgresql_where=active
    )
    op.create_index("tasks_due_idx", "tasks", ["scheduled_for"], postgresql_where=active)


def _of_warehouses(*, ondelete: str | None) -> None:
    op.drop_constraint(op.f("tasks_warehouse_id_fkey"), "tasks", type_="foreignkey")
    op.create_foreign_key(
        op.f("tasks_warehouse_id_fkey"), "tasks", "warehouses", ["warehouse_id"], ["id"], ondelete=ondelete
    )


def downgrade() -> None:
    op.execute("drop trigger tasks_rename_queue on tasks")
    op.execute("drop function rename_task_queue()")
    op.drop_table("task_queue_configs")
    op.drop_table("task_log")
    op.execute("delete from tasks where warehouse_id is null or entity_id is null or queue = 'soft_deletion'")
    op.execute("update tasks set queue = 'purge_table' where queue = 'tabular_purge'")
    op.execute("update tasks set status = 'running' where status = 'stopping'")
    for index in ("tasks_entity_id_idx", "tasks_project_id_idx", "tasks_warehouse_id_idx", "tasks_active_project_key"):
        op.drop_index(index, table_name="tasks")
    _indexes(_ACTIVE_BEFORE)
    op.drop_constraint(op.f("tasks_belongs_check"), "tasks", type_="check")
    op.drop_constraint(op.f("tasks_status_check"), "tasks", type_="check")
    op.create_check_constraint(
        op.f("tasks_status_check"), "tasks", "status in ('scheduled', 'running', 'succeeded', 'failed', 'cancelled')"
    )
    _of_warehouses(ondelete=None)
    op.drop_constraint(op.f("tasks_project_id_fkey"), "tasks", type_="foreignkey")
    op.alter_column("tasks", "entity_id", nullable=False)
    op.alter_column("tasks", "entity_type", nullable=False)
    for column in (
        "updated_at",
        "execution_details",
        "progress",
        "picked_up_at",
        "interruptions",
        "entity_name",
        "parent_task_id",
        "project_id",
    ):
        op.drop_column("tasks", column)
