# SPDX-License-Identifier: Apache-2.0
"""The part of metadata documents that decisions read, beside the documents

The rows that are there are filled after all migrations, in batches of their own (`gateway.db.excerpt_backfill`):
gateways of the earlier version go on serving and committing meanwhile.
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tables", sa.Column("metadata_excerpt", sa.LargeBinary(), nullable=True))
    op.add_column("tables", sa.Column("metadata_excerpt_of", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("tables", "metadata_excerpt_of")
    op.drop_column("tables", "metadata_excerpt")
