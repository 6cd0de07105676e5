# SPDX-License-Identifier: Apache-2.0
"""Creation of a worker process's application."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from gateway import app


def test_the_garbage_collector_skips_objects_created_at_startup(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = [["an application"]]
    monkeypatch.setattr(app, "create_app", lambda **_: made)
    frozen = gc.get_freeze_count()
    try:
        assert app.create_worker() is made
        assert gc.get_freeze_count() > frozen
        assert all(each is not made for each in gc.get_objects())
    finally:
        gc.unfreeze()
