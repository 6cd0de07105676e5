# SPDX-License-Identifier: Apache-2.0
"""Create tags, data policies with their attributes of principals, and the probes of engines."""

from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE tags (
            id UUID NOT NULL,
            project_id TEXT NOT NULL,
            name TEXT NOT NULL,
            name_key TEXT NOT NULL,
            description TEXT,
            scope TEXT[] NOT NULL,
            value_kind TEXT NOT NULL,
            allowed_values TEXT[] DEFAULT '{}' NOT NULL,
            created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            updated_at timestamptz,
            CONSTRAINT tags_pkey PRIMARY KEY (id),
            CONSTRAINT tags_project_id_name_key_key UNIQUE (project_id, name_key),
            CONSTRAINT tags_value_kind_check CHECK (value_kind in ('marker', 'free-text', 'enumerated')),
            CONSTRAINT tags_project_id_fkey
                FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE)
        """
    )
    op.execute(
        """
        CREATE TABLE tag_attachments (
            tag_id UUID NOT NULL,
            warehouse_id UUID NOT NULL,
            object_type TEXT NOT NULL,
            object_id UUID NOT NULL,
            field_id INTEGER,
            column_name TEXT,
            value TEXT,
            attached_by TEXT NOT NULL,
            attached_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT tag_attachments_tag_id_fkey
                FOREIGN KEY(tag_id) REFERENCES tags (id),
            CONSTRAINT tag_attachments_warehouse_id_fkey
                FOREIGN KEY(warehouse_id) REFERENCES warehouses (id) ON DELETE CASCADE)
        """
    )
    op.execute(
        """
        CREATE UNIQUE INDEX tag_attachments_object_id_tag_id_field_id_idx
            ON tag_attachments (object_id, tag_id, field_id) WHERE field_id is not null
        """
    )
    op.execute(
        """
        CREATE UNIQUE INDEX tag_attachments_object_id_tag_id_idx
            ON tag_attachments (object_id, tag_id) WHERE field_id is null
        """
    )
    op.execute("CREATE INDEX tag_attachments_tag_id_object_id_idx ON tag_attachments (tag_id, object_id)")
    op.execute(
        """
        CREATE TABLE data_policies (
            id UUID NOT NULL,
            project_id TEXT NOT NULL,
            name TEXT NOT NULL,
            name_key TEXT NOT NULL,
            description TEXT,
            version INTEGER DEFAULT '1' NOT NULL,
            definition JSONB NOT NULL,
            applies_to TEXT DEFAULT 'everyone' NOT NULL,
            allow_append BOOLEAN DEFAULT 'false' NOT NULL,
            created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            updated_at timestamptz,
            CONSTRAINT data_policies_pkey PRIMARY KEY (id),
            CONSTRAINT data_policies_project_id_name_key_key UNIQUE (project_id, name_key),
            CONSTRAINT data_policies_applies_to_check CHECK (applies_to in ('everyone', 'subjects')),
            CONSTRAINT data_policies_project_id_fkey
                FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE)
        """
    )
    op.execute(
        """
        CREATE TABLE data_policy_versions (
            policy_id UUID NOT NULL,
            version INTEGER NOT NULL,
            document JSONB NOT NULL,
            changed_by TEXT NOT NULL,
            reason TEXT,
            changed_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT data_policy_versions_pkey PRIMARY KEY (policy_id, version))
        """
    )
    op.execute(
        """
        CREATE TABLE data_policy_bindings (
            policy_id UUID NOT NULL,
            object_type TEXT NOT NULL,
            object_id UUID NOT NULL,
            warehouse_id UUID,
            recorded_fields INTEGER[] DEFAULT '{}' NOT NULL,
            bound_by TEXT NOT NULL,
            bound_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT data_policy_bindings_pkey PRIMARY KEY (policy_id, object_id),
            CONSTRAINT data_policy_bindings_object_type_check
                CHECK (object_type in ('warehouse', 'namespace', 'table', 'tag')),
            CONSTRAINT data_policy_bindings_policy_id_fkey
                FOREIGN KEY(policy_id) REFERENCES data_policies (id) ON DELETE CASCADE,
            CONSTRAINT data_policy_bindings_warehouse_id_fkey
                FOREIGN KEY(warehouse_id) REFERENCES warehouses (id) ON DELETE CASCADE)
        """
    )
    op.execute("CREATE INDEX data_policy_bindings_object_id_idx ON data_policy_bindings (object_id)")
    op.execute("CREATE INDEX data_policy_bindings_warehouse_id_idx ON data_policy_bindings (warehouse_id)")
    op.execute(
        """
        CREATE TABLE data_policy_releases (
            policy_id UUID NOT NULL,
            table_id UUID NOT NULL,
            field_id INTEGER NOT NULL,
            released_by TEXT NOT NULL,
            released_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT data_policy_releases_pkey PRIMARY KEY (policy_id, table_id, field_id),
            CONSTRAINT data_policy_releases_policy_id_fkey
                FOREIGN KEY(policy_id) REFERENCES data_policies (id) ON DELETE CASCADE)
        """
    )
    op.execute("CREATE INDEX data_policy_releases_table_id_idx ON data_policy_releases (table_id)")
    op.execute(
        """
        CREATE TABLE data_policy_alerts (
            policy_id UUID NOT NULL,
            table_id UUID NOT NULL,
            problem TEXT NOT NULL,
            first_seen_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            last_seen_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT data_policy_alerts_pkey PRIMARY KEY (policy_id, table_id, problem),
            CONSTRAINT data_policy_alerts_policy_id_fkey
                FOREIGN KEY(policy_id) REFERENCES data_policies (id) ON DELETE CASCADE)
        """
    )
    op.execute(
        """
        CREATE TABLE former_columns (
            table_id UUID NOT NULL,
            field_id INTEGER NOT NULL,
            name TEXT NOT NULL,
            CONSTRAINT former_columns_pkey PRIMARY KEY (table_id, field_id, name))
        """
    )
    op.execute(
        """
        CREATE TABLE mapping_tables (
            id UUID NOT NULL,
            project_id TEXT NOT NULL,
            name TEXT NOT NULL,
            name_key TEXT NOT NULL,
            description TEXT,
            created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT mapping_tables_pkey PRIMARY KEY (id),
            CONSTRAINT mapping_tables_project_id_name_key_key UNIQUE (project_id, name_key),
            CONSTRAINT mapping_tables_project_id_fkey
                FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE)
        """
    )
    op.execute(
        """
        CREATE TABLE mapping_entries (
            mapping_id UUID NOT NULL,
            principal_type TEXT NOT NULL,
            principal_id TEXT NOT NULL,
            value TEXT NOT NULL,
            CONSTRAINT mapping_entries_pkey PRIMARY KEY (mapping_id, principal_type, principal_id, value),
            CONSTRAINT mapping_entries_principal_type_check CHECK (principal_type in ('user', 'role')),
            CONSTRAINT mapping_entries_mapping_id_fkey
                FOREIGN KEY(mapping_id) REFERENCES mapping_tables (id) ON DELETE CASCADE)
        """
    )
    op.execute("CREATE INDEX mapping_entries_principal_id_idx ON mapping_entries (principal_id)")
    op.execute(
        """
        CREATE TABLE engine_probes (
            engine TEXT NOT NULL,
            warehouse_id UUID NOT NULL,
            challenge JSONB,
            verdict TEXT,
            detail TEXT,
            probed_at timestamptz,
            valid_until timestamptz,
            warn_until timestamptz,
            created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT engine_probes_pkey PRIMARY KEY (engine, warehouse_id),
            CONSTRAINT engine_probes_verdict_check CHECK (verdict in ('passed', 'failed')),
            CONSTRAINT engine_probes_warehouse_id_fkey
                FOREIGN KEY(warehouse_id) REFERENCES warehouses (id) ON DELETE CASCADE)
        """
    )
    # Null while no policy can apply to a table of the warehouse. It changes with every change to one that can.
    op.execute("alter table warehouses add column data_policy_revision uuid")
    # Engines that are enforcers now, themselves or through roles, count for 30 more days without a probe.
    op.execute(
        """
        with recursive enforcers as (
            select object_type, object_id, principal_type, principal_id from grants
            where privilege = 'enforcer' and object_type in ('project', 'warehouse')
                and (expires_at is null or expires_at > clock_timestamp())
            union
            select e.object_type, e.object_id, m.principal_type, m.principal_id
            from enforcers e join grants m on m.object_type = 'role' and m.object_id = e.principal_id
            where e.principal_type = 'role' and m.privilege in ('assignee', 'ownership')
                and (m.expires_at is null or m.expires_at > clock_timestamp()))
        insert into engine_probes (engine, warehouse_id, warn_until)
        select distinct e.principal_id, w.id, clock_timestamp() + interval '30 days'
        from enforcers e join warehouses w
            on e.object_type = 'warehouse' and w.id::text = e.object_id
            or e.object_type = 'project' and w.project_id = e.object_id
        where e.principal_type = 'user'
        on conflict do nothing
        """
    )
    _keep_policies_with_files()


def _keep_policies_with_files() -> None:
    """Create triggers that keep data policies with tables and their files, so that no statement can omit it.

    Without them, a principal that a policy restricts could move a table out of a bound namespace, or drop the table and
    register its files again.
    """
    # A container loses nothing: the target gets its policies and its bound tags as bindings and attachments of its own.
    # With `entire`, the sources are tables, and all of their tags and tagged columns are copied too.
    op.execute(
        """
        create function carry_data_policies(
            sources uuid[], to_type text, to_id uuid, within uuid, entire boolean
        ) returns boolean language plpgsql as $$
            declare
                copied integer;
                attached integer;
            begin
                insert into data_policy_bindings
                    (policy_id, object_type, object_id, warehouse_id, recorded_fields, bound_by, bound_at)
                select b.policy_id, to_type, to_id, within, array_remove(array_agg(distinct f.id), null),
                    min(b.bound_by), min(b.bound_at)
                from data_policy_bindings b left join lateral unnest(b.recorded_fields) as f(id) on true
                where b.object_id = any(sources) and b.object_type <> 'tag'
                group by b.policy_id
                on conflict do nothing;
                get diagnostics copied = row_count;
                insert into tag_attachments
                    (tag_id, warehouse_id, object_type, object_id, field_id, value, attached_by, attached_at)
                select distinct on (a.tag_id) a.tag_id, within, to_type, to_id, cast(null as integer), a.value,
                    a.attached_by, a.attached_at
                from tag_attachments a
                where a.object_id = any(sources) and a.field_id is null and (entire or exists (
                    select 1 from data_policy_bindings b where b.object_id = a.tag_id and b.object_type = 'tag'))
                order by a.tag_id, a.attached_at desc
                on conflict do nothing;
                get diagnostics attached = row_count;
                copied = copied + attached;
                if entire then
                    insert into tag_attachments (tag_id, warehouse_id, object_type, object_id, field_id, column_name,
                        value, attached_by, attached_at)
                    select distinct on (a.tag_id, a.field_id) a.tag_id, within, 'column', to_id, a.field_id,
                        a.column_name, a.value, a.attached_by, a.attached_at
                    from tag_attachments a
                    where a.object_id = any(sources) and a.field_id is not null
                    order by a.tag_id, a.field_id, a.attached_at desc
                    on conflict do nothing;
                    get diagnostics attached = row_count;
                    copied = copied + attached;
                    insert into former_columns (table_id, field_id, name)
                    select distinct to_id, f.field_id, f.name from former_columns f where f.table_id = any(sources)
                    on conflict do nothing;
                end if;
                return copied > 0;
            end $$
        """
    )
    # The row of the warehouse is locked before, so that a concurrent change sees the new rows or is seen here
    # (`gateway.db.policies.data_policy_revisions`).
    op.execute(
        """
        create function renew_data_policy_revision(of_warehouse uuid) returns void language plpgsql as $$
            begin
                perform 1 from warehouses w where w.id = of_warehouse for no key update;
                update warehouses w set data_policy_revision = gen_random_uuid()
                where w.id = of_warehouse and (
                    exists (select 1 from data_policy_bindings b where b.warehouse_id = w.id)
                    or exists (
                        select 1 from tag_attachments a
                        join data_policy_bindings b on b.object_id = a.tag_id and b.object_type = 'tag'
                        where a.warehouse_id = w.id));
            end $$
        """
    )
    op.execute(
        """
        create function keep_policies_of_containers() returns trigger language plpgsql as $$
            declare
                before uuid[];
                after uuid[];
                lost uuid[];
            begin
                if (select w.data_policy_revision from warehouses w where w.id = old.warehouse_id) is null then
                    return null;
                end if;
                if tg_table_name = 'namespaces' then
                    before = old.ancestors;
                    after = new.ancestors;
                else
                    select n.ancestors || n.id into before from namespaces n where n.id = old.namespace_id;
                    if tg_op = 'UPDATE' then
                        select n.ancestors || n.id into after from namespaces n where n.id = new.namespace_id;
                    end if;
                end if;
                select array_agg(each) into lost from unnest(before) as each
                where not each = any(coalesce(after, '{}'));
                if carry_data_policies(lost, case tg_table_name when 'tables' then 'table' else 'namespace' end,
                        old.id, old.warehouse_id, false) and tg_op = 'UPDATE' then
                    perform renew_data_policy_revision(old.warehouse_id);
                end if;
                return null;
            end $$
        """
    )
    op.execute(
        """
        create trigger tables_keep_policies_of_moved after update of namespace_id on tables
            for each row when (old.namespace_id <> new.namespace_id and old.kind = 'table')
            execute function keep_policies_of_containers()
        """
    )
    op.execute(
        """
        create trigger tables_keep_policies_of_gone after delete on tables
            for each row when (old.kind = 'table') execute function keep_policies_of_containers()
        """
    )
    op.execute(
        """
        create trigger namespaces_keep_policies_of_moved after update of parent_id on namespaces
            for each row when (old.parent_id is distinct from new.parent_id)
            execute function keep_policies_of_containers()
        """
    )
    # What is kept for the files of a deleted table ends with the record of its location.
    op.execute(
        """
        create function forget_policies_of_files() returns trigger language plpgsql as $$
            begin
                if exists (select 1 from tables t where t.id = old.table_id)
                    or exists (select 1 from retired_locations r where r.table_id = old.table_id)
                then
                    return null;
                end if;
                delete from data_policy_bindings where object_id = old.table_id;
                delete from data_policy_releases where table_id = old.table_id;
                delete from tag_attachments where object_id = old.table_id and field_id is null;
                delete from tag_attachments where object_id = old.table_id and field_id is not null;
                delete from former_columns where table_id = old.table_id;
                return null;
            end $$
        """
    )
    op.execute(
        """
        create trigger retired_locations_forget_policies after delete on retired_locations
            for each row execute function forget_policies_of_files()
        """
    )
