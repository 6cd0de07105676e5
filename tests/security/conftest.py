# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the security tests: the stack of the contract tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.conftest import ns, people, stack, table, world
from tests.support.stack.policy_gateway import guarded_gateway

__all__ = ["guarded_gateway", "ns", "people", "stack", "table", "world"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.integration)
            item.add_marker(pytest.mark.attack)  # tests/stages.py names it too
