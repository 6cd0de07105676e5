# SPDX-License-Identifier: Apache-2.0
"""The tables of encrypted storage credentials, of the keys of the gateway's own tokens, and of live credentials.

Live credentials are vended and not yet expired.
"""

from __future__ import annotations

from sqlalchemy import Column, DateTime, ForeignKey, Index, LargeBinary, Table, Text, text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now

secrets = Table(
    "secrets",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    # Null while the credential is in an external store, and between the reservation of the id and the first write.
    Column("sealed", LargeBinary),
    now("created_at"),
    Column("replaced_at", DateTime(timezone=True)),
    Column("store", Text, nullable=False, server_default="postgres"),
    Index("secrets_replaced_idx", "replaced_at", postgresql_where=text("replaced_at is not null")),
)
"""Storage credentials (`db/credentials/stored_secrets.py`). A new credential is a new row.

`store` is the name of the secret store that holds the content; `postgres` holds it encrypted in `sealed`. A credential
that no warehouse uses is kept, from `replaced_at` on, for requests in flight, and for a transaction that begins to use
it.
"""


live_credentials = Table(
    "live_credentials",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("principal", Text, nullable=False, index=True),
    Column("assumed_role", UUID(as_uuid=True)),
    Column("engine", Text),
    Column("view_owner", Text),
    Column("project_id", Text, nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), nullable=False),
    Column("kind", Text, nullable=False),
    Column("table_id", UUID(as_uuid=True), nullable=False),
    Column("prefix", Text, nullable=False),
    Column("level", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("session_name", Text, nullable=False),
    Column("policy_digest", Text, nullable=False),
    now("issued_at"),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("live_until", DateTime(timezone=True), nullable=False, index=True),
    Index(None, "table_id", "id"),
    Index(None, "warehouse_id", "id"),
)
"""One row for each credential that left the gateway. `IssuedCredential` describes the columns.

No column references another table: a credential outlives its table, warehouse and principal. `issued_at` and
`live_until` are times of the database's clock. After `live_until` the credential has expired by every clock; then
housekeeping deletes the row.
"""

Index("live_credentials_engine_idx", live_credentials.c.engine, postgresql_where=live_credentials.c.engine.is_not(None))
Index(
    "live_credentials_view_owner_idx",
    live_credentials.c.view_owner,
    postgresql_where=live_credentials.c.view_owner.is_not(None),
)


signing_keys = Table(
    "signing_keys",
    metadata,
    Column("kid", Text, primary_key=True),
    Column("public", LargeBinary, nullable=False),
    # The private key is stored with the other secrets: the same keys encrypt it, and key rotation includes it.
    Column("secret_id", UUID(as_uuid=True), ForeignKey("secrets.id"), nullable=False),
    now("created_at"),
    Column("signs_until", DateTime(timezone=True), nullable=False),
    Column("verifies_until", DateTime(timezone=True), nullable=False),
)
"""A key signs until `signs_until`, and verifies until `verifies_until`, when the last token that it signed has
expired.
"""
