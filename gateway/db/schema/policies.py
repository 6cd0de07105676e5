# SPDX-License-Identifier: Apache-2.0
"""The tables of data policies with their bindings, of mapping tables, of engine probes, and of tags.

Data policies are row filters and masks. A probe tests whether an engine enforces them.
"""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from gateway.db.schema.base import metadata, now

data_policies = Table(
    "data_policies",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("description", Text),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("definition", JSONB, nullable=False),
    Column("tag_ids", JSONB, nullable=False, server_default="{}"),
    Column("applies_to", Text, nullable=False, server_default="everyone"),
    Column("allow_append", Boolean, nullable=False, server_default="false"),
    now("created_at"),
    now("updated_at", nullable=True),
    UniqueConstraint("project_id", "name_key"),
    CheckConstraint("applies_to in ('everyone', 'subjects')", name="applies_to"),
)
"""`definition` is a `gateway.obligations.data_policies.Definition`. `tag_ids` has the id of each tag that it named when
it was written, by the folded name.
"""

data_policy_versions = Table(
    "data_policy_versions",
    metadata,
    Column("policy_id", UUID(as_uuid=True), nullable=False),
    Column("version", Integer, nullable=False),
    Column("document", JSONB, nullable=False),
    Column("changed_by", Text, nullable=False),
    Column("reason", Text),
    now("changed_at"),
    PrimaryKeyConstraint("policy_id", "version"),
)
"""The history: one row for each version, which outlives the policy. `document` has all fields of the policy."""

data_policy_bindings = Table(
    "data_policy_bindings",
    metadata,
    Column("policy_id", UUID(as_uuid=True), ForeignKey("data_policies.id", ondelete="CASCADE"), nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", UUID(as_uuid=True), nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE")),
    Column("recorded_fields", ARRAY(Integer), nullable=False, server_default="{}"),
    Column("own", Boolean, nullable=False, server_default="true"),
    Column("inherited", Boolean, nullable=False, server_default="false"),
    Column("bound_by", Text, nullable=False),
    now("bound_at"),
    PrimaryKeyConstraint("policy_id", "object_id"),
    Index(None, "object_id"),
    Index(None, "warehouse_id"),
    CheckConstraint("object_type in ('warehouse', 'namespace', 'table', 'tag', 'name')", name="object_type"),
)
"""`warehouse_id` is null for a tag, which may be attached in every warehouse of the project. `recorded_fields` are the
field ids that the columns named by the policy had when a table was bound. `own` is true for a binding that was
requested, `inherited` for one that replaces the binding of a container that the object has left
(`policy_inputs.sql`).
"""

data_policy_names = Table(
    "data_policy_names",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE"), nullable=False),
    Column("levels", ARRAY(Text), nullable=False),
    Column("pattern", Text, nullable=False),
    Index(None, "warehouse_id"),
)
"""Names that data policies are bound to (`object_type` is `name`), also names of absent tables.

`levels` are the patterns of the namespace's levels and of the table's name, as written. `pattern` is
`gateway.iceberg.identifiers.NamePattern.like`, and `id` is derived from the warehouse and the pattern. The last
binding to a name deletes its row. The function `data_policy_names_of` returns the names of a table, and triggers give
a table that loses a name its policies as bindings of its own (`policy_inputs.sql`).
"""

data_policy_releases = Table(
    "data_policy_releases",
    metadata,
    Column("policy_id", UUID(as_uuid=True), ForeignKey("data_policies.id", ondelete="CASCADE"), nullable=False),
    Column("table_id", UUID(as_uuid=True), nullable=False),
    Column("field_id", Integer, nullable=False),
    Column("released_by", Text, nullable=False),
    now("released_at"),
    PrimaryKeyConstraint("policy_id", "table_id", "field_id"),
    Index(None, "table_id"),
)
"""Columns that a policy no longer covers, although they have or had a name of the policy."""

