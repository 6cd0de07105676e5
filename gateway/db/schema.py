# SPDX-License-Identifier: Apache-2.0
"""The tables of the gateway's database.

Names are kept as written, with a `*_key` column beside them: the NFC-normalised, case-folded form that is unique and
looked up (decision 3 of the design; the embedded PostgreSQL has no ICU). Times are `timestamptz` from the database's
clock.
"""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    and_,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "pk": "%(table_name)s_pkey",
    }
)


def _now(name: str, *, nullable: bool = False) -> Column[object]:
    return Column(
        name, DateTime(timezone=True), nullable=nullable, server_default=None if nullable else func.clock_timestamp()
    )


def _search_key(of: str) -> Column[object]:
    """What `search.py` compares a text with: made by PostgreSQL itself, whatever statement writes the name (migration
    0013).
    """
    return Column("search_key", Text, Computed(of, persisted=True))


server = Table(
    "server",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("singleton", Boolean, nullable=False, server_default="true", unique=True),
    Column("bootstrapped_at", DateTime(timezone=True)),
    Column("revision", UUID(as_uuid=True), nullable=False),
    Column("time_boxes", UUID(as_uuid=True), nullable=False, server_default=func.gen_random_uuid()),
    Column("home", Text),
    CheckConstraint("singleton", name="one_row"),
)
"""One row. `revision` moves whenever something outside a warehouse may take an allow away, `time_boxes` in the
transaction that makes a grant with an expiry: an answer that was asked for before knows nothing of its end.
"""

users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("email", Text),
    Column("user_type", Text, nullable=False),
    _now("created_at"),
    _now("updated_at", nullable=True),
    Column("last_updated_with", Text, nullable=False),
    _search_key("searchable(lower((name || ' '::text) || coalesce(email, ''::text) || ' '::text || id))"),
)

projects = Table(
    "projects",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False, unique=True),
    _now("created_at"),
)

secrets = Table(
    "secrets",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    _now("created_at"),
    Column("replaced_at", DateTime(timezone=True)),
    Index("secrets_replaced_idx", "replaced_at", postgresql_where=text("replaced_at is not null")),
)
"""Storage credentials, encrypted (`db/secrets.py`). A new credential is a new row; one that no warehouse has any more
is kept, from `replaced_at` on, for the requests that are under way.
"""

