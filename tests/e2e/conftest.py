# SPDX-License-Identifier: Apache-2.0
"""The stack and its people, shared with the contract tests, for the engines that are driven against it.

One Spark and one Trino serve all tests of this directory that ask for it: an engine start costs more than most of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.conftest import ns, people, stack, world
from tests.contract.world import World
from tests.e2e.spark import Session, Spark, started
from tests.e2e.trino import Missing
from tests.e2e.trino_lake import Engine, Lake, running, trino_lake

__all__ = ["ns", "people", "stack", "world"]


@pytest.fixture(scope="package")
def spark(world: World) -> Iterator[Spark]:
    """A running Spark, which ends with the last test of this directory."""
    with tempfile.TemporaryDirectory(prefix="lakegate-spark-") as home, started(world.ready, Path(home)) as engine:
        yield engine


@pytest.fixture
def admin(spark: Spark, world: World) -> Session:
    """Spark of the administrator, who owns what it makes."""
    return Session(spark, world.admin)


@pytest.fixture(scope="package")
def engine(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A real Trino, which ends with the last test of this directory."""
    try:
        with running(world, tmp_path_factory.mktemp("trino")) as engine:
            yield engine
    except Missing as missing:
        pytest.fail(str(missing))


@pytest.fixture(scope="module")
def lake(world: World, people: None, engine: Engine) -> Iterator[Lake]:
    """What people ask it about in one module; each begins with people who hold nothing."""
    with trino_lake(world, engine) as lake:
        yield lake
