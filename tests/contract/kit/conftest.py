# SPDX-License-Identifier: Apache-2.0
"""The catalog as a Java client of the administrator sees it."""

from __future__ import annotations

import pytest

from tests.support.stack.java_client import JavaCatalog
from tests.support.stack.world import World


@pytest.fixture(scope="session")
def catalog(world: World) -> JavaCatalog:
    """Return one client for all tests."""
    return JavaCatalog(world)
