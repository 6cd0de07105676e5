# SPDX-License-Identifier: Apache-2.0
"""Users who were deleted and of whose last changes nobody knows yet that all have ended"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "departures",
        sa.Column("user_id", sa.Text(), primary_key=True),
        sa.Column("deleted_by", sa.Text(), nullable=False),
        sa.Column(
            "deleted_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("in_force_at", sa.DateTime(timezone=True), nullable=True),
    )


def downgrade() -> None:
    op.drop_table("departures")
