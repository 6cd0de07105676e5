# SPDX-License-Identifier: Apache-2.0
"""Add the former placements of objects, the beginning of their history, and the views of a past moment."""

from pathlib import Path

from alembic import op

from gateway.db.schema.sql_functions import statements

revision = "0063"
down_revision = "0062"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    for statement in statements(Path(__file__).with_name("past_moments.sql").read_text(encoding="utf-8")):
        connection.exec_driver_sql(statement)
