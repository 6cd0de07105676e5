# SPDX-License-Identifier: Apache-2.0
"""One data policy gives the same rows and values in Spark, in the Python reader and in governed copies.

`test_trino_one_policy.py` has the part for Trino. Clients that are not trusted get no row and no key.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from pyiceberg.exceptions import ForbiddenError, RESTError
from pyspark.sql import SparkSession

from lakegate.reader import LoadFailed, Reader
from lakegate.spark.catalog_client import CatalogClient
from lakegate.spark.config import CopyConfig, Engine, OnBehalfOf, RestCatalog
from lakegate.spark.errors import GovernedReadRefused, ReaderLostAccess
from lakegate.spark.governed import GovernedTables
from lakegate.spark.jobs.governed_copy import GovernedCopy
from lakegate.spark.session import as_principal
from tests.support.engines.lake import below, catalog_of
from tests.support.engines.policy_site import Site, cells, policy_site
from tests.support.engines.random_policies import (
    EVOLVING,
    FILTERS,
    FLAT,
    KEY,
    MASKS,
    ROUNDS,
    Shape,
    random_table,
    record,
)
from tests.support.stack.world import Person, World, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]
READERS = ("exempt", "subject", "mapped", "columns")


@dataclass(frozen=True)
class Engines:
    """The engines of a service that holds `delegate` and `enforcer`, each as a function of user, namespace, table."""

    world: World
    root: SparkSession
    copies: str

    def catalog(self, person: Person) -> RestCatalog:
        ready = self.world.ready
        return RestCatalog(uri=ready.catalog_uri, warehouse=ready.warehouse or "", token=person.token)

    def governed(self, person: Person) -> GovernedTables:
        user = OnBehalfOf(token=person.token)
        return GovernedTables(self.root, self.catalog(self.world.etl), user, trusted_code=True)

    def python(self, person: Person, namespace: str, table: str) -> pa.Table:
        reader = Reader(self.world.base, self.world.ready.warehouse or "", self.world.etl.token)
        return reader.as_user(person.token).table((namespace, table)).to_arrow()

    def spark(self, person: Person, namespace: str, table: str) -> pa.Table:
        tables = self.governed(person)
        try:
            return tables.table(f"{namespace}.{table}").toArrow()
        finally:
            tables.close()

    def copy(self, person: Person, namespace: str, table: str) -> pa.Table:
        """Write a governed copy and read it as an administrator, whom nothing restricts."""
        target = unique("copy")
        config = CopyConfig(
            catalog=self.catalog(self.world.etl),
            engine=Engine(jars=[], work_dir="/nowhere"),
            source=f"{namespace}.{table}",
            target=f"{self.copies}.{target}",
            on_behalf_of=OnBehalfOf(token=person.token),
        )
        GovernedCopy(config, self.governed(person), CatalogClient(config.catalog)).execute()
        ready = self.world.ready
        reader = Reader(self.world.base, ready.warehouse or "", self.world.admin.token)
        return reader.table((self.copies, target)).to_arrow()


Read = Callable[[Engines, Person, str, str], pa.Table]
ENGINES: dict[str, Read] = {"python": Engines.python, "spark": Engines.spark, "copy": Engines.copy}


@pytest.fixture(scope="module")
def engines(world: World, root: SparkSession) -> Iterator[Engines]:
    world.strip(world.etl)
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    copies = world.namespace(unique("copies"))
    for privilege in ("create", "describe"):
        world.grant(privilege, world.etl, "namespace", world.namespace_id(copies))
    yield Engines(world, root, copies)
    world.strip(world.etl)


@pytest.fixture(scope="module")
def site(world: World) -> Iterator[Site]:
    with policy_site(world) as site:
        yield site


@pytest.mark.parametrize("case", READERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_each_principal_gets_the_same_cells_from_every_engine(
    engines: Engines, site: Site, engine: str, case: str
) -> None:
    expected = site.expected(case)
    assert 5 < len(expected) <= len(site.rows), "the policies hide some rows, not all"
    found = cells(ENGINES[engine](engines, site.people[case], site.namespace, site.table), "id")
    assert found == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_a_user_without_rights_gets_no_row_from_any_engine(engines: Engines, site: Site, engine: str) -> None:
    with pytest.raises((LoadFailed, GovernedReadRefused, ReaderLostAccess)):
        ENGINES[engine](engines, site.people["nothing"], site.namespace, site.table)


def test_plain_clients_of_restricted_users_are_refused(engines: Engines, site: Site) -> None:
    for case in ("subject", "mapped", "columns", "nothing"):
        # A warehouse in which a user has no rights does not exist for the user.
        error = RESTError if case == "nothing" else ForbiddenError
        with pytest.raises(error, match="NoSuchWarehouse" if case == "nothing" else "enforcer"):
            catalog_of(site.world, site.people[case]).load_table((site.namespace, site.table))
        plain = as_principal(engines.root, engines.catalog(site.people[case]))
        with pytest.raises(Exception, match=r"(?s)NoSuchWarehouse|Forbidden"):
            plain.table(f"lake.{site.namespace}.{site.table}").collect()


def test_the_object_store_refuses_the_keys_of_restricted_users(site: Site) -> None:
    """A restricted user gets keys of a table of its own. They open no file of the restricted table."""
    world, keys = site.world, sorted(below(site.world, site.location))
    assert keys
    exempt = _vended(world, site.people["exempt"], f"{world.root}/namespaces/{site.namespace}/tables/{site.table}")
    assert exempt.get_object(Bucket=world.bucket, Key=keys[0])["ContentLength"], "the check reads the right keys"
    for case in ("subject", "mapped", "columns"):
        person, path = site.people[case], f"{world.root}/namespaces/{site.namespace}/tables/{site.table}"
        assert person.get(f"{path}/credentials").status_code == 403
        own = world.table(world.namespace())
        world.grant("ownership", person, "table", own.uuid)
        store = _vended(world, person, own.path)
        for key in keys:
            with pytest.raises(ClientError) as refused:
                store.get_object(Bucket=world.bucket, Key=key)
            assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def _vended(world: World, person: Person, path: str) -> Any:
    """Return an S3 client with the keys that a plain client gets for a table."""
    loaded = person.get(path, headers={"X-Iceberg-Access-Delegation": "vended-credentials"})
    assert loaded.status_code == 200, loaded.text
    return world.store_of(loaded.json()["config"])


@pytest.mark.parametrize("shape", [FLAT, EVOLVING], ids=["flat", "nested-and-renamed"])
def test_random_policies_give_the_same_cells_in_every_engine(engines: Engines, shape: Shape) -> None:
    """Compare 300 policies, in 20 rounds of 15, and a quarter of them on a table whose columns are renamed."""
    rnd = random.Random(19)
    compared = dict.fromkeys(ENGINES, 0)
    rounds = ROUNDS // 4 if shape.evolves else ROUNDS
    with random_table(engines.world, rnd, shape) as table:
        for number in range(rounds):
            expected = table.rewrite(rnd)
            for name, read in ENGINES.items():
                rows = read(engines, table.person, table.namespace, "cells")
                assert rows.column_names == [*(table.names[id] for id in shape.fields), KEY]
                found = cells(rows.rename_columns(list(shape.names)), KEY)
                # Stored hashes would be equal in all queries, so a copy has no value instead.
                compared[name] += expected.check(f"{name} in round {number}", found, salted=name != "copy")
    assert all(compared.values())
    kind = ", nested and renamed" if shape.evolves else ""
    record(f"python, spark, copy{kind}", {"policies": rounds * (FILTERS + MASKS), "compared cells": compared})
