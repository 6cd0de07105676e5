# SPDX-License-Identifier: Apache-2.0
"""Watching OpenFGA's change feed"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "drift_watch",
        sa.Column("singleton", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("holder", sa.UUID(), nullable=True),
        sa.Column("held_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("store_id", sa.Text(), nullable=True),
        sa.Column("seen_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_change", sa.Text(), nullable=True),
        sa.Column("compare_all", sa.Boolean(), server_default="false", nullable=False),
        sa.CheckConstraint("singleton", name=op.f("drift_watch_one_row_check")),
        sa.PrimaryKeyConstraint("singleton", name=op.f("drift_watch_pkey")),
    )


def downgrade() -> None:
    op.drop_table("drift_watch")
