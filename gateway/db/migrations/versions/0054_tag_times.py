# SPDX-License-Identifier: Apache-2.0
"""Keep the time at which a tag was attached, beside the time of its last change."""

from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table tag_attachments add column created_at timestamptz")
    op.execute("update tag_attachments set created_at = attached_at")
    op.execute(
        """
        alter table tag_attachments
            alter column created_at set default clock_timestamp(), alter column created_at set not null
        """
    )
