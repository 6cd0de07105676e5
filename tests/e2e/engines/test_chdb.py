# SPDX-License-Identifier: Apache-2.0
"""The row of ClickHouse, as the library chDB, in docs/engines.md."""

from __future__ import annotations

import pytest

from tests.e2e.engines.driven import make_row
from tests.support.engines.engine_results import opt_in
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300), opt_in("chdb")]


_CREATE = "it writes the files of a new table before it calls the catalog, which needs storage keys of its own"


def test_chdb(world: World, ns: str) -> None:
    page = "engines.md#clickhouse"
    make_row("chdb", "ClickHouse (chDB)", page, world, ns, impossible={"create": _CREATE})
