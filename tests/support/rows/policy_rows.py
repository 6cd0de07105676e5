# SPDX-License-Identifier: Apache-2.0
"""Rows of data policies."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

from sqlalchemy import text

from gateway.db.engine.database import Database
from tests.support.rows.parts import Rows

MASK = {"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "email"}]}


async def add(database: Database, statement: str, **values: object) -> None:
    """Execute one statement in a transaction of its own."""
    async with database.transaction() as connection:
        await connection.execute(text(statement), values)


async def add_policy(database: Database, rows: Rows, name: str, definition: object = MASK) -> UUID:
    """Insert a policy and return its id."""
    id = uuid4()
    await add(
        database,
        "insert into data_policies (id, project_id, name, name_key, definition) "
        "values (:id, :project, :name, :name, cast(:definition as jsonb))",
        id=id,
        project=rows.project,
        name=name,
        definition=json.dumps(definition),
    )
    return id
