# SPDX-License-Identifier: Apache-2.0
"""People and applications."""

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
"""`email` is shown. `verified_email` is the address that a provider verified or a directory (SCIM) gave; only it is
searched. `search_key` leaves out words of the name that look like an address, which users give themselves. A search for
an address compares with `address_key` alone (`first_schema.sql`).
"""
