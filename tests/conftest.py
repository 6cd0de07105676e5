# SPDX-License-Identifier: Apache-2.0
"""For every test: nothing of the developer's own Lakegate settings reaches a test."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("LAKEGATE__") and "EMBEDDED" not in name]:
        monkeypatch.delenv(name)
