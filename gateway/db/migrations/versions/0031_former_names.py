# SPDX-License-Identifier: Apache-2.0
"""Record the names that tables and namespaces had before a rename or a move"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_KINDS = (("table", "tables"), ("namespace", "namespaces"))

# As triggers, because a statement that forgot it, or a gateway of the version before, would let a rename take a thing
# away from the policies that know it by name.
# Former names of namespaces count for all that lies in them. What leaves a namespace takes these names along, with the
# rest of its own path behind them; namespaces in `kept` still contain it. 21 are enough: from there on the reader
# reports the names as incomplete (gateway.access.resolved.MAX_FORMER_NAMES), and guardrails match every name.
_INHERITED = """
    create function inherited_former_names(containers uuid[], path_key text, levels text[], kept uuid[])
    returns table (former_key text, former_levels text[], former_until timestamptz) language sql stable as $$
        select distinct on (1)
            array_to_string(
                string_to_array(f.path_key, chr(31)) || (string_to_array($2, chr(31)))[cast(c.depth as integer) + 1:],
                chr(31)
            ),
            f.levels || ($3)[cast(c.depth as integer) + 1:],
            f.until
        from unnest($1) with ordinality as c(id, depth)
        join former_namespace_names f on f.namespace_id = c.id
        where f.namespace_id <> all($4)
        order by 1, f.until desc
        limit 21
    $$
"""
_TABLE = """
    create function record_former_table_name() returns trigger language plpgsql as $$
    begin
        insert into former_table_names (table_id, path_key, levels)
        select old.id, n.path_key || chr(31) || old.name_key, n.levels || old.name
        from namespaces n where n.id = old.namespace_id
        on conflict (table_id, path_key) do update set levels = excluded.levels, until = clock_timestamp();
        if old.namespace_id <> new.namespace_id then
            insert into former_table_names (table_id, path_key, levels, until)
            select old.id, i.former_key || chr(31) || old.name_key, i.former_levels || old.name, i.former_until
            from namespaces n
            join namespaces k on k.id = new.namespace_id
            cross join inherited_former_names(n.ancestors || n.id, n.path_key, n.levels, k.ancestors || k.id) i
            where n.id = old.namespace_id
            on conflict (table_id, path_key) do nothing;
        end if;
        return null;
    end $$
"""
# Of the rows that a move changes only the moved namespace has another parent; those below still lie in it.
_NAMESPACE = """
    create function record_former_namespace_name() returns trigger language plpgsql as $$
    begin
        insert into former_namespace_names (namespace_id, path_key, levels)
        values (old.id, old.path_key, old.levels)
        on conflict (namespace_id, path_key) do update set levels = excluded.levels, until = clock_timestamp();
        if old.parent_id is distinct from new.parent_id then
            insert into former_namespace_names (namespace_id, path_key, levels, until)
            select old.id, i.former_key, i.former_levels, i.former_until
            from inherited_former_names(old.ancestors, old.path_key, old.levels, new.ancestors) i
            on conflict (namespace_id, path_key) do nothing;
        end if;
        return null;
    end $$
"""


def upgrade() -> None:
    for kind, of in _KINDS:
        name = f"former_{kind}_names"
        op.create_table(
            name,
            sa.Column(f"{kind}_id", sa.UUID(), nullable=False),
            sa.Column("path_key", sa.Text(), nullable=False),
            sa.Column("levels", sa.ARRAY(sa.Text()), nullable=False),
            sa.Column("until", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
            sa.PrimaryKeyConstraint(f"{kind}_id", "path_key", name=op.f(f"{name}_pkey")),
            sa.ForeignKeyConstraint(
                [f"{kind}_id"], [f"{of}.id"], name=op.f(f"{name}_{kind}_id_fkey"), ondelete="CASCADE"
            ),
        )
        op.create_index(f"{name}_until_idx", name, [f"{kind}_id", sa.text("until desc")])
    op.execute(_INHERITED)
    op.execute(_TABLE)
    op.execute(
        """
        create trigger tables_record_former_name after update of name, namespace_id on tables for each row
        when (old.name <> new.name or old.namespace_id <> new.namespace_id) execute function record_former_table_name()
        """
    )
    op.execute(_NAMESPACE)
    op.execute(
        """
        create trigger namespaces_record_former_name after update of levels on namespaces for each row
        when (old.levels <> new.levels) execute function record_former_namespace_name()
        """
    )


def downgrade() -> None:
    op.execute("drop trigger namespaces_record_former_name on namespaces")
    op.execute("drop trigger tables_record_former_name on tables")
    for kind, _ in _KINDS:
        op.execute(f"drop function record_former_{kind}_name()")
        op.drop_index(f"former_{kind}_names_until_idx", table_name=f"former_{kind}_names")
        op.drop_table(f"former_{kind}_names")
    op.execute("drop function inherited_former_names(uuid[], text, text[], uuid[])")
