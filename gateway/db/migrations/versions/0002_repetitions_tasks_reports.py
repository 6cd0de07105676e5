# SPDX-License-Identifier: Apache-2.0
"""What repeated requests, background tasks, metrics reports and metadata files need"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_NOW = sa.text("clock_timestamp()")


def upgrade() -> None:
    op.create_table(
        "idempotency",
        sa.Column("scope", sa.LargeBinary(), nullable=False),
        sa.Column("body_digest", sa.LargeBinary(), nullable=False),
        sa.Column("attempt", sa.UUID(), nullable=False),
        sa.Column("actor_id", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("detail", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("written_in", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("scope", name=op.f("idempotency_pkey")),
    )
    op.create_index(op.f("idempotency_expires_at_idx"), "idempotency", ["expires_at"])
    # A repeated request first delivers what the transaction it repeats has left in the outbox.
    op.add_column(
        "outbox",
        sa.Column(
            "written_in",
            sa.BigInteger(),
            server_default=sa.text("(pg_current_xact_id()::text::bigint)"),
            nullable=False,
        ),
    )
    op.create_index(op.f("outbox_written_in_idx"), "outbox", ["written_in"])
    op.create_table(
        "tasks",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("warehouse_id", sa.UUID(), nullable=True),
        sa.Column("entity_type", sa.Text(), nullable=False),
        sa.Column("entity_id", sa.UUID(), nullable=False),
        sa.Column("status", sa.Text(), server_default="scheduled", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("scheduled_for", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status in ('scheduled', 'running', 'succeeded', 'failed', 'cancelled')", name=op.f("tasks_status_check")
        ),
        sa.ForeignKeyConstraint(["warehouse_id"], ["warehouses.id"], name=op.f("tasks_warehouse_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("tasks_pkey")),
    )
    op.create_index(
        "tasks_active_key",
        "tasks",
        ["queue", "entity_type", "entity_id"],
        unique=True,
        postgresql_where=sa.text("status in ('scheduled', 'running')"),
    )
    op.create_index(
        "tasks_due_idx",
        "tasks",
        ["scheduled_for"],
        postgresql_where=sa.text("status in ('scheduled', 'running')"),
    )
    op.create_index(op.f("tasks_finished_at_idx"), "tasks", ["finished_at"])
    op.create_table(
        "table_reports",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("warehouse_id", sa.UUID(), nullable=False),
        sa.Column("table_id", sa.UUID(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("snapshot_id", sa.BigInteger(), nullable=False),
        sa.Column("reported_by", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.Column("report", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.CheckConstraint("kind in ('scan-report', 'commit-report')", name=op.f("table_reports_kind_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("table_reports_pkey")),
    )
    op.create_index(op.f("table_reports_table_id_at_idx"), "table_reports", ["table_id", "at"])
    op.create_index(op.f("table_reports_at_idx"), "table_reports", ["at"])
    op.create_table(
        "pending_files",
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("warehouse_id", sa.UUID(), nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.ForeignKeyConstraint(["warehouse_id"], ["warehouses.id"], name=op.f("pending_files_warehouse_id_fkey")),
        sa.PrimaryKeyConstraint("location", name=op.f("pending_files_pkey")),
    )
    op.create_index(op.f("pending_files_written_at_idx"), "pending_files", ["written_at"])
    # Whichever statement makes a pointer name a file, that file is pending no longer from the same commit on. As a
    # trigger, because a statement that forgot it would have its files swept away an hour later.
    op.execute(
        """
        create function forget_pending_file() returns trigger language plpgsql as $$
        begin
            delete from pending_files where location = new.metadata_location;
            return null;
        end $$
        """
    )
    op.execute(
        """
        create trigger tables_forget_pending_file after insert or update of metadata_location on tables
        for each row when (new.metadata_location is not null) execute function forget_pending_file()
        """
    )


def downgrade() -> None:
    op.execute("drop trigger tables_forget_pending_file on tables")
    op.execute("drop function forget_pending_file()")
    op.drop_index(op.f("pending_files_written_at_idx"), table_name="pending_files")
    op.drop_table("pending_files")
    op.drop_index(op.f("table_reports_at_idx"), table_name="table_reports")
    op.drop_index(op.f("table_reports_table_id_at_idx"), table_name="table_reports")
    op.drop_table("table_reports")
    op.drop_index(op.f("tasks_finished_at_idx"), table_name="tasks")
    op.drop_index("tasks_due_idx", table_name="tasks")
    op.drop_index("tasks_active_key", table_name="tasks")
    op.drop_table("tasks")
    op.drop_index(op.f("outbox_written_in_idx"), table_name="outbox")
    op.drop_column("outbox", "written_in")
    op.drop_index(op.f("idempotency_expires_at_idx"), table_name="idempotency")
    op.drop_table("idempotency")
