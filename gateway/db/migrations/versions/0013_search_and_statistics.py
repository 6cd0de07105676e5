# SPDX-License-Identifier: Apache-2.0
"""Names that can be searched, what endpoints were called, and how many tables and views there were"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0010"
branch_labels = None
depends_on = None

# `pg_trgm` sees letters only where the database's locale says so: in the locale C a Japanese name has no trigram and
# "süß" is one letter. So it is never shown anything but a-z, 0-9 and blanks: decomposed (NFKD) without the accents of
# Latin, Greek and Cyrillic letters; every other character that is not ASCII becomes four letters that no other
# character becomes (1000003 has no divisor in common with 36^4), scattered, so that neighbours in the alphabet are no
# more alike than strangers. Nothing in it depends on a locale or a collation. 1024 characters fit into an index entry.
_SEARCHABLE = """
    create function searchable(folded text) returns text language sql immutable strict parallel safe as $$
        select left(coalesce(string_agg(
            case
                when code between 97 and 122 or code between 48 and 57 then chr(code)
                when code between 65 and 90 then chr(code + 32)
                when code < 128 then ' '
                else substr(digits, (v / 46656)::int + 1, 1) || substr(digits, (v / 1296 % 36)::int + 1, 1)
                    || substr(digits, (v / 36 % 36)::int + 1, 1) || substr(digits, (v % 36)::int + 1, 1)
            end, '' order by n), ''), 1024)
        from (
            select n, ascii(c) as code, ascii(c)::bigint * 1000003 % 1679616 as v,
                'abcdefghijklmnopqrstuvwxyz0123456789' as digits
            from regexp_split_to_table(normalize(folded, NFKD), '') with ordinality as split(c, n)
            where c <> ''
        ) characters
        where code not between 768 and 879
    $$
"""

_LIVE = "{row}.staged_by is null and {row}.deleted_at is null"

_STATEMENT = """
    create function note_{what}_tables() returns trigger language plpgsql as $$
    begin
        insert into warehouse_changes (warehouse_id, tables, views)
        select r.warehouse_id, {sign} * count(*) filter (where r.kind = 'table'),
            {sign} * count(*) filter (where r.kind = 'view')
        from rows r where {live} and exists (select 1 from warehouses w where w.id = r.warehouse_id)
        group by r.warehouse_id;
        return null;
    end $$
"""

_ROW = f"""
    create function note_changed_table() returns trigger language plpgsql as $$
    declare
        change integer := ({_LIVE.format(row="new")})::int - ({_LIVE.format(row="old")})::int;
    begin
        if change <> 0 then
            insert into warehouse_changes (warehouse_id, tables, views)
            values (new.warehouse_id, case new.kind when 'table' then change else 0 end,
                    case new.kind when 'view' then change else 0 end);
        end if;
        return null;
    end $$
