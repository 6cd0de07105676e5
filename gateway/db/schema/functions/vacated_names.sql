-- SPDX-License-Identifier: Apache-2.0
-- Names that objects left, with the restrictions that the object of the name had.
-- Invariant: the next object of a name is compared with the restrictions of the last one before its
-- transaction commits.

-- Without data policies nothing is recorded.
create or replace function has_data_policies(of_warehouse uuid) returns boolean language sql stable as $$
    select exists (select 1 from warehouses w join data_policies p on p.project_id = w.project_id
        where w.id = $1)
$$;

-- A row without a tag is a policy that is bound to the object or above it. A row with a tag is a policy that is
-- bound to the tag, or one that reaches the object and names tags: the gateway drops the rows of other tags.
create or replace function name_restrictions(object uuid, containers uuid[])
returns table (policy_id uuid, tag_id uuid, column_name text, released integer[]) language sql stable as $$
    with inputs as materialized (select * from policy_inputs($1, $2)),
    bound as (select distinct i.ref_id as id from inputs i where i.kind = 'binding'),
    tagged as (
        select b.policy_id as id, i.ref_id as tag, i.field_id, i.column_name
        from inputs i join data_policy_bindings b on b.object_id = i.ref_id and b.object_type = 'tag'
        where i.kind = 'tag'),
    reaching as (select id from bound union select id from tagged),
    found as (
        select id, cast(null as uuid) as tag, cast(null as text) as named from bound
        union
        select id, tag, case when field_id is null then null else column_name end from tagged
        union
        select p.id, i.ref_id, case when i.field_id is null then null else i.column_name end
        from reaching r join data_policies p on p.id = r.id cross join inputs i
        where i.kind = 'tag' and jsonb_path_exists(p.definition, '$.**.tag'))
    select f.id, f.tag, f.named, array(
        select i.field_id from inputs i where i.kind = 'release' and i.ref_id = f.id order by i.field_id)
    from found f
$$;

-- What an earlier holder of the name lost by a permitted change is no restriction of the name any more.
create or replace function vacate_name(of_warehouse uuid, path text, name text, object uuid, containers uuid[])
returns void language plpgsql as $$
    begin
        delete from vacated_names v
        where v.warehouse_id = $1 and v.path_key = $2 and v.name_key = $3 and v.announced_at is not null;
        update vacated_names v set taken_by = null, taken_in = null
        where v.warehouse_id = $1 and v.path_key = $2 and v.name_key = $3;
        insert into vacated_names
            (warehouse_id, path_key, name_key, policy_id, tag_id, column_name, released)
        select $1, $2, $3, r.policy_id, r.tag_id, r.column_name, r.released
        from name_restrictions($4, $5) r;
    end $$;

-- The transaction compares the object with these rows before it commits (`gateway.db.engine.policy_loss`).
create or replace function take_name(of_warehouse uuid, path text, name text, object uuid)
returns void language plpgsql as $$
    begin
        update vacated_names v set taken_by = $4, announced_at = null,
            taken_in = cast(cast(pg_current_xact_id() as text) as bigint)
        where v.warehouse_id = $1 and v.path_key = $2 and v.name_key = $3;
    end $$;

create or replace function vacate_name_of_table() returns trigger language plpgsql as $$
    begin
        if has_data_policies(old.warehouse_id) then
            perform vacate_name(old.warehouse_id, n.path_key, old.name_key, old.id,
                containers_of_table(old.namespace_id, old.name_key))
            from namespaces n where n.id = old.namespace_id;
        end if;
        return null;
    end $$;
create or replace trigger tables_vacate_name_of_gone after delete on tables
    for each row when (old.staged_by is null and old.deleted_at is null)
    execute function vacate_name_of_table();
create or replace trigger tables_vacate_name_of_changed after update of namespace_id, name_key, deleted_at on tables
    for each row when (old.staged_by is null and old.deleted_at is null and (
        new.deleted_at is not null or old.namespace_id <> new.namespace_id or old.name_key <> new.name_key))
    execute function vacate_name_of_table();

create or replace function take_name_by_table() returns trigger language plpgsql as $$
    begin
        perform take_name(new.warehouse_id, n.path_key, new.name_key, new.id)
        from namespaces n where n.id = new.namespace_id;
        return null;
    end $$;
create or replace trigger tables_take_name_of_new after insert on tables
    for each row when (new.staged_by is null and new.deleted_at is null)
    execute function take_name_by_table();
create or replace trigger tables_take_name_of_changed
    after update of namespace_id, name_key, deleted_at, staged_by on tables
    for each row when (new.staged_by is null and new.deleted_at is null and (
        old.staged_by is not null or old.deleted_at is not null
        or old.namespace_id <> new.namespace_id or old.name_key <> new.name_key))
    execute function take_name_by_table();

-- The key of a namespace's name is its path, and an empty name. A table cannot have an empty name.
create or replace function vacate_and_take_names_of_namespace() returns trigger language plpgsql as $$
    declare
        above uuid[];
    begin
        if tg_op <> 'INSERT' and has_data_policies(old.warehouse_id) then
            -- The rows above may be changed or deleted by the same statement.
            above = array(select a.id from unnest(old.ancestors) with ordinality as a(id, level)
                order by a.level desc) || old.warehouse_id;
            perform vacate_name(old.warehouse_id, old.path_key, '', old.id, above);
            perform vacate_name(old.warehouse_id, old.path_key, t.name_key, t.id,
                old.id || above || data_policy_names_of(old.warehouse_id, old.path_key, t.name_key))
            from tables t
            where t.namespace_id = old.id and t.staged_by is null and t.deleted_at is null;
        end if;
        if tg_op <> 'DELETE' then
            perform take_name(new.warehouse_id, new.path_key, '', new.id);
        end if;
        if tg_op = 'UPDATE' then
            perform take_name(new.warehouse_id, new.path_key, t.name_key, t.id)
            from tables t
            where t.namespace_id = new.id and t.staged_by is null and t.deleted_at is null and exists (
                select 1 from vacated_names v where v.warehouse_id = new.warehouse_id
                    and v.path_key = new.path_key and v.name_key = t.name_key);
        end if;
        return null;
    end $$;
create or replace trigger namespaces_vacate_and_take_names after insert or delete on namespaces
    for each row execute function vacate_and_take_names_of_namespace();
create or replace trigger namespaces_vacate_and_take_names_of_moved after update of path_key on namespaces
    for each row when (old.path_key <> new.path_key) execute function vacate_and_take_names_of_namespace();
