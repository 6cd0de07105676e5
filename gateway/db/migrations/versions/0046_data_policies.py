# SPDX-License-Identifier: Apache-2.0
"""Create tags, data policies with their attributes of principals, and the probes of engines."""

from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE tags (
            id UUID NOT NULL,
            project_id TEXT NOT NULL,
            name TEXT NOT NULL,
            name_key TEXT NOT NULL,
            description TEXT,
            scope TEXT[] NOT NULL,
            value_kind TEXT NOT NULL,
            allowed_values TEXT[] DEFAULT '{}' NOT NULL,
            created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            updated_at timestamptz,
            CONSTRAINT tags_pkey PRIMARY KEY (id),
            CONSTRAINT tags_project_id_name_key_key UNIQUE (project_id, name_key),
            CONSTRAINT tags_value_kind_check CHECK (value_kind in ('marker', 'free-text', 'enumerated')),
            CONSTRAINT tags_project_id_fkey
                FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE)
        """
    )
    op.execute(
        """
        CREATE TABLE tag_attachments (
            tag_id UUID NOT NULL,
            warehouse_id UUID NOT NULL,
            object_type TEXT NOT NULL,
            object_id UUID NOT NULL,
            field_id INTEGER,
            column_name TEXT,
            value TEXT,
            attached_by TEXT NOT NULL,
            attached_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT tag_attachments_tag_id_fkey
                FOREIGN KEY(tag_id) REFERENCES tags (id),
            CONSTRAINT tag_attachments_warehouse_id_fkey
                FOREIGN KEY(warehouse_id) REFERENCES warehouses (id) ON DELETE CASCADE)
        """
    )
    op.execute(
        """
        CREATE UNIQUE INDEX tag_attachments_object_id_tag_id_field_id_idx
            ON tag_attachments (object_id, tag_id, field_id) WHERE field_id is not null
        """
    )
    op.execute(
        """
        CREATE UNIQUE INDEX tag_attachments_object_id_tag_id_idx
            ON tag_attachments (object_id, tag_id) WHERE field_id is null
        """
    )
    op.execute("CREATE INDEX tag_attachments_tag_id_object_id_idx ON tag_attachments (tag_id, object_id)")
    op.execute(
        """
        CREATE TABLE data_policies (
            id UUID NOT NULL,
            project_id TEXT NOT NULL,
            name TEXT NOT NULL,
            name_key TEXT NOT NULL,
            description TEXT,
            version INTEGER DEFAULT '1' NOT NULL,
            definition JSONB NOT NULL,
            applies_to TEXT DEFAULT 'everyone' NOT NULL,
            allow_append BOOLEAN DEFAULT 'false' NOT NULL,
            created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            updated_at timestamptz,
            CONSTRAINT data_policies_pkey PRIMARY KEY (id),
            CONSTRAINT data_policies_project_id_name_key_key UNIQUE (project_id, name_key),
            CONSTRAINT data_policies_applies_to_check CHECK (applies_to in ('everyone', 'subjects')),
            CONSTRAINT data_policies_project_id_fkey
                FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE)
        """
    )
    op.execute(
        """
        CREATE TABLE data_policy_versions (
            policy_id UUID NOT NULL,
            version INTEGER NOT NULL,
            document JSONB NOT NULL,
            changed_by TEXT NOT NULL,
            reason TEXT,
            changed_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT data_policy_versions_pkey PRIMARY KEY (policy_id, version))
        """
    )
    op.execute(
        """
        CREATE TABLE data_policy_bindings (
            policy_id UUID NOT NULL,
            object_type TEXT NOT NULL,
            object_id UUID NOT NULL,
            warehouse_id UUID,
            recorded_fields INTEGER[] DEFAULT '{}' NOT NULL,
            bound_by TEXT NOT NULL,
            bound_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT data_policy_bindings_pkey PRIMARY KEY (policy_id, object_id),
            CONSTRAINT data_policy_bindings_object_type_check
                CHECK (object_type in ('warehouse', 'namespace', 'table', 'tag')),
            CONSTRAINT data_policy_bindings_policy_id_fkey
                FOREIGN KEY(policy_id) REFERENCES data_policies (id) ON DELETE CASCADE,
            CONSTRAINT data_policy_bindings_warehouse_id_fkey
                FOREIGN KEY(warehouse_id) REFERENCES warehouses (id) ON DELETE CASCADE)
        """
    )
    op.execute("CREATE INDEX data_policy_bindings_object_id_idx ON data_policy_bindings (object_id)")
    op.execute("CREATE INDEX data_policy_bindings_warehouse_id_idx ON data_policy_bindings (warehouse_id)")
    op.execute(
        """
        CREATE TABLE data_policy_releases (
            policy_id UUID NOT NULL,
            table_id UUID NOT NULL,
            field_id INTEGER NOT NULL,
            released_by TEXT NOT NULL,
            released_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT data_policy_releases_pkey PRIMARY KEY (policy_id, table_id, field_id),
            CONSTRAINT data_policy_releases_policy_id_fkey
                FOREIGN KEY(policy_id) REFERENCES data_policies (id) ON DELETE CASCADE)
        """
    )
    op.execute("CREATE INDEX data_policy_releases_table_id_idx ON data_policy_releases (table_id)")
    op.execute(
        """
        CREATE TABLE data_policy_alerts (
            policy_id UUID NOT NULL,
            table_id UUID NOT NULL,
            problem TEXT NOT NULL,
            first_seen_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            last_seen_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT data_policy_alerts_pkey PRIMARY KEY (policy_id, table_id, problem),
            CONSTRAINT data_policy_alerts_policy_id_fkey
                FOREIGN KEY(policy_id) REFERENCES data_policies (id) ON DELETE CASCADE)
        """
    )
    op.execute(
        """
        CREATE TABLE former_columns (
            table_id UUID NOT NULL,
            field_id INTEGER NOT NULL,
            name TEXT NOT NULL,
            CONSTRAINT former_columns_pkey PRIMARY KEY (table_id, field_id, name),
            CONSTRAINT former_columns_table_id_fkey
                FOREIGN KEY(table_id) REFERENCES tables (id) ON DELETE CASCADE)
        """
    )
    op.execute(
        """
        CREATE TABLE mapping_tables (
            id UUID NOT NULL,
            project_id TEXT NOT NULL,
            name TEXT NOT NULL,
            name_key TEXT NOT NULL,
            description TEXT,
            created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT mapping_tables_pkey PRIMARY KEY (id),
            CONSTRAINT mapping_tables_project_id_name_key_key UNIQUE (project_id, name_key),
            CONSTRAINT mapping_tables_project_id_fkey
                FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE)
        """
    )
    op.execute(
        """
        CREATE TABLE mapping_entries (
            mapping_id UUID NOT NULL,
            principal_type TEXT NOT NULL,
            principal_id TEXT NOT NULL,
            value TEXT NOT NULL,
            CONSTRAINT mapping_entries_pkey PRIMARY KEY (mapping_id, principal_type, principal_id, value),
            CONSTRAINT mapping_entries_principal_type_check CHECK (principal_type in ('user', 'role')),
            CONSTRAINT mapping_entries_mapping_id_fkey
                FOREIGN KEY(mapping_id) REFERENCES mapping_tables (id) ON DELETE CASCADE)
        """
    )
    op.execute("CREATE INDEX mapping_entries_principal_id_idx ON mapping_entries (principal_id)")
    op.execute(
        """
        CREATE TABLE engine_probes (
            engine TEXT NOT NULL,
            warehouse_id UUID NOT NULL,
            challenge JSONB,
            verdict TEXT,
            detail TEXT,
            probed_at timestamptz,
            valid_until timestamptz,
            warn_until timestamptz,
            created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT engine_probes_pkey PRIMARY KEY (engine, warehouse_id),
            CONSTRAINT engine_probes_verdict_check CHECK (verdict in ('passed', 'failed')),
            CONSTRAINT engine_probes_warehouse_id_fkey
                FOREIGN KEY(warehouse_id) REFERENCES warehouses (id) ON DELETE CASCADE)
        """
    )
    # Null while no policy can apply to a table of the warehouse. It changes with every change to one that can.
    op.execute("alter table warehouses add column data_policy_revision uuid")
    # Engines that are enforcers now, themselves or through roles, count for 30 more days without a probe.
    op.execute(
        """
        with recursive enforcers as (
            select object_type, object_id, principal_type, principal_id from grants
            where privilege = 'enforcer' and object_type in ('project', 'warehouse')
                and (expires_at is null or expires_at > clock_timestamp())
            union
            select e.object_type, e.object_id, m.principal_type, m.principal_id
            from enforcers e join grants m on m.object_type = 'role' and m.object_id = e.principal_id
            where e.principal_type = 'role' and m.privilege in ('assignee', 'ownership')
                and (m.expires_at is null or m.expires_at > clock_timestamp()))
        insert into engine_probes (engine, warehouse_id, warn_until)
        select distinct e.principal_id, w.id, clock_timestamp() + interval '30 days'
        from enforcers e join warehouses w
            on e.object_type = 'warehouse' and w.id::text = e.object_id
            or e.object_type = 'project' and w.project_id = e.object_id
        where e.principal_type = 'user'
        on conflict do nothing
        """
    )
