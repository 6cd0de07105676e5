# SPDX-License-Identifier: Apache-2.0
"""Store the kind of a warehouse's credential, which answers state, outside of the encrypted credential.

The kind of an existing credential stays unknown. It is the only one that its provider had.
"""

from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table warehouses add column credential_kind text")
