# SPDX-License-Identifier: Apache-2.0
"""Record how long keys for a warehouse live, whatever the provider of its storage"""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

#: Of migration 0016: what S3 profiles tell. It stays, because a gateway of the version before leaves the column out.
_BY_PROFILE = """
    (case when coalesce(({profile} ->> 'sts-enabled')::boolean, false)
        then coalesce(({profile} ->> 'sts-token-validity-seconds')::integer, 3600) + 60 else 0 end)
"""
_RETIRE = "w.keys_until) into ended"
_RETIRE_BY_COLUMN = "w.keys_until, clock_timestamp() + make_interval(secs => w.key_seconds)) into ended"


def upgrade() -> None:
    op.add_column("warehouses", sa.Column("key_seconds", sa.Integer(), server_default="0", nullable=False))
    _remember("greatest(old.key_seconds, {})", "greatest(new.key_seconds, {})")
    _replace(_RETIRE, _RETIRE_BY_COLUMN)


def downgrade() -> None:
    _replace(_RETIRE_BY_COLUMN, _RETIRE)
    _remember("{}", "{}")
    op.drop_column("warehouses", "key_seconds")


def _remember(before: str, after: str) -> None:
    """Replace the trigger function that records the end of an earlier profile's keys."""
    op.execute(
        f"""
        create or replace function remember_keys_of_profile() returns trigger language plpgsql as $$
        declare
            before jsonb := convert_from(old.profile, 'UTF8')::jsonb;
            after jsonb := convert_from(new.profile, 'UTF8')::jsonb;
            seconds integer := {before.format(_BY_PROFILE.format(profile="before"))};
        begin
            -- What lives no longer than the keys of the new profile is waited for anyway.
            if seconds > {after.format(_BY_PROFILE.format(profile="after"))} then
                new.keys_until := greatest(old.keys_until, clock_timestamp() + make_interval(secs => seconds));
            end if;
            return new;
        end $$
        """
    )


def _replace(before: str, after: str) -> None:
    """Replace an expression in the trigger function that records retired locations."""
    op.execute(
        f"""
        do $do$ declare body text := pg_get_functiondef('retire_location()'::regprocedure); begin
            if position('{before}' in body) = 0 then raise exception 'retire_location() is of another version'; end if;
            execute replace(body, '{before}', '{after}');
        end $do$
        """
    )
