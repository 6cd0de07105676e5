-- SPDX-License-Identifier: Apache-2.0
-- The schema of revision 0034, the first one. It does not change: a change is a new migration.

-- Extension

create extension if not exists pg_trgm;

-- Functions

CREATE FUNCTION forget_pending_file() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
        begin
            delete from pending_files where location = new.metadata_location;
            return null;
        end $$;

CREATE FUNCTION inherited_former_names(containers uuid[], path_key text, levels text[], kept uuid[]) RETURNS TABLE(former_key text, former_levels text[], former_until timestamp with time zone)
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

CREATE FUNCTION move_revision_of_dropped() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
        begin
            update warehouses set revision = gen_random_uuid() where id = new.warehouse_id;
            return null;
        end $$;

CREATE FUNCTION note_changed_table() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    declare
        change integer := (new.staged_by is null and new.deleted_at is null)::int - (old.staged_by is null and old.deleted_at is null)::int;
    begin
        if change <> 0 then
            insert into warehouse_changes (warehouse_id, tables, views)
            values (new.warehouse_id, case new.kind when 'table' then change else 0 end,
                    case new.kind when 'view' then change else 0 end);
        end if;
        return null;
    end $$;

CREATE FUNCTION note_gone_tables() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    begin
        insert into warehouse_changes (warehouse_id, tables, views)
        select r.warehouse_id, -1 * count(*) filter (where r.kind = 'table'),
            -1 * count(*) filter (where r.kind = 'view')
        from rows r where r.staged_by is null and r.deleted_at is null and exists (select 1 from warehouses w where w.id = r.warehouse_id)
        group by r.warehouse_id;
        return null;
    end $$;

CREATE FUNCTION note_new_tables() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    begin
        insert into warehouse_changes (warehouse_id, tables, views)
        select r.warehouse_id, 1 * count(*) filter (where r.kind = 'table'),
            1 * count(*) filter (where r.kind = 'view')
        from rows r where r.staged_by is null and r.deleted_at is null and exists (select 1 from warehouses w where w.id = r.warehouse_id)
        group by r.warehouse_id;
        return null;
    end $$;

CREATE FUNCTION permanent_owners(of_type text, of_id uuid) RETURNS text[]
    LANGUAGE sql STABLE
    AS $$
            select coalesce(array_agg(distinct g.principal_type || ':' || g.principal_id), '{}')
            from grants g
            where g.object_type = of_type and g.object_id = of_id::text and g.privilege = 'ownership'
                and g.expires_at is null
        $$;

CREATE FUNCTION permanent_owners(of_type text, of_id uuid, within uuid) RETURNS text[]
    LANGUAGE sql STABLE
    AS $$
            select case when exists (
                select 1 from namespaces n join warehouses w on w.id = n.warehouse_id
                where n.id = within and (w.managed_access or n.managed_access or exists (
                    select 1 from namespaces a where a.id = any(n.ancestors) and a.managed_access))
            ) then '{}'::text[] else permanent_owners(of_type, of_id) end
        $$;

CREATE FUNCTION record_former_namespace_name() RETURNS trigger
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

CREATE FUNCTION record_former_table_name() RETURNS trigger
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

CREATE FUNCTION remember_keys_of_profile() RETURNS trigger
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
            -- What lives no longer than the keys of the new profile is waited for anyway.
            if seconds > greatest(new.key_seconds,
    (case when coalesce((after ->> 'sts-enabled')::boolean, false)
        then coalesce((after ->> 'sts-token-validity-seconds')::integer, 3600) + 60 else 0 end)
) then
                new.keys_until := greatest(old.keys_until, clock_timestamp() + make_interval(secs => seconds));
            end if;
            return new;
        end $$;

CREATE FUNCTION rename_task_queue() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
        begin
            new.queue := 'tabular_purge';
            return new;
        end $$;

