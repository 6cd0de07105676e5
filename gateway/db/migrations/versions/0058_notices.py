# SPDX-License-Identifier: Apache-2.0
"""Add the notices of projects."""

from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table notices (
            id uuid primary key,
            project_id text not null references projects (id) on delete cascade,
            name text not null,
            name_key text not null,
            text text not null,
            created_at timestamptz not null default now(),
            unique (project_id, name_key)
        )
        """
    )
