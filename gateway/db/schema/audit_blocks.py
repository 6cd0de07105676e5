# SPDX-License-Identifier: Apache-2.0
"""The chain over audit records: its blocks, and the block of each sealed record."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, Integer, LargeBinary, Table
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata

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
"""Blocks of sealed audit records (`gateway.access.audit_chain.Block`)."""

audit_block_records = Table(
    "audit_block_records",
    metadata,
    Column("record_id", UUID(as_uuid=True), primary_key=True),
    Column("block", BigInteger, nullable=False, index=True),
)
"""The block of each sealed record. A table of its own, so that sealing rewrites no record and an insert of a record
costs nothing more.
"""