CREATE FUNCTION retire_location() RETURNS trigger
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
        then coalesce((convert_from(w.profile, 'UTF8')::jsonb ->> 'sts-token-validity-seconds')::integer, 3600) + 60
        else 0 end)
), w.keys_until, clock_timestamp() + make_interval(secs => w.key_seconds)) into ended
                from warehouses w where w.id = old.warehouse_id;
            end if;
            insert into retired_locations
                (table_id, warehouse_id, location, location_key, retired_by, keys_until, owners, metadata_location)
            values (old.id, old.warehouse_id, old.location, old.location_key,
                    coalesce(old.staged_by, (to_jsonb(new) ->> 'deleted_by')), ended, permanent_owners(old.kind, old.id, old.namespace_id), old.metadata_location);
            return null;
        end $$;

CREATE FUNCTION searchable(folded text) RETURNS text
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

CREATE FUNCTION take_location_back() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
        begin
            delete from retired_locations where table_id = new.id and location_key = new.location_key;
            return null;
        end $$;

-- Tables

CREATE TABLE audit_log (
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    request_id text NOT NULL,
    actor_id text NOT NULL,
    operation text NOT NULL,
    outcome text NOT NULL,
    record bytea NOT NULL
);

CREATE TABLE departures (
    user_id text NOT NULL,
    deleted_by text NOT NULL,
    deleted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    in_force_at timestamp with time zone
);

CREATE TABLE drift_watch (
    singleton boolean DEFAULT true NOT NULL,
    holder uuid,
    held_until timestamp with time zone,
    store_id text,
    seen_until timestamp with time zone,
    last_change text,
    compare_all boolean DEFAULT false NOT NULL,
    CONSTRAINT drift_watch_one_row_check CHECK (singleton)
);

CREATE TABLE endpoint_statistics (
    project_id text NOT NULL,
    warehouse_id uuid,
    route text NOT NULL,
    status smallint NOT NULL,
    hour timestamp with time zone NOT NULL,
    count bigint NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone
);

