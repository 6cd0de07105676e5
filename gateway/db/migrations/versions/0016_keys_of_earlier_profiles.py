# SPDX-License-Identifier: Apache-2.0
"""A place is free when the keys that an earlier storage profile gave for it have ended, too"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("warehouses", sa.Column("keys_until", sa.DateTime(timezone=True), nullable=True))
    op.execute(
        """
        create function remember_keys_of_profile() returns trigger language plpgsql as $$
        declare
            profile jsonb := convert_from(old.profile, 'UTF8')::jsonb;
            seconds integer;
        begin
            if coalesce((profile ->> 'sts-enabled')::boolean, false) then
                seconds := coalesce((profile ->> 'sts-token-validity-seconds')::integer, 3600) + 60;
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
    op.execute(
        """
        create function outlast_keys_of_profiles() returns trigger language plpgsql as $$
        begin
            new.keys_until := greatest(
                new.keys_until, (select w.keys_until from warehouses w where w.id = new.warehouse_id)
            );
            return new;
        end $$
        """
    )
    op.execute(
        """
        create trigger retired_locations_outlast_keys before insert on retired_locations
        for each row execute function outlast_keys_of_profiles()
        """
    )


def downgrade() -> None:
    op.execute("drop trigger retired_locations_outlast_keys on retired_locations")
    op.execute("drop function outlast_keys_of_profiles()")
    op.execute("drop trigger warehouses_remember_keys_of_profile on warehouses")
    op.execute("drop function remember_keys_of_profile()")
    op.drop_column("warehouses", "keys_until")
