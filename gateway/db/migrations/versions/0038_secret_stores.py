# SPDX-License-Identifier: Apache-2.0
"""Record in which secret store each credential lies. Credentials in another store than PostgreSQL have no content here.

Gateways of earlier versions insert rows without a store, which PostgreSQL holds.
"""

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table secrets add column store text not null default 'postgres'")
    op.execute("alter table secrets alter column sealed drop not null")
