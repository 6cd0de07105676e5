# SPDX-License-Identifier: Apache-2.0
"""Relationship models: which there are, which serves, and what one still needs."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, ForeignKey, Identity, Table, Text

from gateway.db.schema.base import metadata, now

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
"""The models of OpenFGA's store that this gateway may be served by."""

model_switches = Table(
    "model_switches",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("model_id", Text, ForeignKey("relationship_models.model_id"), nullable=False),
    Column("previous_id", Text, ForeignKey("relationship_models.model_id")),
    now("switched_at"),
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
