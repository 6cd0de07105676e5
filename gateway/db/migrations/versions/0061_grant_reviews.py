# SPDX-License-Identifier: Apache-2.0
"""Add the table of decisions of reviews."""

from alembic import op

revision = "0061"
down_revision = "0058"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table grant_reviews (
            id bigint generated always as identity not null,
            privilege text not null,
            principal_type text not null,
            principal_id text not null,
            object_type text not null,
            object_id text not null,
            decision text not null,
            reason text not null,
            decided_by text not null,
            decided_at timestamp with time zone default clock_timestamp() not null,
            constraint grant_reviews_pkey primary key (id),
            constraint grant_reviews_decision_check check (decision in ('certified', 'revoked'))
        )
        """
    )
    op.execute("create index grant_reviews_object_type_object_id_id_idx on grant_reviews (object_type, object_id, id)")
