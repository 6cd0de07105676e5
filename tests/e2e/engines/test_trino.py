# SPDX-License-Identifier: Apache-2.0
"""The row of Trino, which asks the bridge and acts for its users. Opt-in: `make test-engine ENGINE=trino`.

`make test-trino` tests all its statements.
"""

from __future__ import annotations

import pytest

from tests.e2e.engines.cells import Dialect, six_cells
from tests.support.engines.engine_results import opt_in, row
from tests.support.engines.trino import VERSION, Refused
from tests.support.engines.trino_lake import Lake
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900), opt_in("trino")]

_DIALECT = Dialect(
    error=Refused,
    namespaces="show schemas from ice",
    create="create table {table} (id bigint, name varchar)",
    insert="insert into {table} values (1, 'ada'), (2, 'bob')",
    select="select id, name from {table}",
    refusal="Access Denied|does not exist",
    catalog="ice",
)


def test_six_cells(world: World, ns: str, lake: Lake) -> None:
    versions = {"Trino": VERSION, "Iceberg": "1.9.1"}
    with row("trino", "Trino", versions, page="trino.md") as made:
        six_cells(made, world, ns, _DIALECT, lambda person: lambda sql: lake.trino.run(person, sql))
