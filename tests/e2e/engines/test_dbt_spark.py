# SPDX-License-Identifier: Apache-2.0
"""The row of dbt with Spark in docs/engines.md: seed, incremental model, data tests and `dbt show`."""

from __future__ import annotations

import pytest

from gateway.settings import java_home, load, search_path
from lakegate.local import jdk, spark_jars, toolchain
from tests.e2e.engines.driven import make_row
from tests.support.engines.engine_results import opt_in
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900), opt_in("dbt_spark")]


def test_dbt_spark(world: World, ns: str) -> None:
    jars = spark_jars.locate(toolchain.cache(load({})).jars())
    java = {
        "JAVA_HOME": str(jdk.find(java_home(), search_path())),
        "SPARK_JARS": ",".join(map(str, jars)),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    make_row("dbt_spark", "dbt with Spark", "engines.md#dbt-with-spark", world, ns, variables=java)
