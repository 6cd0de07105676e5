# SPDX-License-Identifier: Apache-2.0
"""The packaged files of Swagger UI: unchanged, and without another web framework."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from gateway.features.server import documentation_routes

FILES = Path(documentation_routes.__file__).parent / "swagger_ui_files"
ROOT = Path(__file__).parents[3]


def _sums() -> dict[str, str]:
    lines = (FILES / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def test_each_swagger_ui_file_equals_the_published_one() -> None:
    found = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in FILES.iterdir()}
    del found["SHA256SUMS"], found["README.md"]
    assert found == _sums()
    assert {*documentation_routes._ASSETS, documentation_routes._RETURN, "LICENSE", "NOTICE"} <= found.keys()


def test_litestar_is_the_only_installed_web_framework() -> None:
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements/serve.lock").read_text(), re.MULTILINE))
    assert "litestar" in locked
    assert not locked & {"flask", "flask-swagger-ui", "werkzeug", "jinja2", "fastapi", "starlette", "django"}
