# SPDX-License-Identifier: Apache-2.0
"""The first schema: `first_schema.sql`

It has the number of the last of the steps that led here, so a database that took them needs nothing.
"""

from pathlib import Path

from alembic import op

revision = "0034"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema = Path(__file__).with_name("first_schema.sql").read_text()
    # Bodies of functions name tables that the file creates after them.
    op.execute("set local check_function_bodies = off")
    # asyncpg takes several statements at once only outside of SQLAlchemy, on the same connection and transaction.
    op.get_bind().connection.dbapi_connection.run_async(lambda driver: driver.execute(schema))
    op.execute("reset check_function_bodies")
