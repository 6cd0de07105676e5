-- SPDX-License-Identifier: Apache-2.0
-- The first schema (revision 0034). It never changes: a change of the schema is a new migration.
-- A statement ends with a semicolon at the end of a line, and the next one begins in the first column: the migration
-- splits the file there.

-- For search. The extension is trusted: the owner of the database may create it, no superuser is needed.
create extension if not exists pg_trgm;

-- Text in which search compares trigrams: a-z, 0-9 and blanks only. In locale C, pg_trgm ignores all other letters.
-- The text is decomposed (NFKD), without combining accents. Every other character that is not ASCII becomes four
-- characters, which are unique: 1000003 and 36^4 have no common divisor. They are scattered, so that neighbours in an
-- alphabet are not similar. The result depends on no locale or collation. 1024 characters fit into an index entry.
create function searchable(folded text) returns text language sql immutable strict parallel safe as $$
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

-- One row: the server. `revision` changes when a right outside of warehouses may end, `time_boxes` when a grant with an
-- expiry is made.
create table server (
    id uuid not null,
    singleton boolean not null default true,
    bootstrapped_at timestamptz,
    revision uuid not null,
    time_boxes uuid not null default gen_random_uuid(),
    home text,
    bootstrap_for text,
    constraint server_pkey primary key (id),
    constraint server_singleton_key unique (singleton),
    constraint server_one_row_check check (singleton)
);

-- Projects. Here and below `*_key` is the NFC-normalised, case-folded form of a name. It is unique and used in lookups.
create table projects (
    id text not null,
    name text not null,
    name_key text not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint projects_pkey primary key (id),
    constraint projects_name_key_key unique (name_key)
);

-- Users and applications. Search uses only `verified_email`: users may set `email`, and an address in `name`,
-- themselves.
create table users (
    id text not null,
    name text not null,
    email text,
    user_type text not null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz,
    last_updated_with text not null,
    verified_email text,
    search_key text generated always as (
        searchable(lower(
            regexp_replace(normalize(name, NFKD), '[^ ]*@[^ ]*', ' ', 'g') || ' ' || coalesce(verified_email, '')
                || ' ' || id
        ))
    ) stored,
    address_key text generated always as (
        searchable(lower(coalesce(verified_email, '') || ' ' || id))
    ) stored,
    constraint users_pkey primary key (id)
);

-- Roles of projects. Groups in tokens are looked up by source in all projects at once.
create table roles (
    id uuid not null,
    project_id text not null,
    name text not null,
    name_key text not null,
    description text,
    provider_id text not null,
    source_id text not null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz,
    search_key text generated always as (searchable(name_key)) stored,
    constraint roles_pkey primary key (id),
    constraint roles_project_id_name_key_key unique (project_id, name_key),
    constraint roles_project_id_provider_id_source_id_key unique (project_id, provider_id, source_id),
    constraint roles_project_id_fkey foreign key (project_id) references projects (id)
);
create index roles_by_source on roles (provider_id, source_id);

-- Encrypted credentials. A replaced credential is kept from `replaced_at` on for requests that are in flight.
create table secrets (
    id uuid not null,
    sealed bytea not null,
    created_at timestamptz not null default clock_timestamp(),
    replaced_at timestamptz,
    constraint secrets_pkey primary key (id)
);
create index secrets_replaced_idx on secrets (replaced_at) where replaced_at is not null;

-- Warehouses. `key_seconds` is the lifetime of credentials of the current profile; `keys_until` is the expiry of the
-- last credential of an earlier profile.
create table warehouses (
    id uuid not null,
    project_id text not null,
    name text not null,
    name_key text not null,
    active boolean not null default true,
    protected boolean not null default false,
    profile bytea not null,
    profile_version integer not null default 1,
    base_key text not null,
    secret_id uuid,
    delete_profile jsonb not null,
    managed_by text not null,
    allowed_format_versions integer[] not null,
    default_format_version integer,
    revision uuid not null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz,
    managed_access boolean not null default false,
    keys_until timestamptz,
    key_seconds integer not null default 0,
    constraint warehouses_pkey primary key (id),
    constraint warehouses_project_id_name_key_key unique (project_id, name_key),
    constraint warehouses_project_id_fkey foreign key (project_id) references projects (id),
    constraint warehouses_secret_id_fkey foreign key (secret_id) references secrets (id)
);

