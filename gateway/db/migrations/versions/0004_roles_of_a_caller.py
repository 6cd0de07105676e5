# SPDX-License-Identifier: Apache-2.0
"""Finding the roles of a caller among thousands of their other grants"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "grants_roles_of_principal_idx",
        "grants",
        ["principal_type", "principal_id"],
        postgresql_where=sa.text("object_type = 'role'"),
    )


def downgrade() -> None:
    op.drop_index("grants_roles_of_principal_idx", table_name="grants")
