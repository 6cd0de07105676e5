# SPDX-License-Identifier: Apache-2.0
"""Map each object type to the database table with its rows.

The cards (declarations) of object types do not contain it, because they do not know the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Table

from gateway.access.nouns.card import ResolvedInProject
from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.refs import ObjectType
from gateway.db.schema.whole import whole_schema

_IN_OTHERS: Final = {
    ObjectType.SERVER: "server",
    ObjectType.COLUMN: "tables",
    ObjectType.VIEW: "tables",
    ObjectType.GENERIC_TABLE: "tables",
}
"""Object types with a table that has not their plural as its name."""

TABLES: Final[Mapping[ObjectType, Table]] = {
    type: whole_schema().tables[_IN_OTHERS.get(type, type.plural)] for type in ObjectType
}
"""Columns are in the rows of their tables."""

IN_PROJECTS: Final[Mapping[ObjectType, Table]] = {
    type: TABLES[type] for type, card in CARDS.items() if issubclass(card.row, ResolvedInProject)
}
"""Object types that are in a project directly, and in no warehouse. Their tables have a `project_id`."""
