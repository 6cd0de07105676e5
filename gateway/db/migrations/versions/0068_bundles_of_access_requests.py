# SPDX-License-Identifier: Apache-2.0
"""Add the bundle of access requests for several objects that were made together."""

from alembic import op

revision = "0068"
down_revision = "0067"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table access_requests add column bundle uuid")
    op.execute("create index access_requests_bundle_idx on access_requests (bundle)")