warehouses = Table(
    "warehouses",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("project_id", Text, ForeignKey("projects.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("active", Boolean, nullable=False, server_default="true"),
    Column("protected", Boolean, nullable=False, server_default="false"),
    Column("managed_access", Boolean, nullable=False, server_default="false"),
    Column("profile", LargeBinary, nullable=False),
    Column("profile_version", Integer, nullable=False, server_default="1"),
    Column("base_key", Text, nullable=False),
    Column("secret_id", UUID(as_uuid=True), ForeignKey("secrets.id")),
    Column("delete_profile", JSONB, nullable=False),
    Column("managed_by", Text, nullable=False),
    Column("allowed_format_versions", ARRAY(Integer), nullable=False),
    Column("default_format_version", Integer),
    Column("revision", UUID(as_uuid=True), nullable=False),
    Column("keys_until", DateTime(timezone=True)),
    _now("created_at"),
    _now("updated_at", nullable=True),
    UniqueConstraint("project_id", "name_key"),
)
"""`profile` is the storage profile as JSON; `base_key` the overlap key of its base location; `revision` as on the
server. `keys_until` is when the last key that an earlier profile gave has ended; triggers (migration 0016) keep it, and
no place in the warehouse is free before.
"""

namespaces = Table(
    "namespaces",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id"), nullable=False),
    Column("parent_id", UUID(as_uuid=True), ForeignKey("namespaces.id")),
    Column("ancestors", ARRAY(UUID(as_uuid=True)), nullable=False),
    Column("levels", ARRAY(Text), nullable=False),
    Column("path_key", Text, nullable=False),
    Column("properties", JSONB, nullable=False),
    Column("protected", Boolean, nullable=False, server_default="false"),
    Column("managed_access", Boolean, nullable=False, server_default="false"),
    _search_key("searchable(path_key)"),
    _now("created_at"),
    _now("updated_at", nullable=True),
    UniqueConstraint("warehouse_id", "path_key"),
    Index(None, "parent_id"),
)
"""`path_key` is the folded levels joined by U+001F; `ancestors` the ids from the top level down to the parent."""

tables = Table(
    "tables",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id"), nullable=False),
    Column("namespace_id", UUID(as_uuid=True), ForeignKey("namespaces.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("table_uuid", UUID(as_uuid=True), nullable=False),
    Column("location", Text, nullable=False),
    Column("location_key", Text, nullable=False, unique=True),
    Column("metadata_location", Text),
    Column("metadata", LargeBinary),
    Column("format", Text),
    Column("version", BigInteger, nullable=False, server_default="1"),
    Column("staged_by", Text),
    Column("deleted_at", DateTime(timezone=True)),
    Column("deleted_by", Text),
    Column("protected", Boolean, nullable=False, server_default="false"),
    _search_key("searchable(name_key)"),
    _now("created_at"),
    _now("updated_at", nullable=True),
    CheckConstraint("kind in ('table', 'view', 'generic_table')", name="kind"),
    CheckConstraint("(kind = 'generic_table') = (format is not null)", name="format_of_generic_tables"),
    CheckConstraint("(staged_by is null) = (metadata is not null)", name="staged_without_metadata"),
    CheckConstraint("staged_by is null or deleted_at is null", name="staged_or_deleted"),
)
"""Tables, views and generic tables share one name space. A generic table has no metadata file: `metadata` is what its
creator told of it, and `format` says what it is. A staged table has no metadata yet, no claim on its name, and is seen
by nobody. One that was dropped in a warehouse that keeps what is dropped (`deleted_at`) has no claim on its name
either, and its place and its grants until its time is over. Triggers (migration 0011) list its place as retired from
the drop on, and move its warehouse's revision in the transaction of the drop.
"""

#: What there is for everybody who may see it: neither staged nor dropped.
LIVE = and_(tables.c.staged_by.is_(None), tables.c.deleted_at.is_(None))

Index(
    "tables_namespace_id_name_key_key",
    tables.c.namespace_id,
    tables.c.name_key,
    unique=True,
    postgresql_where=LIVE,
)
Index(
    "tables_deleted_idx",
    tables.c.warehouse_id,
    tables.c.name_key,
    tables.c.id,
    postgresql_where=tables.c.deleted_at.is_not(None),
)
Index("tables_staged_idx", tables.c.namespace_id, tables.c.name_key, postgresql_where=tables.c.staged_by.is_not(None))

Index(
    "tables_search_idx",
    tables.c.namespace_id,
    postgresql_include=["id", "search_key"],
    postgresql_where=LIVE,
)

roles = Table(
    "roles",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("project_id", Text, ForeignKey("projects.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("description", Text),
    Column("provider_id", Text, nullable=False),
    Column("source_id", Text, nullable=False),
    _search_key("searchable(name_key)"),
    _now("created_at"),
    _now("updated_at", nullable=True),
    UniqueConstraint("project_id", "name_key"),
    UniqueConstraint("project_id", "provider_id", "source_id"),
)

grants = Table(
    "grants",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("privilege", Text, nullable=False),
    Column("principal_type", Text, nullable=False),
    Column("principal_id", Text, nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("granted_by", Text, nullable=False),
    _now("granted_at"),
    Column("reason", Text),
    Column("expires_at", DateTime(timezone=True)),
    UniqueConstraint(
        "privilege", "principal_type", "principal_id", "object_type", "object_id", "granted_by", name="grants_key"
    ),
    Index(None, "object_type", "object_id", "id"),
    Index(None, "principal_type", "principal_id", "id"),
)
"""What was granted, to whom, by whom. OpenFGA's tuples are made from these rows (section 5 of the design): one tuple of
all rows that agree but for `granted_by`.
"""

Index("grants_ending_idx", grants.c.expires_at, postgresql_where=grants.c.expires_at.is_not(None))

Index(
    "grants_roles_of_principal_idx",
    grants.c.principal_type,
    grants.c.principal_id,
    postgresql_where=grants.c.object_type == "role",
)
Index(
    "grants_ends_of_principal_idx",
    grants.c.principal_type,
    grants.c.principal_id,
    grants.c.expires_at,
    postgresql_where=grants.c.expires_at.is_not(None),
)

grant_history = Table(
    "grant_history",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("grant_id", UUID(as_uuid=True), nullable=False),
    Column("privilege", Text, nullable=False),
    Column("principal_type", Text, nullable=False),
    Column("principal_id", Text, nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("granted_by", Text, nullable=False),
    Column("granted_at", DateTime(timezone=True), nullable=False),
    Column("reason", Text),
    Column("expires_at", DateTime(timezone=True)),
    _now("ended_at"),
    Column("ended_by", Text),
    Column("ended_because", Text, nullable=False),
    CheckConstraint(
        "ended_because in ('revoked', 'expired', 'object deleted', 'principal deleted', 'replaced')",
        name="ended_because",
    ),
    Index(None, "object_type", "object_id", "id"),
    Index(None, "principal_type", "principal_id", "id"),
)
"""Grants that ended: a row of `grants` as it was, and when, by whom and why it went. Rows are never changed."""

outbox = Table(
    "outbox",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("subject_type", Text, nullable=False),
    Column("subject_id", Text, nullable=False),
    Column("relation", Text, nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("warehouse_id", UUID(as_uuid=True)),
    Column("takes_away", Boolean, nullable=False),
    _now("created_at"),
    Column("not_before", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column(
        "written_in",
        BigInteger,
        nullable=False,
        server_default=text("(pg_current_xact_id()::text::bigint)"),
        index=True,
    ),
    Column("step", SmallInteger, nullable=False, server_default="0"),
    Column("sent_at", DateTime(timezone=True)),
    Index(None, "not_before"),
    Index(None, "object_id", "subject_id", "relation"),
)
"""Tuple keys whose state in OpenFGA may differ from what the rows want. A row goes when its key was made so.

Rows of one transaction are delivered in the order of `step`. `sent_at` is set while a write of the key may be under way
and stays when its end is not known: until some time after it, OpenFGA may still carry it out.
"""

audit_log = Table(
    "audit_log",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("request_id", Text, nullable=False),
    Column("actor_id", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("record", LargeBinary, nullable=False),
    Index(None, "at"),
)
"""Audit records; `record` is the whole of it as JSON."""

idempotency = Table(
    "idempotency",
    metadata,
    Column("scope", LargeBinary, primary_key=True),
    Column("body_digest", LargeBinary, nullable=False),
    Column("attempt", UUID(as_uuid=True), nullable=False),
    Column("actor_id", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("status", Integer),
    Column("detail", JSONB),
    Column("written_in", BigInteger),
    _now("created_at"),
    Column("expires_at", DateTime(timezone=True), nullable=False, index=True),
)
"""Requests with an idempotency key: running while `status` is null, else done in the transaction `written_in`."""

#: Written into statements as it is: with parameters in its place, a plan for all values cannot use the partial indexes.
ACTIVE_TASKS = text("status in ('scheduled', 'running', 'stopping')")
_ACTIVE_OF_PROJECT = text("status in ('scheduled', 'running', 'stopping') and entity_id is null")
_ONE_OWNER = "(warehouse_id is null) <> (project_id is null)"

tasks = Table(
    "tasks",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("queue", Text, nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE")),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE")),
    Column("entity_type", Text),
    Column("entity_id", UUID(as_uuid=True)),
    Column("entity_name", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column("parent_task_id", UUID(as_uuid=True)),
    Column("status", Text, nullable=False, server_default="scheduled"),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("interruptions", Integer, nullable=False, server_default="0"),
    Column("scheduled_for", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("picked_up_at", DateTime(timezone=True)),
    Column("heartbeat_at", DateTime(timezone=True)),
    Column("progress", Float, nullable=False, server_default="0"),
    Column("execution_details", JSONB),
    Column("payload", JSONB, nullable=False),
    Column("last_error", Text),
    _now("created_at"),
    _now("updated_at", nullable=True),
    Column("finished_at", DateTime(timezone=True), index=True),
    CheckConstraint(
        "status in ('scheduled', 'running', 'stopping', 'succeeded', 'failed', 'cancelled')", name="status"
    ),
    CheckConstraint(_ONE_OWNER, name="belongs"),
    Index("tasks_active_key", "queue", "entity_type", "entity_id", unique=True, postgresql_where=ACTIVE_TASKS),
    Index("tasks_active_project_key", "queue", "project_id", unique=True, postgresql_where=_ACTIVE_OF_PROJECT),
    Index("tasks_due_idx", "scheduled_for", postgresql_where=ACTIVE_TASKS),
    Index("tasks_warehouse_id_idx", "warehouse_id", "created_at", "id"),
    Index("tasks_project_id_idx", "project_id", "created_at", "id"),
    Index("tasks_entity_id_idx", "entity_id"),
)
"""Work for later, taken by any process. `attempt` counts how often it was begun, `interruptions` how often that ended
by nothing the task did, which does not count as having tried. A task is about one thing of a warehouse, or about a
project; `entity_name` is the thing's path when the task was made, because it may be gone. `last_error` is what is told
of the last attempt. Ended rows stay until `task_log_cleanup` removes them.
"""

task_log = Table(
    "task_log",
    metadata,
    Column("task_id", UUID(as_uuid=True), ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("status", Text, nullable=False),
    Column("scheduled_for", DateTime(timezone=True), nullable=False),
    Column("started_at", DateTime(timezone=True)),
    _now("ended_at"),
    Column("message", Text),
    Column("progress", Float, nullable=False, server_default="0"),
    Column("execution_details", JSONB),
    CheckConstraint("status in ('succeeded', 'failed', 'cancelled')", name="status"),
)
"""Attempts that ended, one row each, written in the transaction that ends the attempt."""

task_queue_configs = Table(
    "task_queue_configs",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("queue", Text, nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE")),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE")),
    Column("config", JSONB, nullable=False, server_default=text("'{}'")),
    Column("heartbeat_seconds", BigInteger),
    _now("updated_at"),
    CheckConstraint(_ONE_OWNER, name="belongs"),
    UniqueConstraint("warehouse_id", "queue"),
    UniqueConstraint("project_id", "queue"),
)
"""What was configured for a queue in one warehouse or project; without a row the defaults hold. A task whose worker is
silent for longer than `heartbeat_seconds` is taken over.
"""

table_reports = Table(
    "table_reports",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("warehouse_id", UUID(as_uuid=True), nullable=False),
    Column("table_id", UUID(as_uuid=True), nullable=False),
    Column("kind", Text, nullable=False),
    Column("snapshot_id", BigInteger, nullable=False),
    Column("reported_by", Text, nullable=False),
    _now("at"),
    Column("report", JSONB, nullable=False),
    CheckConstraint("kind in ('scan-report', 'commit-report')", name="kind"),
    Index(None, "table_id", "at"),
    Index(None, "at"),
)
"""What engines report of scans and commits. A report outlives its table."""

pending_files = Table(
    "pending_files",
    metadata,
    Column("location", Text, primary_key=True),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id"), nullable=False),
    Column("written_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp(), index=True),
)
"""Metadata files that are being written and that no pointer names yet. A trigger on `tables` removes a row in the
transaction that makes a pointer name its file (migration 0002).
"""

retired_locations = Table(
    "retired_locations",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True, server_default=func.gen_random_uuid()),
    Column("table_id", UUID(as_uuid=True), nullable=False, index=True),
    Column("warehouse_id", UUID(as_uuid=True), nullable=False),
    Column("location", Text, nullable=False),
    Column("location_key", Text, nullable=False, index=True),
    Column("retired_by", Text),
    _now("retired_at"),
    Column("keys_until", DateTime(timezone=True), nullable=False),
    Column("files_remain", Boolean, nullable=False, server_default="true"),
)
"""Where a table, view or staged table lay until it went or moved. A trigger on `tables` writes a row in the transaction
that takes the place away (migration 0003): `keys_until` is when the last credential for it has ended, `retired_by` who
gave it up (of a staged table, who staged it: the one who had keys). `retired.py` has the statements.
"""

drift_watch = Table(
    "drift_watch",
    metadata,
    Column("singleton", Boolean, primary_key=True, server_default="true"),
    Column("holder", UUID(as_uuid=True)),
    Column("held_until", DateTime(timezone=True)),
    Column("store_id", Text),
    Column("seen_until", DateTime(timezone=True)),
    Column("last_change", Text),
    Column("compare_all", Boolean, nullable=False, server_default="false"),
    CheckConstraint("singleton", name="one_row"),
)
"""One row: which process watches OpenFGA's change feed, and how far it has read (`drift.py`). `seen_until` is by
OpenFGA's clock, the other times by the database's.
"""

relationship_models = Table(
    "relationship_models",
    metadata,
    Column("model_id", Text, primary_key=True),
    Column("store_id", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    _now("recorded_at"),
    Column("recorded_by", Text, nullable=False),
)
"""The models of OpenFGA's store that this gateway may be served by."""

model_switches = Table(
    "model_switches",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("model_id", Text, ForeignKey("relationship_models.model_id"), nullable=False),
    Column("previous_id", Text, ForeignKey("relationship_models.model_id")),
    _now("switched_at"),
    Column("switched_by", Text, nullable=False),
)
"""When which model began to serve. The last row names the one that serves now."""

model_steps = Table(
    "model_steps",
    metadata,
    Column("model_id", Text, ForeignKey("relationship_models.model_id"), primary_key=True),
    Column("step", Text, primary_key=True),
    Column("cursor", Text),
    Column("done_at", DateTime(timezone=True)),
)
"""How far the tuples that a model needs have been written, before it serves."""

endpoint_statistics = Table(
    "endpoint_statistics",
    metadata,
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE")),
    Column("route", Text, nullable=False),
    Column("status", SmallInteger, nullable=False),
    Column("hour", DateTime(timezone=True), nullable=False, index=True),
    Column("count", BigInteger, nullable=False),
    _now("created_at"),
    _now("updated_at", nullable=True),
    UniqueConstraint(
        "project_id",
        "hour",
        "warehouse_id",
        "route",
        "status",
        name="endpoint_statistics_key",
        postgresql_nulls_not_distinct=True,
    ),
    Index(None, "warehouse_id", "hour"),
)
"""How often an endpoint was answered with a status within an hour; without a warehouse when it was about none."""

warehouse_statistics = Table(
    "warehouse_statistics",
    metadata,
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE"), primary_key=True),
    Column("hour", DateTime(timezone=True), primary_key=True),
    Column("tables", BigInteger, nullable=False),
    Column("views", BigInteger, nullable=False),
    _now("updated_at"),
)
"""How many tables and views a warehouse had at the end of each hour in which that changed, but for what is in
`warehouse_changes` still.
"""

warehouse_changes = Table(
    "warehouse_changes",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column(
        "warehouse_id",
        UUID(as_uuid=True),
        ForeignKey("warehouses.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("tables", BigInteger, nullable=False),
    Column("views", BigInteger, nullable=False),
    _now("at"),
)
"""So many tables and views more, or less. Triggers on `tables` write them in the transaction of the change (migration
0013); a background task adds them to `warehouse_statistics`.
"""
