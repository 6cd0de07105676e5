# SPDX-License-Identifier: Apache-2.0
"""Generic tables: a third kind of rows beside tables and views, with a format"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0015"
branch_labels = None
depends_on = None

_OF_GENERIC = "(kind = 'generic_table') = (format is not null)"


def upgrade() -> None:
    op.add_column("tables", sa.Column("format", sa.Text(), nullable=True))
    op.drop_constraint(op.f("tables_kind_check"), "tables", type_="check")
    op.create_check_constraint(op.f("tables_kind_check"), "tables", "kind in ('table', 'view', 'generic_table')")
    op.create_check_constraint(op.f("tables_format_of_generic_tables_check"), "tables", _OF_GENERIC)
    _retire("old.kind <> 'view'")


def downgrade() -> None:
    op.execute("delete from tables where kind = 'generic_table'")
    _retire("old.kind = 'table'")
    op.drop_constraint(op.f("tables_format_of_generic_tables_check"), "tables", type_="check")
    op.drop_constraint(op.f("tables_kind_check"), "tables", type_="check")
    op.create_check_constraint(op.f("tables_kind_check"), "tables", "kind in ('table', 'view')")
    op.drop_column("tables", "format")


def _retire(with_keys: str) -> None:
    """What the trigger of migration 0011 does, for the kinds that keys are handed out for."""
    op.execute(
        f"""
        create or replace function retire_location() returns trigger language plpgsql as $$
        declare
            profile jsonb;
            seconds integer := 0;
        begin
            if tg_op = 'DELETE' and old.deleted_at is not null then return null; end if;
            if {with_keys} then
                select convert_from(w.profile, 'UTF8')::jsonb into profile
                from warehouses w where w.id = old.warehouse_id;
                if coalesce((profile ->> 'sts-enabled')::boolean, false) then
                    seconds := coalesce((profile ->> 'sts-token-validity-seconds')::integer, 3600) + 60;
                end if;
            end if;
            insert into retired_locations (table_id, warehouse_id, location, location_key, retired_by, keys_until)
            values (old.id, old.warehouse_id, old.location, old.location_key,
                    coalesce(old.staged_by, (to_jsonb(new) ->> 'deleted_by')),
                    clock_timestamp() + make_interval(secs => seconds));
            return null;
        end $$
        """  # noqa: S608 - both conditions are constants of this module
    )
