# SPDX-License-Identifier: Apache-2.0
"""Keep data policies with generic tables, and column names with files, by triggers as in `0046_data_policies.py`."""

from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("drop trigger tables_keep_policies_of_moved on tables")
    op.execute(
        """
        create trigger tables_keep_policies_of_moved after update of namespace_id on tables
            for each row when (old.namespace_id <> new.namespace_id and old.kind in ('table', 'generic_table'))
            execute function keep_policies_of_containers()
        """
    )
    op.execute("drop trigger tables_keep_policies_of_gone on tables")
    op.execute(
        """
        create trigger tables_keep_policies_of_gone after delete on tables
            for each row when (old.kind in ('table', 'generic_table'))
            execute function keep_policies_of_containers()
        """
    )
    _keep_column_names()


def _keep_column_names() -> None:
    """Record the column names of a deleted table, for a registration of its files.

    An older metadata file lacks the names that only newer ones have. A policy by such a name must still cover the
    column. `carry_data_policies` copies the names, and `forget_policies_of_files` deletes them.
    """
    op.execute(
        """
        create function keep_columns_of_gone() returns trigger language plpgsql as $$
            declare
                document json;
            begin
                if (select w.data_policy_revision from warehouses w where w.id = old.warehouse_id) is null then
                    return null;
                end if;
                document = convert_from(
                    case when old.metadata_excerpt_of = old.metadata_location then old.metadata_excerpt
                        else old.metadata end, 'UTF8')::json;
                insert into former_columns (table_id, field_id, name)
                select distinct old.id, cast(f ->> 'id' as integer), f ->> 'name'
                from (
                    select document -> 'schema' as schema
                    union all
                    select each from json_array_elements(document -> 'schemas') as each) s
                    cross join lateral json_array_elements(s.schema -> 'fields') as f
                on conflict do nothing;
                return null;
            exception when data_exception then
                -- No principal under a data policy reads a table whose schemas cannot be read.
                return null;
            end $$
        """
    )
    op.execute(
        """
        create trigger tables_keep_columns_of_gone after delete on tables
            for each row when (old.kind = 'table' and old.metadata is not null)
            execute function keep_columns_of_gone()
        """
    )
