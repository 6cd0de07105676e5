-- SPDX-License-Identifier: Apache-2.0
-- What data policies of an object depend on: bindings, tags, releases, and former names of columns.
-- Invariant: no move, rename or deletion frees a table or its files from a data policy. Without these triggers a
-- principal that a policy restricts could move a table out of a bound namespace, or drop it and register its files.

-- The numbers of levels are equal, so a wildcard matches no separator (`gateway.iceberg.name_patterns`).
create or replace function data_policy_names_of(of_warehouse uuid, path_key text, name_key text) returns uuid[]
    language sql stable as $$
    select coalesce(array_agg(n.id), '{}') from data_policy_names n
    where n.warehouse_id = $1 and cardinality(n.levels) = cardinality(string_to_array($2, chr(31))) + 1
        and $2 || chr(31) || $3 like n.pattern
$$;

-- What data policies on an object depend on. Kinds: `tag` (with `field_id` for a tag of a column; `label` is its
-- value), `binding` (`inherited` if it reaches the object through a container), `release` and `former column` (`label` is
-- the name). `ref_id` is the tag or policy.
-- The nearest attachment of a tag counts. A binding to a container names columns only by the definition of the
-- policy, one to a table also by the field ids that it recorded: a policy that is bound to both has both.
create or replace function policy_inputs(object uuid, containers uuid[]) returns setof policy_input
language sql stable as $$
    select * from (
        select distinct on (a.tag_id) 'tag', a.tag_id, cast(null as integer), a.value, cast(null as text),
            cast(null as integer[]), p.distance > 1, a.attached_by, a.attached_at
        from unnest(object || containers) with ordinality as p(id, distance)
            join tag_attachments a on a.object_id = p.id and a.field_id is null
        order by a.tag_id, p.distance) nearest
    union all
    select 'tag', a.tag_id, a.field_id, a.value, a.column_name, null, false, a.attached_by, a.attached_at
    from tag_attachments a where a.object_id = object and a.field_id is not null
    union all
    select 'binding', b.policy_id, null, null, null, b.recorded_fields, false, b.bound_by, b.bound_at
    from data_policy_bindings b where b.object_id = object and b.object_type = 'table' and b.own
    union all
    select * from (
        select distinct on (b.policy_id) 'binding', b.policy_id, cast(null as integer), cast(null as text),
            cast(null as text), cast('{}' as integer[]), true, b.bound_by, b.bound_at
        from data_policy_bindings b
        where b.object_id = any(object || containers) and b.object_type <> 'tag'
            and (b.inherited or b.object_type <> 'table')
        order by b.policy_id, b.bound_at) above
    union all
    select 'release', r.policy_id, r.field_id, null, null, null, false, r.released_by, r.released_at
    from data_policy_releases r where r.table_id = object
    union all
    select 'former column', null, f.field_id, f.name, null, null, false, null, null
    from former_columns f where f.table_id = object
$$;

create or replace function containers_of_namespace(namespace uuid) returns uuid[] language sql stable as $$
    select array(select a.id from unnest(n.ancestors || n.id) with ordinality as a(id, level)
        order by a.level desc) || n.warehouse_id
    from namespaces n where n.id = namespace
$$;

-- Names that policies are bound to count as containers of a table. They have no tags.
create or replace function containers_of_table(namespace uuid, name_key text) returns uuid[] language sql stable as $$
    select containers_of_namespace(n.id) || data_policy_names_of(n.warehouse_id, n.path_key, $2)
    from namespaces n where n.id = $1
$$;

-- The row of the warehouse is locked before, so that a concurrent change sees the new rows or is seen here
-- (`gateway.db.policies.data_policy_revisions`).
create or replace function renew_data_policy_revision(of_warehouse uuid) returns void language plpgsql as $$
    begin
        perform 1 from warehouses w where w.id = of_warehouse for no key update;
        update warehouses w set data_policy_revision = gen_random_uuid()
        where w.id = of_warehouse and (
            exists (select 1 from data_policy_bindings b where b.warehouse_id = w.id)
            or exists (
                select 1 from tag_attachments a
                join data_policy_bindings b on b.object_id = a.tag_id and b.object_type = 'tag'
                where a.warehouse_id = w.id));
    end $$;

