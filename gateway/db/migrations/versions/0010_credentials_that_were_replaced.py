# SPDX-License-Identifier: Apache-2.0
"""Credentials that were replaced are kept for a while"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("secrets", sa.Column("replaced_at", sa.DateTime(timezone=True)))
    op.create_index(
        "secrets_replaced_idx", "secrets", ["replaced_at"], postgresql_where=sa.text("replaced_at is not null")
    )


def downgrade() -> None:
    op.drop_index("secrets_replaced_idx", "secrets")
    op.drop_column("secrets", "replaced_at")