-- Namespaces. `ancestors` are the ids from the top level to the parent. `path_key` is the folded levels, joined by
-- U+001F.
create table namespaces (
    id uuid not null,
    warehouse_id uuid not null,
    parent_id uuid,
    ancestors uuid[] not null,
    levels text[] not null,
    path_key text not null,
    properties jsonb not null,
    protected boolean not null default false,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz,
    managed_access boolean not null default false,
    search_key text generated always as (searchable(path_key)) stored,
    constraint namespaces_pkey primary key (id),
    constraint namespaces_warehouse_id_path_key_key unique (warehouse_id, path_key),
    constraint namespaces_parent_id_fkey foreign key (parent_id) references namespaces (id),
    constraint namespaces_warehouse_id_fkey foreign key (warehouse_id) references warehouses (id)
);
create index namespaces_parent_id_idx on namespaces (parent_id);

-- Tables, views and generic tables, which share one name space. A staged or dropped row does not reserve its name.
create table tables (
    id uuid not null,
    warehouse_id uuid not null,
    namespace_id uuid not null,
    kind text not null,
    name text not null,
    name_key text not null,
    table_uuid uuid not null,
    location text not null,
    location_key text not null,
    metadata_location text,
    metadata bytea,
    version bigint not null default '1',
    staged_by text,
    protected boolean not null default false,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz,
    deleted_at timestamptz,
    deleted_by text,
    search_key text generated always as (searchable(name_key)) stored,
    format text,
    metadata_excerpt bytea,
    metadata_excerpt_of text,
    constraint tables_pkey primary key (id),
    constraint tables_location_key_key unique (location_key),
    constraint tables_format_of_generic_tables_check check ((kind = 'generic_table') = (format is not null)),
    constraint tables_kind_check check (kind in ('table', 'view', 'generic_table')),
    constraint tables_staged_or_deleted_check check (staged_by is null or deleted_at is null),
    constraint tables_staged_without_metadata_check check ((staged_by is null) = (metadata is not null)),
    constraint tables_namespace_id_fkey foreign key (namespace_id) references namespaces (id),
    constraint tables_warehouse_id_fkey foreign key (warehouse_id) references warehouses (id)
);
-- The documents are read often and whole; compression in the row costs more time than it saves space.
alter table tables alter column metadata set storage external;
create index tables_deleted_idx on tables (warehouse_id, name_key, id) where deleted_at is not null;
create unique index tables_namespace_id_name_key_key
    on tables (namespace_id, name_key) where staged_by is null and deleted_at is null;
create index tables_search_idx
    on tables (namespace_id) include (id, search_key) where staged_by is null and deleted_at is null;
create index tables_staged_idx on tables (namespace_id, name_key) where staged_by is not null;

-- Names that namespaces had before a rename or a move.
create table former_namespace_names (
    namespace_id uuid not null,
    path_key text not null,
    levels text[] not null,
    until timestamptz not null default clock_timestamp(),
    constraint former_namespace_names_pkey primary key (namespace_id, path_key),
    constraint former_namespace_names_namespace_id_fkey foreign key (namespace_id)
        references namespaces (id) on delete cascade
);
create index former_namespace_names_until_idx on former_namespace_names (namespace_id, until desc);

-- Names that tables, views and generic tables had before a rename or a move.
create table former_table_names (
    table_id uuid not null,
    path_key text not null,
    levels text[] not null,
    until timestamptz not null default clock_timestamp(),
    constraint former_table_names_pkey primary key (table_id, path_key),
    constraint former_table_names_table_id_fkey foreign key (table_id) references tables (id) on delete cascade
);
create index former_table_names_until_idx on former_table_names (table_id, until desc);

