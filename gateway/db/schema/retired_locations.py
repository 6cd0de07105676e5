# SPDX-License-Identifier: Apache-2.0
"""Former locations of tables and views."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, DateTime, Index, Table, Text, func
from sqlalchemy.dialects.postgresql import ARRAY, UUID

from gateway.db.schema.base import metadata, now

retired_locations = Table(
    "retired_locations",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True, server_default=func.gen_random_uuid()),
    Column("table_id", UUID(as_uuid=True), nullable=False, index=True),
    Column("warehouse_id", UUID(as_uuid=True), nullable=False),
    Column("location", Text, nullable=False),
    Column("location_key", Text, nullable=False, index=True),
    Column("retired_by", Text),
    now("retired_at"),
    Column("keys_until", DateTime(timezone=True), nullable=False),
    Column("files_remain", Boolean, nullable=False, server_default="true"),
    Column("owners", ARRAY(Text), nullable=False, server_default="{}"),
    Column("metadata_location", Text),
)
"""Former locations of tables, views and staged tables that were deleted or moved.

A trigger on `tables` writes a row in the transaction that gives up the location (`first_schema.sql`). `keys_until` is
the expiry of the last credential for it. `retired_by` is the principal that gave it up; for a staged table, the one
that staged it and had credentials. `owners` are the principals (`user:<id>`, `role:<id>`) with ownership without an
expiry at that time: they may register the files. `metadata_location` is the last metadata file. `retired_locations.py`
has the statements.
"""

#: In the order of collation C, which a comparison of schemas does not see (`0036_location_ranges.py`).
Index("retired_locations_location_range_idx", retired_locations.c.location_key)
