# SPDX-License-Identifier: Apache-2.0
"""Index the locations of tables and former tables in the order of collation C.

A search for locations below another one is then a range, in a database of any locale.
"""

from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Outside of a transaction, writes to the tables go on meanwhile. An interrupted build leaves an unusable index.
    with op.get_context().autocommit_block():
        for table in ("tables", "retired_locations"):
            op.execute(f"drop index concurrently if exists {table}_location_range_idx")
            op.execute(f'create index concurrently {table}_location_range_idx on {table} (location_key collate "C")')
