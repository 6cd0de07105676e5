-- SPDX-License-Identifier: Apache-2.0
-- Former placements of objects, former flags of managed access, and former states of users of a directory.
-- Invariant: the rows of an object in `former_placements` and its own row cover its whole life, without overlaps.

-- The interval begins with the end of the one before, or with the creation. An id can be used again after a deletion.
create or replace function placement_began(object uuid, created timestamptz)
returns timestamptz language sql stable as $$
    select greatest(created, (select max(f.valid_until) from former_placements f where f.object_id = object))
$$;

create or replace function record_former_warehouse() returns trigger language plpgsql as $$
    begin
        insert into former_placements (object_type, object_id, container_id, flagged, valid_from, valid_until)
        values ('warehouse', old.id, old.project_id, old.managed_access, placement_began(old.id, old.created_at),
            clock_timestamp());
        return null;
    end $$;
create or replace trigger warehouses_record_former_placement after update of project_id, managed_access on warehouses
    for each row when (old.project_id <> new.project_id or old.managed_access <> new.managed_access)
    execute function record_former_warehouse();
create or replace trigger warehouses_record_last_placement after delete on warehouses
    for each row execute function record_former_warehouse();

-- A move changes the ancestors of each namespace below the moved one.
create or replace function record_former_namespace() returns trigger language plpgsql as $$
    begin
        insert into former_placements
            (object_type, object_id, container_id, warehouse_id, ancestors, flagged, valid_from, valid_until)
        values ('namespace', old.id, old.parent_id::text, old.warehouse_id, old.ancestors, old.managed_access,
            placement_began(old.id, old.created_at), clock_timestamp());
        return null;
    end $$;
create or replace trigger namespaces_record_former_placement
    after update of warehouse_id, parent_id, ancestors, managed_access on namespaces for each row
    when (old.warehouse_id <> new.warehouse_id or old.parent_id is distinct from new.parent_id
        or old.ancestors <> new.ancestors or old.managed_access <> new.managed_access)
    execute function record_former_namespace();
create or replace trigger namespaces_record_last_placement after delete on namespaces
    for each row execute function record_former_namespace();

create or replace function record_former_table() returns trigger language plpgsql as $$
    begin
        insert into former_placements
            (object_type, object_id, container_id, warehouse_id, flagged, valid_from, valid_until)
        values (old.kind, old.id, old.namespace_id::text, old.warehouse_id, false,
            placement_began(old.id, old.created_at), clock_timestamp());
        return null;
    end $$;
create or replace trigger tables_record_former_placement after update of namespace_id, warehouse_id on tables
    for each row when (old.namespace_id <> new.namespace_id or old.warehouse_id <> new.warehouse_id)
    execute function record_former_table();

-- One statement deletes all tables of a namespace, so the rows are written together.
create or replace function record_last_tables() returns trigger language plpgsql as $$
    begin
        insert into former_placements
            (object_type, object_id, container_id, warehouse_id, flagged, valid_from, valid_until)
        select g.kind, g.id, g.namespace_id::text, g.warehouse_id, false, placement_began(g.id, g.created_at),
            clock_timestamp()
        from gone g;
        return null;
    end $$;
create or replace trigger tables_record_last_placement after delete on tables referencing old table as gone
    for each statement execute function record_last_tables();

create or replace function record_former_user() returns trigger language plpgsql as $$
    begin
        insert into former_placements (object_type, object_id, container_id, flagged, valid_from, valid_until)
        values ('user', old.id, old.user_id, not old.active, placement_began(old.id, old.created_at),
            clock_timestamp());
        return null;
    end $$;
create or replace trigger scim_users_record_former_state after update of active on scim_users
    for each row when (old.active <> new.active) execute function record_former_user();
create or replace trigger scim_users_record_last_state after delete on scim_users
    for each row execute function record_former_user();
