# SPDX-License-Identifier: Apache-2.0
"""The tables of the server, of projects, and of warehouses.

The rows of the server and of warehouses have revisions: random values that change whenever a right may have ended.
"""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from gateway.db.schema.base import metadata, now

server = Table(
    "server",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("singleton", Boolean, nullable=False, server_default="true", unique=True),
    Column("bootstrapped_at", DateTime(timezone=True)),
    Column("bootstrap_for", Text),
    Column("revision", UUID(as_uuid=True), nullable=False),
    Column("time_boxes", UUID(as_uuid=True), nullable=False, server_default=func.gen_random_uuid()),
    Column("home", Text),
    now("history_since"),
    CheckConstraint("singleton", name="one_row"),
)
"""One row. `revision` changes when an allow outside of warehouses may end.

`time_boxes` changes in the transaction of a grant with an expiry: a decision that began before does not know that
expiry. `bootstrap_for` is the only user who may bootstrap the server; null allows every user. `history_since` is the
time from which former placements of objects are recorded (`placements.py`).
"""


projects = Table(
    "projects",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False, unique=True),
    now("created_at"),
)


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
    Column("key_seconds", Integer, nullable=False, server_default="0"),
    Column("scope_verdict", Text),
    Column("scope_version", Integer),
    Column("scope_verdict_at", DateTime(timezone=True)),
    Column("scope_tried_at", DateTime(timezone=True)),
    Column("scope_report", LargeBinary),
    now("created_at"),
    now("updated_at", nullable=True),
    Column("credential_kind", Text),
    Column("data_policy_revision", UUID(as_uuid=True)),
    Column("policy_loss", Text, nullable=False, server_default="refuse-restricted"),
    UniqueConstraint("project_id", "name_key"),
    CheckConstraint("policy_loss in ('refuse', 'refuse-restricted', 'announce')", name="policy_loss"),
)
"""`profile` is the storage profile as JSON, `base_key` the overlap key of its base location.

`revision` changes when an allow in the warehouse may end. `key_seconds` is the lifetime of credentials of the current
profile. `keys_until` is the expiry of the last credential of an earlier profile. Triggers (`locations.sql`) maintain
it; no location in the warehouse becomes free before it.

`scope_verdict` is the canary's verdict for profile version `scope_version`, and `scope_verdict_at` its time. The
verdict of another version is void. `scope_tried_at` is the start of the last run, and `scope_report` its result as
JSON. `credential_kind` is the `credential-type` of the credential;
null for one that was stored before the column existed, and without a credential.

`data_policy_revision` is null while no data policy can apply to a table of the warehouse. It changes with every change
to a policy, binding, tag or mapping table that can. `policy_loss` is the handling of a change after which a name has
fewer restrictions than before (`gateway.db.engine.policy_loss`).
"""
