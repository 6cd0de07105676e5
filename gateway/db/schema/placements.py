# SPDX-License-Identifier: Apache-2.0
"""The table of former placements of objects, from which answers about past moments are computed.

The schema `lakegate_past` has views of `grants`, `warehouses`, `namespaces`, `tables` and `scim_users` with the rows of
one moment (migration 0063). Statements that read these tables answer about that moment while `search_path` begins with
the schema (`gateway.db.answers.past`).
"""

from __future__ import annotations

from sqlalchemy import ARRAY, BigInteger, Boolean, Column, DateTime, Identity, Index, Table, Text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata

former_placements = Table(
    "former_placements",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("object_type", Text, nullable=False),
    Column("object_id", UUID(as_uuid=True), nullable=False),
    Column("container_id", Text),
    Column("warehouse_id", UUID(as_uuid=True)),
    Column("ancestors", ARRAY(UUID(as_uuid=True))),
    Column("flagged", Boolean, nullable=False),
    Column("valid_from", DateTime(timezone=True), nullable=False),
    Column("valid_until", DateTime(timezone=True), nullable=False),
    Index(None, "object_id", "valid_until"),
)
"""Placements that ended by a move, a change of a flag, or a deletion. Rows never change.

`container_id` is the project of a warehouse, the parent of a namespace (null at the top level), or the namespace of a
table. `flagged` is managed access. A row of the type `user` has the SCIM id as `object_id`, the user as `container_id`,
and `flagged` is true while the directory had deactivated the user.

The current placement is in the object's own row, so a creation writes nothing here. It holds since the last
`valid_until`, or since `created_at`. Triggers (`placements.sql`) write the rows.
"""
