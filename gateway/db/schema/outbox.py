# SPDX-License-Identifier: Apache-2.0
"""Tuple keys that are to be delivered to OpenFGA."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now

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
