# SPDX-License-Identifier: Apache-2.0
"""Relationship models: the recorded ones, the switches between them, and the progress of their tuples."""

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
