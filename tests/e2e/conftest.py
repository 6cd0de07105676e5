# SPDX-License-Identifier: Apache-2.0
"""The stack and its people, shared with the contract tests, for the engines that are driven against it.

One Spark serves all tests of this directory that ask for it: an engine start costs more than most of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.conftest import ns, stack, world
from tests.contract.world import World
from tests.e2e.spark import Session, Spark, started

__all__ = ["ns", "stack", "world"]


@pytest.fixture(scope="package")
def spark(world: World) -> Iterator[Spark]:
    """A running Spark, which ends with the last test of this directory."""
    with tempfile.TemporaryDirectory(prefix="lakegate-spark-") as home, started(world.ready, Path(home)) as engine:
        yield engine


@pytest.fixture
def admin(spark: Spark, world: World) -> Session:
    """Spark of the administrator, who owns what it makes."""
    return Session(spark, world.admin)
