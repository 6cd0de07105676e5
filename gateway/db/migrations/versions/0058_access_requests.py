# SPDX-License-Identifier: Apache-2.0
"""Add the table of access requests."""

from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table access_requests (
            id uuid not null,
            principal text not null,
            project_id text not null,
            warehouse_id uuid,
            object_type text not null,
            object_id text not null,
            name text not null,
            privileges text[] not null,
            reason text not null,
            duration integer not null,
            status text default 'pending' not null,
            created_at timestamp with time zone default clock_timestamp() not null,
            expires_at timestamp with time zone not null,
            reminded_at timestamp with time zone,
            decided_by text,
            decided_at timestamp with time zone,
            comment text,
            granted text[],
            ends_at timestamp with time zone,
            ended_by text,
            ended_at timestamp with time zone,
            constraint access_requests_pkey primary key (id),
            constraint access_requests_project_id_fkey foreign key (project_id)
                references projects (id) on delete cascade,
            constraint access_requests_status_check
                check (status in ('pending', 'approved', 'denied', 'withdrawn', 'ended'))
        )
        """
    )
    op.execute("create index access_requests_principal_id_idx on access_requests (principal, id)")
    op.execute("create index access_requests_object_type_object_id_idx on access_requests (object_type, object_id)")
    op.execute("create index access_requests_project_id_id_idx on access_requests (project_id, id)")
    op.execute("create index access_requests_pending_idx on access_requests (id) where status = 'pending'")
