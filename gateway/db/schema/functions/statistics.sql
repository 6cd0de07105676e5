-- SPDX-License-Identifier: Apache-2.0
-- The numbers of tables and views of a warehouse.
-- Invariant: every statement that changes a number adds the change to `warehouse_changes`.

-- Changes of the numbers of tables and views. A warehouse that the same statement deletes has no row left.
create or replace function note_new_tables() returns trigger language plpgsql as $$
    begin
        insert into warehouse_changes (warehouse_id, tables, views)
        select r.warehouse_id, 1 * count(*) filter (where r.kind = 'table'),
            1 * count(*) filter (where r.kind = 'view')
        from rows r where r.staged_by is null and r.deleted_at is null
            and exists (select 1 from warehouses w where w.id = r.warehouse_id)
        group by r.warehouse_id;
        return null;
    end $$;
create or replace trigger tables_note_new after insert on tables referencing new table as rows
    for each statement execute function note_new_tables();

create or replace function note_gone_tables() returns trigger language plpgsql as $$
    begin
        insert into warehouse_changes (warehouse_id, tables, views)
        select r.warehouse_id, -1 * count(*) filter (where r.kind = 'table'),
            -1 * count(*) filter (where r.kind = 'view')
        from rows r where r.staged_by is null and r.deleted_at is null
            and exists (select 1 from warehouses w where w.id = r.warehouse_id)
        group by r.warehouse_id;
        return null;
    end $$;
create or replace trigger tables_note_gone after delete on tables referencing old table as rows
    for each statement execute function note_gone_tables();

-- A commit updates neither column, so this trigger costs it nothing.
create or replace function note_changed_table() returns trigger language plpgsql as $$
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
create or replace trigger tables_note_changed after update of staged_by, deleted_at on tables
    for each row execute function note_changed_table();
