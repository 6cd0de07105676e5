# SPDX-License-Identifier: Apache-2.0
"""Add an index by which repairs count the tables in a warehouse without reading their rows."""

from alembic import op

revision = "0067"
down_revision = "0066"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "create index tables_counted_idx on tables (namespace_id, kind) where staged_by is null and deleted_at is null"
    )
