# SPDX-License-Identifier: Apache-2.0
"""Where the database is, so that one that was restored is not taken for the one that was lost"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("server", sa.Column("home", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("server", "home")
