# SPDX-License-Identifier: Apache-2.0
"""A restricted table, and a service that reads and copies it for carol in a real Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakegate.spark.catalog_client import CatalogClient
from lakegate.spark.config import CopyConfig, Engine, OnBehalfOf, RestCatalog
from lakegate.spark.governed import GovernedTables
from lakegate.spark.jobs.governed_copy import CopyReport, GovernedCopy
from lakegate.spark.session import as_principal
from tests.support.stack.columns import give, wide
from tests.support.stack.world import Person, Table, World


def catalog_of(world: World, person: Person) -> RestCatalog:
    return RestCatalog(uri=world.ready.catalog_uri, warehouse=world.ready.warehouse or "", token=person.token)


@dataclass
class Site:
    """A table with data, of which carol may read the column `name`, and a service that reads for carol."""

    world: World
    root: SparkSession
    namespace: str
    table: Table

    def admin(self, statement: str) -> None:
        """Run a statement as the administrator; `{t}` is the table."""
        session = as_principal(self.root, catalog_of(self.world, self.world.admin))
        session.sql(statement.format(t=f"lake.{self.namespace}.{self.table.name}"))

    @property
    def source(self) -> str:
        return f"{self.namespace}.{self.table.name}"

    def tables(self, user: OnBehalfOf | None = None, **more: Any) -> GovernedTables:
        user = user or OnBehalfOf(token=self.world.carol.token)
        return GovernedTables(self.root, catalog_of(self.world, self.world.etl), user, **more)

    def rows(self) -> list[tuple[Any, ...]]:
        frame = self.tables(trusted_code=True).table(self.source)
        return [tuple(row) for row in frame.orderBy("name").collect()]

    def copy(self, target: str, **more: Any) -> CopyReport:
        config = CopyConfig(
            catalog=catalog_of(self.world, self.world.etl),
            engine=Engine(jars=[], work_dir="/nowhere"),
            source=self.source,
            target=f"{self.namespace}.{target}",
            on_behalf_of=OnBehalfOf(token=self.world.carol.token),
            **more,
        )
        tables = GovernedTables(self.root, config.catalog, config.on_behalf_of, trusted_code=True)
        return GovernedCopy(config, tables, CatalogClient(config.catalog)).execute()

    def copied(self, target: str, by: Person | None = None) -> list[tuple[Any, ...]]:
        session = as_principal(self.root, catalog_of(self.world, by or self.world.admin))
        found = session.table(f"lake.{self.namespace}.{target}").orderBy("name")
        return [tuple(row) for row in found.collect()]

    def snapshots(self, target: str) -> list[dict[str, Any]]:
        path = f"{self.world.root}/namespaces/{self.namespace}/tables/{target}"
        snapshots: list[dict[str, Any]] = self.world.admin.get(path).json()["metadata"]["snapshots"]
        return snapshots


@pytest.fixture
def site(world: World, ns: str, root: SparkSession) -> Iterator[Site]:
    people = (world.carol, world.etl, world.steward)
    for person in people:
        world.strip(person)
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    for privilege in ("create", "describe"):
        world.grant(privilege, world.etl, "namespace", world.namespace_id(ns))
    table = wide(world, ns)
    assert give(world, table, "name", world.carol).status_code == 204
    site = Site(world, root, ns, table)
    site.admin("INSERT INTO {t} VALUES (7, 'ann', '4111-1', struct('Elm St')), (8, 'bob', '4222-2', NULL)")
    yield site
    for person in people:
        world.strip(person)


MASKED = [(0, "ann", "XXXXXXXX", None), (0, "bob", "XXXXXXXX", None)]
