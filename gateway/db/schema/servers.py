# SPDX-License-Identifier: Apache-2.0
"""The row of the server, and its revisions."""

from __future__ import annotations

from sqlalchemy import Boolean, CheckConstraint, Column, DateTime, Table, Text, func
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata

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
    CheckConstraint("singleton", name="one_row"),
)
"""One row. `revision` changes when an allow outside of warehouses may end.

`time_boxes` changes in the transaction of a grant with an expiry: a decision that began before does not know that
expiry. `bootstrap_for` is the only user who may bootstrap the server; null allows every user.
"""
