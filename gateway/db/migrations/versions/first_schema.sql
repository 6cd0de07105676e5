-- SPDX-License-Identifier: Apache-2.0
-- The first schema (revision 0056): tables, indexes and types. It never changes: a change of the schema is a new
-- migration. Functions and triggers are in `gateway/db/schema/functions/`.
-- A statement ends with a semicolon at the end of a line, and the next one begins in the first column.

-- For search. The extension is trusted: the owner of the database may create it, no superuser is needed.
create extension if not exists pg_trgm;

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

-- Encrypted credentials. Those in another store than PostgreSQL have no content here. A replaced credential is kept from `replaced_at` on for requests that are in flight.
create table secrets (
    id uuid not null,
    sealed bytea,
    created_at timestamptz not null default clock_timestamp(),
    replaced_at timestamptz,
    store text not null default 'postgres',
    constraint secrets_pkey primary key (id)
);
create index secrets_replaced_idx on secrets (replaced_at) where replaced_at is not null;

-- Warehouses. `key_seconds` is the lifetime of credentials of the current profile; `keys_until` is the expiry of the
-- last credential of an earlier profile. `scope_*` are the verdict and the last run of the canary.
-- `data_policy_revision` is null while no data policy can apply to a table of the warehouse, and changes with every
-- change to one that can.
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
    scope_verdict text,
    scope_version integer,
    scope_verdict_at timestamptz,
    scope_tried_at timestamptz,
    scope_report bytea,
    credential_kind text,
    data_policy_revision uuid,
    policy_loss text not null default 'refuse-restricted',
    constraint warehouses_pkey primary key (id),
    constraint warehouses_project_id_name_key_key unique (project_id, name_key),
    constraint warehouses_policy_loss_check check (policy_loss in ('refuse', 'refuse-restricted', 'announce')),
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
-- A search for locations below another one is a range in collation C, in a database of any locale.
create index tables_location_range_idx on tables (location_key collate "C");
create index tables_deleted_idx on tables (warehouse_id, name_key, id) where deleted_at is not null;
create unique index tables_namespace_id_name_key_key
    on tables (namespace_id, name_key) where staged_by is null and deleted_at is null;
create index tables_signature_idx
    on tables (namespace_id, search_signature(search_key)) include (id, search_key)
    where staged_by is null and deleted_at is null;
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
create index retired_locations_location_range_idx on retired_locations (location_key collate "C");
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

-- Grants that hold. `acts_for` limits `delegate`. Rows that differ only in `granted_by` become one tuple in OpenFGA.
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
    acts_for text,
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
    acts_for text,
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
create index outbox_takes_away_idx on outbox (subject_id) where takes_away;

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

-- Audit records; `record` is the whole record as JSON. Partitions are ranges of ids, which are UUIDv7 and sort by time, so
-- `on conflict (id)` works. The indexes answer the questions of docs/auditor.md. An index of objects would more than
-- double the cost of an insertion.
create table audit_log (
    id uuid not null,
    at timestamptz not null,
    request_id text not null,
    actor_id text not null,
    operation text not null,
    outcome text not null,
    record bytea not null,
    constraint audit_log_pkey primary key (id)
) partition by range (id);
create index audit_log_at_idx on audit_log (at);
create index audit_log_actor_id_at_idx on audit_log (actor_id, at);
create index audit_log_outcome_at_idx on audit_log (outcome, at) where outcome <> 'allowed';
create table audit_log_default partition of audit_log default;
-- The first partition lasts until the end of a month that is at least seven days away. Gateways create the next ones.
do $$
    declare
        until timestamptz := date_trunc('month', (clock_timestamp() + interval '7 days') at time zone 'UTC'
            + interval '1 month') at time zone 'UTC';
        digits text := lpad(to_hex((extract(epoch from until) * 1000)::bigint), 12, '0');
    begin
        execute format('create table audit_log_initial partition of audit_log for values from (minvalue) to (%L)',
            left(digits, 8) || '-' || right(digits, 4) || '-0000-0000-000000000000');
    end $$;

-- Partitions that retention removed.
create table audit_removals (
    below uuid not null,
    partition text not null,
    records bigint not null,
    removed_at timestamptz not null,
    constraint audit_removals_pkey primary key (below)
);