"""  # noqa: S608 - composed of constants of this module


def upgrade() -> None:
    # A trusted extension: the owner of the database may make it, no superuser is needed.
    op.execute("create extension if not exists pg_trgm")
    op.execute(_SEARCHABLE)
    for table, of in (
        ("tables", "searchable(name_key)"),
        ("namespaces", "searchable(path_key)"),
        ("roles", "searchable(name_key)"),
        ("users", "searchable(lower((name || ' '::text) || coalesce(email, ''::text) || ' '::text || id))"),
    ):
        op.add_column(table, sa.Column("search_key", sa.Text(), sa.Computed(of, persisted=True)))
    op.create_index(
        "tables_search_idx",
        "tables",
        ["namespace_id"],
        postgresql_include=["id", "search_key"],
        postgresql_where=sa.text("staged_by is null and deleted_at is null"),
    )
    _endpoint_statistics()
    _warehouse_statistics()


def _endpoint_statistics() -> None:
    op.create_table(
        "endpoint_statistics",
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("warehouse_id", sa.UUID(), nullable=True),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("hour", sa.DateTime(timezone=True), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.clock_timestamp(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("endpoint_statistics_project_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["warehouse_id"], ["warehouses.id"], name=op.f("endpoint_statistics_warehouse_id_fkey"), ondelete="CASCADE"
        ),
        sa.UniqueConstraint(
            "project_id",
            "hour",
            "warehouse_id",
            "route",
            "status",
            name="endpoint_statistics_key",
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_index(op.f("endpoint_statistics_warehouse_id_hour_idx"), "endpoint_statistics", ["warehouse_id", "hour"])
    op.create_index(op.f("endpoint_statistics_hour_idx"), "endpoint_statistics", ["hour"])


def _warehouse_statistics() -> None:
    warehouse = sa.ForeignKeyConstraint(
        ["warehouse_id"], ["warehouses.id"], name=op.f("warehouse_statistics_warehouse_id_fkey"), ondelete="CASCADE"
    )
    op.create_table(
        "warehouse_statistics",
        sa.Column("warehouse_id", sa.UUID(), nullable=False),
        sa.Column("hour", sa.DateTime(timezone=True), nullable=False),
        sa.Column("tables", sa.BigInteger(), nullable=False),
        sa.Column("views", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.func.clock_timestamp(), nullable=False),
        warehouse,
        sa.PrimaryKeyConstraint("warehouse_id", "hour", name=op.f("warehouse_statistics_pkey")),
    )
    # Changes are added as rows of their own and summed up later: a counter that every creation updates would make all
    # creations of a warehouse wait for each other, and two transactions with several of them wait in a circle.
    op.create_table(
        "warehouse_changes",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("warehouse_id", sa.UUID(), nullable=False),
        sa.Column("tables", sa.BigInteger(), nullable=False),
        sa.Column("views", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.clock_timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["warehouse_id"], ["warehouses.id"], name=op.f("warehouse_changes_warehouse_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("warehouse_changes_pkey")),
    )
    op.create_index(op.f("warehouse_changes_warehouse_id_idx"), "warehouse_changes", ["warehouse_id"])
    live = _LIVE.format(row="t")
    op.execute(
        f"""
        insert into warehouse_statistics (warehouse_id, hour, tables, views)
        select w.id, date_trunc('hour', clock_timestamp(), 'UTC'), count(t.id) filter (where t.kind = 'table'),
            count(t.id) filter (where t.kind = 'view')
        from warehouses w left join tables t on t.warehouse_id = w.id and {live} group by w.id
        """  # noqa: S608 - composed of constants of this module
    )
    live = _LIVE.format(row="r")
    op.execute(_STATEMENT.format(what="new", sign=1, live=live))
    op.execute(_STATEMENT.format(what="gone", sign=-1, live=live))
    op.execute(_ROW)
    op.execute(
        "create trigger tables_note_new after insert on tables referencing new table as rows "
        "for each statement execute function note_new_tables()"
    )
    op.execute(
        "create trigger tables_note_gone after delete on tables referencing old table as rows "
        "for each statement execute function note_gone_tables()"
    )
    # A commit changes neither column, so this costs it nothing.
    op.execute(
        "create trigger tables_note_changed after update of staged_by, deleted_at on tables "
        "for each row execute function note_changed_table()"
    )


def downgrade() -> None:
    for trigger, function in (
        ("changed", "note_changed_table"),
        ("gone", "note_gone_tables"),
        ("new", "note_new_tables"),
    ):
        op.execute(f"drop trigger tables_note_{trigger} on tables")
        op.execute(f"drop function {function}()")
    op.drop_table("warehouse_changes")
    op.drop_table("warehouse_statistics")
    op.drop_table("endpoint_statistics")
    op.drop_index("tables_search_idx", table_name="tables")
    for table in ("users", "roles", "namespaces", "tables"):
        op.drop_column(table, "search_key")
    op.execute("drop function searchable(text)")
    # The extension stays: somebody else may use it.