-- Locations of deleted or moved tables and views. No credential for a location is valid after `keys_until`.
create table retired_locations (
    id uuid not null default gen_random_uuid(),
    table_id uuid not null,
    warehouse_id uuid not null,
    location text not null,
    location_key text not null,
    retired_by text,
    retired_at timestamptz not null default clock_timestamp(),
    keys_until timestamptz not null,
    files_remain boolean not null default true,
    owners text[] not null default '{}',
    metadata_location text,
    constraint retired_locations_pkey primary key (id)
);
create index retired_locations_location_key_idx on retired_locations (location_key);
create index retired_locations_table_id_idx on retired_locations (table_id);

-- Metadata files that are written before a row of `tables` names them.
create table pending_files (
    location text not null,
    warehouse_id uuid not null,
    written_at timestamptz not null default clock_timestamp(),
    constraint pending_files_pkey primary key (location),
    constraint pending_files_warehouse_id_fkey foreign key (warehouse_id) references warehouses (id)
);
create index pending_files_written_at_idx on pending_files (written_at);

-- Grants that hold. Rows that differ only in `granted_by` become one tuple in OpenFGA.
create table grants (
    id uuid not null,
    privilege text not null,
    principal_type text not null,
    principal_id text not null,
    object_type text not null,
    object_id text not null,
    granted_by text not null,
    granted_at timestamptz not null default clock_timestamp(),
    reason text,
    expires_at timestamptz,
    constraint grants_pkey primary key (id),
    constraint grants_key unique (privilege, principal_type, principal_id, object_type, object_id, granted_by)
);
create index grants_ending_idx on grants (expires_at) where expires_at is not null;
create index grants_ends_of_principal_idx
    on grants (principal_type, principal_id, expires_at) where expires_at is not null;
create index grants_object_type_object_id_id_idx on grants (object_type, object_id, id);
create index grants_on_columns_idx
    on grants (split_part(object_id, '.', 1), principal_type, principal_id) where object_type = 'column';
create index grants_principal_type_principal_id_id_idx on grants (principal_type, principal_id, id);
create index grants_roles_of_principal_idx on grants (principal_type, principal_id) where object_type = 'role';

-- Grants that ended. Rows never change.
create table grant_history (
    id bigint generated always as identity,
    grant_id uuid not null,
    privilege text not null,
    principal_type text not null,
    principal_id text not null,
    object_type text not null,
    object_id text not null,
    granted_by text not null,
    granted_at timestamptz not null,
    reason text,
    expires_at timestamptz,
    ended_at timestamptz not null default clock_timestamp(),
    ended_by text,
    ended_because text not null,
    constraint grant_history_pkey primary key (id),
    constraint grant_history_ended_because_check
        check (ended_because in ('revoked', 'expired', 'object deleted', 'principal deleted', 'replaced'))
);
create index grant_history_object_type_object_id_id_idx on grant_history (object_type, object_id, id);
create index grant_history_principal_type_principal_id_id_idx on grant_history (principal_type, principal_id, id);

-- Tuple keys that are to be written to OpenFGA or deleted there, in the order of `step` within one transaction.
create table outbox (
    id bigint generated always as identity,
    subject_type text not null,
    subject_id text not null,
    relation text not null,
    object_type text not null,
    object_id text not null,
    warehouse_id uuid,
    takes_away boolean not null,
    created_at timestamptz not null default clock_timestamp(),
    not_before timestamptz not null default clock_timestamp(),
    attempts integer not null default 0,
    written_in bigint not null default (pg_current_xact_id()::text::bigint),
    step smallint not null default '0',
    sent_at timestamptz,
    constraint outbox_pkey primary key (id)
);
create index outbox_not_before_idx on outbox (not_before);
create index outbox_object_id_subject_id_relation_idx on outbox (object_id, subject_id, relation);
create index outbox_written_in_idx on outbox (written_in);

-- Relationship models that were written to the store of OpenFGA.
create table relationship_models (
    model_id text not null,
    store_id text not null,
    version text not null,
    content_hash text not null,
    recorded_at timestamptz not null default clock_timestamp(),
    recorded_by text not null,
    constraint relationship_models_pkey primary key (model_id)
);

