# SPDX-License-Identifier: Apache-2.0
"""A revision for grants with an expiry, so that no remembered answer outlives one"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "server",
        sa.Column("time_boxes", sa.UUID(), nullable=False, server_default=sa.func.gen_random_uuid()),
    )
    op.create_index(
        "grants_ends_of_principal_idx",
        "grants",
        ["principal_type", "principal_id", "expires_at"],
        postgresql_where=sa.text("expires_at is not null"),
    )


def downgrade() -> None:
    op.drop_index("grants_ends_of_principal_idx", table_name="grants")
    op.drop_column("server", "time_boxes")
