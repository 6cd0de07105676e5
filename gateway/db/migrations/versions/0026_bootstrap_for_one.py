# SPDX-License-Identifier: Apache-2.0
"""A server that is opened to be bootstrapped again may be so for one user"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("server", sa.Column("bootstrap_for", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("server", "bootstrap_for")
