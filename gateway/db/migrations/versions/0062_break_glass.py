# SPDX-License-Identifier: Apache-2.0
"""Add the table of break-glass activations."""

from alembic import op

revision = "0062"
down_revision = "0061"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table break_glass_activations (
            id uuid not null,
            principal text not null,
            project_id text not null,
            warehouse_id uuid not null,
            object_type text not null,
            object_id text not null,
            name text not null,
            privileges text[] not null,
            reason text not null,
            minutes integer not null,
            status text not null,
            created_at timestamp with time zone default clock_timestamp() not null,
            latest_end timestamp with time zone not null,
            confirmed_by text,
            activated_at timestamp with time zone,
            ends_at timestamp with time zone,
            ended_by text,
            ended_at timestamp with time zone,
            reviewed_by text,
            reviewed_at timestamp with time zone,
            finding text,
            constraint break_glass_activations_pkey primary key (id),
            constraint break_glass_activations_project_id_fkey foreign key (project_id)
                references projects (id) on delete cascade,
            constraint break_glass_activations_status_check
                check (status in ('pending', 'active', 'ended', 'lapsed', 'reviewed')),
            constraint break_glass_activations_review_check check (reviewed_by <> principal),
            constraint break_glass_activations_confirmation_check check (confirmed_by <> principal)
        )
        """
    )
    op.execute(
        "create index break_glass_activations_active_idx on break_glass_activations (principal) where status = 'active'"
    )
    op.execute("create index break_glass_activations_project_id_id_idx on break_glass_activations (project_id, id)")
