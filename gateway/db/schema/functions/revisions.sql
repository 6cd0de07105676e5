-- SPDX-License-Identifier: Apache-2.0
-- Revisions, which are part of the keys of cached decisions.
-- Invariant: the transaction that takes a right away changes the revision of everything that the right concerned. A
-- delivery changes it again. Without the first change, cached decisions outlive a revocation for as long as OpenFGA
-- cannot be written. The triggers are deferred: the decision of the same transaction relies on the earlier revision.

-- A drop that can be undone deletes no tuple, so no delivery changes the revision. This trigger does: no credential is
-- vended by an earlier decision. It is deferred, because the decision of the same transaction relies on the revision.
create or replace function move_revision_of_dropped() returns trigger language plpgsql as $$
    begin
        update warehouses set revision = gen_random_uuid() where id = new.warehouse_id;
        return null;
    end $$;
create constraint trigger tables_move_revision_of_dropped after update of deleted_at on tables
    deferrable initially deferred
    for each row when (old.deleted_at is null and new.deleted_at is not null)
    execute function move_revision_of_dropped();

-- The condition for a key of `traverse`: its container exists, and no grant without an expiry requires it. A privilege
-- that is missing here only changes a revision without need.
create or replace function traverse_is_lost(key outbox) returns boolean language sql stable as $$
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

-- The function of all triggers below. The first call in a transaction reads all of its keys. Keys of a dropped table
-- are ignored: no decision finds it. Warehouses are locked in one order and the server last, as in deliveries, so that two
-- transactions cannot deadlock. A setting that ends with the transaction records what was changed.
create or replace function move_revisions() returns trigger language plpgsql as $$
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
create constraint trigger outbox_move_revisions after insert on outbox
    deferrable initially deferred
    for each row when (new.takes_away) execute function move_revisions('revisions');
create constraint trigger roles_move_revision_of_server after update of provider_id, source_id on roles
    deferrable initially deferred
    for each row when ((old.provider_id, old.source_id) is distinct from (new.provider_id, new.source_id))
    execute function move_revisions('server');
create constraint trigger scim_users_move_revision_of_new after insert on scim_users
    deferrable initially deferred
    for each row when (not new.active) execute function move_revisions('server');
create constraint trigger scim_users_move_revision_of_server after update of active on scim_users
    deferrable initially deferred
    for each row when (old.active and not new.active) execute function move_revisions('server');
-- A decision may have read its next expiry before this grant, and have queried OpenFGA after the delivery of its tuple.
-- A new member of a role gets the expiries of the role's grants.
create constraint trigger grants_move_time_boxes after insert on grants
    deferrable initially deferred
    for each row when (new.expires_at is not null or new.object_type = 'role')
    execute function move_revisions('time_boxes');
