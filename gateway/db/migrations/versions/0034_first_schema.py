# SPDX-License-Identifier: Apache-2.0
"""Create the first schema: `first_schema.sql`

It has the number of the last migration of those that it replaces. A database that they migrated needs nothing.
"""

import re
from pathlib import Path

from alembic import op

revision = "0034"
down_revision = None
branch_labels = None
depends_on = None

#: A statement ends at the end of a line, and the next one begins in the first column.
_BETWEEN_STATEMENTS = re.compile(r"(?<=;)\n+(?=\S)")


def upgrade() -> None:
    connection = op.get_bind()
    script = Path(__file__).with_name("first_schema.sql").read_text(encoding="utf-8")
    for statement in _BETWEEN_STATEMENTS.split(script):
        # Not `op.execute`: it takes `:name` for a parameter.
        connection.exec_driver_sql(statement)
