# SPDX-License-Identifier: Apache-2.0
"""For every test: nothing of the developer's own Lakegate settings reaches a test. And which tests of a run in several
processes stay together (`tests/lanes.py`).
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes, or how luck had it drawn, is told of the machine and not of the code.
settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("LAKEGATE__") and "EMBEDDED" not in name]:
        monkeypatch.delenv(name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Lanes instead of single tests or files, whatever `--dist` says."""
    from tests.lanes import Lanes

    return Lanes(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In one of several processes, the lanes that take longest come first; within a lane all is as it was."""
    if hasattr(config, "workerinput"):
        from tests.lanes import turn

        items.sort(key=lambda item: turn(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """What a test logged or failed with may hold halves of characters, which cannot be sent between processes."""
    return _sendable((yield))


def _sendable(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {_sendable(key): _sendable(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(map(_sendable, value))
        case _:
            return value
