# SPDX-License-Identifier: Apache-2.0
"""Statements on Trino with the number of decisions that they cost."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.support.engines.trino_lake import Lake
from tests.support.stack.world import World

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_TRINO"), reason="needs Trino: run `make test-trino`"),
]


@dataclass
class Calls:
    """Counts of one statement: requests of Trino to the bridge, requests of the bridge to the gateway (each one
    `batch-check`), and requests of Trino to the catalog.
    """

    bridge: int = 0
    gateway: int = 0
    catalog: int = 0


@contextmanager
def counted(world: World, lake: Lake) -> Iterator[Calls]:
    """Count requests from the bridge's decision log and from the gateway's audit log, which records every request."""
    calls = Calls()
    _settled(world, lake)
    requested = _decisions(lake)
    (since,) = world.sql("select clock_timestamp() as now")
    yield calls
    _settled(world, lake)
    calls.bridge = _decisions(lake) - requested
    rows = world.sql(
        "select operation = 'batch_check' as asking, count(distinct request_id) as n from audit_log "
        "where at > $1 group by 1",
        since["now"],
    )
    counts = {row["asking"]: row["n"] for row in rows}
    calls.gateway, calls.catalog = counts.get(True, 0), counts.get(False, 0)


def _settled(world: World, lake: Lake) -> None:
    """Wait until no more records are written: audit records and decisions are logged shortly after the answers."""
    before: tuple[int, int] | None = None
    for _ in range(30):
        now = (_decisions(lake), world.sql("select count(*) as n from audit_log")[0]["n"])
        if now == before:
            return
        before = now
        time.sleep(2)


def _decisions(lake: Lake) -> int:
    lines = lake.bridge.log.read_text().splitlines()
    return sum(str(json.loads(line).get("path", "")).startswith("trino/") for line in lines if line.startswith("{"))
