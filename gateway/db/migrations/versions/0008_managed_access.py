# SPDX-License-Identifier: Apache-2.0
"""Managed access of warehouses and namespaces"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_TABLES = ("warehouses", "namespaces")


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(table, sa.Column("managed_access", sa.Boolean(), server_default="false", nullable=False))


def downgrade() -> None:
    for table in _TABLES:
        op.drop_column(table, "managed_access")