-- Progress of continuous exports of audit records.
create table audit_exports (
    name text not null,
    block bigint not null,
    holder uuid,
    held_until timestamptz,
    constraint audit_exports_pkey primary key (name)
);

-- Blocks of the chain over audit records.
create table audit_blocks (
    number bigint not null,
    first uuid not null,
    last uuid not null,
    count integer not null,
    records_digest bytea not null,
    previous bytea not null,
    sealed_at timestamptz not null,
    digest bytea not null,
    constraint audit_blocks_pkey primary key (number)
);

-- The block of each sealed record.
create table audit_block_records (
    record_id uuid not null,
    block bigint not null,
    constraint audit_block_records_pkey primary key (record_id)
);
create index audit_block_records_block_idx on audit_block_records (block);

-- The outbox of change events.
create table events (
    sequence bigint generated always as identity,
    id uuid not null,
    at timestamptz not null,
    type text not null,
    source text not null,
    key text not null,
    attributes jsonb not null,
    data bytea not null,
    constraint events_pkey primary key (sequence),
    constraint events_id_key unique (id)
);
create index events_at_idx on events (at);

-- Sinks that still need an event.
create table event_deliveries (
    sink text not null,
    sequence bigint not null,
    constraint event_deliveries_pkey primary key (sink, sequence),
    constraint event_deliveries_sequence_fkey foreign key (sequence) references events (sequence) on delete cascade
);
create index event_deliveries_sequence_idx on event_deliveries (sequence);

-- Events that a sink refused.
create table event_dead_letters (
    sink text not null,
    sequence bigint not null,
    at timestamptz not null,
    reason text not null,
    constraint event_dead_letters_pkey primary key (sink, sequence),
    constraint event_dead_letters_sequence_fkey foreign key (sequence) references events (sequence) on delete cascade
);
create index event_dead_letters_sequence_idx on event_dead_letters (sequence);

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

-- The register of live credentials.
create table live_credentials (
    id uuid not null,
    principal text not null,
    assumed_role uuid,
    engine text,
    view_owner text,
    project_id text not null,
    warehouse_id uuid not null,
    kind text not null,
    table_id uuid not null,
    prefix text not null,
    level text not null,
    provider text not null,
    session_name text not null,
    policy_digest text not null,
    issued_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    live_until timestamptz not null,
    constraint live_credentials_pkey primary key (id)
);
create index live_credentials_principal_idx on live_credentials (principal);
create index live_credentials_live_until_idx on live_credentials (live_until);
create index live_credentials_table_id_id_idx on live_credentials (table_id, id);
create index live_credentials_warehouse_id_id_idx on live_credentials (warehouse_id, id);
create index live_credentials_engine_idx on live_credentials (engine) where engine is not null;
create index live_credentials_view_owner_idx on live_credentials (view_owner) where view_owner is not null;

-- Tickets of changes that wait for approval.
create table change_tickets (
    id uuid not null,
    digest text not null,
    warehouse_id uuid not null,
    object_type text not null,
    object_id uuid not null,
    name text not null,
    kind text not null,
    principal text not null,
    reasons text[] not null,
    change jsonb not null,
    status text not null default 'pending',
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    decided_by text,
    decided_at timestamptz,
    comment text,
    used_at timestamptz,
    constraint change_tickets_pkey primary key (id),
    constraint change_tickets_status_check
        check (status in ('pending', 'approved', 'rejected', 'used', 'lapsed')),
    constraint change_tickets_warehouse_id_fkey foreign key (warehouse_id)
        references warehouses (id) on delete cascade
);
create unique index change_tickets_digest_idx
    on change_tickets (digest) where status in ('pending', 'approved', 'rejected');
create index change_tickets_warehouse_id_id_idx on change_tickets (warehouse_id, id);
create index change_tickets_expires_at_idx on change_tickets (expires_at);

