# SPDX-License-Identifier: Apache-2.0
"""Creation of a worker process's application."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from gateway import app, settings


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


@pytest.mark.parametrize(
    ("given", "origins", "compress"),
    [
        ({}, (), True),
        ({"ALLOW_ORIGIN": "https://a.example", "COMPRESS_RESPONSES": "false"}, ("https://a.example",), False),
    ],
)
def test_origins_and_compression_are_those_of_the_settings(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], origins: tuple[str, ...], compress: bool
) -> None:
    made: dict[str, Any] = {}

    def build(_: Any, **options: Any) -> tuple[Any, None]:
        made.update(options)
        return object(), None

    monkeypatch.setattr(app, "build_api", build)
    monkeypatch.setattr(app, "configure_logging", lambda **_: None)
    needed = {
        "OPENID_PROVIDER_URI": "https://issuer.example",
        "OPENID_AUDIENCE": "lakegate",
        "PG_ENCRYPTION_KEY": "k",
        "PG_DATABASE_URL_WRITE": "postgresql://u:p@localhost/lakegate",
    }
    app.create_app(settings.load({f"LAKEGATE__{name}": value for name, value in {**needed, **given}.items()}))
    assert (made["allowed_origins"], made["compress"]) == (origins, compress)
