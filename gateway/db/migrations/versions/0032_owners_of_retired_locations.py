# SPDX-License-Identifier: Apache-2.0
"""Record the owners and the metadata file of tables and views whose location is retired"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_SECONDS = """
    (case when coalesce((convert_from(w.profile, 'UTF8')::jsonb ->> 'sts-enabled')::boolean, false)
        then coalesce((convert_from(w.profile, 'UTF8')::jsonb ->> 'sts-token-validity-seconds')::integer, 3600) + 60
        else 0 end)
"""


def upgrade() -> None:
    # Rows from before have no owners: their files can only be adopted.
    op.add_column("retired_locations", sa.Column("owners", ARRAY(sa.Text()), server_default="{}", nullable=False))
    op.add_column("retired_locations", sa.Column("metadata_location", sa.Text(), nullable=True))
    # Ownership that ends is left out: registering gives ownership without an end.
    op.execute(
        """
        create function permanent_owners(of_type text, of_id uuid) returns text[] language sql stable as $$
            select coalesce(array_agg(distinct g.principal_type || ':' || g.principal_id), '{}')
            from grants g
            where g.object_type = of_type and g.object_id = of_id::text and g.privilege = 'ownership'
                and g.expires_at is null
        $$
        """
    )
    # A row that was dropped before keeps its retired location; its owners may have changed until its end.
    _retire(
        on_end="""
            update retired_locations
            set owners = permanent_owners(old.kind, old.id), metadata_location = old.metadata_location
            where table_id = old.id and location_key = old.location_key;
        """,
        columns=", owners, metadata_location",
        values=", permanent_owners(old.kind, old.id), old.metadata_location",
    )


def downgrade() -> None:
    _retire(on_end="", columns="", values="")
    op.execute("drop function permanent_owners(text, uuid)")
    op.drop_column("retired_locations", "metadata_location")
    op.drop_column("retired_locations", "owners")


def _retire(*, on_end: str, columns: str, values: str) -> None:
    """Replace the trigger function of migration 0016."""
    op.execute(
        f"""
        create or replace function retire_location() returns trigger language plpgsql as $$
        declare
            ended timestamptz := clock_timestamp();
        begin
            if tg_op = 'DELETE' and old.deleted_at is not null then
                {on_end}
                return null;
            end if;
            if old.kind <> 'view' then
                select greatest(clock_timestamp() + make_interval(secs => {_SECONDS}), w.keys_until) into ended
                from warehouses w where w.id = old.warehouse_id;
            end if;
            insert into retired_locations
                (table_id, warehouse_id, location, location_key, retired_by, keys_until{columns})
            values (old.id, old.warehouse_id, old.location, old.location_key,
                    coalesce(old.staged_by, (to_jsonb(new) ->> 'deleted_by')), ended{values});
            return null;
        end $$
        """  # noqa: S608 - composed of constants of this module
    )
