# SPDX-License-Identifier: Apache-2.0
"""Locations of storage packages: clients choose the scheme of a location, and must not import a package by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.extensions.installing import install

SCRIPT = """
import sys
from gateway.scope.errors import InvalidLocation
from gateway.scope.profile import STORED
from dataclasses import replace
from gateway.storage.connector import Connector
from gateway.storage.provider import ClientOptions
from gateway.storage.registry import open_clients, parse_location

def parsed():
    try:
        return parse_location("folder://v/base/table").prefix_text
    except InvalidLocation:
        return "invalid"

print(parsed(), "lakegate_folders" in sys.modules)
connector = Connector(STORED.endpoints)
enabled = tuple(sys.argv[1:])
open_clients(ClientOptions(rules=replace(STORED, extensions=enabled), route=connector.route))
print(parsed(), "lakegate_folders" in sys.modules)
connector.close()
"""


def run(site: Path, *enabled: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *enabled],
        env={**os.environ, "PYTHONPATH": f"{site}:{os.getcwd()}"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_location_imports_no_package_that_the_settings_do_not_enable(tmp_path: Path) -> None:
    install(tmp_path, "folders")
    assert run(tmp_path) == ["invalid False", "invalid False"]


def test_a_location_of_an_enabled_package_is_parsed(tmp_path: Path) -> None:
    install(tmp_path, "folders")
    assert run(tmp_path, "folder") == ["invalid False", "folder://v/base/table/ True"]