-- History of the model that serves; the last row names the current one.
create table model_switches (
    id bigint generated always as identity,
    model_id text not null,
    previous_id text,
    switched_at timestamptz not null default clock_timestamp(),
    switched_by text not null,
    constraint model_switches_pkey primary key (id),
    constraint model_switches_model_id_fkey foreign key (model_id) references relationship_models (model_id),
    constraint model_switches_previous_id_fkey foreign key (previous_id) references relationship_models (model_id)
);

-- Progress of the tuples that a model needs before it serves.
create table model_steps (
    model_id text not null,
    step text not null,
    cursor text,
    done_at timestamptz,
    constraint model_steps_pkey primary key (model_id, step),
    constraint model_steps_model_id_fkey foreign key (model_id) references relationship_models (model_id)
);

-- One row: the process that reads the change feed of OpenFGA, and its position.
create table drift_watch (
    singleton boolean not null default true,
    holder uuid,
    held_until timestamptz,
    store_id text,
    seen_until timestamptz,
    last_change text,
    compare_all boolean not null default false,
    constraint drift_watch_pkey primary key (singleton),
    constraint drift_watch_one_row_check check (singleton)
);

-- Audit records; `record` is the whole record as JSON.
create table audit_log (
    id uuid not null,
    at timestamptz not null,
    request_id text not null,
    actor_id text not null,
    operation text not null,
    outcome text not null,
    record bytea not null,
    constraint audit_log_pkey primary key (id)
);
create index audit_log_at_idx on audit_log (at);

-- Requests with an idempotency key. `status` is null while the request runs.
create table idempotency (
    scope bytea not null,
    body_digest bytea not null,
    attempt uuid not null,
    actor_id text not null,
    operation text not null,
    status integer,
    detail jsonb,
    written_in bigint,
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    constraint idempotency_pkey primary key (scope)
);
create index idempotency_expires_at_idx on idempotency (expires_at);

-- Background tasks. A task belongs to a warehouse or to a project.
create table tasks (
    id uuid not null,
    queue text not null,
    warehouse_id uuid,
    entity_type text,
    entity_id uuid,
    status text not null default 'scheduled',
    attempt integer not null default 0,
    scheduled_for timestamptz not null default clock_timestamp(),
    heartbeat_at timestamptz,
    payload jsonb not null,
    last_error text,
    created_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    project_id text,
    parent_task_id uuid,
    entity_name text[] not null default '{}',
    interruptions integer not null default 0,
    picked_up_at timestamptz,
    progress double precision not null default '0',
    execution_details jsonb,
    updated_at timestamptz,
    constraint tasks_pkey primary key (id),
    constraint tasks_belongs_check check ((warehouse_id is null) <> (project_id is null)),
    constraint tasks_status_check
        check (status in ('scheduled', 'running', 'stopping', 'succeeded', 'failed', 'cancelled')),
    constraint tasks_project_id_fkey foreign key (project_id) references projects (id) on delete cascade,
    constraint tasks_warehouse_id_fkey foreign key (warehouse_id) references warehouses (id) on delete cascade
);
create unique index tasks_active_key
    on tasks (queue, entity_type, entity_id) where status in ('scheduled', 'running', 'stopping');
create unique index tasks_active_project_key
    on tasks (queue, project_id) where status in ('scheduled', 'running', 'stopping') and entity_id is null;
create index tasks_due_idx on tasks (scheduled_for) where status in ('scheduled', 'running', 'stopping');
create index tasks_entity_id_idx on tasks (entity_id);
create index tasks_finished_at_idx on tasks (finished_at);
create index tasks_project_id_idx on tasks (project_id, created_at, id);
create index tasks_warehouse_id_idx on tasks (warehouse_id, created_at, id);

-- Ended attempts of tasks.
create table task_log (
    task_id uuid not null,
    attempt integer not null,
    status text not null,
    scheduled_for timestamptz not null,
    started_at timestamptz,
    ended_at timestamptz not null default clock_timestamp(),
    message text,
    progress double precision not null default '0',
    execution_details jsonb,
    constraint task_log_pkey primary key (task_id, attempt),
    constraint task_log_status_check check (status in ('succeeded', 'failed', 'cancelled')),
    constraint task_log_task_id_fkey foreign key (task_id) references tasks (id) on delete cascade
);

