# SPDX-License-Identifier: Apache-2.0
"""The metadata of the schema, and columns that several tables have."""

from __future__ import annotations

from sqlalchemy import Column, Computed, DateTime, MetaData, Text, func

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "pk": "%(table_name)s_pkey",
    }
)


def now(name: str, *, nullable: bool = False) -> Column[object]:
    """Return a column for a time. The database's clock sets it at insertion. With `nullable` it is null at first."""
    return Column(
        name, DateTime(timezone=True), nullable=nullable, server_default=None if nullable else func.clock_timestamp()
    )


def search_key(of: str, *, name: str = "search_key") -> Column[object]:
    """Return the column with which `search.py` compares a text.

    PostgreSQL computes it from the column `of` (`search.sql`).
    """
    return Column(name, Text, Computed(of, persisted=True))
