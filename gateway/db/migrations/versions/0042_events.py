# SPDX-License-Identifier: Apache-2.0
"""Create the outbox of change events, the deliveries that wait for each sink, and the dead letters."""

from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table events (
            sequence bigint generated always as identity primary key,
            id uuid not null unique,
            at timestamptz not null,
            type text not null,
            source text not null,
            key text not null,
            attributes jsonb not null,
            data bytea not null)
        """
    )
    op.execute("create index on events (at)")
    op.execute(
        """
        create table event_deliveries (
            sink text not null,
            sequence bigint not null references events on delete cascade,
            primary key (sink, sequence))
        """
    )
    op.execute(
        """
        create table event_dead_letters (
            sink text not null,
            sequence bigint not null references events on delete cascade,
            at timestamptz not null,
            reason text not null,
            primary key (sink, sequence))
        """
    )