-- Configuration of a queue for one warehouse or project.
create table task_queue_configs (
    id bigint generated always as identity,
    queue text not null,
    warehouse_id uuid,
    project_id text,
    config jsonb not null default '{}',
    heartbeat_seconds bigint,
    updated_at timestamptz not null default clock_timestamp(),
    constraint task_queue_configs_pkey primary key (id),
    constraint task_queue_configs_project_id_queue_key unique (project_id, queue),
    constraint task_queue_configs_warehouse_id_queue_key unique (warehouse_id, queue),
    constraint task_queue_configs_belongs_check check ((warehouse_id is null) <> (project_id is null)),
    constraint task_queue_configs_project_id_fkey foreign key (project_id)
        references projects (id) on delete cascade,
    constraint task_queue_configs_warehouse_id_fkey foreign key (warehouse_id)
        references warehouses (id) on delete cascade
);

-- Metrics reports of engines. A report is kept when its table is deleted.
create table table_reports (
    id uuid not null,
    warehouse_id uuid not null,
    table_id uuid not null,
    kind text not null,
    snapshot_id bigint not null,
    reported_by text not null,
    at timestamptz not null default clock_timestamp(),
    report jsonb not null,
    constraint table_reports_pkey primary key (id),
    constraint table_reports_kind_check check (kind in ('scan-report', 'commit-report'))
);
create index table_reports_at_idx on table_reports (at);
create index table_reports_table_id_at_idx on table_reports (table_id, at);

-- Counts of requests by hour. `warehouse_id` is null for requests that concern no warehouse.
create table endpoint_statistics (
    project_id text not null,
    warehouse_id uuid,
    route text not null,
    status smallint not null,
    hour timestamptz not null,
    count bigint not null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz,
    constraint endpoint_statistics_key unique nulls not distinct (project_id, hour, warehouse_id, route, status),
    constraint endpoint_statistics_project_id_fkey foreign key (project_id)
        references projects (id) on delete cascade,
    constraint endpoint_statistics_warehouse_id_fkey foreign key (warehouse_id)
        references warehouses (id) on delete cascade
);
create index endpoint_statistics_hour_idx on endpoint_statistics (hour);
create index endpoint_statistics_warehouse_id_hour_idx on endpoint_statistics (warehouse_id, hour);

-- Numbers of tables and views at the end of each hour in which they changed.
create table warehouse_statistics (
    warehouse_id uuid not null,
    hour timestamptz not null,
    tables bigint not null,
    views bigint not null,
    updated_at timestamptz not null default clock_timestamp(),
    constraint warehouse_statistics_pkey primary key (warehouse_id, hour),
    constraint warehouse_statistics_warehouse_id_fkey foreign key (warehouse_id)
        references warehouses (id) on delete cascade
);

-- Changes that are not yet added to `warehouse_statistics`. Each is a row of its own: a shared counter would serialise
-- all creations of tables in a warehouse.
create table warehouse_changes (
    id bigint generated always as identity,
    warehouse_id uuid not null,
    tables bigint not null,
    views bigint not null,
    at timestamptz not null default clock_timestamp(),
    constraint warehouse_changes_pkey primary key (id),
    constraint warehouse_changes_warehouse_id_fkey foreign key (warehouse_id)
        references warehouses (id) on delete cascade
);
create index warehouse_changes_warehouse_id_idx on warehouse_changes (warehouse_id);

-- Keys of the tokens that the gateway signs. The private key is in `secrets`.
create table signing_keys (
    kid text not null,
    public bytea not null,
    secret_id uuid not null,
    created_at timestamptz not null default clock_timestamp(),
    signs_until timestamptz not null,
    verifies_until timestamptz not null,
    constraint signing_keys_pkey primary key (kid),
    constraint signing_keys_secret_id_fkey foreign key (secret_id) references secrets (id)
);

