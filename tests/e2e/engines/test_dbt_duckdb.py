# SPDX-License-Identifier: Apache-2.0
"""The row of dbt with DuckDB in docs/engines.md: seed, incremental model, data tests and `dbt show`."""

from __future__ import annotations

import pytest

from tests.e2e.engines.driven import make_row
from tests.support.engines.engine_results import opt_in
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600), opt_in("dbt_duckdb")]


def test_dbt_duckdb(world: World, ns: str) -> None:
    make_row("dbt_duckdb", "dbt with DuckDB", "engines.md#dbt-with-duckdb", world, ns)