-- Give an object all inputs of `held` that are not in `present`, and return true if a row changed. An attachment of the
-- object itself stays: it is the nearest.
create or replace function carry_policy_inputs(
    to_type text, to_id uuid, within uuid, held policy_input[], present policy_input[]
) returns boolean language plpgsql as $$
    declare
        changed integer;
        total integer = 0;
    begin
        insert into tag_attachments (tag_id, warehouse_id, object_type, object_id, field_id, column_name,
            value, attached_by, attached_at)
        select distinct on (h.ref_id, h.field_id) h.ref_id, within,
            case when h.field_id is null then to_type else 'column' end, to_id, h.field_id, h.column_name,
            h.label, h.set_by, h.set_at
        from unnest(held) as h
        where h.kind = 'tag' and not exists (
            select 1 from unnest(present) as p
            where p.kind = 'tag' and p.ref_id = h.ref_id and p.field_id is not distinct from h.field_id
                and p.label is not distinct from h.label)
        order by h.ref_id, h.field_id, h.set_at desc
        on conflict do nothing;
        get diagnostics total = row_count;
        insert into data_policy_bindings as b (policy_id, object_type, object_id, warehouse_id,
            recorded_fields, own, inherited, bound_by, bound_at)
        select h.ref_id, case to_type when 'namespace' then to_type else 'table' end, to_id, within,
            array_remove(array_agg(distinct f.id), null), bool_or(not h.inherited), bool_or(h.inherited),
            min(h.set_by), min(h.set_at)
        from unnest(held) as h left join lateral unnest(h.recorded) as f(id) on true
        where h.kind = 'binding' and to_type <> 'view' and not exists (
            select 1 from unnest(present) as p
            where p.kind = 'binding' and p.ref_id = h.ref_id and p.inherited = h.inherited
                and p.recorded = h.recorded)
        group by h.ref_id
        on conflict (policy_id, object_id) do update set
            own = b.own or excluded.own,
            inherited = b.inherited or excluded.inherited,
            recorded_fields = array(select distinct unnest(b.recorded_fields || excluded.recorded_fields));
        get diagnostics changed = row_count;
        total = total + changed;
        insert into data_policy_releases (policy_id, table_id, field_id, released_by, released_at)
        select h.ref_id, to_id, h.field_id, min(h.set_by), min(h.set_at)
        from unnest(held) as h where h.kind = 'release' group by h.ref_id, h.field_id
        on conflict do nothing;
        get diagnostics changed = row_count;
        total = total + changed;
        insert into former_columns (table_id, field_id, name)
        select distinct to_id, h.field_id, h.label from unnest(held) as h where h.kind = 'former column'
        on conflict do nothing;
        get diagnostics changed = row_count;
        return total + changed > 0;
    end $$;

-- Carry the inputs of everything that leaves a container, and keep those of deleted objects for their files. Inputs of
-- the warehouse stay with it: a registration of the files reads them from there.
create or replace function keep_policies_of_containers() returns trigger language plpgsql as $$
    declare
        before uuid[];
        after uuid[] = array[old.warehouse_id];
        type text;
        changed boolean = false;
    begin
        if tg_table_name = 'namespaces' then
            type = 'namespace';
            before = array(select a.id from unnest(old.ancestors) with ordinality as a(id, level)
                order by a.level desc) || old.warehouse_id;
            after = coalesce(containers_of_namespace(new.parent_id), after);
        else
            type = old.kind;
            before = containers_of_table(old.namespace_id, old.name_key);
            if tg_op = 'UPDATE' then
                after = containers_of_table(new.namespace_id, new.name_key);
                -- The policies of a name that the table gets apply to it from now on.
                changed = old.kind <> 'view' and not after <@ before;
            end if;
        end if;
        if not exists (select 1 from tag_attachments a where a.object_id = any(before) and a.field_id is null)
            and not exists (select 1 from data_policy_bindings b where b.object_id = any(before))
        then
            if changed then
                perform renew_data_policy_revision(old.warehouse_id);
            end if;
            return null;
        end if;
        -- A statement of its own: `and` and `or` may skip an operand.
        if carry_policy_inputs(type, old.id, old.warehouse_id,
            array(select i from policy_inputs(old.id, before) i),
            array(select i from policy_inputs(old.id, after) i))
        then
            changed = true;
        end if;
        if changed and tg_op = 'UPDATE' then
            perform renew_data_policy_revision(old.warehouse_id);
        end if;
        return null;
    end $$;