-- Users that an identity provider provisions by SCIM. `user_id` is the id in `users`.
create table scim_users (
    id uuid not null,
    user_id text not null,
    provider_id text not null,
    user_name text not null,
    user_name_key text not null,
    external_id text,
    active boolean not null,
    document bytea not null,
    version integer not null default 1,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    constraint scim_users_pkey primary key (id),
    constraint scim_users_provider_id_external_id_key unique (provider_id, external_id),
    constraint scim_users_provider_id_user_name_key_key unique (provider_id, user_name_key),
    constraint scim_users_user_id_key unique (user_id),
    constraint scim_users_user_id_fkey foreign key (user_id) references users (id) on delete cascade
);

-- Roles that are groups of an identity provider.
create table scim_groups (
    role_id uuid not null,
    provider_id text not null,
    external_id text,
    version integer not null default 1,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    constraint scim_groups_pkey primary key (role_id),
    constraint scim_groups_role_id_fkey foreign key (role_id) references roles (id) on delete cascade
);

-- SHA-256 digests of the tokens that identity providers send to the SCIM API.
create table scim_tokens (
    id uuid not null,
    provider_id text not null,
    project_id text not null,
    digest bytea not null,
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    revoked_at timestamptz,
    constraint scim_tokens_pkey primary key (id),
    constraint scim_tokens_digest_check check (length(digest) = 32),
    constraint scim_tokens_project_id_fkey foreign key (project_id) references projects (id) on delete cascade
);

-- Deleted users whose cleanup is pending.
create table departures (
    user_id text not null,
    deleted_by text not null,
    deleted_at timestamptz not null default clock_timestamp(),
    in_force_at timestamptz,
    constraint departures_pkey primary key (user_id)
);

-- What follows is done by triggers, so that no statement and no earlier version of the gateway can omit it.

-- A file is not pending from the commit on that makes a row name it.
create function forget_pending_file() returns trigger language plpgsql as $$
    begin
        delete from pending_files where location = new.metadata_location;
        return null;
    end $$;
create trigger tables_forget_pending_file after insert or update of metadata_location on tables
    for each row when (new.metadata_location is not null) execute function forget_pending_file();

-- Owners (`user:<id>`, `role:<id>`) without an expiry: registration of the files gives ownership without an expiry.
create function permanent_owners(of_type text, of_id uuid) returns text[] language sql stable as $$
    select coalesce(array_agg(distinct g.principal_type || ':' || g.principal_id), '{}')
    from grants g
    where g.object_type = of_type and g.object_id = of_id::text and g.privilege = 'ownership'
        and g.expires_at is null
$$;

-- No owners below managed access, where owners cannot grant rights on what they own. If they could register the files
-- in a namespace of their own, they could grant rights on them. So these files can only be adopted.
create function permanent_owners(of_type text, of_id uuid, within uuid) returns text[] language sql stable as $$
    select case when exists (
        select 1 from namespaces n join warehouses w on w.id = n.warehouse_id
        where n.id = within and (w.managed_access or n.managed_access or exists (
            select 1 from namespaces a where a.id = any(n.ancestors) and a.managed_access))
    ) then '{}'::text[] else permanent_owners(of_type, of_id) end
$$;

-- Views have no credentials. The 60 seconds are for a request that was decided before the row was deleted and calls the
-- store afterwards. The lifetime in an S3 profile counts beside `key_seconds`, which earlier gateways leave out. A row
-- that was dropped before has its retired location; only the owners may have changed since.
create function retire_location() returns trigger language plpgsql as $$
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
create trigger tables_retire_location_of_gone after delete on tables
    for each row execute function retire_location();
create trigger tables_retire_location_of_moved after update of location_key on tables
    for each row when (old.location_key <> new.location_key) execute function retire_location();
create trigger tables_retire_location_of_dropped after update of deleted_at on tables
    for each row when (old.deleted_at is null and new.deleted_at is not null) execute function retire_location();

-- A restored table has its location again.
create function take_location_back() returns trigger language plpgsql as $$
    begin
        delete from retired_locations where table_id = new.id and location_key = new.location_key;
        return null;
    end $$;
