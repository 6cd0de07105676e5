# SPDX-License-Identifier: Apache-2.0
"""Add the contact of warehouses."""

from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table warehouses add column contact text")
