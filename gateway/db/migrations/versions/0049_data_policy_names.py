# SPDX-License-Identifier: Apache-2.0
"""Bind data policies to names, and keep those policies with a table that loses its name."""

from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE data_policy_names (
            id UUID NOT NULL,
            warehouse_id UUID NOT NULL,
            levels TEXT[] NOT NULL,
            pattern TEXT NOT NULL,
            CONSTRAINT data_policy_names_pkey PRIMARY KEY (id),
            CONSTRAINT data_policy_names_warehouse_id_fkey
                FOREIGN KEY(warehouse_id) REFERENCES warehouses (id) ON DELETE CASCADE)
        """
    )
    op.execute("CREATE INDEX data_policy_names_warehouse_id_idx ON data_policy_names (warehouse_id)")
    op.execute("alter table data_policy_bindings drop constraint data_policy_bindings_object_type_check")
    op.execute(
        """
        alter table data_policy_bindings add constraint data_policy_bindings_object_type_check
            check (object_type in ('warehouse', 'namespace', 'table', 'tag', 'name'))
        """
    )
    # The numbers of levels are equal, so a wildcard matches no separator (`gateway.iceberg.name_patterns`).
    op.execute(
        """
        create function data_policy_names_of(of_warehouse uuid, path_key text, name_key text) returns uuid[]
            language sql stable as $$
            select coalesce(array_agg(n.id), '{}') from data_policy_names n
            where n.warehouse_id = $1 and cardinality(n.levels) = cardinality(string_to_array($2, chr(31))) + 1
                and $2 || chr(31) || $3 like n.pattern
        $$
        """
    )
    _delete_unused_names()
    _keep_policies_of_names()


def _delete_unused_names() -> None:
    # The lock of the warehouse is also taken before a name is bound, so that its row stays for the new binding.
    op.execute(
        """
        create function delete_unused_name() returns trigger language plpgsql as $$
            begin
                perform 1 from warehouses w where w.id = old.warehouse_id for no key update;
                delete from data_policy_names n where n.id = old.object_id
                    and not exists (select 1 from data_policy_bindings b where b.object_id = old.object_id);
                return null;
            end $$
        """
    )
    op.execute(
        """
        create trigger data_policy_bindings_delete_unused_name after delete on data_policy_bindings
            for each row when (old.object_type = 'name') execute function delete_unused_name()
        """
    )


def _keep_policies_of_names() -> None:
    op.execute(
        """
        create or replace function keep_policies_of_containers() returns trigger language plpgsql as $$
            declare
                before uuid[];
                after uuid[];
                lost uuid[];
                carried boolean;
            begin
                if (select w.data_policy_revision from warehouses w where w.id = old.warehouse_id) is null then
                    return null;
                end if;
                if tg_table_name = 'namespaces' then
                    before = old.ancestors;
                    after = new.ancestors;
                else
                    select n.ancestors || n.id || data_policy_names_of(old.warehouse_id, n.path_key, old.name_key)
                        into before from namespaces n where n.id = old.namespace_id;
                    if tg_op = 'UPDATE' then
                        select n.ancestors || n.id || data_policy_names_of(new.warehouse_id, n.path_key, new.name_key)
                            into after from namespaces n where n.id = new.namespace_id;
                    end if;
                end if;
                select array_agg(each) into lost from unnest(before) as each
                where not each = any(coalesce(after, '{}'));
                carried = carry_data_policies(lost, case tg_table_name when 'tables' then 'table' else 'namespace' end,
                    old.id, old.warehouse_id, false);
                -- The policies of a name that the table gets apply to it from now on.
                if tg_op = 'UPDATE' and (carried or tg_table_name = 'tables' and not after <@ before) then
                    perform renew_data_policy_revision(old.warehouse_id);
                end if;
                return null;
            end $$
        """
    )
    op.execute("drop trigger tables_keep_policies_of_moved on tables")
    op.execute(
        """
        create trigger tables_keep_policies_of_moved after update of namespace_id, name_key on tables
            for each row when ((old.namespace_id <> new.namespace_id or old.name_key <> new.name_key)
                and old.kind in ('table', 'generic_table'))
            execute function keep_policies_of_containers()
        """
    )
    # A move or rename of a namespace updates the path of each namespace below it.
    op.execute(
        """
        create function keep_policies_of_names() returns trigger language plpgsql as $$
            declare
                changed boolean = false;
                each record;
            begin
                if not exists (select 1 from data_policy_names n where n.warehouse_id = old.warehouse_id) then
                    return null;
                end if;
                for each in
                    select t.id, data_policy_names_of(old.warehouse_id, old.path_key, t.name_key) as before,
                        data_policy_names_of(old.warehouse_id, new.path_key, t.name_key) as after
                    from tables t where t.namespace_id = old.id and t.kind in ('table', 'generic_table')
                loop
                    changed = carry_data_policies(
                        array(select unnest(each.before) except select unnest(each.after)), 'table', each.id,
                        old.warehouse_id, false) or not each.after <@ each.before or changed;
                end loop;
                if changed then
                    perform renew_data_policy_revision(old.warehouse_id);
                end if;
                return null;
            end $$
        """
    )
    op.execute(
        """
        create trigger namespaces_keep_policies_of_names after update of path_key on namespaces
            for each row when (old.path_key <> new.path_key) execute function keep_policies_of_names()
        """
    )
