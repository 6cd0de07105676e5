# SPDX-License-Identifier: Apache-2.0
"""The tables of the audit: records, the chain of digests over them, removed partitions, and positions of exports."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, Index, Integer, LargeBinary, Table, Text, text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata

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
    Index(None, "actor_id", "at"),
    Index(None, "outcome", "at", postgresql_where=text("outcome <> 'allowed'")),
    postgresql_partition_by="RANGE (id)",
)
"""Audit records. `record` is the whole record as JSON. The partitions are months, because ids begin with their time."""


audit_blocks = Table(
    "audit_blocks",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("first", UUID(as_uuid=True), nullable=False),
    Column("last", UUID(as_uuid=True), nullable=False),
    Column("count", Integer, nullable=False),
    Column("records_digest", LargeBinary, nullable=False),
    Column("previous", LargeBinary, nullable=False),
    Column("sealed_at", DateTime(timezone=True), nullable=False),
    Column("digest", LargeBinary, nullable=False),
)
"""Blocks of sealed audit records (`gateway.access.audit.audit_chain.Block`)."""

audit_block_records = Table(
    "audit_block_records",
    metadata,
    Column("record_id", UUID(as_uuid=True), primary_key=True),
    Column("block", BigInteger, nullable=False, index=True),
)
"""The block of each sealed record. A table of its own, so that sealing rewrites no record and an insert of a record
costs nothing more.
"""


audit_removals = Table(
    "audit_removals",
    metadata,
    Column("below", UUID(as_uuid=True), primary_key=True),
    Column("partition", Text, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("removed_at", DateTime(timezone=True), nullable=False),
)
"""One row for each removed partition. All of its records had an id smaller than `below`."""

audit_exports = Table(
    "audit_exports",
    metadata,
    Column("name", Text, primary_key=True),
    Column("block", BigInteger, nullable=False),
    Column("holder", UUID(as_uuid=True)),
    Column("held_until", DateTime(timezone=True)),
)
"""The last exported block of each continuous export. `holder` is the process that exports until `held_until`."""