CREATE TABLE former_namespace_names (
    namespace_id uuid NOT NULL,
    path_key text NOT NULL,
    levels text[] NOT NULL,
    until timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE former_table_names (
    table_id uuid NOT NULL,
    path_key text NOT NULL,
    levels text[] NOT NULL,
    until timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE grant_history (
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
    CONSTRAINT grant_history_ended_because_check CHECK ((ended_because = ANY (ARRAY['revoked'::text, 'expired'::text, 'object deleted'::text, 'principal deleted'::text, 'replaced'::text])))
);

ALTER TABLE grant_history ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY;
CREATE TABLE grants (
    id uuid NOT NULL,
    privilege text NOT NULL,
    principal_type text NOT NULL,
    principal_id text NOT NULL,
    object_type text NOT NULL,
    object_id text NOT NULL,
    granted_by text NOT NULL,
    granted_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    reason text,
    expires_at timestamp with time zone
);

CREATE TABLE idempotency (
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

CREATE TABLE model_steps (
    model_id text NOT NULL,
    step text NOT NULL,
    cursor text,
    done_at timestamp with time zone
);

CREATE TABLE model_switches (
    id bigint NOT NULL,
    model_id text NOT NULL,
    previous_id text,
    switched_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    switched_by text NOT NULL
);

ALTER TABLE model_switches ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY;
CREATE TABLE namespaces (
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
    search_key text GENERATED ALWAYS AS (searchable(path_key)) STORED
);

CREATE TABLE outbox (
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

ALTER TABLE outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY;
CREATE TABLE pending_files (
    location text NOT NULL,
    warehouse_id uuid NOT NULL,
    written_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE projects (
    id text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE relationship_models (
    model_id text NOT NULL,
    store_id text NOT NULL,
    version text NOT NULL,
    content_hash text NOT NULL,
    recorded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    recorded_by text NOT NULL
);

CREATE TABLE retired_locations (
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

CREATE TABLE roles (
    id uuid NOT NULL,
    project_id text NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    description text,
    provider_id text NOT NULL,
    source_id text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone,
    search_key text GENERATED ALWAYS AS (searchable(name_key)) STORED
);

CREATE TABLE scim_groups (
    role_id uuid NOT NULL,
    provider_id text NOT NULL,
    external_id text,
    version integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE scim_tokens (
    id uuid NOT NULL,
    provider_id text NOT NULL,
    project_id text NOT NULL,
    digest bytea NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    CONSTRAINT scim_tokens_digest_check CHECK ((length(digest) = 32))
);

CREATE TABLE scim_users (
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

CREATE TABLE secrets (
    id uuid NOT NULL,
    sealed bytea NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    replaced_at timestamp with time zone
);

CREATE TABLE server (
    id uuid NOT NULL,
    singleton boolean DEFAULT true NOT NULL,
    bootstrapped_at timestamp with time zone,
    revision uuid NOT NULL,
    time_boxes uuid DEFAULT gen_random_uuid() NOT NULL,
    home text,
    bootstrap_for text,
    CONSTRAINT server_one_row_check CHECK (singleton)
);

CREATE TABLE signing_keys (
    kid text NOT NULL,
    public bytea NOT NULL,
    secret_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    signs_until timestamp with time zone NOT NULL,
    verifies_until timestamp with time zone NOT NULL
);

CREATE TABLE table_reports (
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

CREATE TABLE tables (
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
    search_key text GENERATED ALWAYS AS (searchable(name_key)) STORED,
    format text,
    metadata_excerpt bytea,
    metadata_excerpt_of text,
    CONSTRAINT tables_format_of_generic_tables_check CHECK (((kind = 'generic_table'::text) = (format IS NOT NULL))),
    CONSTRAINT tables_kind_check CHECK ((kind = ANY (ARRAY['table'::text, 'view'::text, 'generic_table'::text]))),
    CONSTRAINT tables_staged_or_deleted_check CHECK (((staged_by IS NULL) OR (deleted_at IS NULL))),
    CONSTRAINT tables_staged_without_metadata_check CHECK (((staged_by IS NULL) = (metadata IS NOT NULL)))
);

CREATE TABLE task_log (
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

CREATE TABLE task_queue_configs (
    id bigint NOT NULL,
    queue text NOT NULL,
    warehouse_id uuid,
    project_id text,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    heartbeat_seconds bigint,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT task_queue_configs_belongs_check CHECK (((warehouse_id IS NULL) <> (project_id IS NULL)))
);

ALTER TABLE task_queue_configs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY;
CREATE TABLE tasks (
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

CREATE TABLE users (
    id text NOT NULL,
    name text NOT NULL,
    email text,
    user_type text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone,
    last_updated_with text NOT NULL,
    verified_email text,
    search_key text GENERATED ALWAYS AS (searchable(lower(((((regexp_replace(NORMALIZE(name, NFKD), '[^ ]*@[^ ]*'::text, ' '::text, 'g'::text) || ' '::text) || COALESCE(verified_email, ''::text)) || ' '::text) || id)))) STORED,
    address_key text GENERATED ALWAYS AS (searchable(lower(((COALESCE(verified_email, ''::text) || ' '::text) || id)))) STORED
);

CREATE TABLE warehouse_changes (
    id bigint NOT NULL,
    warehouse_id uuid NOT NULL,
    tables bigint NOT NULL,
    views bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE warehouse_changes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY;
CREATE TABLE warehouse_statistics (
    warehouse_id uuid NOT NULL,
    hour timestamp with time zone NOT NULL,
    tables bigint NOT NULL,
    views bigint NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE warehouses (
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
    key_seconds integer DEFAULT 0 NOT NULL
);

-- Keys and unique constraints

ALTER TABLE tables ALTER COLUMN metadata SET STORAGE EXTERNAL;
ALTER TABLE audit_log ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);
ALTER TABLE departures ADD CONSTRAINT departures_pkey PRIMARY KEY (user_id);
ALTER TABLE drift_watch ADD CONSTRAINT drift_watch_pkey PRIMARY KEY (singleton);
ALTER TABLE endpoint_statistics ADD CONSTRAINT endpoint_statistics_key UNIQUE NULLS NOT DISTINCT (project_id, hour, warehouse_id, route, status);
ALTER TABLE former_namespace_names ADD CONSTRAINT former_namespace_names_pkey PRIMARY KEY (namespace_id, path_key);
ALTER TABLE former_table_names ADD CONSTRAINT former_table_names_pkey PRIMARY KEY (table_id, path_key);
ALTER TABLE grant_history ADD CONSTRAINT grant_history_pkey PRIMARY KEY (id);
ALTER TABLE grants ADD CONSTRAINT grants_key UNIQUE (privilege, principal_type, principal_id, object_type, object_id, granted_by);
ALTER TABLE grants ADD CONSTRAINT grants_pkey PRIMARY KEY (id);
ALTER TABLE idempotency ADD CONSTRAINT idempotency_pkey PRIMARY KEY (scope);
ALTER TABLE model_steps ADD CONSTRAINT model_steps_pkey PRIMARY KEY (model_id, step);
ALTER TABLE model_switches ADD CONSTRAINT model_switches_pkey PRIMARY KEY (id);
ALTER TABLE namespaces ADD CONSTRAINT namespaces_pkey PRIMARY KEY (id);
ALTER TABLE namespaces ADD CONSTRAINT namespaces_warehouse_id_path_key_key UNIQUE (warehouse_id, path_key);
ALTER TABLE outbox ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
ALTER TABLE pending_files ADD CONSTRAINT pending_files_pkey PRIMARY KEY (location);
ALTER TABLE projects ADD CONSTRAINT projects_name_key_key UNIQUE (name_key);
ALTER TABLE projects ADD CONSTRAINT projects_pkey PRIMARY KEY (id);
ALTER TABLE relationship_models ADD CONSTRAINT relationship_models_pkey PRIMARY KEY (model_id);
ALTER TABLE retired_locations ADD CONSTRAINT retired_locations_pkey PRIMARY KEY (id);
ALTER TABLE roles ADD CONSTRAINT roles_pkey PRIMARY KEY (id);
ALTER TABLE roles ADD CONSTRAINT roles_project_id_name_key_key UNIQUE (project_id, name_key);
ALTER TABLE roles ADD CONSTRAINT roles_project_id_provider_id_source_id_key UNIQUE (project_id, provider_id, source_id);
ALTER TABLE scim_groups ADD CONSTRAINT scim_groups_pkey PRIMARY KEY (role_id);
ALTER TABLE scim_tokens ADD CONSTRAINT scim_tokens_pkey PRIMARY KEY (id);
ALTER TABLE scim_users ADD CONSTRAINT scim_users_pkey PRIMARY KEY (id);
ALTER TABLE scim_users ADD CONSTRAINT scim_users_provider_id_external_id_key UNIQUE (provider_id, external_id);
ALTER TABLE scim_users ADD CONSTRAINT scim_users_provider_id_user_name_key_key UNIQUE (provider_id, user_name_key);
ALTER TABLE scim_users ADD CONSTRAINT scim_users_user_id_key UNIQUE (user_id);
ALTER TABLE secrets ADD CONSTRAINT secrets_pkey PRIMARY KEY (id);
ALTER TABLE server ADD CONSTRAINT server_pkey PRIMARY KEY (id);
ALTER TABLE server ADD CONSTRAINT server_singleton_key UNIQUE (singleton);
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (kid);
ALTER TABLE table_reports ADD CONSTRAINT table_reports_pkey PRIMARY KEY (id);
ALTER TABLE tables ADD CONSTRAINT tables_location_key_key UNIQUE (location_key);
ALTER TABLE tables ADD CONSTRAINT tables_pkey PRIMARY KEY (id);
ALTER TABLE task_log ADD CONSTRAINT task_log_pkey PRIMARY KEY (task_id, attempt);
ALTER TABLE task_queue_configs ADD CONSTRAINT task_queue_configs_pkey PRIMARY KEY (id);
ALTER TABLE task_queue_configs ADD CONSTRAINT task_queue_configs_project_id_queue_key UNIQUE (project_id, queue);
ALTER TABLE task_queue_configs ADD CONSTRAINT task_queue_configs_warehouse_id_queue_key UNIQUE (warehouse_id, queue);
ALTER TABLE tasks ADD CONSTRAINT tasks_pkey PRIMARY KEY (id);
ALTER TABLE users ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE warehouse_changes ADD CONSTRAINT warehouse_changes_pkey PRIMARY KEY (id);
ALTER TABLE warehouse_statistics ADD CONSTRAINT warehouse_statistics_pkey PRIMARY KEY (warehouse_id, hour);
ALTER TABLE warehouses ADD CONSTRAINT warehouses_pkey PRIMARY KEY (id);
ALTER TABLE warehouses ADD CONSTRAINT warehouses_project_id_name_key_key UNIQUE (project_id, name_key);

-- Indexes

CREATE INDEX audit_log_at_idx ON audit_log USING btree (at);
CREATE INDEX endpoint_statistics_hour_idx ON endpoint_statistics USING btree (hour);
CREATE INDEX endpoint_statistics_warehouse_id_hour_idx ON endpoint_statistics USING btree (warehouse_id, hour);
CREATE INDEX former_namespace_names_until_idx ON former_namespace_names USING btree (namespace_id, until DESC);
CREATE INDEX former_table_names_until_idx ON former_table_names USING btree (table_id, until DESC);
CREATE INDEX grant_history_object_type_object_id_id_idx ON grant_history USING btree (object_type, object_id, id);
CREATE INDEX grant_history_principal_type_principal_id_id_idx ON grant_history USING btree (principal_type, principal_id, id);
CREATE INDEX grants_ending_idx ON grants USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX grants_ends_of_principal_idx ON grants USING btree (principal_type, principal_id, expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX grants_object_type_object_id_id_idx ON grants USING btree (object_type, object_id, id);
CREATE INDEX grants_on_columns_idx ON grants USING btree (split_part(object_id, '.'::text, 1), principal_type, principal_id) WHERE (object_type = 'column'::text);
CREATE INDEX grants_principal_type_principal_id_id_idx ON grants USING btree (principal_type, principal_id, id);
CREATE INDEX grants_roles_of_principal_idx ON grants USING btree (principal_type, principal_id) WHERE (object_type = 'role'::text);
CREATE INDEX idempotency_expires_at_idx ON idempotency USING btree (expires_at);
CREATE INDEX namespaces_parent_id_idx ON namespaces USING btree (parent_id);
CREATE INDEX outbox_not_before_idx ON outbox USING btree (not_before);
CREATE INDEX outbox_object_id_subject_id_relation_idx ON outbox USING btree (object_id, subject_id, relation);
CREATE INDEX outbox_written_in_idx ON outbox USING btree (written_in);
CREATE INDEX pending_files_written_at_idx ON pending_files USING btree (written_at);
CREATE INDEX retired_locations_location_key_idx ON retired_locations USING btree (location_key);
CREATE INDEX retired_locations_table_id_idx ON retired_locations USING btree (table_id);
CREATE INDEX roles_by_source ON roles USING btree (provider_id, source_id);
CREATE INDEX secrets_replaced_idx ON secrets USING btree (replaced_at) WHERE (replaced_at IS NOT NULL);
CREATE INDEX table_reports_at_idx ON table_reports USING btree (at);
CREATE INDEX table_reports_table_id_at_idx ON table_reports USING btree (table_id, at);
CREATE INDEX tables_deleted_idx ON tables USING btree (warehouse_id, name_key, id) WHERE (deleted_at IS NOT NULL);
CREATE UNIQUE INDEX tables_namespace_id_name_key_key ON tables USING btree (namespace_id, name_key) WHERE ((staged_by IS NULL) AND (deleted_at IS NULL));
CREATE INDEX tables_search_idx ON tables USING btree (namespace_id) INCLUDE (id, search_key) WHERE ((staged_by IS NULL) AND (deleted_at IS NULL));
CREATE INDEX tables_staged_idx ON tables USING btree (namespace_id, name_key) WHERE (staged_by IS NOT NULL);
CREATE UNIQUE INDEX tasks_active_key ON tasks USING btree (queue, entity_type, entity_id) WHERE (status = ANY (ARRAY['scheduled'::text, 'running'::text, 'stopping'::text]));
CREATE UNIQUE INDEX tasks_active_project_key ON tasks USING btree (queue, project_id) WHERE ((status = ANY (ARRAY['scheduled'::text, 'running'::text, 'stopping'::text])) AND (entity_id IS NULL));
CREATE INDEX tasks_due_idx ON tasks USING btree (scheduled_for) WHERE (status = ANY (ARRAY['scheduled'::text, 'running'::text, 'stopping'::text]));
CREATE INDEX tasks_entity_id_idx ON tasks USING btree (entity_id);
CREATE INDEX tasks_finished_at_idx ON tasks USING btree (finished_at);
CREATE INDEX tasks_project_id_idx ON tasks USING btree (project_id, created_at, id);
CREATE INDEX tasks_warehouse_id_idx ON tasks USING btree (warehouse_id, created_at, id);
CREATE INDEX warehouse_changes_warehouse_id_idx ON warehouse_changes USING btree (warehouse_id);

-- Triggers

CREATE TRIGGER namespaces_record_former_name AFTER UPDATE OF levels ON namespaces FOR EACH ROW WHEN ((old.levels <> new.levels)) EXECUTE FUNCTION record_former_namespace_name();
CREATE TRIGGER tables_forget_pending_file AFTER INSERT OR UPDATE OF metadata_location ON tables FOR EACH ROW WHEN ((new.metadata_location IS NOT NULL)) EXECUTE FUNCTION forget_pending_file();
CREATE CONSTRAINT TRIGGER tables_move_revision_of_dropped AFTER UPDATE OF deleted_at ON tables DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.deleted_at IS NULL) AND (new.deleted_at IS NOT NULL))) EXECUTE FUNCTION move_revision_of_dropped();
CREATE TRIGGER tables_note_changed AFTER UPDATE OF staged_by, deleted_at ON tables FOR EACH ROW EXECUTE FUNCTION note_changed_table();
CREATE TRIGGER tables_note_gone AFTER DELETE ON tables REFERENCING OLD TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION note_gone_tables();
CREATE TRIGGER tables_note_new AFTER INSERT ON tables REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION note_new_tables();
CREATE TRIGGER tables_record_former_name AFTER UPDATE OF name, namespace_id ON tables FOR EACH ROW WHEN (((old.name <> new.name) OR (old.namespace_id <> new.namespace_id))) EXECUTE FUNCTION record_former_table_name();
CREATE TRIGGER tables_retire_location_of_dropped AFTER UPDATE OF deleted_at ON tables FOR EACH ROW WHEN (((old.deleted_at IS NULL) AND (new.deleted_at IS NOT NULL))) EXECUTE FUNCTION retire_location();
CREATE TRIGGER tables_retire_location_of_gone AFTER DELETE ON tables FOR EACH ROW EXECUTE FUNCTION retire_location();
CREATE TRIGGER tables_retire_location_of_moved AFTER UPDATE OF location_key ON tables FOR EACH ROW WHEN ((old.location_key <> new.location_key)) EXECUTE FUNCTION retire_location();
CREATE TRIGGER tables_take_location_back AFTER UPDATE OF deleted_at ON tables FOR EACH ROW WHEN (((old.deleted_at IS NOT NULL) AND (new.deleted_at IS NULL))) EXECUTE FUNCTION take_location_back();
CREATE TRIGGER tasks_rename_queue BEFORE INSERT ON tasks FOR EACH ROW WHEN ((new.queue = 'purge_table'::text)) EXECUTE FUNCTION rename_task_queue();
CREATE TRIGGER warehouses_remember_keys_of_profile BEFORE UPDATE OF profile ON warehouses FOR EACH ROW WHEN ((old.profile IS DISTINCT FROM new.profile)) EXECUTE FUNCTION remember_keys_of_profile();

-- References

ALTER TABLE endpoint_statistics ADD CONSTRAINT endpoint_statistics_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE;
ALTER TABLE endpoint_statistics ADD CONSTRAINT endpoint_statistics_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE;
ALTER TABLE former_namespace_names ADD CONSTRAINT former_namespace_names_namespace_id_fkey FOREIGN KEY (namespace_id) REFERENCES namespaces(id) ON DELETE CASCADE;
ALTER TABLE former_table_names ADD CONSTRAINT former_table_names_table_id_fkey FOREIGN KEY (table_id) REFERENCES tables(id) ON DELETE CASCADE;
ALTER TABLE model_steps ADD CONSTRAINT model_steps_model_id_fkey FOREIGN KEY (model_id) REFERENCES relationship_models(model_id);
ALTER TABLE model_switches ADD CONSTRAINT model_switches_model_id_fkey FOREIGN KEY (model_id) REFERENCES relationship_models(model_id);
ALTER TABLE model_switches ADD CONSTRAINT model_switches_previous_id_fkey FOREIGN KEY (previous_id) REFERENCES relationship_models(model_id);
ALTER TABLE namespaces ADD CONSTRAINT namespaces_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES namespaces(id);
ALTER TABLE namespaces ADD CONSTRAINT namespaces_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id);
ALTER TABLE pending_files ADD CONSTRAINT pending_files_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id);
ALTER TABLE roles ADD CONSTRAINT roles_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id);
ALTER TABLE scim_groups ADD CONSTRAINT scim_groups_role_id_fkey FOREIGN KEY (role_id) REFERENCES roles(id) ON DELETE CASCADE;
ALTER TABLE scim_tokens ADD CONSTRAINT scim_tokens_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE;
ALTER TABLE scim_users ADD CONSTRAINT scim_users_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_secret_id_fkey FOREIGN KEY (secret_id) REFERENCES secrets(id);
ALTER TABLE tables ADD CONSTRAINT tables_namespace_id_fkey FOREIGN KEY (namespace_id) REFERENCES namespaces(id);
ALTER TABLE tables ADD CONSTRAINT tables_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id);
ALTER TABLE task_log ADD CONSTRAINT task_log_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE;
ALTER TABLE task_queue_configs ADD CONSTRAINT task_queue_configs_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE;
ALTER TABLE task_queue_configs ADD CONSTRAINT task_queue_configs_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE;
ALTER TABLE tasks ADD CONSTRAINT tasks_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE;
ALTER TABLE tasks ADD CONSTRAINT tasks_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE;
ALTER TABLE warehouse_changes ADD CONSTRAINT warehouse_changes_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE;
ALTER TABLE warehouse_statistics ADD CONSTRAINT warehouse_statistics_warehouse_id_fkey FOREIGN KEY (warehouse_id) REFERENCES warehouses(id) ON DELETE CASCADE;
ALTER TABLE warehouses ADD CONSTRAINT warehouses_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id);
ALTER TABLE warehouses ADD CONSTRAINT warehouses_secret_id_fkey FOREIGN KEY (secret_id) REFERENCES secrets(id);
