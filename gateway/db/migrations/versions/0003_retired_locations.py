# SPDX-License-Identifier: Apache-2.0
"""Where tables and views used to lie, and until when keys for it may live"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "retired_locations",
        sa.Column("id", sa.UUID(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("table_id", sa.UUID(), nullable=False),
        sa.Column("warehouse_id", sa.UUID(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("location_key", sa.Text(), nullable=False),
        sa.Column("retired_by", sa.Text(), nullable=True),
        sa.Column(
            "retired_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("keys_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("files_remain", sa.Boolean(), server_default="true", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("retired_locations_pkey")),
    )
    op.create_index(op.f("retired_locations_location_key_idx"), "retired_locations", ["location_key"])
    op.create_index(op.f("retired_locations_table_id_idx"), "retired_locations", ["table_id"])
    # As a trigger, because a statement that forgot it would leave a place free while keys for it live. Views get no
    # keys. The minute is for a request that was decided before the row went and asks the store afterwards.
    op.execute(
        """
        create function retire_location() returns trigger language plpgsql as $$
        declare
            profile jsonb;
            seconds integer := 0;
        begin
            if old.kind = 'table' then
                select convert_from(w.profile, 'UTF8')::jsonb into profile
                from warehouses w where w.id = old.warehouse_id;
                if coalesce((profile ->> 'sts-enabled')::boolean, false) then
                    seconds := coalesce((profile ->> 'sts-token-validity-seconds')::integer, 3600) + 60;
                end if;
            end if;
            insert into retired_locations (table_id, warehouse_id, location, location_key, retired_by, keys_until)
            values (old.id, old.warehouse_id, old.location, old.location_key, old.staged_by,
                    clock_timestamp() + make_interval(secs => seconds));
            return null;
        end $$
        """
    )
    op.execute(
        """
        create trigger tables_retire_location_of_gone after delete on tables
        for each row execute function retire_location()
        """
    )
    op.execute(
        """
        create trigger tables_retire_location_of_moved after update of location_key on tables
        for each row when (old.location_key <> new.location_key) execute function retire_location()
        """
    )


def downgrade() -> None:
    op.execute("drop trigger tables_retire_location_of_moved on tables")
    op.execute("drop trigger tables_retire_location_of_gone on tables")
    op.execute("drop function retire_location()")
    op.drop_index(op.f("retired_locations_table_id_idx"), table_name="retired_locations")
    op.drop_index(op.f("retired_locations_location_key_idx"), table_name="retired_locations")
    op.drop_table("retired_locations")
