-- SPDX-License-Identifier: Apache-2.0
create table former_placements (
    id bigint generated always as identity not null,
    object_type text not null,
    object_id uuid not null,
    container_id text,
    warehouse_id uuid,
    ancestors uuid[],
    flagged boolean not null,
    valid_from timestamp with time zone not null,
    valid_until timestamp with time zone not null,
    constraint former_placements_pkey primary key (id)
);
create index former_placements_object_id_valid_until_idx on former_placements (object_id, valid_until);

-- The history begins when no transaction in progress can change a placement before the triggers exist.
lock table warehouses, namespaces, tables, scim_users in share row exclusive mode;

alter table server add column history_since timestamp with time zone default clock_timestamp() not null;

-- Views with the names of tables and the columns that answers read. They show the rows of one moment. The function has
-- the name of the clock, so that statements that compare with the time compare with the moment.
create schema if not exists lakegate_past;

create or replace function lakegate_past.clock_timestamp() returns timestamptz language sql stable as $$
    select current_setting('lakegate.at')::timestamptz
$$;

create view lakegate_past.grants as
    select g.id, g.privilege, g.principal_type, g.principal_id, g.object_type, g.object_id, g.granted_by, g.granted_at,
        g.reason, g.expires_at, g.acts_for
    from grants g
    where g.granted_at <= lakegate_past.clock_timestamp() and (g.expires_at is null or g.expires_at > lakegate_past.clock_timestamp())
    union all
    select h.grant_id, h.privilege, h.principal_type, h.principal_id, h.object_type, h.object_id, h.granted_by,
        h.granted_at, h.reason, h.expires_at, h.acts_for
    from grant_history h
    where h.granted_at <= lakegate_past.clock_timestamp() and h.ended_at > lakegate_past.clock_timestamp()
        and (h.expires_at is null or h.expires_at > lakegate_past.clock_timestamp());

-- The row of an object shows the moment unless its placement changed later.
create view lakegate_past.warehouses as
    select w.id, w.project_id, w.name, w.managed_access
    from warehouses w
    where w.created_at <= lakegate_past.clock_timestamp() and not exists (
        select 1 from former_placements f where f.object_id = w.id and f.valid_until > lakegate_past.clock_timestamp())
    union all
    select f.object_id, f.container_id, w.name, f.flagged
    from former_placements f left join warehouses w on w.id = f.object_id
    where f.object_type = 'warehouse'
        and f.valid_from <= lakegate_past.clock_timestamp() and f.valid_until > lakegate_past.clock_timestamp();

create view lakegate_past.namespaces as
    select n.id, n.warehouse_id, n.parent_id, n.ancestors, n.levels, n.managed_access
    from namespaces n
    where n.created_at <= lakegate_past.clock_timestamp() and not exists (
        select 1 from former_placements f where f.object_id = n.id and f.valid_until > lakegate_past.clock_timestamp())
    union all
    select f.object_id, f.warehouse_id, f.container_id::uuid, f.ancestors, n.levels, f.flagged
    from former_placements f left join namespaces n on n.id = f.object_id
    where f.object_type = 'namespace'
        and f.valid_from <= lakegate_past.clock_timestamp() and f.valid_until > lakegate_past.clock_timestamp();

create view lakegate_past.tables as
    select t.id, t.warehouse_id, t.namespace_id, t.kind, t.name, t.deleted_at, t.staged_by
    from tables t
    where t.created_at <= lakegate_past.clock_timestamp() and not exists (
        select 1 from former_placements f where f.object_id = t.id and f.valid_until > lakegate_past.clock_timestamp())
    union all
    select f.object_id, f.warehouse_id, f.container_id::uuid, f.object_type, t.name, t.deleted_at, t.staged_by
    from former_placements f left join tables t on t.id = f.object_id
    where f.object_type in ('table', 'view', 'generic_table')
        and f.valid_from <= lakegate_past.clock_timestamp() and f.valid_until > lakegate_past.clock_timestamp();

create view lakegate_past.scim_users as
    select u.id, u.user_id, u.active
    from scim_users u
    where u.created_at <= lakegate_past.clock_timestamp() and not exists (
        select 1 from former_placements f where f.object_id = u.id and f.valid_until > lakegate_past.clock_timestamp())
    union all
    select f.object_id, f.container_id, not f.flagged
    from former_placements f
    where f.object_type = 'user'
        and f.valid_from <= lakegate_past.clock_timestamp() and f.valid_until > lakegate_past.clock_timestamp();
