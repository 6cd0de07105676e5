# SPDX-License-Identifier: Apache-2.0
"""`lakegate tag suggest --sample-table`: values of a table, read with the caller's own rights."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.engines.lake import catalog_of
from tests.support.stack.columns import wide
from tests.support.stack.world import Person, Table, World

pytestmark = pytest.mark.servers

ROWS = [{"id": n, "name": f"ann{n}@example.org", "card": "4111 1111 1111 1111", "address": None} for n in range(9)]


def _suggest(world: World, table: Table, by: Person) -> list[str]:
    at = ["--gateway", world.base, "--token", by.token, "--in", str(world.ready.warehouse)]
    return ["tag", "suggest", *at, "--sample-table", f"{table.namespace}.{table.name}"]


def test_values_of_a_table_suggest_tags_and_are_not_printed(world: World, ns: str) -> None:
    table = wide(world, ns)
    opened = catalog_of(world, world.admin).load_table((ns, table.name))
    opened.append(pa.Table.from_pylist(ROWS, schema=opened.schema().as_arrow()))
    done = world.lakegate(*_suggest(world, table, world.admin))
    expected = ["name\tpii.email\t100% of 9 values", "card\tpii.payment-card\t100% of 9 values"]
    assert (done.returncode, done.stdout.splitlines()) == (0, expected), done.stderr
    refused = world.lakegate(*_suggest(world, table, world.stranger()))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Traceback" not in refused.stderr