data_policy_alerts = Table(
    "data_policy_alerts",
    metadata,
    Column("policy_id", UUID(as_uuid=True), ForeignKey("data_policies.id", ondelete="CASCADE"), nullable=False),
    Column("table_id", UUID(as_uuid=True), nullable=False),
    Column("problem", Text, nullable=False),
    now("first_seen_at"),
    now("last_seen_at"),
    PrimaryKeyConstraint("policy_id", "table_id", "problem"),
)
"""Policies that could not be applied to a table as written, and were replaced by something stricter."""

former_columns = Table(
    "former_columns",
    metadata,
    Column("table_id", UUID(as_uuid=True), nullable=False),
    Column("field_id", Integer, nullable=False),
    Column("name", Text, nullable=False),
    PrimaryKeyConstraint("table_id", "field_id", "name"),
)
"""Columns of schemas that a commit removed from the document (`remove-schemas`). They outlive the table, like its
bindings and tags, until the record of its location ends: its files may be registered again
(`policy_inputs.sql`).
"""

mapping_tables = Table(
    "mapping_tables",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("description", Text),
    now("created_at"),
    UniqueConstraint("project_id", "name_key"),
)
"""Attributes of principals for row filters."""

mapping_entries = Table(
    "mapping_entries",
    metadata,
    Column("mapping_id", UUID(as_uuid=True), ForeignKey("mapping_tables.id", ondelete="CASCADE"), nullable=False),
    Column("principal_type", Text, nullable=False),
    Column("principal_id", Text, nullable=False),
    Column("value", Text, nullable=False),
    PrimaryKeyConstraint("mapping_id", "principal_type", "principal_id", "value"),
    Index(None, "principal_id"),
    CheckConstraint("principal_type in ('user', 'role')", name="principal_type"),
)
"""One row for each value of a user or role in a mapping table."""

engine_probes = Table(
    "engine_probes",
    metadata,
    Column("engine", Text, nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE"), nullable=False),
    Column("challenge", JSONB),
    Column("verdict", Text),
    Column("detail", Text),
    Column("probed_at", DateTime(timezone=True)),
    Column("valid_until", DateTime(timezone=True)),
    Column("warn_until", DateTime(timezone=True)),
    now("created_at"),
    PrimaryKeyConstraint("engine", "warehouse_id"),
    CheckConstraint("verdict in ('passed', 'failed')", name="verdict"),
)
"""Results of canary reads through engines. `challenge` is the probe in progress. Until `warn_until` an engine without a
valid result still counts, with a warning: its grant is older than the probes.
"""


tags = Table(
    "tags",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("description", Text),
    Column("scope", ARRAY(Text), nullable=False),
    Column("value_kind", Text, nullable=False),
    Column("allowed_values", ARRAY(Text), nullable=False, server_default="{}"),
    now("created_at"),
    now("updated_at", nullable=True),
    UniqueConstraint("project_id", "name_key"),
    CheckConstraint("value_kind in ('marker', 'free-text', 'enumerated')", name="value_kind"),
)
"""`scope` holds the types of objects that may carry the tag. `allowed_values` are those of an enumerated tag."""

tag_attachments = Table(
    "tag_attachments",
    metadata,
    Column("tag_id", UUID(as_uuid=True), ForeignKey("tags.id"), nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE"), nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", UUID(as_uuid=True), nullable=False),
    Column("field_id", Integer),
    Column("column_name", Text),
    Column("value", Text),
    Column("attached_by", Text, nullable=False),
    now("attached_at"),
    now("created_at"),
    Index(None, "object_id", "tag_id", unique=True, postgresql_where=text("field_id is null")),
    Index(None, "object_id", "tag_id", "field_id", unique=True, postgresql_where=text("field_id is not null")),
    Index(None, "tag_id", "object_id"),
)
"""`object_id` is the id of a warehouse, namespace, table, view or generic table. For a column it is the id of the table
(`object_type` is `column`), with the field id, and the name that the column had then. `attached_at` is the time of the
last change. It precedes `created_at` if the tag was carried from another object.
"""
