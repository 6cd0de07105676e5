# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the engine tests: the stack and its users, shared with the contract tests, and the engines.

All tests of this directory share one Spark of each kind and one Trino: to start an engine takes longer than most of its
tests.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.contract.conftest import ns, people, stack, table, world
from tests.support.engines.browser import Browser, browsing
from tests.support.engines.browser import Missing as NoBrowser
from tests.support.engines.lake import catalog_of
from tests.support.engines.spark import Session, Spark, in_process, started
from tests.support.engines.trino import Missing
from tests.support.engines.trino_lake import Engine, Lake, running, trino_lake
from tests.support.stack.world import World

__all__ = ["ns", "people", "stack", "table", "world"]


@pytest.fixture(scope="package")
def spark(world: World) -> Iterator[Spark]:
    """Start Spark; stop it after the last test of this directory."""
    with tempfile.TemporaryDirectory(prefix="lakegate-spark-") as home, started(world.ready, Path(home)) as engine:
        yield engine


@pytest.fixture(scope="package")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark with its driver in this process. Tests make sessions of their own in it: `newSession`,
    `as_principal`.
    """
    with in_process(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """Start a browser with an empty profile."""
    try:
        with browsing(tmp_path) as made:
            made.resize(1300, 1000)
            yield made
    except NoBrowser as missing:
        pytest.fail(str(missing), pytrace=False)


@pytest.fixture
def admin(spark: Spark, world: World) -> Session:
    """Return a Spark session of the administrator, who owns the objects that it creates."""
    return Session(spark, world.admin)


@pytest.fixture
def catalog(world: World) -> Any:
    """Return PyIceberg's catalog of the administrator."""
    return catalog_of(world, world.admin)


@pytest.fixture(scope="package")
def engine(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Start a real Trino; stop it after the last test of this directory."""
    try:
        with running(world, tmp_path_factory.mktemp("trino")) as engine:
            yield engine
    except Missing as missing:
        pytest.fail(str(missing))


@pytest.fixture(scope="module")
def lake(world: World, people: None, engine: Engine) -> Iterator[Lake]:
    """Return the Trino schema and users of one module; the users start without rights."""
    with trino_lake(world, engine) as lake:
        yield lake
