# SPDX-License-Identifier: Apache-2.0
"""Tables and views that were dropped and are kept for a while"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0012"
branch_labels = None
depends_on = None

_LIVE = sa.text("staged_by is null and deleted_at is null")

_RETIRE = """
    create or replace function retire_location() returns trigger language plpgsql as $$
    declare
        profile jsonb;
        seconds integer := 0;
    begin
        {unless}
        if old.kind = 'table' then
            select convert_from(w.profile, 'UTF8')::jsonb into profile
            from warehouses w where w.id = old.warehouse_id;
            if coalesce((profile ->> 'sts-enabled')::boolean, false) then
                seconds := coalesce((profile ->> 'sts-token-validity-seconds')::integer, 3600) + 60;
            end if;
        end if;
        insert into retired_locations (table_id, warehouse_id, location, location_key, retired_by, keys_until)
        values (old.id, old.warehouse_id, old.location, old.location_key, {by},
                clock_timestamp() + make_interval(secs => seconds));
        return null;
    end $$
"""


def upgrade() -> None:
    op.add_column("tables", sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("tables", sa.Column("deleted_by", sa.Text(), nullable=True))
    op.create_check_constraint(
        op.f("tables_staged_or_deleted_check"), "tables", "staged_by is null or deleted_at is null"
    )
    op.drop_index("tables_namespace_id_name_key_key", table_name="tables")
    op.create_index(
        "tables_namespace_id_name_key_key", "tables", ["namespace_id", "name_key"], unique=True, postgresql_where=_LIVE
    )
    op.create_index(
        "tables_deleted_idx",
        "tables",
        ["warehouse_id", "name_key", "id"],
        postgresql_where=sa.text("deleted_at is not null"),
    )
    # A dropped table's keys are out from the drop on, not from when its row goes; one that comes back has its place.
    unless = "if tg_op = 'DELETE' and old.deleted_at is not null then return null; end if;"
    op.execute(_RETIRE.format(unless=unless, by="coalesce(old.staged_by, (to_jsonb(new) ->> 'deleted_by'))"))
    op.execute(
        """
        create trigger tables_retire_location_of_dropped after update of deleted_at on tables
        for each row when (old.deleted_at is null and new.deleted_at is not null) execute function retire_location()
        """
    )
    op.execute(
        """
        create function take_location_back() returns trigger language plpgsql as $$
        begin
            delete from retired_locations where table_id = new.id and location_key = new.location_key;
            return null;
        end $$
        """
    )
    op.execute(
        """
        create trigger tables_take_location_back after update of deleted_at on tables
        for each row when (old.deleted_at is not null and new.deleted_at is null) execute function take_location_back()
        """
    )
    # No tuple goes with a drop that can be undone, so no delivery would tell those who are about to hand out keys. At
    # the end of the transaction, because what is decided in it stands on the revision as it was.
    op.execute(
        """
        create function move_revision_of_dropped() returns trigger language plpgsql as $$
        begin
            update warehouses set revision = gen_random_uuid() where id = new.warehouse_id;
            return null;
        end $$
        """
    )
    op.execute(
        """
        create constraint trigger tables_move_revision_of_dropped after update of deleted_at on tables
        deferrable initially deferred for each row
        when (old.deleted_at is null and new.deleted_at is not null) execute function move_revision_of_dropped()
        """
    )


def downgrade() -> None:
    op.execute("drop trigger tables_move_revision_of_dropped on tables")
    op.execute("drop function move_revision_of_dropped()")
    op.execute("drop trigger tables_take_location_back on tables")
    op.execute("drop function take_location_back()")
    op.execute("drop trigger tables_retire_location_of_dropped on tables")
    op.execute(_RETIRE.format(unless="", by="old.staged_by"))
    # What was dropped is gone for those who know nothing of coming back.
    op.execute("delete from tables where deleted_at is not null")
    op.drop_index("tables_deleted_idx", table_name="tables")
    op.drop_index("tables_namespace_id_name_key_key", table_name="tables")
    op.create_index(
        "tables_namespace_id_name_key_key",
        "tables",
        ["namespace_id", "name_key"],
        unique=True,
        postgresql_where=sa.text("staged_by is null"),
    )
    op.drop_constraint(op.f("tables_staged_or_deleted_check"), "tables")
    op.drop_column("tables", "deleted_by")
    op.drop_column("tables", "deleted_at")
