# SPDX-License-Identifier: Apache-2.0
"""Replace all functions and triggers by `gateway/db/schema/functions/`, and drop a function without callers."""

from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("drop function if exists carry_data_policies(uuid[], text, uuid, uuid, boolean)")