create or replace trigger tables_keep_policies_of_moved after update of namespace_id, name_key on tables
    for each row when (old.namespace_id <> new.namespace_id or old.name_key <> new.name_key)
    execute function keep_policies_of_containers();
create or replace trigger tables_keep_policies_of_gone after delete on tables
    for each row execute function keep_policies_of_containers();
create or replace trigger namespaces_keep_policies_of_moved after update of parent_id on namespaces
    for each row when (old.parent_id is distinct from new.parent_id)
    execute function keep_policies_of_containers();

-- A rename or move of a namespace updates the path of each namespace below it.
create or replace function keep_policies_of_names() returns trigger language plpgsql as $$
    declare
        above uuid[] = containers_of_namespace(old.id);
        changed boolean = false;
        each record;
    begin
        if not exists (select 1 from data_policy_names n where n.warehouse_id = old.warehouse_id) then
            return null;
        end if;
        for each in
            select t.id, t.kind, data_policy_names_of(old.warehouse_id, old.path_key, t.name_key) as before,
                data_policy_names_of(old.warehouse_id, new.path_key, t.name_key) as after
            from tables t where t.namespace_id = old.id and t.kind <> 'view'
        loop
            changed = changed or not each.after <@ each.before;
            if carry_policy_inputs(each.kind, each.id, old.warehouse_id,
                array(select i from policy_inputs(each.id, above || each.before) i),
                array(select i from policy_inputs(each.id, above || each.after) i))
            then
                changed = true;
            end if;
        end loop;
        if changed then
            perform renew_data_policy_revision(old.warehouse_id);
        end if;
        return null;
    end $$;
create or replace trigger namespaces_keep_policies_of_names after update of path_key on namespaces
    for each row when (old.path_key <> new.path_key) execute function keep_policies_of_names();

-- Record the column names of a deleted table, for a registration of its files: an older metadata file lacks the names
-- that only newer ones have. A policy that is written later covers the older names too. Projects without tags and
-- policies need none.
create or replace function keep_columns_of_gone() returns trigger language plpgsql as $$
    declare
        document json;
    begin
        if not exists (
            select 1 from warehouses w where w.id = old.warehouse_id and (
                exists (select 1 from data_policies p where p.project_id = w.project_id)
                or exists (select 1 from tags t where t.project_id = w.project_id)))
        then
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
    end $$;
create or replace trigger tables_keep_columns_of_gone after delete on tables
    for each row when (old.kind = 'table' and old.metadata is not null)
    execute function keep_columns_of_gone();

-- What is kept for the files of a deleted table ends with the record of its location.
create or replace function forget_policies_of_files() returns trigger language plpgsql as $$
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
    end $$;
create or replace trigger retired_locations_forget_policies after delete on retired_locations
    for each row execute function forget_policies_of_files();

-- The lock of the warehouse is also taken before a name is bound, so that its row stays for the new binding.
create or replace function delete_unused_name() returns trigger language plpgsql as $$
    begin
        perform 1 from warehouses w where w.id = old.warehouse_id for no key update;
        delete from data_policy_names n where n.id = old.object_id
            and not exists (select 1 from data_policy_bindings b where b.object_id = old.object_id);
        return null;
    end $$;
create or replace trigger data_policy_bindings_delete_unused_name after delete on data_policy_bindings
    for each row when (old.object_type = 'name') execute function delete_unused_name();
