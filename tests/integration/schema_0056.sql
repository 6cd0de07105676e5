-- SPDX-License-Identifier: Apache-2.0
-- A database of revision 0056 with a row in each table, as the migrations 0034 to 0056 made it, before they became one.
-- Made by `pg_dump --inserts --no-owner --no-privileges --no-comments`, without its comments and empty lines.
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
CREATE TYPE public.policy_input AS (
	kind text,
	ref_id uuid,
	field_id integer,
	label text,
	column_name text,
	recorded integer[],
	inherited boolean,
	set_by text,
	set_at timestamp with time zone
);
CREATE FUNCTION public.carry_data_policies(sources uuid[], to_type text, to_id uuid, within uuid, entire boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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
            end $$;
CREATE FUNCTION public.carry_policy_inputs(to_type text, to_id uuid, within uuid, held public.policy_input[], present public.policy_input[]) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.containers_of_namespace(namespace uuid) RETURNS uuid[]
    LANGUAGE sql STABLE
    AS $$
            select array(select a.id from unnest(n.ancestors || n.id) with ordinality as a(id, level)
                order by a.level desc) || n.warehouse_id
            from namespaces n where n.id = namespace
        $$;
CREATE FUNCTION public.containers_of_table(namespace uuid, name_key text) RETURNS uuid[]
    LANGUAGE sql STABLE
    AS $_$
            select containers_of_namespace(n.id) || data_policy_names_of(n.warehouse_id, n.path_key, $2)
            from namespaces n where n.id = $1
        $_$;
CREATE FUNCTION public.data_policy_names_of(of_warehouse uuid, path_key text, name_key text) RETURNS uuid[]
    LANGUAGE sql STABLE
    AS $_$
            select coalesce(array_agg(n.id), '{}') from data_policy_names n
            where n.warehouse_id = $1 and cardinality(n.levels) = cardinality(string_to_array($2, chr(31))) + 1
                and $2 || chr(31) || $3 like n.pattern
        $_$;
CREATE FUNCTION public.delete_unused_name() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
            begin
                perform 1 from warehouses w where w.id = old.warehouse_id for no key update;
                delete from data_policy_names n where n.id = old.object_id
                    and not exists (select 1 from data_policy_bindings b where b.object_id = old.object_id);
                return null;
            end $$;
CREATE FUNCTION public.forget_pending_file() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    begin
        delete from pending_files where location = new.metadata_location;
        return null;
    end $$;
CREATE FUNCTION public.forget_policies_of_files() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.has_data_policies(of_warehouse uuid) RETURNS boolean
    LANGUAGE sql STABLE
    AS $_$
            select exists (select 1 from warehouses w join data_policies p on p.project_id = w.project_id
                where w.id = $1)
        $_$;
CREATE FUNCTION public.inherited_former_names(containers uuid[], path_key text, levels text[], kept uuid[]) RETURNS TABLE(former_key text, former_levels text[], former_until timestamp with time zone)
    LANGUAGE sql STABLE
    AS $_$
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
$_$;
CREATE FUNCTION public.keep_columns_of_gone() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.keep_policies_of_containers() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.keep_policies_of_names() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.move_revision_of_dropped() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    begin
        update warehouses set revision = gen_random_uuid() where id = new.warehouse_id;
        return null;
    end $$;
CREATE FUNCTION public.move_revisions() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
            declare
                own constant bigint = pg_current_xact_id()::text::bigint;
                done constant text = coalesce(current_setting('lakegate.moved', true), '');
                within constant text[] = array['warehouse', 'namespace', 'table', 'column', 'view', 'generic_table'];
                lost uuid[];
                beyond boolean = false;
            begin
                if done like '%' || tg_argv[0] || '%' then
                    return null;
                end if;
                perform set_config('lakegate.moved', done || tg_argv[0] || ' revisions ', true);
                if done = '' then
                    select array_agg(w.id) into lost from warehouses w
                    where w.id in (select o.warehouse_id from outbox o where o.written_in = own and o.takes_away)
                        and (exists (
                            select 1 from outbox o
                            where o.written_in = own and o.takes_away and o.warehouse_id = w.id
                                and o.object_type = any(within) and o.relation <> 'traverse'
                                and (o.object_type not in ('table', 'view', 'generic_table') or exists (
                                    select 1 from tables t where t.id = o.object_id::uuid)))
                        or exists (
                            select 1 from outbox o
                            where o.written_in = own and o.takes_away and o.warehouse_id = w.id
                                and o.object_type = any(within) and o.relation = 'traverse' and traverse_is_lost(o)));
                    beyond = exists (
                            select 1 from outbox o
                            where o.written_in = own and o.takes_away and o.relation <> 'traverse'
                                and (o.warehouse_id is null or o.object_type <> all(within)))
                        or exists (
                            select 1 from outbox o
                            where o.written_in = own and o.takes_away and o.relation = 'traverse'
                                and (o.warehouse_id is null or o.object_type <> all(within)) and traverse_is_lost(o));
                    perform 1 from warehouses w where w.id = any(lost) order by w.id for no key update;
                    update warehouses set revision = gen_random_uuid() where id = any(lost);
                end if;
                if beyond or tg_argv[0] = 'server' then
                    update server set revision = gen_random_uuid();
                end if;
                if tg_argv[0] = 'time_boxes' then
                    update server set time_boxes = gen_random_uuid();
                end if;
                return null;
            end $$;
CREATE FUNCTION public.name_restrictions(object uuid, containers uuid[]) RETURNS TABLE(policy_id uuid, tag_id uuid, column_name text, released integer[])
    LANGUAGE sql STABLE
    AS $_$
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
        $_$;
CREATE FUNCTION public.note_changed_table() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    declare
        change integer := (new.staged_by is null and new.deleted_at is null)::int
            - (old.staged_by is null and old.deleted_at is null)::int;
    begin
        if change <> 0 then
            insert into warehouse_changes (warehouse_id, tables, views)
            values (new.warehouse_id, case new.kind when 'table' then change else 0 end,
                    case new.kind when 'view' then change else 0 end);
        end if;
        return null;
    end $$;
CREATE FUNCTION public.note_gone_tables() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    begin
        insert into warehouse_changes (warehouse_id, tables, views)
        select r.warehouse_id, -1 * count(*) filter (where r.kind = 'table'),
            -1 * count(*) filter (where r.kind = 'view')
        from rows r where r.staged_by is null and r.deleted_at is null
            and exists (select 1 from warehouses w where w.id = r.warehouse_id)
        group by r.warehouse_id;
        return null;
    end $$;
CREATE FUNCTION public.note_new_tables() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    begin
        insert into warehouse_changes (warehouse_id, tables, views)
        select r.warehouse_id, 1 * count(*) filter (where r.kind = 'table'),
            1 * count(*) filter (where r.kind = 'view')
        from rows r where r.staged_by is null and r.deleted_at is null
            and exists (select 1 from warehouses w where w.id = r.warehouse_id)
        group by r.warehouse_id;
        return null;
    end $$;
CREATE FUNCTION public.permanent_owners(of_type text, of_id uuid) RETURNS text[]
    LANGUAGE sql STABLE
    AS $$
    select coalesce(array_agg(distinct g.principal_type || ':' || g.principal_id), '{}')
    from grants g
    where g.object_type = of_type and g.object_id = of_id::text and g.privilege = 'ownership'
        and g.expires_at is null
$$;
CREATE FUNCTION public.permanent_owners(of_type text, of_id uuid, within uuid) RETURNS text[]
    LANGUAGE sql STABLE
    AS $$
    select case when exists (
        select 1 from namespaces n join warehouses w on w.id = n.warehouse_id
        where n.id = within and (w.managed_access or n.managed_access or exists (
            select 1 from namespaces a where a.id = any(n.ancestors) and a.managed_access))
    ) then '{}'::text[] else permanent_owners(of_type, of_id) end
$$;
CREATE FUNCTION public.policy_inputs(object uuid, containers uuid[]) RETURNS SETOF public.policy_input
    LANGUAGE sql STABLE
    AS $$
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
CREATE FUNCTION public.record_former_namespace_name() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
    end $$;
CREATE FUNCTION public.record_former_table_name() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
    end $$;
CREATE FUNCTION public.remember_keys_of_profile() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    declare
        before jsonb := convert_from(old.profile, 'UTF8')::jsonb;
        after jsonb := convert_from(new.profile, 'UTF8')::jsonb;
        seconds integer := greatest(old.key_seconds,
            (case when coalesce((before ->> 'sts-enabled')::boolean, false)
                then coalesce((before ->> 'sts-token-validity-seconds')::integer, 3600) + 60 else 0 end)
        );
    begin
        if seconds > greatest(new.key_seconds,
            (case when coalesce((after ->> 'sts-enabled')::boolean, false)
                then coalesce((after ->> 'sts-token-validity-seconds')::integer, 3600) + 60 else 0 end)
        ) then
            new.keys_until := greatest(old.keys_until, clock_timestamp() + make_interval(secs => seconds));
        end if;
        return new;
    end $$;
CREATE FUNCTION public.rename_task_queue() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    begin
        new.queue := 'tabular_purge';
        return new;
    end $$;
CREATE FUNCTION public.renew_data_policy_revision(of_warehouse uuid) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.retire_location() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    declare
        ended timestamptz := clock_timestamp();
    begin
        if tg_op = 'DELETE' and old.deleted_at is not null then
            update retired_locations
            set owners = permanent_owners(old.kind, old.id, old.namespace_id), metadata_location = old.metadata_location
            where table_id = old.id and location_key = old.location_key;
            return null;
        end if;
        if old.kind <> 'view' then
            select greatest(clock_timestamp() + make_interval(secs =>
                (case when coalesce((convert_from(w.profile, 'UTF8')::jsonb ->> 'sts-enabled')::boolean, false)
                    then coalesce(
                        (convert_from(w.profile, 'UTF8')::jsonb ->> 'sts-token-validity-seconds')::integer, 3600) + 60
                    else 0 end)
            ), w.keys_until, clock_timestamp() + make_interval(secs => w.key_seconds)) into ended
            from warehouses w where w.id = old.warehouse_id;
        end if;
        insert into retired_locations
            (table_id, warehouse_id, location, location_key, retired_by, keys_until, owners, metadata_location)
        values (old.id, old.warehouse_id, old.location, old.location_key,
                coalesce(old.staged_by, (to_jsonb(new) ->> 'deleted_by')), ended,
                permanent_owners(old.kind, old.id, old.namespace_id), old.metadata_location);
        return null;
    end $$;
CREATE FUNCTION public.search_signature(key text) RETURNS bit
    LANGUAGE plpgsql IMMUTABLE STRICT COST 10000 PARALLEL SAFE
    AS $$
    declare
        padded bytea := convert_to('  ' || replace(key, ' ', '   ') || ' ', 'UTF8');
        signature bit(256) := 0::bit(256);
        a int := 32;
        b int := 32;
        c int;
    begin
        for n in 2 .. length(padded) - 1 loop
            c := get_byte(padded, n);
            if b <> 32 or (a = 32 and c <> 32) then
                signature := set_bit(signature, (a * 7919 + b * 104729 + c * 1299709) % 251, 1);
            end if;
            a := b;
            b := c;
        end loop;
        return signature;
    end
    $$;
CREATE FUNCTION public.searchable(folded text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
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
$$;
CREATE FUNCTION public.take_location_back() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    begin
        delete from retired_locations where table_id = new.id and location_key = new.location_key;
        return null;
    end $$;
CREATE FUNCTION public.take_name(of_warehouse uuid, path text, name text, object uuid) RETURNS void
    LANGUAGE plpgsql
    AS $_$
            begin
                update vacated_names v set taken_by = $4, announced_at = null,
                    taken_in = cast(cast(pg_current_xact_id() as text) as bigint)
                where v.warehouse_id = $1 and v.path_key = $2 and v.name_key = $3;
            end $_$;
CREATE FUNCTION public.take_name_by_table() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
            begin
                perform take_name(new.warehouse_id, n.path_key, new.name_key, new.id)
                from namespaces n where n.id = new.namespace_id;
                return null;
            end $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.outbox (
    id bigint NOT NULL,
    subject_type text NOT NULL,
    subject_id text NOT NULL,
    relation text NOT NULL,
    object_type text NOT NULL,
    object_id text NOT NULL,
    warehouse_id uuid,
    takes_away boolean NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    not_before timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    written_in bigint DEFAULT ((pg_current_xact_id())::text)::bigint NOT NULL,
    step smallint DEFAULT '0'::smallint NOT NULL,
    sent_at timestamp with time zone
);
CREATE FUNCTION public.traverse_is_lost(key public.outbox) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
            select case key.object_type
                when 'project' then exists (select 1 from projects p where p.id = key.object_id)
                when 'warehouse' then exists (select 1 from warehouses w where w.id = key.object_id::uuid)
                else exists (select 1 from namespaces n where n.id = key.object_id::uuid) end
            and not exists (
                select 1
                from grants g
                left join tables t on t.kind = case g.object_type when 'column' then 'table' else g.object_type end
                    and t.id = case when g.object_type in ('table', 'view', 'generic_table') then g.object_id::uuid
                        when g.object_type = 'column' then split_part(g.object_id, '.', 1)::uuid end
                left join namespaces n on n.id = coalesce(
                    t.namespace_id, case g.object_type when 'namespace' then g.object_id::uuid end)
                left join warehouses w on w.id = coalesce(
                    n.warehouse_id, case g.object_type when 'warehouse' then g.object_id::uuid end)
                where g.principal_type = key.subject_type and g.principal_id = key.subject_id
                    and g.privilege in ('describe', 'select', 'create', 'modify', 'ownership')
                    and g.expires_at is null
                    and not (key.subject_type = 'user' and exists (
                        select 1 from scim_users u where u.user_id = key.subject_id and not u.active))
                    and case key.object_type
                        when 'namespace' then key.object_id::uuid = any(n.ancestors)
                            or (t.id is not null and n.id = key.object_id::uuid)
                        when 'warehouse' then n.id is not null and w.id = key.object_id::uuid
                        when 'project' then w.project_id = key.object_id
                        else false end)
        $$;
CREATE FUNCTION public.vacate_and_take_names_of_namespace() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.vacate_name(of_warehouse uuid, path text, name text, object uuid, containers uuid[]) RETURNS void
    LANGUAGE plpgsql
    AS $_$
            begin
                delete from vacated_names v
                where v.warehouse_id = $1 and v.path_key = $2 and v.name_key = $3 and v.announced_at is not null;
                update vacated_names v set taken_by = null, taken_in = null
                where v.warehouse_id = $1 and v.path_key = $2 and v.name_key = $3;
                insert into vacated_names
                    (warehouse_id, path_key, name_key, policy_id, tag_id, column_name, released)
                select $1, $2, $3, r.policy_id, r.tag_id, r.column_name, r.released
                from name_restrictions($4, $5) r;
            end $_$;
CREATE FUNCTION public.vacate_name_of_table() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
            begin
                if has_data_policies(old.warehouse_id) then
                    perform vacate_name(old.warehouse_id, n.path_key, old.name_key, old.id,
                        containers_of_table(old.namespace_id, old.name_key))
                    from namespaces n where n.id = old.namespace_id;
                end if;
                return null;
            end $$;
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.audit_block_records (
    record_id uuid NOT NULL,
    block bigint NOT NULL
);
CREATE TABLE public.audit_blocks (
    number bigint NOT NULL,
    first uuid NOT NULL,
    last uuid NOT NULL,
    count integer NOT NULL,
    records_digest bytea NOT NULL,
    previous bytea NOT NULL,
    sealed_at timestamp with time zone NOT NULL,
    digest bytea NOT NULL
);
CREATE TABLE public.audit_exports (
    name text NOT NULL,
    block bigint NOT NULL,
    holder uuid,
    held_until timestamp with time zone
);
CREATE TABLE public.audit_log (
    id uuid CONSTRAINT audit_log_id_not_null1 NOT NULL,
    at timestamp with time zone CONSTRAINT audit_log_at_not_null1 NOT NULL,
    request_id text CONSTRAINT audit_log_request_id_not_null1 NOT NULL,
    actor_id text CONSTRAINT audit_log_actor_id_not_null1 NOT NULL,
    operation text CONSTRAINT audit_log_operation_not_null1 NOT NULL,
    outcome text CONSTRAINT audit_log_outcome_not_null1 NOT NULL,
    record bytea CONSTRAINT audit_log_record_not_null1 NOT NULL
)
PARTITION BY RANGE (id);
CREATE TABLE public.audit_log_default (
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    request_id text NOT NULL,
    actor_id text NOT NULL,
    operation text NOT NULL,
    outcome text NOT NULL,
    record bytea NOT NULL
);
CREATE TABLE public.audit_log_initial (
    id uuid CONSTRAINT audit_log_id_not_null NOT NULL,
    at timestamp with time zone CONSTRAINT audit_log_at_not_null NOT NULL,
    request_id text CONSTRAINT audit_log_request_id_not_null NOT NULL,
    actor_id text CONSTRAINT audit_log_actor_id_not_null NOT NULL,
    operation text CONSTRAINT audit_log_operation_not_null NOT NULL,
    outcome text CONSTRAINT audit_log_outcome_not_null NOT NULL,
    record bytea CONSTRAINT audit_log_record_not_null NOT NULL
);
CREATE TABLE public.audit_removals (
    below uuid NOT NULL,
    partition text NOT NULL,
    records bigint NOT NULL,
    removed_at timestamp with time zone NOT NULL
);
CREATE TABLE public.change_tickets (
    id uuid NOT NULL,
    digest text NOT NULL,
    warehouse_id uuid NOT NULL,
    object_type text NOT NULL,
    object_id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    principal text NOT NULL,
    reasons text[] NOT NULL,
    change jsonb NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    decided_by text,
    decided_at timestamp with time zone,
    comment text,
    used_at timestamp with time zone,
    CONSTRAINT change_tickets_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'rejected'::text, 'used'::text, 'lapsed'::text])))
);
CREATE TABLE public.data_policies (
    id uuid NOT NULL,
    project_id text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    description text,
    version integer DEFAULT 1 NOT NULL,
    definition jsonb NOT NULL,
    applies_to text DEFAULT 'everyone'::text NOT NULL,
    allow_append boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone,
    tag_ids jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT data_policies_applies_to_check CHECK ((applies_to = ANY (ARRAY['everyone'::text, 'subjects'::text])))
);
CREATE TABLE public.data_policy_alerts (
    policy_id uuid NOT NULL,
    table_id uuid NOT NULL,
    problem text NOT NULL,
    first_seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.data_policy_bindings (
    policy_id uuid NOT NULL,
    object_type text NOT NULL,
    object_id uuid NOT NULL,
    warehouse_id uuid,
    recorded_fields integer[] DEFAULT '{}'::integer[] NOT NULL,
    bound_by text NOT NULL,
    bound_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    own boolean DEFAULT true NOT NULL,
    inherited boolean DEFAULT false NOT NULL,
    CONSTRAINT data_policy_bindings_object_type_check CHECK ((object_type = ANY (ARRAY['warehouse'::text, 'namespace'::text, 'table'::text, 'tag'::text, 'name'::text])))
);
CREATE TABLE public.data_policy_names (
    id uuid NOT NULL,
    warehouse_id uuid NOT NULL,
    levels text[] NOT NULL,
    pattern text NOT NULL
);
CREATE TABLE public.data_policy_releases (
    policy_id uuid NOT NULL,
    table_id uuid NOT NULL,
    field_id integer NOT NULL,
    released_by text NOT NULL,
    released_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.data_policy_versions (
    policy_id uuid NOT NULL,
    version integer NOT NULL,
    document jsonb NOT NULL,
    changed_by text NOT NULL,
    reason text,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.departures (
    user_id text NOT NULL,
    deleted_by text NOT NULL,
    deleted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    in_force_at timestamp with time zone
);
CREATE TABLE public.drift_watch (
    singleton boolean DEFAULT true NOT NULL,
    holder uuid,
    held_until timestamp with time zone,
    store_id text,
    seen_until timestamp with time zone,
    last_change text,
    compare_all boolean DEFAULT false NOT NULL,
    CONSTRAINT drift_watch_one_row_check CHECK (singleton)
);
CREATE TABLE public.endpoint_statistics (
    project_id text NOT NULL,
    warehouse_id uuid,
    route text NOT NULL,
    status smallint NOT NULL,
    hour timestamp with time zone NOT NULL,
    count bigint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone
);
CREATE TABLE public.engine_probes (
    engine text NOT NULL,
    warehouse_id uuid NOT NULL,
    challenge jsonb,
    verdict text,
    detail text,
    probed_at timestamp with time zone,
    valid_until timestamp with time zone,
    warn_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT engine_probes_verdict_check CHECK ((verdict = ANY (ARRAY['passed'::text, 'failed'::text])))
);
CREATE TABLE public.event_dead_letters (
    sink text NOT NULL,
    sequence bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    reason text NOT NULL
);
CREATE TABLE public.event_deliveries (
    sink text NOT NULL,
    sequence bigint NOT NULL
);
CREATE TABLE public.events (
    sequence bigint NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    type text NOT NULL,
    source text NOT NULL,
    key text NOT NULL,
    attributes jsonb NOT NULL,
    data bytea NOT NULL
);
ALTER TABLE public.events ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.events_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.former_columns (
    table_id uuid NOT NULL,
    field_id integer NOT NULL,
    name text NOT NULL
);
CREATE TABLE public.former_namespace_names (
    namespace_id uuid NOT NULL,
    path_key text NOT NULL,
    levels text[] NOT NULL,
    until timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.former_table_names (
    table_id uuid NOT NULL,
    path_key text NOT NULL,
    levels text[] NOT NULL,
    until timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.grant_history (
    id bigint NOT NULL,
    grant_id uuid NOT NULL,
    privilege text NOT NULL,
    principal_type text NOT NULL,
    principal_id text NOT NULL,
    object_type text NOT NULL,
    object_id text NOT NULL,
    granted_by text NOT NULL,
    granted_at timestamp with time zone NOT NULL,
    reason text,
    expires_at timestamp with time zone,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_by text,
    ended_because text NOT NULL,
    acts_for text,
    CONSTRAINT grant_history_ended_because_check CHECK ((ended_because = ANY (ARRAY['revoked'::text, 'expired'::text, 'object deleted'::text, 'principal deleted'::text, 'replaced'::text])))
);
ALTER TABLE public.grant_history ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.grant_history_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.grants (
    id uuid NOT NULL,
    privilege text NOT NULL,
    principal_type text NOT NULL,
    principal_id text NOT NULL,
    object_type text NOT NULL,
    object_id text NOT NULL,
    granted_by text NOT NULL,
    granted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    reason text,
    expires_at timestamp with time zone,
    acts_for text
);
CREATE TABLE public.idempotency (
    scope bytea NOT NULL,
    body_digest bytea NOT NULL,
    attempt uuid NOT NULL,
    actor_id text NOT NULL,
    operation text NOT NULL,
    status integer,
    detail jsonb,
    written_in bigint,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.live_credentials (
    id uuid NOT NULL,
    principal text NOT NULL,
    assumed_role uuid,
    engine text,
    view_owner text,
    project_id text NOT NULL,
    warehouse_id uuid NOT NULL,
    kind text NOT NULL,
    table_id uuid NOT NULL,
    prefix text NOT NULL,
    level text NOT NULL,
    provider text NOT NULL,
    session_name text NOT NULL,
    policy_digest text NOT NULL,
    issued_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    live_until timestamp with time zone NOT NULL
);
CREATE TABLE public.mapping_entries (
    mapping_id uuid NOT NULL,
    principal_type text NOT NULL,
    principal_id text NOT NULL,
    value text NOT NULL,
    CONSTRAINT mapping_entries_principal_type_check CHECK ((principal_type = ANY (ARRAY['user'::text, 'role'::text])))
);
CREATE TABLE public.mapping_tables (
    id uuid NOT NULL,
    project_id text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    description text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.model_steps (
    model_id text NOT NULL,
    step text NOT NULL,
    cursor text,
    done_at timestamp with time zone
);
CREATE TABLE public.model_switches (
    id bigint NOT NULL,
    model_id text NOT NULL,
    previous_id text,
    switched_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    switched_by text NOT NULL
);
ALTER TABLE public.model_switches ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.model_switches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.namespaces (
    id uuid NOT NULL,
    warehouse_id uuid NOT NULL,
    parent_id uuid,
    ancestors uuid[] NOT NULL,
    levels text[] NOT NULL,
    path_key text NOT NULL,
    properties jsonb NOT NULL,
    protected boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone,
    managed_access boolean DEFAULT false NOT NULL,
    search_key text GENERATED ALWAYS AS (public.searchable(path_key)) STORED
);
ALTER TABLE public.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.pending_files (
    location text NOT NULL,
    warehouse_id uuid NOT NULL,
    written_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.projects (
    id text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.relationship_models (
    model_id text NOT NULL,
    store_id text NOT NULL,
    version text NOT NULL,
    content_hash text NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    recorded_by text NOT NULL
);
CREATE TABLE public.retired_locations (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    table_id uuid NOT NULL,
    warehouse_id uuid NOT NULL,
    location text NOT NULL,
    location_key text NOT NULL,
    retired_by text,
    retired_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    keys_until timestamp with time zone NOT NULL,
    files_remain boolean DEFAULT true NOT NULL,
    owners text[] DEFAULT '{}'::text[] NOT NULL,
    metadata_location text
);
CREATE TABLE public.roles (
    id uuid NOT NULL,
    project_id text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    description text,
    provider_id text NOT NULL,
    source_id text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone,
    search_key text GENERATED ALWAYS AS (public.searchable(name_key)) STORED
);
CREATE TABLE public.scim_groups (
    role_id uuid NOT NULL,
    provider_id text NOT NULL,
    external_id text,
    version integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.scim_tokens (
    id uuid NOT NULL,
    provider_id text NOT NULL,
    project_id text NOT NULL,
    digest bytea NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    CONSTRAINT scim_tokens_digest_check CHECK ((length(digest) = 32))
);
CREATE TABLE public.scim_users (
    id uuid NOT NULL,
    user_id text NOT NULL,
    provider_id text NOT NULL,
    user_name text NOT NULL,
    user_name_key text NOT NULL,
    external_id text,
    active boolean NOT NULL,
    document bytea NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.secrets (
    id uuid NOT NULL,
    sealed bytea,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    replaced_at timestamp with time zone,
    store text DEFAULT 'postgres'::text NOT NULL
);
CREATE TABLE public.server (
    id uuid NOT NULL,
    singleton boolean DEFAULT true NOT NULL,
    bootstrapped_at timestamp with time zone,
    revision uuid NOT NULL,
    time_boxes uuid DEFAULT gen_random_uuid() NOT NULL,
    home text,
    bootstrap_for text,
    CONSTRAINT server_one_row_check CHECK (singleton)
);
CREATE TABLE public.signing_keys (
    kid text NOT NULL,
    public bytea NOT NULL,
    secret_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    signs_until timestamp with time zone NOT NULL,
    verifies_until timestamp with time zone NOT NULL
);
CREATE TABLE public.table_reports (
    id uuid NOT NULL,
    warehouse_id uuid NOT NULL,
    table_id uuid NOT NULL,
    kind text NOT NULL,
    snapshot_id bigint NOT NULL,
    reported_by text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    report jsonb NOT NULL,
    CONSTRAINT table_reports_kind_check CHECK ((kind = ANY (ARRAY['scan-report'::text, 'commit-report'::text])))
);
CREATE TABLE public.tables (
    id uuid NOT NULL,
    warehouse_id uuid NOT NULL,
    namespace_id uuid NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    table_uuid uuid NOT NULL,
    location text NOT NULL,
    location_key text NOT NULL,
    metadata_location text,
    metadata bytea,
    version bigint DEFAULT '1'::bigint NOT NULL,
    staged_by text,
    protected boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone,
    deleted_at timestamp with time zone,
    deleted_by text,
    search_key text GENERATED ALWAYS AS (public.searchable(name_key)) STORED,
    format text,
    metadata_excerpt bytea,
    metadata_excerpt_of text,
    CONSTRAINT tables_format_of_generic_tables_check CHECK (((kind = 'generic_table'::text) = (format IS NOT NULL))),
    CONSTRAINT tables_kind_check CHECK ((kind = ANY (ARRAY['table'::text, 'view'::text, 'generic_table'::text]))),
    CONSTRAINT tables_staged_or_deleted_check CHECK (((staged_by IS NULL) OR (deleted_at IS NULL))),
    CONSTRAINT tables_staged_without_metadata_check CHECK (((staged_by IS NULL) = (metadata IS NOT NULL)))
);
ALTER TABLE ONLY public.tables ALTER COLUMN metadata SET STORAGE EXTERNAL;
CREATE TABLE public.tag_attachments (
    tag_id uuid NOT NULL,
    warehouse_id uuid NOT NULL,
    object_type text NOT NULL,
    object_id uuid NOT NULL,
    field_id integer,
    column_name text,
    value text,
    attached_by text NOT NULL,
    attached_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.tags (
    id uuid NOT NULL,
    project_id text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    description text,
    scope text[] NOT NULL,
    value_kind text NOT NULL,
    allowed_values text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone,
    CONSTRAINT tags_value_kind_check CHECK ((value_kind = ANY (ARRAY['marker'::text, 'free-text'::text, 'enumerated'::text])))
);
CREATE TABLE public.task_log (
    task_id uuid NOT NULL,
    attempt integer NOT NULL,
    status text NOT NULL,
    scheduled_for timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    message text,
    progress double precision DEFAULT '0'::double precision NOT NULL,
    execution_details jsonb,
    CONSTRAINT task_log_status_check CHECK ((status = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE TABLE public.task_queue_configs (
    id bigint NOT NULL,
    queue text NOT NULL,
    warehouse_id uuid,
    project_id text,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    heartbeat_seconds bigint,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT task_queue_configs_belongs_check CHECK (((warehouse_id IS NULL) <> (project_id IS NULL)))
);
ALTER TABLE public.task_queue_configs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.task_queue_configs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.tasks (
    id uuid NOT NULL,
    queue text NOT NULL,
    warehouse_id uuid,
    entity_type text,
    entity_id uuid,
    status text DEFAULT 'scheduled'::text NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    scheduled_for timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    heartbeat_at timestamp with time zone,
    payload jsonb NOT NULL,
    last_error text,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    finished_at timestamp with time zone,
    project_id text,
    parent_task_id uuid,
    entity_name text[] DEFAULT '{}'::text[] NOT NULL,
    interruptions integer DEFAULT 0 NOT NULL,
    picked_up_at timestamp with time zone,
    progress double precision DEFAULT '0'::double precision NOT NULL,
    execution_details jsonb,
    updated_at timestamp with time zone,
    CONSTRAINT tasks_belongs_check CHECK (((warehouse_id IS NULL) <> (project_id IS NULL))),
    CONSTRAINT tasks_status_check CHECK ((status = ANY (ARRAY['scheduled'::text, 'running'::text, 'stopping'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text])))
);
CREATE TABLE public.users (
    id text NOT NULL,
    name text NOT NULL,
    email text,
    user_type text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone,
    last_updated_with text NOT NULL,
    verified_email text,
    search_key text GENERATED ALWAYS AS (public.searchable(lower(((((regexp_replace(NORMALIZE(name, NFKD), '[^ ]*@[^ ]*'::text, ' '::text, 'g'::text) || ' '::text) || COALESCE(verified_email, ''::text)) || ' '::text) || id)))) STORED,
    address_key text GENERATED ALWAYS AS (public.searchable(lower(((COALESCE(verified_email, ''::text) || ' '::text) || id)))) STORED
);
CREATE TABLE public.vacated_names (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    warehouse_id uuid NOT NULL,
    path_key text NOT NULL,
    name_key text NOT NULL,
    policy_id uuid NOT NULL,
    tag_id uuid,
    column_name text,
    released integer[] NOT NULL,
    vacated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    taken_by uuid,
    taken_in bigint,
    announced_at timestamp with time zone
);
CREATE TABLE public.warehouse_changes (
    id bigint NOT NULL,
    warehouse_id uuid NOT NULL,
    tables bigint NOT NULL,
    views bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
ALTER TABLE public.warehouse_changes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.warehouse_changes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.warehouse_statistics (
    warehouse_id uuid NOT NULL,
    hour timestamp with time zone NOT NULL,
    tables bigint NOT NULL,
    views bigint NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.warehouses (
    id uuid NOT NULL,
    project_id text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    active boolean DEFAULT true NOT NULL,
    protected boolean DEFAULT false NOT NULL,
    profile bytea NOT NULL,
    profile_version integer DEFAULT 1 NOT NULL,
    base_key text NOT NULL,
    secret_id uuid,
    delete_profile jsonb NOT NULL,
    managed_by text NOT NULL,
    allowed_format_versions integer[] NOT NULL,
    default_format_version integer,
    revision uuid NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone,
    managed_access boolean DEFAULT false NOT NULL,
    keys_until timestamp with time zone,
    key_seconds integer DEFAULT 0 NOT NULL,
    scope_verdict text,
    scope_version integer,
    scope_verdict_at timestamp with time zone,
    scope_tried_at timestamp with time zone,
    scope_report bytea,
    credential_kind text,
    data_policy_revision uuid,
    policy_loss text DEFAULT 'refuse-restricted'::text NOT NULL,
    CONSTRAINT warehouses_policy_loss_check CHECK ((policy_loss = ANY (ARRAY['refuse'::text, 'refuse-restricted'::text, 'announce'::text])))
);
ALTER TABLE ONLY public.audit_log ATTACH PARTITION public.audit_log_default DEFAULT;
ALTER TABLE ONLY public.audit_log ATTACH PARTITION public.audit_log_initial FOR VALUES FROM (MINVALUE) TO ('01a2ce8b-d400-0000-0000-000000000000');
INSERT INTO public.alembic_version VALUES ('0056');
INSERT INTO public.audit_block_records VALUES ('f2a99677-3d42-4d7d-888d-5c44e66c9ddd', 1);
INSERT INTO public.audit_blocks VALUES (1, '1ff97a9a-f55d-4f57-ae20-7a23699a74c2', 'b1d9c27b-ca8f-4534-b6dc-b7528dac8fda', 1, '\x0000000000000000000000000000000000000000000000000000000000000000', '\x0000000000000000000000000000000000000000000000000000000000000000', '2030-01-01 00:00:00+00', '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.audit_exports VALUES ('audit_exports name', 1, '4b69e831-3a1b-4cbd-ab51-396bd8e82e11', '2030-01-01 00:00:00+00');
INSERT INTO public.audit_log_default VALUES ('c3a9e0b7-ddd8-495f-b085-6c0177a30af7', '2030-01-01 00:00:00+00', 'audit_log request_id', 'audit_log actor_id', 'audit_log operation', 'audit_log outcome', '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.audit_removals VALUES ('bc7936d1-308d-4999-8f58-72596099fa3a', 'audit_removals partition', 1, '2030-01-01 00:00:00+00');
INSERT INTO public.change_tickets VALUES ('e8f44d12-73f8-4cab-a5db-35eaf8c515a6', 'change_tickets digest', '00c0dba0-4f79-4231-aa71-893f42b1868e', 'change_tickets object_type', 'f170ff7b-6f2d-4971-8f97-62eb707b21dd', 'change_tickets name', 'change_tickets kind', 'change_tickets principal', '{}', '{"a": "b"}', 'pending', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', 'change_tickets decided_by', '2030-01-01 00:00:00+00', 'change_tickets comment', '2030-01-01 00:00:00+00');
INSERT INTO public.data_policies VALUES ('0644c274-8b08-491b-9d20-e1e558ddee9f', 'projects id', 'data_policies name', 'data_policies name_key', 'data_policies description', 1, '{"a": "b"}', 'everyone', true, '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', '{"a": "b"}');
INSERT INTO public.data_policy_alerts VALUES ('0644c274-8b08-491b-9d20-e1e558ddee9f', '3035ec60-85dd-4155-86bc-7479223607c9', 'data_policy_alerts problem', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.data_policy_bindings VALUES ('0644c274-8b08-491b-9d20-e1e558ddee9f', 'warehouse', '2b3fd796-6b44-4276-b89f-14ceae2bb222', '00c0dba0-4f79-4231-aa71-893f42b1868e', '{}', 'data_policy_bindings bound_by', '2030-01-01 00:00:00+00', true, true);
INSERT INTO public.data_policy_names VALUES ('47aca231-5dea-4025-bc6f-d61c3e9d581b', '00c0dba0-4f79-4231-aa71-893f42b1868e', '{}', 'data_policy_names pattern');
INSERT INTO public.data_policy_releases VALUES ('0644c274-8b08-491b-9d20-e1e558ddee9f', '6cc9609b-acc0-413b-8235-5c5cbb5f52c9', 1, 'data_policy_releases released_by', '2030-01-01 00:00:00+00');
INSERT INTO public.data_policy_versions VALUES ('477ad7f0-8a3f-4c4d-9e77-d9cd74ca7b7f', 1, '{"a": "b"}', 'data_policy_versions changed_by', 'data_policy_versions reason', '2030-01-01 00:00:00+00');
INSERT INTO public.departures VALUES ('departures user_id', 'departures deleted_by', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.drift_watch VALUES (true, '06cc8366-d5a3-4cf8-9764-7d568d1e90d8', '2030-01-01 00:00:00+00', 'drift_watch store_id', '2030-01-01 00:00:00+00', 'drift_watch last_change', true);
INSERT INTO public.endpoint_statistics VALUES ('projects id', '00c0dba0-4f79-4231-aa71-893f42b1868e', 'endpoint_statistics route', 1, '2030-01-01 00:00:00+00', 1, '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.engine_probes VALUES ('engine_probes engine', '00c0dba0-4f79-4231-aa71-893f42b1868e', '{"a": "b"}', 'passed', 'engine_probes detail', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.event_dead_letters VALUES ('event_dead_letters sink', 1, '2030-01-01 00:00:00+00', 'event_dead_letters reason');
INSERT INTO public.event_deliveries VALUES ('event_deliveries sink', 1);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (1, 'a471f0f3-2a58-4184-8119-758a7415f73c', '2030-01-01 00:00:00+00', 'events type', 'events source', 'events key', '{"a": "b"}', '\x0000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO public.former_columns VALUES ('cfbde894-dcb3-4fbb-be2c-de55324e5084', 1, 'former_columns name');
INSERT INTO public.former_namespace_names VALUES ('f9cee9b0-bbf8-4e98-9349-d9685dbaf810', 'former_namespace_names path_key', '{}', '2030-01-01 00:00:00+00');
INSERT INTO public.former_table_names VALUES ('350fc7d1-1541-4ad8-8c91-26854cd7c967', 'former_table_names path_key', '{}', '2030-01-01 00:00:00+00');
INSERT INTO public.grant_history OVERRIDING SYSTEM VALUE VALUES (1, '87b2d72c-80ef-4386-a16c-40b18c4121ac', 'grant_history privilege', 'grant_history principal_type', 'grant_history principal_id', 'grant_history object_type', 'grant_history object_id', 'grant_history granted_by', '2030-01-01 00:00:00+00', 'grant_history reason', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', 'grant_history ended_by', 'revoked', 'grant_history acts_for');
INSERT INTO public.grants VALUES ('75eeaffa-7a4c-4c8a-8206-09911a0502a7', 'grants privilege', 'grants principal_type', 'grants principal_id', 'grants object_type', 'grants object_id', 'grants granted_by', '2030-01-01 00:00:00+00', 'grants reason', NULL, 'grants acts_for');
INSERT INTO public.idempotency VALUES ('\x0000000000000000000000000000000000000000000000000000000000000000', '\x0000000000000000000000000000000000000000000000000000000000000000', '4528ca48-85fb-4bde-8a27-53e6678c851d', 'idempotency actor_id', 'idempotency operation', 1, '{"a": "b"}', 1, '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.live_credentials VALUES ('73a831a7-120c-482a-a0a5-970ad4e4bb99', 'live_credentials principal', '98641a13-c141-4ba6-ba86-d4cce9931049', 'live_credentials engine', 'live_credentials view_owner', 'live_credentials project_id', '6a9a368f-120b-423d-82bb-995568d5d093', 'live_credentials kind', '03895701-4481-4aaf-be47-44da91747ca1', 'live_credentials prefix', 'live_credentials level', 'live_credentials provider', 'live_credentials session_name', 'live_credentials policy_digest', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.mapping_entries VALUES ('21b74ba5-b67d-4306-8e48-debd514ce0a6', 'user', 'mapping_entries principal_id', 'mapping_entries value');
INSERT INTO public.mapping_tables VALUES ('21b74ba5-b67d-4306-8e48-debd514ce0a6', 'projects id', 'mapping_tables name', 'mapping_tables name_key', 'mapping_tables description', '2030-01-01 00:00:00+00');
INSERT INTO public.model_steps VALUES ('relationship_models model_id', 'model_steps step', 'model_steps cursor', '2030-01-01 00:00:00+00');
INSERT INTO public.model_switches OVERRIDING SYSTEM VALUE VALUES (1, 'relationship_models model_id', 'relationship_models model_id', '2030-01-01 00:00:00+00', 'model_switches switched_by');
INSERT INTO public.namespaces VALUES ('f9cee9b0-bbf8-4e98-9349-d9685dbaf810', '00c0dba0-4f79-4231-aa71-893f42b1868e', NULL, '{}', '{}', 'namespaces path_key', '{"a": "b"}', true, '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', true, DEFAULT);
INSERT INTO public.outbox OVERRIDING SYSTEM VALUE VALUES (1, 'outbox subject_type', 'outbox subject_id', 'outbox relation', 'outbox object_type', 'outbox object_id', 'aeb6a4c7-9b68-4ab5-9717-f0ba7ed2dc94', false, '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', 1, 1, 1, '2030-01-01 00:00:00+00');
INSERT INTO public.pending_files VALUES ('pending_files location', '00c0dba0-4f79-4231-aa71-893f42b1868e', '2030-01-01 00:00:00+00');
INSERT INTO public.projects VALUES ('projects id', 'projects name', 'projects name_key', '2030-01-01 00:00:00+00');
INSERT INTO public.relationship_models VALUES ('relationship_models model_id', 'relationship_models store_id', 'relationship_models version', 'relationship_models content_hash', '2030-01-01 00:00:00+00', 'relationship_models recorded_by');
INSERT INTO public.retired_locations VALUES ('445db630-31b5-4842-b18d-67f2ce8f39b8', '5a173bcc-9c82-4119-875a-dea5653b66bf', '8269d523-5557-4806-8d5f-9dc239775272', 'retired_locations location', 'retired_locations location_key', 'retired_locations retired_by', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', true, '{}', 'retired_locations metadata_location');
INSERT INTO public.roles VALUES ('37602d77-dca4-44e2-b7bc-6fc4e01fc3e3', 'projects id', 'roles name', 'roles name_key', 'roles description', 'roles provider_id', 'roles source_id', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', DEFAULT);
INSERT INTO public.scim_groups VALUES ('37602d77-dca4-44e2-b7bc-6fc4e01fc3e3', 'scim_groups provider_id', 'scim_groups external_id', 1, '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.scim_tokens VALUES ('65eb99a8-0230-47d6-9a47-b009aa0640d2', 'scim_tokens provider_id', 'projects id', '\x0000000000000000000000000000000000000000000000000000000000000000', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.scim_users VALUES ('620a22c8-bf53-4bde-8fde-b066d30e5ea9', 'users id', 'scim_users provider_id', 'scim_users user_name', 'scim_users user_name_key', 'scim_users external_id', true, '\x0000000000000000000000000000000000000000000000000000000000000000', 1, '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.secrets VALUES ('36bee142-2435-4db0-ba3c-3cd3b332af29', '\x0000000000000000000000000000000000000000000000000000000000000000', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', 'secrets store');
INSERT INTO public.server VALUES ('297436e6-1e1b-4b19-bd42-c616784f7982', true, '2030-01-01 00:00:00+00', '1362e332-527a-4e4f-beef-49a03b410578', '9bba0df5-e720-4f3b-a382-654579f78166', 'server home', 'server bootstrap_for');
INSERT INTO public.signing_keys VALUES ('signing_keys kid', '\x0000000000000000000000000000000000000000000000000000000000000000', '36bee142-2435-4db0-ba3c-3cd3b332af29', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.table_reports VALUES ('c43c4700-350a-4c0e-b561-967694a4caa3', '480d3192-3964-4c9a-bd24-a0453dd1e800', 'a27c8e60-325a-4433-8e22-3c8964be50af', 'scan-report', 1, 'table_reports reported_by', '2030-01-01 00:00:00+00', '{"a": "b"}');
INSERT INTO public.tables VALUES ('350fc7d1-1541-4ad8-8c91-26854cd7c967', '00c0dba0-4f79-4231-aa71-893f42b1868e', 'f9cee9b0-bbf8-4e98-9349-d9685dbaf810', 'table', 'tables name', 'tables name_key', 'ee93e600-3f83-4502-95c9-7ed0d7f8905e', 'tables location', 'tables location_key', 'tables metadata_location', '\x0000000000000000000000000000000000000000000000000000000000000000', 1, NULL, true, '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', 'tables deleted_by', DEFAULT, NULL, '\x0000000000000000000000000000000000000000000000000000000000000000', 'tables metadata_excerpt_of');
INSERT INTO public.tag_attachments VALUES ('93700767-ca9d-4a0d-9b14-131ef7ce3d36', '00c0dba0-4f79-4231-aa71-893f42b1868e', 'tag_attachments object_type', '34563aa7-bc3b-48d7-92d3-f0c0feaa733d', 1, 'tag_attachments column_name', 'tag_attachments value', 'tag_attachments attached_by', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.tags VALUES ('93700767-ca9d-4a0d-9b14-131ef7ce3d36', 'projects id', 'tags name', 'tags name_key', 'tags description', '{}', 'marker', '{}', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00');
INSERT INTO public.task_log VALUES ('d4c4f5b0-6d82-4fe3-94c4-e1e660664d1a', 1, 'succeeded', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', 'task_log message', 0.5, '{"a": "b"}');
INSERT INTO public.task_queue_configs OVERRIDING SYSTEM VALUE VALUES (1, 'task_queue_configs queue', '00c0dba0-4f79-4231-aa71-893f42b1868e', NULL, '{"a": "b"}', 1, '2030-01-01 00:00:00+00');
INSERT INTO public.tasks VALUES ('d4c4f5b0-6d82-4fe3-94c4-e1e660664d1a', 'tasks queue', '00c0dba0-4f79-4231-aa71-893f42b1868e', 'tasks entity_type', 'ba62aea3-2793-45df-b271-45e9626b0649', 'scheduled', 1, '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', '{"a": "b"}', 'tasks last_error', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', NULL, '4070ceaf-fe21-4a86-8b45-fcd81a712d35', '{}', 1, '2030-01-01 00:00:00+00', 0.5, '{"a": "b"}', '2030-01-01 00:00:00+00');
INSERT INTO public.users VALUES ('users id', 'users name', 'users email', 'users user_type', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', 'users last_updated_with', 'users verified_email', DEFAULT, DEFAULT);
INSERT INTO public.vacated_names VALUES ('f3c4ec9c-bfa8-42d6-97be-b5b81e6eb449', '00c0dba0-4f79-4231-aa71-893f42b1868e', 'vacated_names path_key', 'vacated_names name_key', '0644c274-8b08-491b-9d20-e1e558ddee9f', '93700767-ca9d-4a0d-9b14-131ef7ce3d36', 'vacated_names column_name', '{}', '2030-01-01 00:00:00+00', '1a984047-8f71-4cca-a227-462df174fe97', 1, '2030-01-01 00:00:00+00');
INSERT INTO public.warehouse_changes OVERRIDING SYSTEM VALUE VALUES (1, '00c0dba0-4f79-4231-aa71-893f42b1868e', 1, 1, '2030-01-01 00:00:00+00');
INSERT INTO public.warehouse_statistics VALUES ('00c0dba0-4f79-4231-aa71-893f42b1868e', '2030-01-01 00:00:00+00', 1, 1, '2030-01-01 00:00:00+00');
INSERT INTO public.warehouses VALUES ('00c0dba0-4f79-4231-aa71-893f42b1868e', 'projects id', 'warehouses name', 'warehouses name_key', true, true, '\x0000000000000000000000000000000000000000000000000000000000000000', 1, 'warehouses base_key', '36bee142-2435-4db0-ba3c-3cd3b332af29', '{"a": "b"}', 'warehouses managed_by', '{}', 1, 'd7414b24-e3de-4948-a829-1ecb5d1b9ecf', '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', true, '2030-01-01 00:00:00+00', 1, 'warehouses scope_verdict', 1, '2030-01-01 00:00:00+00', '2030-01-01 00:00:00+00', '\x0000000000000000000000000000000000000000000000000000000000000000', 'warehouses credential_kind', '0b9b1869-5965-4abd-82ac-212fabb57048', 'refuse');
SELECT pg_catalog.setval('public.events_sequence_seq', 1, true);
SELECT pg_catalog.setval('public.grant_history_id_seq', 1, true);
SELECT pg_catalog.setval('public.model_switches_id_seq', 1, true);
SELECT pg_catalog.setval('public.outbox_id_seq', 1, true);
SELECT pg_catalog.setval('public.task_queue_configs_id_seq', 1, true);
SELECT pg_catalog.setval('public.warehouse_changes_id_seq', 1, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.audit_block_records
    ADD CONSTRAINT audit_block_records_pkey PRIMARY KEY (record_id);
ALTER TABLE ONLY public.audit_blocks
    ADD CONSTRAINT audit_blocks_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.audit_exports
    ADD CONSTRAINT audit_exports_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit_log_default
    ADD CONSTRAINT audit_log_default_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit_log_initial
    ADD CONSTRAINT audit_log_initial_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit_removals
    ADD CONSTRAINT audit_removals_pkey PRIMARY KEY (below);
ALTER TABLE ONLY public.change_tickets
    ADD CONSTRAINT change_tickets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.data_policies
    ADD CONSTRAINT data_policies_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.data_policies
    ADD CONSTRAINT data_policies_project_id_name_key_key UNIQUE (project_id, name_key);
ALTER TABLE ONLY public.data_policy_alerts
    ADD CONSTRAINT data_policy_alerts_pkey PRIMARY KEY (policy_id, table_id, problem);
ALTER TABLE ONLY public.data_policy_bindings
    ADD CONSTRAINT data_policy_bindings_pkey PRIMARY KEY (policy_id, object_id);
ALTER TABLE ONLY public.data_policy_names
    ADD CONSTRAINT data_policy_names_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.data_policy_releases
    ADD CONSTRAINT data_policy_releases_pkey PRIMARY KEY (policy_id, table_id, field_id);
ALTER TABLE ONLY public.data_policy_versions
    ADD CONSTRAINT data_policy_versions_pkey PRIMARY KEY (policy_id, version);
ALTER TABLE ONLY public.departures
    ADD CONSTRAINT departures_pkey PRIMARY KEY (user_id);
ALTER TABLE ONLY public.drift_watch
    ADD CONSTRAINT drift_watch_pkey PRIMARY KEY (singleton);
ALTER TABLE ONLY public.endpoint_statistics
    ADD CONSTRAINT endpoint_statistics_key UNIQUE NULLS NOT DISTINCT (project_id, hour, warehouse_id, route, status);
ALTER TABLE ONLY public.engine_probes
    ADD CONSTRAINT engine_probes_pkey PRIMARY KEY (engine, warehouse_id);
ALTER TABLE ONLY public.event_dead_letters
    ADD CONSTRAINT event_dead_letters_pkey PRIMARY KEY (sink, sequence);
ALTER TABLE ONLY public.event_deliveries
    ADD CONSTRAINT event_deliveries_pkey PRIMARY KEY (sink, sequence);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_id_key UNIQUE (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (sequence);
ALTER TABLE ONLY public.former_columns
    ADD CONSTRAINT former_columns_pkey PRIMARY KEY (table_id, field_id, name);
ALTER TABLE ONLY public.former_namespace_names
    ADD CONSTRAINT former_namespace_names_pkey PRIMARY KEY (namespace_id, path_key);
ALTER TABLE ONLY public.former_table_names
    ADD CONSTRAINT former_table_names_pkey PRIMARY KEY (table_id, path_key);
ALTER TABLE ONLY public.grant_history
    ADD CONSTRAINT grant_history_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.grants
    ADD CONSTRAINT grants_key UNIQUE (privilege, principal_type, principal_id, object_type, object_id, granted_by);
ALTER TABLE ONLY public.grants
    ADD CONSTRAINT grants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (scope);
ALTER TABLE ONLY public.live_credentials
    ADD CONSTRAINT live_credentials_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.mapping_entries
    ADD CONSTRAINT mapping_entries_pkey PRIMARY KEY (mapping_id, principal_type, principal_id, value);
ALTER TABLE ONLY public.mapping_tables
    ADD CONSTRAINT mapping_tables_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.mapping_tables
    ADD CONSTRAINT mapping_tables_project_id_name_key_key UNIQUE (project_id, name_key);
ALTER TABLE ONLY public.model_steps
    ADD CONSTRAINT model_steps_pkey PRIMARY KEY (model_id, step);
ALTER TABLE ONLY public.model_switches
    ADD CONSTRAINT model_switches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.namespaces
    ADD CONSTRAINT namespaces_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.namespaces
    ADD CONSTRAINT namespaces_warehouse_id_path_key_key UNIQUE (warehouse_id, path_key);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.pending_files
    ADD CONSTRAINT pending_files_pkey PRIMARY KEY (location);
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_name_key_key UNIQUE (name_key);
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.relationship_models
    ADD CONSTRAINT relationship_models_pkey PRIMARY KEY (model_id);
ALTER TABLE ONLY public.retired_locations
    ADD CONSTRAINT retired_locations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.roles
    ADD CONSTRAINT roles_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.roles
    ADD CONSTRAINT roles_project_id_name_key_key UNIQUE (project_id, name_key);
ALTER TABLE ONLY public.roles
    ADD CONSTRAINT roles_project_id_provider_id_source_id_key UNIQUE (project_id, provider_id, source_id);
ALTER TABLE ONLY public.scim_groups
    ADD CONSTRAINT scim_groups_pkey PRIMARY KEY (role_id);
ALTER TABLE ONLY public.scim_tokens
    ADD CONSTRAINT scim_tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.scim_users
    ADD CONSTRAINT scim_users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.scim_users
    ADD CONSTRAINT scim_users_provider_id_external_id_key UNIQUE (provider_id, external_id);
ALTER TABLE ONLY public.scim_users
    ADD CONSTRAINT scim_users_provider_id_user_name_key_key UNIQUE (provider_id, user_name_key);
ALTER TABLE ONLY public.scim_users
    ADD CONSTRAINT scim_users_user_id_key UNIQUE (user_id);
ALTER TABLE ONLY public.secrets
    ADD CONSTRAINT secrets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.server
    ADD CONSTRAINT server_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.server
    ADD CONSTRAINT server_singleton_key UNIQUE (singleton);
ALTER TABLE ONLY public.signing_keys
    ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (kid);
ALTER TABLE ONLY public.table_reports
    ADD CONSTRAINT table_reports_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tables
    ADD CONSTRAINT tables_location_key_key UNIQUE (location_key);
ALTER TABLE ONLY public.tables
    ADD CONSTRAINT tables_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tags
    ADD CONSTRAINT tags_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tags
    ADD CONSTRAINT tags_project_id_name_key_key UNIQUE (project_id, name_key);
ALTER TABLE ONLY public.task_log
    ADD CONSTRAINT task_log_pkey PRIMARY KEY (task_id, attempt);
ALTER TABLE ONLY public.task_queue_configs
    ADD CONSTRAINT task_queue_configs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.task_queue_configs
    ADD CONSTRAINT task_queue_configs_project_id_queue_key UNIQUE (project_id, queue);
ALTER TABLE ONLY public.task_queue_configs
    ADD CONSTRAINT task_queue_configs_warehouse_id_queue_key UNIQUE (warehouse_id, queue);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.vacated_names
    ADD CONSTRAINT vacated_names_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.warehouse_changes
    ADD CONSTRAINT warehouse_changes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.warehouse_statistics
    ADD CONSTRAINT warehouse_statistics_pkey PRIMARY KEY (warehouse_id, hour);
ALTER TABLE ONLY public.warehouses
    ADD CONSTRAINT warehouses_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.warehouses
    ADD CONSTRAINT warehouses_project_id_name_key_key UNIQUE (project_id, name_key);
CREATE INDEX audit_block_records_block_idx ON public.audit_block_records USING btree (block);
CREATE INDEX audit_log_actor_id_at_idx ON ONLY public.audit_log USING btree (actor_id, at);
CREATE INDEX audit_log_at_idx ON ONLY public.audit_log USING btree (at);
CREATE INDEX audit_log_default_actor_id_at_idx ON public.audit_log_default USING btree (actor_id, at);
CREATE INDEX audit_log_default_at_idx ON public.audit_log_default USING btree (at);
CREATE INDEX audit_log_outcome_at_idx ON ONLY public.audit_log USING btree (outcome, at) WHERE (outcome <> 'allowed'::text);
CREATE INDEX audit_log_default_outcome_at_idx ON public.audit_log_default USING btree (outcome, at) WHERE (outcome <> 'allowed'::text);
CREATE INDEX audit_log_initial_actor_id_at_idx ON public.audit_log_initial USING btree (actor_id, at);
CREATE INDEX audit_log_initial_at_idx ON public.audit_log_initial USING btree (at);
CREATE INDEX audit_log_initial_outcome_at_idx ON public.audit_log_initial USING btree (outcome, at) WHERE (outcome <> 'allowed'::text);
CREATE UNIQUE INDEX change_tickets_digest_idx ON public.change_tickets USING btree (digest) WHERE (status = ANY (ARRAY['pending'::text, 'approved'::text, 'rejected'::text]));
CREATE INDEX change_tickets_expires_at_idx ON public.change_tickets USING btree (expires_at);
CREATE INDEX change_tickets_warehouse_id_id_idx ON public.change_tickets USING btree (warehouse_id, id);
CREATE INDEX data_policy_bindings_object_id_idx ON public.data_policy_bindings USING btree (object_id);
CREATE INDEX data_policy_bindings_warehouse_id_idx ON public.data_policy_bindings USING btree (warehouse_id);
CREATE INDEX data_policy_names_warehouse_id_idx ON public.data_policy_names USING btree (warehouse_id);
CREATE INDEX data_policy_releases_table_id_idx ON public.data_policy_releases USING btree (table_id);
CREATE INDEX endpoint_statistics_hour_idx ON public.endpoint_statistics USING btree (hour);
CREATE INDEX endpoint_statistics_warehouse_id_hour_idx ON public.endpoint_statistics USING btree (warehouse_id, hour);
CREATE INDEX event_dead_letters_sequence_idx ON public.event_dead_letters USING btree (sequence);
CREATE INDEX event_deliveries_sequence_idx ON public.event_deliveries USING btree (sequence);
CREATE INDEX events_at_idx ON public.events USING btree (at);
CREATE INDEX former_namespace_names_until_idx ON public.former_namespace_names USING btree (namespace_id, until DESC);
CREATE INDEX former_table_names_until_idx ON public.former_table_names USING btree (table_id, until DESC);
CREATE INDEX grant_history_object_type_object_id_id_idx ON public.grant_history USING btree (object_type, object_id, id);
CREATE INDEX grant_history_principal_type_principal_id_id_idx ON public.grant_history USING btree (principal_type, principal_id, id);
CREATE INDEX grants_ending_idx ON public.grants USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX grants_ends_of_principal_idx ON public.grants USING btree (principal_type, principal_id, expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX grants_object_type_object_id_id_idx ON public.grants USING btree (object_type, object_id, id);
CREATE INDEX grants_on_columns_idx ON public.grants USING btree (split_part(object_id, '.'::text, 1), principal_type, principal_id) WHERE (object_type = 'column'::text);
CREATE INDEX grants_principal_type_principal_id_id_idx ON public.grants USING btree (principal_type, principal_id, id);
CREATE INDEX grants_roles_of_principal_idx ON public.grants USING btree (principal_type, principal_id) WHERE (object_type = 'role'::text);
CREATE INDEX idempotency_expires_at_idx ON public.idempotency USING btree (expires_at);
CREATE INDEX live_credentials_engine_idx ON public.live_credentials USING btree (engine) WHERE (engine IS NOT NULL);
CREATE INDEX live_credentials_live_until_idx ON public.live_credentials USING btree (live_until);
CREATE INDEX live_credentials_principal_idx ON public.live_credentials USING btree (principal);
CREATE INDEX live_credentials_table_id_id_idx ON public.live_credentials USING btree (table_id, id);
CREATE INDEX live_credentials_view_owner_idx ON public.live_credentials USING btree (view_owner) WHERE (view_owner IS NOT NULL);
CREATE INDEX live_credentials_warehouse_id_id_idx ON public.live_credentials USING btree (warehouse_id, id);
CREATE INDEX mapping_entries_principal_id_idx ON public.mapping_entries USING btree (principal_id);
CREATE INDEX namespaces_parent_id_idx ON public.namespaces USING btree (parent_id);
CREATE INDEX outbox_not_before_idx ON public.outbox USING btree (not_before);
CREATE INDEX outbox_object_id_subject_id_relation_idx ON public.outbox USING btree (object_id, subject_id, relation);
CREATE INDEX outbox_takes_away_idx ON public.outbox USING btree (subject_id) WHERE takes_away;
CREATE INDEX outbox_written_in_idx ON public.outbox USING btree (written_in);
CREATE INDEX pending_files_written_at_idx ON public.pending_files USING btree (written_at);
CREATE INDEX retired_locations_location_key_idx ON public.retired_locations USING btree (location_key);
CREATE INDEX retired_locations_location_range_idx ON public.retired_locations USING btree (location_key COLLATE "C");
CREATE INDEX retired_locations_table_id_idx ON public.retired_locations USING btree (table_id);
CREATE INDEX roles_by_source ON public.roles USING btree (provider_id, source_id);
CREATE INDEX secrets_replaced_idx ON public.secrets USING btree (replaced_at) WHERE (replaced_at IS NOT NULL);
CREATE INDEX table_reports_at_idx ON public.table_reports USING btree (at);
CREATE INDEX table_reports_table_id_at_idx ON public.table_reports USING btree (table_id, at);
CREATE INDEX tables_deleted_idx ON public.tables USING btree (warehouse_id, name_key, id) WHERE (deleted_at IS NOT NULL);
CREATE INDEX tables_location_range_idx ON public.tables USING btree (location_key COLLATE "C");
CREATE UNIQUE INDEX tables_namespace_id_name_key_key ON public.tables USING btree (namespace_id, name_key) WHERE ((staged_by IS NULL) AND (deleted_at IS NULL));
CREATE INDEX tables_signature_idx ON public.tables USING btree (namespace_id, public.search_signature(search_key)) INCLUDE (id, search_key) WHERE ((staged_by IS NULL) AND (deleted_at IS NULL));
CREATE INDEX tables_staged_idx ON public.tables USING btree (namespace_id, name_key) WHERE (staged_by IS NOT NULL);
CREATE UNIQUE INDEX tag_attachments_object_id_tag_id_field_id_idx ON public.tag_attachments USING btree (object_id, tag_id, field_id) WHERE (field_id IS NOT NULL);
CREATE UNIQUE INDEX tag_attachments_object_id_tag_id_idx ON public.tag_attachments USING btree (object_id, tag_id) WHERE (field_id IS NULL);
CREATE INDEX tag_attachments_tag_id_object_id_idx ON public.tag_attachments USING btree (tag_id, object_id);
CREATE UNIQUE INDEX tasks_active_key ON public.tasks USING btree (queue, entity_type, entity_id) WHERE (status = ANY (ARRAY['scheduled'::text, 'running'::text, 'stopping'::text]));
CREATE UNIQUE INDEX tasks_active_project_key ON public.tasks USING btree (queue, project_id) WHERE ((status = ANY (ARRAY['scheduled'::text, 'running'::text, 'stopping'::text])) AND (entity_id IS NULL));
CREATE INDEX tasks_due_idx ON public.tasks USING btree (scheduled_for) WHERE (status = ANY (ARRAY['scheduled'::text, 'running'::text, 'stopping'::text]));
CREATE INDEX tasks_entity_id_idx ON public.tasks USING btree (entity_id);
CREATE INDEX tasks_finished_at_idx ON public.tasks USING btree (finished_at);
CREATE INDEX tasks_project_id_idx ON public.tasks USING btree (project_id, created_at, id);
CREATE INDEX tasks_warehouse_id_idx ON public.tasks USING btree (warehouse_id, created_at, id);
CREATE INDEX vacated_names_name_idx ON public.vacated_names USING btree (warehouse_id, path_key, name_key);
CREATE INDEX vacated_names_policy_id_idx ON public.vacated_names USING btree (policy_id);
CREATE INDEX vacated_names_tag_id_idx ON public.vacated_names USING btree (tag_id) WHERE (tag_id IS NOT NULL);
CREATE INDEX vacated_names_taken_in_idx ON public.vacated_names USING btree (taken_in) WHERE ((taken_in IS NOT NULL) AND (announced_at IS NULL));
CREATE INDEX vacated_names_vacated_at_idx ON public.vacated_names USING btree (vacated_at) WHERE (taken_by IS NULL);
CREATE INDEX warehouse_changes_warehouse_id_idx ON public.warehouse_changes USING btree (warehouse_id);
ALTER INDEX public.audit_log_actor_id_at_idx ATTACH PARTITION public.audit_log_default_actor_id_at_idx;
ALTER INDEX public.audit_log_at_idx ATTACH PARTITION public.audit_log_default_at_idx;
ALTER INDEX public.audit_log_outcome_at_idx ATTACH PARTITION public.audit_log_default_outcome_at_idx;
ALTER INDEX public.audit_log_pkey ATTACH PARTITION public.audit_log_default_pkey;
ALTER INDEX public.audit_log_actor_id_at_idx ATTACH PARTITION public.audit_log_initial_actor_id_at_idx;
ALTER INDEX public.audit_log_at_idx ATTACH PARTITION public.audit_log_initial_at_idx;
ALTER INDEX public.audit_log_outcome_at_idx ATTACH PARTITION public.audit_log_initial_outcome_at_idx;
ALTER INDEX public.audit_log_pkey ATTACH PARTITION public.audit_log_initial_pkey;
CREATE TRIGGER data_policy_bindings_delete_unused_name AFTER DELETE ON public.data_policy_bindings FOR EACH ROW WHEN ((old.object_type = 'name'::text)) EXECUTE FUNCTION public.delete_unused_name();
CREATE CONSTRAINT TRIGGER grants_move_time_boxes AFTER INSERT ON public.grants DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.expires_at IS NOT NULL) OR (new.object_type = 'role'::text))) EXECUTE FUNCTION public.move_revisions('time_boxes');
CREATE TRIGGER namespaces_keep_policies_of_moved AFTER UPDATE OF parent_id ON public.namespaces FOR EACH ROW WHEN ((old.parent_id IS DISTINCT FROM new.parent_id)) EXECUTE FUNCTION public.keep_policies_of_containers();
CREATE TRIGGER namespaces_keep_policies_of_names AFTER UPDATE OF path_key ON public.namespaces FOR EACH ROW WHEN ((old.path_key <> new.path_key)) EXECUTE FUNCTION public.keep_policies_of_names();
CREATE TRIGGER namespaces_record_former_name AFTER UPDATE OF levels ON public.namespaces FOR EACH ROW WHEN ((old.levels <> new.levels)) EXECUTE FUNCTION public.record_former_namespace_name();
CREATE TRIGGER namespaces_vacate_and_take_names AFTER INSERT OR DELETE ON public.namespaces FOR EACH ROW EXECUTE FUNCTION public.vacate_and_take_names_of_namespace();
CREATE TRIGGER namespaces_vacate_and_take_names_of_moved AFTER UPDATE OF path_key ON public.namespaces FOR EACH ROW WHEN ((old.path_key <> new.path_key)) EXECUTE FUNCTION public.vacate_and_take_names_of_namespace();
CREATE CONSTRAINT TRIGGER outbox_move_revisions AFTER INSERT ON public.outbox DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.takes_away) EXECUTE FUNCTION public.move_revisions('revisions');
CREATE TRIGGER retired_locations_forget_policies AFTER DELETE ON public.retired_locations FOR EACH ROW EXECUTE FUNCTION public.forget_policies_of_files();
CREATE CONSTRAINT TRIGGER roles_move_revision_of_server AFTER UPDATE OF provider_id, source_id ON public.roles DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.provider_id IS DISTINCT FROM new.provider_id) OR (old.source_id IS DISTINCT FROM new.source_id))) EXECUTE FUNCTION public.move_revisions('server');
CREATE CONSTRAINT TRIGGER scim_users_move_revision_of_new AFTER INSERT ON public.scim_users DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((NOT new.active)) EXECUTE FUNCTION public.move_revisions('server');
CREATE CONSTRAINT TRIGGER scim_users_move_revision_of_server AFTER UPDATE OF active ON public.scim_users DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((old.active AND (NOT new.active))) EXECUTE FUNCTION public.move_revisions('server');
CREATE TRIGGER tables_forget_pending_file AFTER INSERT OR UPDATE OF metadata_location ON public.tables FOR EACH ROW WHEN ((new.metadata_location IS NOT NULL)) EXECUTE FUNCTION public.forget_pending_file();
CREATE TRIGGER tables_keep_columns_of_gone AFTER DELETE ON public.tables FOR EACH ROW WHEN (((old.kind = 'table'::text) AND (old.metadata IS NOT NULL))) EXECUTE FUNCTION public.keep_columns_of_gone();
CREATE TRIGGER tables_keep_policies_of_gone AFTER DELETE ON public.tables FOR EACH ROW EXECUTE FUNCTION public.keep_policies_of_containers();
CREATE TRIGGER tables_keep_policies_of_moved AFTER UPDATE OF namespace_id, name_key ON public.tables FOR EACH ROW WHEN (((old.namespace_id <> new.namespace_id) OR (old.name_key <> new.name_key))) EXECUTE FUNCTION public.keep_policies_of_containers();
CREATE CONSTRAINT TRIGGER tables_move_revision_of_dropped AFTER UPDATE OF deleted_at ON public.tables DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.deleted_at IS NULL) AND (new.deleted_at IS NOT NULL))) EXECUTE FUNCTION public.move_revision_of_dropped();
CREATE TRIGGER tables_note_changed AFTER UPDATE OF staged_by, deleted_at ON public.tables FOR EACH ROW EXECUTE FUNCTION public.note_changed_table();
CREATE TRIGGER tables_note_gone AFTER DELETE ON public.tables REFERENCING OLD TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION public.note_gone_tables();
CREATE TRIGGER tables_note_new AFTER INSERT ON public.tables REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION public.note_new_tables();
CREATE TRIGGER tables_record_former_name AFTER UPDATE OF name, namespace_id ON public.tables FOR EACH ROW WHEN (((old.name <> new.name) OR (old.namespace_id <> new.namespace_id))) EXECUTE FUNCTION public.record_former_table_name();
CREATE TRIGGER tables_retire_location_of_dropped AFTER UPDATE OF deleted_at ON public.tables FOR EACH ROW WHEN (((old.deleted_at IS NULL) AND (new.deleted_at IS NOT NULL))) EXECUTE FUNCTION public.retire_location();
CREATE TRIGGER tables_retire_location_of_gone AFTER DELETE ON public.tables FOR EACH ROW EXECUTE FUNCTION public.retire_location();
CREATE TRIGGER tables_retire_location_of_moved AFTER UPDATE OF location_key ON public.tables FOR EACH ROW WHEN ((old.location_key <> new.location_key)) EXECUTE FUNCTION public.retire_location();
CREATE TRIGGER tables_take_location_back AFTER UPDATE OF deleted_at ON public.tables FOR EACH ROW WHEN (((old.deleted_at IS NOT NULL) AND (new.deleted_at IS NULL))) EXECUTE FUNCTION public.take_location_back();
CREATE TRIGGER tables_take_name_of_changed AFTER UPDATE OF namespace_id, name_key, deleted_at, staged_by ON public.tables FOR EACH ROW WHEN (((new.staged_by IS NULL) AND (new.deleted_at IS NULL) AND ((old.staged_by IS NOT NULL) OR (old.deleted_at IS NOT NULL) OR (old.namespace_id <> new.namespace_id) OR (old.name_key <> new.name_key)))) EXECUTE FUNCTION public.take_name_by_table();
CREATE TRIGGER tables_take_name_of_new AFTER INSERT ON public.tables FOR EACH ROW WHEN (((new.staged_by IS NULL) AND (new.deleted_at IS NULL))) EXECUTE FUNCTION public.take_name_by_table();
CREATE TRIGGER tables_vacate_name_of_changed AFTER UPDATE OF namespace_id, name_key, deleted_at ON public.tables FOR EACH ROW WHEN (((old.staged_by IS NULL) AND (old.deleted_at IS NULL) AND ((new.deleted_at IS NOT NULL) OR (old.namespace_id <> new.namespace_id) OR (old.name_key <> new.name_key)))) EXECUTE FUNCTION public.vacate_name_of_table();
CREATE TRIGGER tables_vacate_name_of_gone AFTER DELETE ON public.tables FOR EACH ROW WHEN (((old.staged_by IS NULL) AND (old.deleted_at IS NULL))) EXECUTE FUNCTION public.vacate_name_of_table();
CREATE TRIGGER tasks_rename_queue BEFORE INSERT ON public.tasks FOR EACH ROW WHEN ((new.queue = 'purge_table'::text)) EXECUTE FUNCTION public.rename_task_queue();
CREATE TRIGGER warehouses_remember_keys_of_profile BEFORE UPDATE OF profile ON public.warehouses FOR EACH ROW WHEN ((old.profile IS DISTINCT FROM new.profile)) EXECUTE FUNCTION public.remember_keys_of_profile();
ALTER TABLE ONLY public.change_tickets
    ADD CONSTRAINT change_tickets_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.data_policies
    ADD CONSTRAINT data_policies_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.data_policy_alerts
    ADD CONSTRAINT data_policy_alerts_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES public.data_policies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.data_policy_bindings
    ADD CONSTRAINT data_policy_bindings_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES public.data_policies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.data_policy_bindings
    ADD CONSTRAINT data_policy_bindings_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.data_policy_names
    ADD CONSTRAINT data_policy_names_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.data_policy_releases
    ADD CONSTRAINT data_policy_releases_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES public.data_policies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.endpoint_statistics
    ADD CONSTRAINT endpoint_statistics_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.endpoint_statistics
    ADD CONSTRAINT endpoint_statistics_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.engine_probes
    ADD CONSTRAINT engine_probes_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.event_dead_letters
    ADD CONSTRAINT event_dead_letters_sequence_fkey FOREIGN KEY (sequence) REFERENCES public.events(sequence) ON DELETE CASCADE;
ALTER TABLE ONLY public.event_deliveries
    ADD CONSTRAINT event_deliveries_sequence_fkey FOREIGN KEY (sequence) REFERENCES public.events(sequence) ON DELETE CASCADE;
ALTER TABLE ONLY public.former_namespace_names
    ADD CONSTRAINT former_namespace_names_namespace_id_fkey FOREIGN KEY (namespace_id) REFERENCES public.namespaces(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.former_table_names
    ADD CONSTRAINT former_table_names_table_id_fkey FOREIGN KEY (table_id) REFERENCES public.tables(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.mapping_entries
    ADD CONSTRAINT mapping_entries_mapping_id_fkey FOREIGN KEY (mapping_id) REFERENCES public.mapping_tables(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.mapping_tables
    ADD CONSTRAINT mapping_tables_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.model_steps
    ADD CONSTRAINT model_steps_model_id_fkey FOREIGN KEY (model_id) REFERENCES public.relationship_models(model_id);
ALTER TABLE ONLY public.model_switches
    ADD CONSTRAINT model_switches_model_id_fkey FOREIGN KEY (model_id) REFERENCES public.relationship_models(model_id);
ALTER TABLE ONLY public.model_switches
    ADD CONSTRAINT model_switches_previous_id_fkey FOREIGN KEY (previous_id) REFERENCES public.relationship_models(model_id);
ALTER TABLE ONLY public.namespaces
    ADD CONSTRAINT namespaces_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES public.namespaces(id);
ALTER TABLE ONLY public.namespaces
    ADD CONSTRAINT namespaces_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id);
ALTER TABLE ONLY public.pending_files
    ADD CONSTRAINT pending_files_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id);
ALTER TABLE ONLY public.roles
    ADD CONSTRAINT roles_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id);
ALTER TABLE ONLY public.scim_groups
    ADD CONSTRAINT scim_groups_role_id_fkey FOREIGN KEY (role_id) REFERENCES public.roles(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.scim_tokens
    ADD CONSTRAINT scim_tokens_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.scim_users
    ADD CONSTRAINT scim_users_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.signing_keys
    ADD CONSTRAINT signing_keys_secret_id_fkey FOREIGN KEY (secret_id) REFERENCES public.secrets(id);
ALTER TABLE ONLY public.tables
    ADD CONSTRAINT tables_namespace_id_fkey FOREIGN KEY (namespace_id) REFERENCES public.namespaces(id);
ALTER TABLE ONLY public.tables
    ADD CONSTRAINT tables_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id);
ALTER TABLE ONLY public.tag_attachments
    ADD CONSTRAINT tag_attachments_tag_id_fkey FOREIGN KEY (tag_id) REFERENCES public.tags(id);
ALTER TABLE ONLY public.tag_attachments
    ADD CONSTRAINT tag_attachments_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.tags
    ADD CONSTRAINT tags_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.task_log
    ADD CONSTRAINT task_log_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.task_queue_configs
    ADD CONSTRAINT task_queue_configs_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.task_queue_configs
    ADD CONSTRAINT task_queue_configs_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.vacated_names
    ADD CONSTRAINT vacated_names_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES public.data_policies(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.vacated_names
    ADD CONSTRAINT vacated_names_tag_id_fkey FOREIGN KEY (tag_id) REFERENCES public.tags(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.vacated_names
    ADD CONSTRAINT vacated_names_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.warehouse_changes
    ADD CONSTRAINT warehouse_changes_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.warehouse_statistics
    ADD CONSTRAINT warehouse_statistics_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES public.warehouses(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.warehouses
    ADD CONSTRAINT warehouses_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id);
ALTER TABLE ONLY public.warehouses
    ADD CONSTRAINT warehouses_secret_id_fkey FOREIGN KEY (secret_id) REFERENCES public.secrets(id);
