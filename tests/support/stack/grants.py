# SPDX-License-Identifier: Apache-2.0
"""Users without rights for tests of grants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stack.world import World


@pytest.fixture
def strangers(world: World) -> Iterator[None]:
    """Remove all grants of the analyst and the steward, before and after."""
    for person in (world.analyst, world.steward):
        world.strip(person)
    yield
    for person in (world.analyst, world.steward):
        world.strip(person)