-- Definitions of tags.
create table tags (
    id uuid not null,
    project_id text not null,
    name text not null,
    name_key text not null,
    description text,
    scope text[] not null,
    value_kind text not null,
    allowed_values text[] not null default '{}',
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz,
    constraint tags_pkey primary key (id),
    constraint tags_project_id_name_key_key unique (project_id, name_key),
    constraint tags_value_kind_check check (value_kind in ('marker', 'free-text', 'enumerated')),
    constraint tags_project_id_fkey foreign key (project_id) references projects (id) on delete cascade
);

-- Tags of objects and columns. `attached_at` is the time of the last change.
create table tag_attachments (
    tag_id uuid not null,
    warehouse_id uuid not null,
    object_type text not null,
    object_id uuid not null,
    field_id integer,
    column_name text,
    value text,
    attached_by text not null,
    attached_at timestamptz not null default clock_timestamp(),
    created_at timestamptz not null default clock_timestamp(),
    constraint tag_attachments_tag_id_fkey foreign key (tag_id) references tags (id),
    constraint tag_attachments_warehouse_id_fkey foreign key (warehouse_id)
        references warehouses (id) on delete cascade
);
create unique index tag_attachments_object_id_tag_id_field_id_idx
    on tag_attachments (object_id, tag_id, field_id) where field_id is not null;
create unique index tag_attachments_object_id_tag_id_idx
    on tag_attachments (object_id, tag_id) where field_id is null;
create index tag_attachments_tag_id_object_id_idx on tag_attachments (tag_id, object_id);

-- Data policies. `tag_ids` has the id of each tag that the definition names, by the folded name.
create table data_policies (
    id uuid not null,
    project_id text not null,
    name text not null,
    name_key text not null,
    description text,
    version integer not null default 1,
    definition jsonb not null,
    applies_to text not null default 'everyone',
    allow_append boolean not null default false,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz,
    tag_ids jsonb not null default '{}',
    constraint data_policies_pkey primary key (id),
    constraint data_policies_project_id_name_key_key unique (project_id, name_key),
    constraint data_policies_applies_to_check check (applies_to in ('everyone', 'subjects')),
    constraint data_policies_project_id_fkey foreign key (project_id) references projects (id) on delete cascade
);

-- All versions of data policies, also of deleted ones.
create table data_policy_versions (
    policy_id uuid not null,
    version integer not null,
    document jsonb not null,
    changed_by text not null,
    reason text,
    changed_at timestamptz not null default clock_timestamp(),
    constraint data_policy_versions_pkey primary key (policy_id, version)
);

-- Objects, tags and names that a data policy is bound to. A policy can be bound to a table (`own`) and, before a move, to
-- a container of it (`inherited`).
create table data_policy_bindings (
    policy_id uuid not null,
    object_type text not null,
    object_id uuid not null,
    warehouse_id uuid,
    recorded_fields integer[] not null default '{}',
    bound_by text not null,
    bound_at timestamptz not null default clock_timestamp(),
    own boolean not null default true,
    inherited boolean not null default false,
    constraint data_policy_bindings_pkey primary key (policy_id, object_id),
    constraint data_policy_bindings_object_type_check
        check (object_type in ('warehouse', 'namespace', 'table', 'tag', 'name')),
    constraint data_policy_bindings_policy_id_fkey foreign key (policy_id)
        references data_policies (id) on delete cascade,
    constraint data_policy_bindings_warehouse_id_fkey foreign key (warehouse_id)
        references warehouses (id) on delete cascade
);
create index data_policy_bindings_object_id_idx on data_policy_bindings (object_id);
create index data_policy_bindings_warehouse_id_idx on data_policy_bindings (warehouse_id);

-- Names of tables that data policies are bound to.
create table data_policy_names (
    id uuid not null,
    warehouse_id uuid not null,
    levels text[] not null,
    pattern text not null,
    constraint data_policy_names_pkey primary key (id),
    constraint data_policy_names_warehouse_id_fkey foreign key (warehouse_id)
        references warehouses (id) on delete cascade
);
create index data_policy_names_warehouse_id_idx on data_policy_names (warehouse_id);

