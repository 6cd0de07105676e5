# SPDX-License-Identifier: Apache-2.0
"""Users and applications."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from gateway.db.schema.base import metadata, now, search_key

users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("email", Text),
    Column("user_type", Text, nullable=False),
    now("created_at"),
    now("updated_at", nullable=True),
    Column("last_updated_with", Text, nullable=False),
    Column("verified_email", Text),
    search_key(
        "searchable(lower(regexp_replace(normalize(name, NFKD), '[^ ]*@[^ ]*'::text, ' '::text, 'g'::text)"
        " || ' '::text || coalesce(verified_email, ''::text) || ' '::text || id))"
    ),
    search_key("searchable(lower(coalesce(verified_email, ''::text) || ' '::text || id))", name="address_key"),
)
"""`email` is for display. `verified_email` is the address that a provider verified or a directory (SCIM) gave.

Only the verified address is searched. `search_key` leaves out words of the name that look like an address, because
users set their names. A search for an address uses `address_key` only (`first_schema.sql`).
"""
