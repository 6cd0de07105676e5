# SPDX-License-Identifier: Apache-2.0
"""Add an index by which lists of access read a page of the holders of a privilege, whatever their number."""

from alembic import op

revision = "0066"
down_revision = "0064"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "create index grants_holders_idx on grants (object_type, object_id, privilege, principal_type, principal_id) "
        "include (expires_at)"
    )
