# SPDX-License-Identifier: Apache-2.0
"""Addresses of users that a provider or a directory vouches for; only they can be searched"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_SEARCH_KEY = (
    "searchable(lower(regexp_replace(normalize(name, NFKD), '[^ ]*@[^ ]*', ' ', 'g') || ' ' || "
    "coalesce(verified_email, '') || ' ' || id))"
)
_ADDRESS_KEY = "searchable(lower(coalesce(verified_email, '') || ' ' || id))"
_FORMER_KEY = "searchable(lower((name || ' '::text) || coalesce(email, ''::text) || ' '::text || id))"


def upgrade() -> None:
    op.add_column("users", sa.Column("verified_email", sa.Text(), nullable=True))
    # What a directory wrote last is its word. All other addresses may be self-given: they stay, and are not searched.
    op.execute(
        """
        update users u set verified_email = u.email from scim_users s
        where s.user_id = u.id and u.last_updated_with = 'scim' and u.email is not null
        """
    )
    # The column keeps its name, so that a gateway of the version before goes on, and does not search them either.
    op.drop_column("users", "search_key")
    op.add_column("users", sa.Column("search_key", sa.Text(), sa.Computed(_SEARCH_KEY, persisted=True)))
    op.add_column("users", sa.Column("address_key", sa.Text(), sa.Computed(_ADDRESS_KEY, persisted=True)))


def downgrade() -> None:
    op.drop_column("users", "address_key")
    op.drop_column("users", "search_key")
    op.add_column("users", sa.Column("search_key", sa.Text(), sa.Computed(_FORMER_KEY, persisted=True)))
    op.drop_column("users", "verified_email")
