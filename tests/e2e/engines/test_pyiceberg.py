# SPDX-License-Identifier: Apache-2.0
"""The row of PyIceberg in docs/engines.md."""

from __future__ import annotations

import pytest

from tests.e2e.engines.driven import make_row
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


def test_pyiceberg(world: World, ns: str) -> None:
    make_row("pyiceberg", "PyIceberg", "data-engineer.md#pyiceberg", world, ns)