-- Columns that are released from a data policy.
create table data_policy_releases (
    policy_id uuid not null,
    table_id uuid not null,
    field_id integer not null,
    released_by text not null,
    released_at timestamptz not null default clock_timestamp(),
    constraint data_policy_releases_pkey primary key (policy_id, table_id, field_id),
    constraint data_policy_releases_policy_id_fkey foreign key (policy_id)
        references data_policies (id) on delete cascade
);
create index data_policy_releases_table_id_idx on data_policy_releases (table_id);

-- Problems of data policies on tables.
create table data_policy_alerts (
    policy_id uuid not null,
    table_id uuid not null,
    problem text not null,
    first_seen_at timestamptz not null default clock_timestamp(),
    last_seen_at timestamptz not null default clock_timestamp(),
    constraint data_policy_alerts_pkey primary key (policy_id, table_id, problem),
    constraint data_policy_alerts_policy_id_fkey foreign key (policy_id)
        references data_policies (id) on delete cascade
);

-- Names that columns of a table had in earlier metadata.
create table former_columns (
    table_id uuid not null,
    field_id integer not null,
    name text not null,
    constraint former_columns_pkey primary key (table_id, field_id, name)
);

-- Restrictions of names that objects left. `taken_in` is the transaction in which the next object took the name.
create table vacated_names (
    id uuid not null default gen_random_uuid(),
    warehouse_id uuid not null,
    path_key text not null,
    name_key text not null,
    policy_id uuid not null,
    tag_id uuid,
    column_name text,
    released integer[] not null,
    vacated_at timestamptz not null default clock_timestamp(),
    taken_by uuid,
    taken_in bigint,
    announced_at timestamptz,
    constraint vacated_names_pkey primary key (id),
    constraint vacated_names_warehouse_id_fkey foreign key (warehouse_id)
        references warehouses (id) on delete cascade,
    constraint vacated_names_policy_id_fkey foreign key (policy_id)
        references data_policies (id) on delete cascade,
    constraint vacated_names_tag_id_fkey foreign key (tag_id) references tags (id) on delete cascade
);
create index vacated_names_name_idx on vacated_names (warehouse_id, path_key, name_key);
create index vacated_names_policy_id_idx on vacated_names (policy_id);
create index vacated_names_tag_id_idx on vacated_names (tag_id) where tag_id is not null;
create index vacated_names_taken_in_idx
    on vacated_names (taken_in) where taken_in is not null and announced_at is null;
create index vacated_names_vacated_at_idx on vacated_names (vacated_at) where taken_by is null;

-- Attributes of principals, which row filters use.
create table mapping_tables (
    id uuid not null,
    project_id text not null,
    name text not null,
    name_key text not null,
    description text,
    created_at timestamptz not null default clock_timestamp(),
    constraint mapping_tables_pkey primary key (id),
    constraint mapping_tables_project_id_name_key_key unique (project_id, name_key),
    constraint mapping_tables_project_id_fkey foreign key (project_id) references projects (id) on delete cascade
);

-- Values of principals in mapping tables.
create table mapping_entries (
    mapping_id uuid not null,
    principal_type text not null,
    principal_id text not null,
    value text not null,
    constraint mapping_entries_pkey primary key (mapping_id, principal_type, principal_id, value),
    constraint mapping_entries_principal_type_check check (principal_type in ('user', 'role')),
    constraint mapping_entries_mapping_id_fkey foreign key (mapping_id)
        references mapping_tables (id) on delete cascade
);
create index mapping_entries_principal_id_idx on mapping_entries (principal_id);

-- Probes of engines that hold `enforcer`.
create table engine_probes (
    engine text not null,
    warehouse_id uuid not null,
    challenge jsonb,
    verdict text,
    detail text,
    probed_at timestamptz,
    valid_until timestamptz,
    warn_until timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    constraint engine_probes_pkey primary key (engine, warehouse_id),
    constraint engine_probes_verdict_check check (verdict in ('passed', 'failed')),
    constraint engine_probes_warehouse_id_fkey foreign key (warehouse_id)
        references warehouses (id) on delete cascade
);

-- The inputs of data policies (`gateway/db/schema/functions/policy_inputs.sql`).
create type policy_input as (
    kind text,
    ref_id uuid,
    field_id integer,
    label text,
    column_name text,
    recorded integer[],
    inherited boolean,
    set_by text,
    set_at timestamptz
);
