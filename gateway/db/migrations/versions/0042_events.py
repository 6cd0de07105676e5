# SPDX-License-Identifier: Apache-2.0
"""Create the outbox of change events: the events, the sinks that still need each, and those that a sink refused.

Changes before this migration have no events.
"""

from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table events (
            sequence bigint generated always as identity constraint events_pkey primary key,
            id uuid not null constraint events_id_key unique,
            at timestamptz not null,
            type text not null,
            source text not null,
            key text not null,
            attributes jsonb not null,
            data bytea not null)
        """
    )
    op.execute("create index events_at_idx on events (at)")
    op.execute(
        """
        create table event_deliveries (
            sink text not null,
            sequence bigint not null constraint event_deliveries_sequence_fkey references events on delete cascade,
            constraint event_deliveries_pkey primary key (sink, sequence))
        """
    )
    op.execute("create index event_deliveries_sequence_idx on event_deliveries (sequence)")
    op.execute(
        """
        create table event_dead_letters (
            sink text not null,
            sequence bigint not null constraint event_dead_letters_sequence_fkey references events on delete cascade,
            at timestamptz not null,
            reason text not null,
            constraint event_dead_letters_pkey primary key (sink, sequence))
        """
    )
    op.execute("create index event_dead_letters_sequence_idx on event_dead_letters (sequence)")
