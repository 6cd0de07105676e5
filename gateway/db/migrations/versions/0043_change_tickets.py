# SPDX-License-Identifier: Apache-2.0
"""Create the tickets of changes that wait for approval."""

from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table change_tickets (
            id uuid constraint change_tickets_pkey primary key,
            digest text not null,
            warehouse_id uuid not null
                constraint change_tickets_warehouse_id_fkey references warehouses (id) on delete cascade,
            object_type text not null,
            object_id uuid not null,
            name text not null,
            kind text not null,
            principal text not null,
            reasons text[] not null,
            change jsonb not null,
            status text default 'pending' not null,
            created_at timestamptz default clock_timestamp() not null,
            expires_at timestamptz not null,
            decided_by text,
            decided_at timestamptz,
            comment text,
            used_at timestamptz,
            constraint change_tickets_status_check
                check (status in ('pending', 'approved', 'rejected', 'used', 'lapsed')))
        """
    )
    op.execute(
        """
        create unique index change_tickets_digest_idx on change_tickets (digest)
            where status in ('pending', 'approved', 'rejected')
        """
    )
    op.execute("create index change_tickets_warehouse_id_id_idx on change_tickets (warehouse_id, id)")
    op.execute("create index change_tickets_expires_at_idx on change_tickets (expires_at)")
