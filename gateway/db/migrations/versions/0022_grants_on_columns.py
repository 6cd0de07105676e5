# SPDX-License-Identifier: Apache-2.0
"""Grants on columns are found by their table"""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "create index grants_on_columns_idx on grants (split_part(object_id, '.', 1), principal_type, principal_id) "
        "where object_type = 'column'"
    )


def downgrade() -> None:
    op.drop_index("grants_on_columns_idx", "grants")
