# SPDX-License-Identifier: Apache-2.0
"""Restore the product's registers after tests that declare operations."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs

import gateway.features.all_routes  # noqa: F401 - registers all routes
from gateway.access.operation import OPERATIONS
from gateway.api.serves import SERVED


def pytest_configure(config: pytest.Config) -> None:
    """Treat the warning of Litestar 2 about handlers in a form that version 3 drops as an error."""
    config.addinivalue_line("filterwarnings", r"error:\[paths=:DeprecationWarning")


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[MutableMapping[str, Any]]]:
    """Collect log events in a list: rendering the traceback of every provoked 500 would be slower than the tests."""
    with capture_logs() as events:
        yield events


@pytest.fixture
def registers() -> Iterator[None]:
    """Restore both registers after a test that fills them."""
    operations, served = dict(OPERATIONS), dict(SERVED)
    yield
    OPERATIONS.clear()
    OPERATIONS.update(operations)
    SERVED.clear()
    SERVED.update(served)
