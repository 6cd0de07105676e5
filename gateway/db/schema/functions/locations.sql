-- SPDX-License-Identifier: Apache-2.0
-- Locations that tables gave up, and files that no row names yet.
-- Invariant: a location that a table gives up is retired in the same transaction, until the last credential for it has
-- expired, and with the owners that may register its files again.

-- A file is not pending from the commit on that makes a row name it.
create or replace function forget_pending_file() returns trigger language plpgsql as $$
    begin
        delete from pending_files where location = new.metadata_location;
        return null;
    end $$;
create or replace trigger tables_forget_pending_file after insert or update of metadata_location on tables
    for each row when (new.metadata_location is not null) execute function forget_pending_file();

-- Owners (`user:<id>`, `role:<id>`) without an expiry: registration of the files gives ownership without an expiry.
create or replace function permanent_owners(of_type text, of_id uuid) returns text[] language sql stable as $$
    select coalesce(array_agg(distinct g.principal_type || ':' || g.principal_id), '{}')
    from grants g
    where g.object_type = of_type and g.object_id = of_id::text and g.privilege = 'ownership'
        and g.expires_at is null
$$;

-- No owners below managed access, where owners cannot grant rights on what they own. If they could register the files
-- in a namespace of their own, they could grant rights on them. So these files can only be adopted.
create or replace function permanent_owners(of_type text, of_id uuid, within uuid) returns text[]
language sql stable as $$
    select case when exists (
        select 1 from namespaces n join warehouses w on w.id = n.warehouse_id
        where n.id = within and (w.managed_access or n.managed_access or exists (
            select 1 from namespaces a where a.id = any(n.ancestors) and a.managed_access))
    ) then '{}'::text[] else permanent_owners(of_type, of_id) end
$$;

-- Views have no credentials. The 60 seconds are for a request that was decided before the row was deleted and calls the
-- store afterwards. The lifetime in an S3 profile counts beside `key_seconds`, which earlier gateways leave out. A row
-- that was dropped before has its retired location; only the owners may have changed since.
create or replace function retire_location() returns trigger language plpgsql as $$
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
create or replace trigger tables_retire_location_of_gone after delete on tables
    for each row execute function retire_location();
create or replace trigger tables_retire_location_of_moved after update of location_key on tables
    for each row when (old.location_key <> new.location_key) execute function retire_location();
create or replace trigger tables_retire_location_of_dropped after update of deleted_at on tables
    for each row when (old.deleted_at is null and new.deleted_at is not null) execute function retire_location();

-- A restored table has its location again.
create or replace function take_location_back() returns trigger language plpgsql as $$
    begin
        delete from retired_locations where table_id = new.id and location_key = new.location_key;
        return null;
    end $$;
create or replace trigger tables_take_location_back after update of deleted_at on tables
    for each row when (old.deleted_at is not null and new.deleted_at is null) execute function take_location_back();

-- Credentials of the earlier profile are valid for up to `seconds`. The shorter lifetime needs no record: every retired
-- location waits for the lifetime of the current profile.
create or replace function remember_keys_of_profile() returns trigger language plpgsql as $$
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
create or replace trigger warehouses_remember_keys_of_profile before update of profile on warehouses
    for each row when (old.profile is distinct from new.profile) execute function remember_keys_of_profile();
