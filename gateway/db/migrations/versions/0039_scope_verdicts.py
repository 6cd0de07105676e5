# SPDX-License-Identifier: Apache-2.0
"""Store the verdict of the canary for each warehouse, and the time of its last run."""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Columns without a default are added without rewriting the table; earlier gateways leave them null.
    op.execute(
        """
        alter table warehouses
            add column if not exists scope_verdict text,
            add column if not exists scope_version integer,
            add column if not exists scope_verdict_at timestamptz,
            add column if not exists scope_tried_at timestamptz,
            add column if not exists scope_report bytea
        """
    )
