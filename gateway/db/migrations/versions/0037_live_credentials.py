# SPDX-License-Identifier: Apache-2.0
"""Create the register of live credentials.

Processes of the previous version issue credentials without a row. They are complete in the register one credential
lifetime after the last such process ended.
"""

from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table live_credentials (
            id uuid constraint live_credentials_pkey primary key,
            principal text not null,
            assumed_role uuid,
            engine text,
            view_owner text,
            project_id text not null,
            warehouse_id uuid not null,
            kind text not null,
            table_id uuid not null,
            prefix text not null,
            level text not null,
            provider text not null,
            session_name text not null,
            policy_digest text not null,
            issued_at timestamptz not null default clock_timestamp(),
            expires_at timestamptz not null,
            live_until timestamptz not null)
        """
    )
    for columns in ("principal", "live_until", "table_id, id", "warehouse_id, id"):
        op.execute(f"create index live_credentials_{columns.replace(', ', '_')}_idx on live_credentials ({columns})")
    for column in ("engine", "view_owner"):
        op.execute(
            f"create index live_credentials_{column}_idx on live_credentials ({column}) where {column} is not null"
        )
