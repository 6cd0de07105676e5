# SPDX-License-Identifier: Apache-2.0
"""Create the first schema: `first_schema.sql`

It has the number of the last migration of those that it replaces. A database that they migrated needs nothing.
"""

from pathlib import Path

from alembic import op

from gateway.db.schema.sql_functions import definitions, statements

revision = "0056"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    # The functions of `search.sql` come first, because columns and indexes call them.
    script = [each.statement for each in definitions() if each.comment.startswith("search.sql ")]
    script += statements(Path(__file__).with_name("first_schema.sql").read_text(encoding="utf-8"))
    for statement in script:
        # `op.execute` would take `:name` in the script for a parameter.
        connection.exec_driver_sql(statement)
