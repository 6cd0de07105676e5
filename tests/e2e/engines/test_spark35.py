# SPDX-License-Identifier: Apache-2.0
"""Spark 3.5 through the gateway. Opt-in: `make test-engine ENGINE=spark35`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.engines.older_spark import change_rows_and_schema, make_row, spark_of
from tests.support.engines.engine_results import opt_in
from tests.support.engines.spark import Spark
from tests.support.stack.world import World

_ENGINE = "spark35"
pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900), opt_in(_ENGINE)]


@pytest.fixture(scope="module")
def spark(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """Start Spark 3.5; stop it after the last test of this module."""
    with spark_of(_ENGINE, world, tmp_path_factory.mktemp(_ENGINE)) as spark:
        yield spark


def test_six_cells(spark: Spark, world: World, ns: str) -> None:
    make_row(_ENGINE, {"Spark": "3.5.9", "Iceberg": "1.12.0"}, spark, world, ns)


def test_rows_and_columns_change_and_views_read_them(spark: Spark, world: World, ns: str) -> None:
    change_rows_and_schema(spark, world, ns)