create trigger tables_take_location_back after update of deleted_at on tables
    for each row when (old.deleted_at is not null and new.deleted_at is null) execute function take_location_back();

-- A drop that can be undone deletes no tuple, so no delivery changes the revision. This trigger does: no credential is
-- vended by an earlier decision. It is deferred, because the decision of the same transaction relies on the revision.
create function move_revision_of_dropped() returns trigger language plpgsql as $$
    begin
        update warehouses set revision = gen_random_uuid() where id = new.warehouse_id;
        return null;
    end $$;
create constraint trigger tables_move_revision_of_dropped after update of deleted_at on tables
    deferrable initially deferred
    for each row when (old.deleted_at is null and new.deleted_at is not null)
    execute function move_revision_of_dropped();

-- Credentials of the earlier profile are valid for up to `seconds`. The shorter lifetime needs no record: every retired
-- location waits for the lifetime of the current profile.
create function remember_keys_of_profile() returns trigger language plpgsql as $$
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
create trigger warehouses_remember_keys_of_profile before update of profile on warehouses
    for each row when (old.profile is distinct from new.profile) execute function remember_keys_of_profile();

-- Gateways of an earlier version call this queue `purge_table`.
create function rename_task_queue() returns trigger language plpgsql as $$
    begin
        new.queue := 'tabular_purge';
        return new;
    end $$;
create trigger tasks_rename_queue before insert on tasks
    for each row when (new.queue = 'purge_table') execute function rename_task_queue();

-- Changes of the numbers of tables and views. A warehouse that the same statement deletes has no row left.
create function note_new_tables() returns trigger language plpgsql as $$
    begin
        insert into warehouse_changes (warehouse_id, tables, views)
        select r.warehouse_id, 1 * count(*) filter (where r.kind = 'table'),
            1 * count(*) filter (where r.kind = 'view')
        from rows r where r.staged_by is null and r.deleted_at is null
            and exists (select 1 from warehouses w where w.id = r.warehouse_id)
        group by r.warehouse_id;
        return null;
    end $$;
create trigger tables_note_new after insert on tables referencing new table as rows
    for each statement execute function note_new_tables();

create function note_gone_tables() returns trigger language plpgsql as $$
    begin
        insert into warehouse_changes (warehouse_id, tables, views)
        select r.warehouse_id, -1 * count(*) filter (where r.kind = 'table'),
            -1 * count(*) filter (where r.kind = 'view')
        from rows r where r.staged_by is null and r.deleted_at is null
            and exists (select 1 from warehouses w where w.id = r.warehouse_id)
        group by r.warehouse_id;
        return null;
    end $$;
create trigger tables_note_gone after delete on tables referencing old table as rows
    for each statement execute function note_gone_tables();

-- A commit updates neither column, so this trigger costs it nothing.
create function note_changed_table() returns trigger language plpgsql as $$
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
create trigger tables_note_changed after update of staged_by, deleted_at on tables
    for each row execute function note_changed_table();

-- Former names of a namespace count for everything in it. A table or namespace that leaves a namespace inherits them,
-- each followed by the rest of its own path. Namespaces in `kept` still contain it after the move. 21 rows suffice:
-- with more than 20 names, the reader reports them as incomplete (gateway.access.resolved.MAX_FORMER_NAMES), and
-- guardrails match every name.
create function inherited_former_names(containers uuid[], path_key text, levels text[], kept uuid[])
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

-- Policies that name a table by a former name apply after a rename.
create function record_former_table_name() returns trigger language plpgsql as $$
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
create trigger tables_record_former_name after update of name, namespace_id on tables for each row
    when (old.name <> new.name or old.namespace_id <> new.namespace_id) execute function record_former_table_name();

-- Of the rows that a move updates, only the moved namespace has another parent. Those below it stay in their parent.
create function record_former_namespace_name() returns trigger language plpgsql as $$
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
create trigger namespaces_record_former_name after update of levels on namespaces for each row
    when (old.levels <> new.levels) execute function record_former_namespace_name();
