# SPDX-License-Identifier: Apache-2.0
"""The tables of work that a change leaves: approval tickets, events, tuples to deliver, idempotency keys, model
switches.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from gateway.db.schema.base import metadata, now

change_tickets = Table(
    "change_tickets",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("digest", Text, nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE"), nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", UUID(as_uuid=True), nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("reasons", ARRAY(Text), nullable=False),
    Column("change", JSONB, nullable=False),
    Column("status", Text, nullable=False, server_default="pending"),
    now("created_at"),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("decided_by", Text),
    Column("decided_at", DateTime(timezone=True)),
    Column("comment", Text),
    Column("used_at", DateTime(timezone=True)),
    CheckConstraint("status in ('pending', 'approved', 'rejected', 'used', 'lapsed')", name="status"),
    Index(None, "digest", unique=True, postgresql_where=text("status in ('pending', 'approved', 'rejected')")),
    Index(None, "warehouse_id", "id"),
    Index(None, "expires_at"),
)
"""A ticket is about the object that the change concerns. A creation concerns the container of the new object.

`digest` identifies the change (`gateway.verification.change_digest`). At most one ticket with a digest is open:
pending, approved or rejected. `used` tickets were consumed by the change. `lapsed` ones expired, or the verifiers gave
other reasons.
"""


events = Table(
    "events",
    metadata,
    Column("sequence", BigInteger, Identity(always=True), primary_key=True),
    Column("id", UUID(as_uuid=True), nullable=False, unique=True),
    Column("at", DateTime(timezone=True), nullable=False, index=True),
    Column("type", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("attributes", JSONB, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""Events of committed changes, in the order of delivery. `key` is the id of the changed object."""

event_deliveries = Table(
    "event_deliveries",
    metadata,
    Column("sink", Text, primary_key=True),
    Column("sequence", BigInteger, ForeignKey("events.sequence", ondelete="CASCADE"), primary_key=True, index=True),
)
"""The sinks that still need an event. The delivery deletes the row, so the wide rows of events are never rewritten."""

event_dead_letters = Table(
    "event_dead_letters",
    metadata,
    Column("sink", Text, primary_key=True),
    Column("sequence", BigInteger, ForeignKey("events.sequence", ondelete="CASCADE"), primary_key=True, index=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("reason", Text, nullable=False),
)
"""Events that a sink refused for good, with its reason."""


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
    now("created_at"),
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
    Index("outbox_takes_away_idx", "subject_id", postgresql_where=text("takes_away")),
    Index(None, "object_id", "subject_id", "relation"),
)
"""Tuple keys whose state in OpenFGA may differ from the desired state. A row is deleted when its key is delivered.

Rows of one transaction are delivered in the order of `step`. `sent_at` is set while a write of the key may be in
flight. It stays if the outcome is unknown: for some time OpenFGA may still carry out the write.
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
"""One row: the process that reads OpenFGA's change feed, and its position (`drift.py`).

`seen_until` is a time of OpenFGA's clock, the others are of the database's clock.
"""


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
    now("created_at"),
    Column("expires_at", DateTime(timezone=True), nullable=False, index=True),
)
"""Requests with an idempotency key. A request runs while `status` is null; else its transaction is `written_in`."""


relationship_models = Table(
    "relationship_models",
    metadata,
    Column("model_id", Text, primary_key=True),
    Column("store_id", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    now("recorded_at"),
    Column("recorded_by", Text, nullable=False),
)
"""The models in OpenFGA's store that may serve this gateway."""

model_switches = Table(
    "model_switches",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("model_id", Text, ForeignKey("relationship_models.model_id"), nullable=False),
    Column("previous_id", Text, ForeignKey("relationship_models.model_id")),
    now("switched_at"),
    Column("switched_by", Text, nullable=False),
)
"""The history of the model that serves. The last row names the current one."""

model_steps = Table(
    "model_steps",
    metadata,
    Column("model_id", Text, ForeignKey("relationship_models.model_id"), primary_key=True),
    Column("step", Text, primary_key=True),
    Column("cursor", Text),
    Column("done_at", DateTime(timezone=True)),
)
"""Progress of writing the tuples that a model needs before it serves."""
