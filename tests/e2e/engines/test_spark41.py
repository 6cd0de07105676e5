# SPDX-License-Identifier: Apache-2.0
"""The row of Spark 4.1, the version of the pipeline, in docs/engines.md."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from lakegate.local.spark_jars import ARCHIVES
from tests.e2e.engines.older_spark import make_row
from tests.support.engines.spark import Spark
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]


def test_six_cells(spark: Spark, world: World, ns: str) -> None:
    make_row("spark41", {"Spark": version("pyspark"), "Iceberg": ARCHIVES[0].version}, spark, world, ns)
