-- SPDX-License-Identifier: Apache-2.0
-- Names that tables and namespaces had before a rename or a move.
-- Invariant: a policy that names an object applies to it after a rename or a move too.

-- Former names of a namespace count for everything in it. A table or namespace that leaves a namespace inherits them,
-- each followed by the rest of its own path. Namespaces in `kept` still contain it after the move. 21 rows suffice:
-- with more than 20 names, the reader reports them as incomplete
-- (`gateway.access.nouns.resolved.MAX_FORMER_NAMES`), and guardrails match every name.
create or replace function inherited_former_names(containers uuid[], path_key text, levels text[], kept uuid[])
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
$$;

create or replace function record_former_table_name() returns trigger language plpgsql as $$
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
create or replace trigger tables_record_former_name after update of name, namespace_id on tables for each row
    when (old.name <> new.name or old.namespace_id <> new.namespace_id) execute function record_former_table_name();

-- Of the rows that a move updates, only the moved namespace has another parent. Those below it stay in their parent.
create or replace function record_former_namespace_name() returns trigger language plpgsql as $$
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
create or replace trigger namespaces_record_former_name after update of levels on namespaces for each row
    when (old.levels <> new.levels) execute function record_former_namespace_name();
