# SPDX-License-Identifier: Apache-2.0
"""Keys of the tokens that the gateway signs itself, for engines that act for users"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import UUID

revision = "0020"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "signing_keys",
        sa.Column("kid", sa.Text(), primary_key=True),
        sa.Column("public", sa.LargeBinary(), nullable=False),
        sa.Column("secret_id", UUID(as_uuid=True), sa.ForeignKey("secrets.id"), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("signs_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("verifies_until", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    op.execute("delete from secrets where id in (select secret_id from signing_keys)")
    op.drop_table("signing_keys")
