# SPDX-License-Identifier: Apache-2.0
"""Add limits to grants of `delegate`. Existing grants keep their meaning: every user, administrators included."""

from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table grants add column acts_for text")
    op.execute("alter table grant_history add column acts_for text")
    # The backslash keeps the colon from becoming a parameter.
    op.execute(r"""update grants set acts_for = '{"administrators"\:true}' where privilege = 'delegate'""")
