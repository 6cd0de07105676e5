# SPDX-License-Identifier: Apache-2.0
"""Operations that tests declare do not outlive them: the registers are the product's own."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.access.operation import OPERATIONS
from gateway.api.serves import SERVED


def pytest_configure(config: pytest.Config) -> None:
    """Litestar 2 announces how handlers are to be written in version 3: ours are written so."""
    config.addinivalue_line("filterwarnings", r"error:\[paths=:DeprecationWarning")


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[MutableMapping[str, Any]]]:
    """What is logged, as a list: drawing the traceback of every provoked 500 would take longer than the tests."""
    with capture_logs() as events:
        yield events


@pytest.fixture
def registers() -> Iterator[None]:
    """Both registers as they were, after a test that fills them."""
    operations, served = dict(OPERATIONS), dict(SERVED)
    yield
    OPERATIONS.clear()
    OPERATIONS.update(operations)
    SERVED.clear()
    SERVED.update(served)
