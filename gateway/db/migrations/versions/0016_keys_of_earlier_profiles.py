# SPDX-License-Identifier: Apache-2.0
"""A place is free when the keys that an earlier storage profile gave for it have ended, too"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0014"
branch_labels = None
depends_on = None

_SECONDS = """
    (case when coalesce(({profile} ->> 'sts-enabled')::boolean, false)
        then coalesce(({profile} ->> 'sts-token-validity-seconds')::integer, 3600) + 60 else 0 end)
"""


def upgrade() -> None:
    op.add_column("warehouses", sa.Column("keys_until", sa.DateTime(timezone=True), nullable=True))
    op.execute(
        f"""
        create function remember_keys_of_profile() returns trigger language plpgsql as $$
        declare
            before jsonb := convert_from(old.profile, 'UTF8')::jsonb;
            after jsonb := convert_from(new.profile, 'UTF8')::jsonb;
            seconds integer := {_SECONDS.format(profile="before")};
        begin
            -- What lives no longer than the keys of the new profile is waited for anyway.
            if seconds > {_SECONDS.format(profile="after")} then
                new.keys_until := greatest(old.keys_until, clock_timestamp() + make_interval(secs => seconds));
            end if;
            return new;
        end $$
        """
    )
    op.execute(
        """
        create trigger warehouses_remember_keys_of_profile before update of profile on warehouses
        for each row when (old.profile is distinct from new.profile) execute function remember_keys_of_profile()
        """
    )
    _retire("w.keys_until")


def downgrade() -> None:
    _retire("null")
    op.execute("drop trigger warehouses_remember_keys_of_profile on warehouses")
    op.execute("drop function remember_keys_of_profile()")
    op.drop_column("warehouses", "keys_until")


def _retire(keys_until: str) -> None:
    """What the trigger of migrations 0011 and 0014 does, and no sooner than `keys_until`, for what has keys."""
    seconds = _SECONDS.format(profile="convert_from(w.profile, 'UTF8')::jsonb")
    op.execute(
        f"""
        create or replace function retire_location() returns trigger language plpgsql as $$
        declare
            ended timestamptz := clock_timestamp();
        begin
            if tg_op = 'DELETE' and old.deleted_at is not null then return null; end if;
            if old.kind <> 'view' then
                select greatest(clock_timestamp() + make_interval(secs => {seconds}), {keys_until}) into ended
                from warehouses w where w.id = old.warehouse_id;
            end if;
            insert into retired_locations (table_id, warehouse_id, location, location_key, retired_by, keys_until)
            values (old.id, old.warehouse_id, old.location, old.location_key,
                    coalesce(old.staged_by, (to_jsonb(new) ->> 'deleted_by')), ended);
            return null;
        end $$
        """  # noqa: S608 - composed of constants of this module
    )
