# SPDX-License-Identifier: Apache-2.0
"""Roles are found by their source: groups in tokens stand for them"""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("roles_by_source", "roles", ["provider_id", "source_id"])


def downgrade() -> None:
    op.drop_index("roles_by_source", "roles")
