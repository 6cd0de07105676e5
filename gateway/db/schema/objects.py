# SPDX-License-Identifier: Apache-2.0
"""The table with the rows of each object type. Cards know no database, so it is not on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Table

from gateway.access.nouns.card import ResolvedInProject
from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.refs import ObjectType
from gateway.db.schema.policies import data_policies, tags
from gateway.db.schema.principals import roles, users
from gateway.db.schema.tables import namespaces, tables
from gateway.db.schema.warehouses import projects, server, warehouses

TABLES: Final[Mapping[ObjectType, Table]] = {
    ObjectType.SERVER: server,
    ObjectType.PROJECT: projects,
    ObjectType.WAREHOUSE: warehouses,
    ObjectType.NAMESPACE: namespaces,
    ObjectType.TABLE: tables,
    ObjectType.COLUMN: tables,
    ObjectType.VIEW: tables,
    ObjectType.GENERIC_TABLE: tables,
    ObjectType.USER: users,
    ObjectType.ROLE: roles,
    ObjectType.DATA_POLICY: data_policies,
    ObjectType.TAG: tags,
}
"""Columns are in the rows of their tables."""

IN_PROJECTS: Final[Mapping[ObjectType, Table]] = {
    type: TABLES[type] for type, card in CARDS.items() if issubclass(card.row, ResolvedInProject)
}
"""Object types that are in a project directly, and in no warehouse. Their tables have a `project_id`."""
