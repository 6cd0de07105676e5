# SPDX-License-Identifier: Apache-2.0
"""The row of Daft in docs/engines.md."""

from __future__ import annotations

import pytest

from tests.e2e.engines.driven import make_row
from tests.support.engines.engine_results import opt_in
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300), opt_in("daft")]


def test_daft(world: World, ns: str) -> None:
    make_row("daft", "Daft", "engines.md#daft", world, ns)
