# SPDX-License-Identifier: Apache-2.0
"""Index the pending revocations, which every request looks for."""

from alembic import op

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("create index outbox_takes_away_idx on outbox (subject_id) where takes_away")
