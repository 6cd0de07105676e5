# SPDX-License-Identifier: Apache-2.0
"""The first schema"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("audit_log_pkey")),
    )
    op.create_index(op.f("audit_log_at_idx"), "audit_log", ["at"], unique=False)
    op.create_table(
        "grants",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("privilege", sa.Text(), nullable=False),
        sa.Column("principal_type", sa.Text(), nullable=False),
        sa.Column("principal_id", sa.Text(), nullable=False),
        sa.Column("object_type", sa.Text(), nullable=False),
        sa.Column("object_id", sa.Text(), nullable=False),
        sa.Column("granted_by", sa.Text(), nullable=False),
        sa.Column(
            "granted_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("grants_pkey")),
        sa.UniqueConstraint(
            "privilege",
            "principal_type",
            "principal_id",
            "object_type",
            "object_id",
            name=op.f("grants_privilege_principal_type_principal_id_object_type_object_id_key"),
        ),
    )
    op.create_index(op.f("grants_object_type_object_id_idx"), "grants", ["object_type", "object_id"], unique=False)
    op.create_index(
        op.f("grants_principal_type_principal_id_idx"), "grants", ["principal_type", "principal_id"], unique=False
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("subject_type", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("relation", sa.Text(), nullable=False),
        sa.Column("object_type", sa.Text(), nullable=False),
        sa.Column("object_id", sa.Text(), nullable=False),
        sa.Column("warehouse_id", sa.UUID(), nullable=True),
        sa.Column("takes_away", sa.Boolean(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column(
            "not_before", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("outbox_pkey")),
    )
    op.create_index(op.f("outbox_not_before_idx"), "outbox", ["not_before"], unique=False)
    op.create_table(
        "projects",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("projects_pkey")),
        sa.UniqueConstraint("name_key", name=op.f("projects_name_key_key")),
    )
    op.create_table(
        "secrets",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("secrets_pkey")),
    )
    op.create_table(
        "server",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("singleton", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("bootstrapped_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revision", sa.UUID(), nullable=False),
        sa.CheckConstraint("singleton", name=op.f("server_one_row_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("server_pkey")),
        sa.UniqueConstraint("singleton", name=op.f("server_singleton_key")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("user_type", sa.Text(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_updated_with", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("users_pkey")),
    )
    op.create_table(
        "roles",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("roles_project_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("roles_pkey")),
        sa.UniqueConstraint("project_id", "name_key", name=op.f("roles_project_id_name_key_key")),
        sa.UniqueConstraint(
            "project_id", "provider_id", "source_id", name=op.f("roles_project_id_provider_id_source_id_key")
        ),
    )
    op.create_table(
        "warehouses",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("active", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("protected", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("profile", sa.LargeBinary(), nullable=False),
        sa.Column("profile_version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("base_key", sa.Text(), nullable=False),
        sa.Column("secret_id", sa.UUID(), nullable=True),
        sa.Column("delete_profile", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("managed_by", sa.Text(), nullable=False),
        sa.Column("allowed_format_versions", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("default_format_version", sa.Integer(), nullable=True),
        sa.Column("revision", sa.UUID(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("warehouses_project_id_fkey")),
        sa.ForeignKeyConstraint(["secret_id"], ["secrets.id"], name=op.f("warehouses_secret_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("warehouses_pkey")),
        sa.UniqueConstraint("project_id", "name_key", name=op.f("warehouses_project_id_name_key_key")),
    )
    op.create_table(
        "namespaces",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("warehouse_id", sa.UUID(), nullable=False),
        sa.Column("parent_id", sa.UUID(), nullable=True),
        sa.Column("ancestors", sa.ARRAY(sa.UUID()), nullable=False),
        sa.Column("levels", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("path_key", sa.Text(), nullable=False),
        sa.Column("properties", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("protected", sa.Boolean(), server_default="false", nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["parent_id"], ["namespaces.id"], name=op.f("namespaces_parent_id_fkey")),
        sa.ForeignKeyConstraint(["warehouse_id"], ["warehouses.id"], name=op.f("namespaces_warehouse_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("namespaces_pkey")),
        sa.UniqueConstraint("warehouse_id", "path_key", name=op.f("namespaces_warehouse_id_path_key_key")),
    )
    op.create_index(op.f("namespaces_parent_id_idx"), "namespaces", ["parent_id"], unique=False)
    op.create_table(
        "tables",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("warehouse_id", sa.UUID(), nullable=False),
        sa.Column("namespace_id", sa.UUID(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("table_uuid", sa.UUID(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("location_key", sa.Text(), nullable=False),
        sa.Column("metadata_location", sa.Text(), nullable=True),
        sa.Column("metadata", sa.LargeBinary(), nullable=True),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("staged_by", sa.Text(), nullable=True),
        sa.Column("protected", sa.Boolean(), server_default="false", nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind in ('table', 'view')", name=op.f("tables_kind_check")),
        sa.CheckConstraint(
            "(staged_by is null) = (metadata is not null)", name=op.f("tables_staged_without_metadata_check")
        ),
        sa.ForeignKeyConstraint(["namespace_id"], ["namespaces.id"], name=op.f("tables_namespace_id_fkey")),
        sa.ForeignKeyConstraint(["warehouse_id"], ["warehouses.id"], name=op.f("tables_warehouse_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("tables_pkey")),
        sa.UniqueConstraint("location_key", name=op.f("tables_location_key_key")),
    )
    op.create_index(
        "tables_namespace_id_name_key_key",
        "tables",
        ["namespace_id", "name_key"],
        unique=True,
        postgresql_where=sa.text("staged_by IS NULL"),
    )
    op.create_index(
        "tables_staged_idx",
        "tables",
        ["namespace_id", "name_key"],
        unique=False,
        postgresql_where=sa.text("staged_by IS NOT NULL"),
    )
    # Metadata documents are read whole and often; compressing them in the table costs more than it saves.
    op.execute("alter table tables alter column metadata set storage external")


def downgrade() -> None:
    op.drop_index("tables_staged_idx", table_name="tables", postgresql_where=sa.text("staged_by IS NOT NULL"))
    op.drop_index(
        "tables_namespace_id_name_key_key", table_name="tables", postgresql_where=sa.text("staged_by IS NULL")
    )
    op.drop_table("tables")
    op.drop_index(op.f("namespaces_parent_id_idx"), table_name="namespaces")
    op.drop_table("namespaces")
    op.drop_table("warehouses")
    op.drop_table("roles")
    op.drop_table("users")
    op.drop_table("server")
    op.drop_table("secrets")
    op.drop_table("projects")
    op.drop_index(op.f("outbox_not_before_idx"), table_name="outbox")
    op.drop_table("outbox")
    op.drop_index(op.f("grants_principal_type_principal_id_idx"), table_name="grants")
    op.drop_index(op.f("grants_object_type_object_id_idx"), table_name="grants")
    op.drop_table("grants")
    op.drop_index(op.f("audit_log_at_idx"), table_name="audit_log")
    op.drop_table("audit_log")
