# SPDX-License-Identifier: Apache-2.0
"""Counts of restricted tables equal those of the policies of each table: random bindings, tags and names."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.actor import Actor
from gateway.access.nouns.refs import ObjectKey
from gateway.access.operations.answer_lists import RestrictedTables
from gateway.db.answers.restricted_contents import policies_within, restricted_tables
from gateway.db.engine.database import Database
from gateway.db.policies.policy_inputs import inputs_within
from gateway.features.answers import limits
from gateway.iceberg.identifiers import NamePattern
from tests.support.rows.parts import Parts, Rows, add_table
from tests.support.rows.policy_rows import MASK

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SEEDS = 12
KINDS = ("warehouse", "namespace", "table", "tag", "column tag", "name")


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database_url, pool_size=2, acquire_timeout=10)
    yield database
    await database.close()


class BoundWorld:
    """Rows with more tables, and policies that are bound to random objects, tags and names."""

    def __init__(self, seed: int) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        self.rows = Rows()
        first, second = self.rows.warehouses
        self.places = {
            self.rows.outer: [self.rows.outer, first],
            self.rows.inner: [self.rows.inner, self.rows.outer, first],
            self.rows.other: [self.rows.other, second],
        }
        self.tables = {self.rows.table: self.rows.inner}
        self.policies: list[UUID] = []

    async def insert(self, connection: AsyncConnection) -> None:
        """Replace all rows of the database."""
        await connection.execute(text("truncate data_policies, data_policy_names, tags cascade"))
        await self.rows.insert(connection)
        for _ in range(5):
            id, space = uuid4(), self.chance.choice(list(self.places))
            self.tables[id] = space
            await add_table(connection, id, self.places[space][-1], space)
        for number in range(3):
            await self._policy(connection, f"p{number}", KINDS[(self.seed * 3 + number) % len(KINDS)])

    async def _policy(self, connection: AsyncConnection, name: str, kind: str) -> None:
        id, project = uuid4(), self.rows.project
        self.policies.append(id)
        await self._add(
            connection,
            "insert into data_policies (id, project_id, name, name_key, definition) "
            "values (:id, :project, :name, :name, cast(:definition as jsonb))",
            id=id,
            project=project,
            name=name,
            definition=json.dumps(MASK),
        )
        warehouse, on = await self._object(connection, kind)
        await self._add(
            connection,
            "insert into data_policy_bindings (policy_id, object_type, object_id, warehouse_id, bound_by) "
            "values (:id, :type, :on, :warehouse, 'test')",
            id=id,
            type=kind.removeprefix("column "),
            on=on,
            warehouse=warehouse,
        )

    async def _object(self, connection: AsyncConnection, kind: str) -> tuple[UUID | None, UUID]:
        """Return (the warehouse, a random object to bind to); the warehouse is None for a tag."""
        table = self.chance.choice(list(self.tables))
        space = self.chance.choice(list(self.places))
        warehouse = self.places[space][-1]
        match kind:
            case "warehouse":
                return warehouse, warehouse
            case "namespace":
                return warehouse, space
            case "table":
                return self.places[self.tables[table]][-1], table
            case "name":
                levels = tuple(str(each) for each in reversed(self.places[space][:-1]))
                pattern = NamePattern(levels, self.chance.choice(["*", f"{str(table)[:2]}*"]))
                await self._add(
                    connection,
                    "insert into data_policy_names (id, warehouse_id, levels, pattern) "
                    "values (:id, :warehouse, :levels, :pattern)",
                    id=(id := uuid4()),
                    warehouse=warehouse,
                    levels=[*pattern.namespace, pattern.name],
                    pattern=pattern.like,
                )
                return warehouse, id
        of_column = kind == "column tag"
        tagged = table if of_column else self.chance.choice([space, warehouse, table])
        await self._add(
            connection,
            "insert into tags (id, project_id, name, name_key, scope, value_kind) "
            "values (:id, :project, :name, :name, '{}', 'marker')",
            id=(tag := uuid4()),
            project=self.rows.project,
            name=str(tag),
        )
        await self._add(
            connection,
            "insert into tag_attachments (tag_id, warehouse_id, object_type, object_id, field_id, attached_by) "
            "values (:tag, :warehouse, :type, :on, :field, 'test')",
            tag=tag,
            warehouse=self.places[self.tables[table]][-1] if tagged == table else warehouse,
            type="column" if of_column else "table" if tagged == table else "namespace",
            on=tagged,
            field=1 if of_column else None,
        )
        return None, tag

    async def _add(self, connection: AsyncConnection, statement: str, **values: object) -> None:
        await connection.execute(text(statement), values)


async def test_counts_are_those_of_the_policies_of_each_table(database: Database) -> None:
    counted = 0
    for seed in range(SEEDS):
        world = BoundWorld(seed)
        async with database.transaction() as connection:
            await world.insert(connection)
            places = {id: world.places[space] for id, space in world.tables.items()}
            inputs = await inputs_within(connection, places)
            bound = {id: {each.policy.id for each in known.bound} for id, known in inputs.items() if known is not None}
            containers = [
                world.rows.objects[name]
                for name in ("server", "project", "warehouse", "second", "outer", "inner", "other")
            ]
            found = await policies_within(connection, containers, limit=100)
            some = {str(each) for each in world.chance.sample(world.policies, 2)}
            assert set().union(*bound.values()) <= found.keys()
            counts = await restricted_tables(connection, containers, some, most=100)
            for key in containers:
                inside = [id for id, above in places.items() if _is_in(key, above)]
                expected = sum(not some.isdisjoint(bound[id]) for id in inside)
                assert counts[key] == expected, (seed, key)
                counted += expected
            few = await restricted_tables(connection, containers, some, most=1)
            assert few == {key: min(1, count) for key, count in counts.items()}
    assert counted > SEEDS


async def test_more_policies_than_are_asked_about_leave_no_object_out(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = BoundWorld(0)
    async with database.transaction() as connection:
        await world.insert(connection)
    monkeypatch.setattr(limits, "_POLICIES", 0)
    nobody: Any = None  # no policy is asked about
    project = world.rows.objects["project"]
    found = await limits.restricted_contents(nobody, nobody, database, Actor.user("oidc~alice"), [project])
    assert found == {project: RestrictedTables(count=0, at_least=True)}


def _is_in(container: ObjectKey, above: list[UUID]) -> bool:
    return container.type in ("server", "project") or container.id in map(str, above)
