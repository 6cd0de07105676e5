# SPDX-License-Identifier: Apache-2.0
"""The tools that check the types of the console are pinned, and no user needs them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gateway.features.server.console_files import LIBRARIES
from tests.console import check

_TOOLS = Path(check.__file__).parent


def test_types_are_those_of_the_vendored_libraries() -> None:
    pinned = json.loads((_TOOLS / "package.json").read_text())["devDependencies"]
    vendored = {each.name: each.version for each in LIBRARIES}
    assert {name: version for name, version in pinned.items() if name in vendored} == {
        name: version for name, version in vendored.items() if name in pinned
    }
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in pinned.values())


def test_lock_file_has_the_integrity_of_every_package_and_names_no_registry() -> None:
    text = (_TOOLS / "package-lock.json").read_text()
    packages = {name: each for name, each in json.loads(text)["packages"].items() if name}
    assert len(packages) > 20
    assert all(each["integrity"].startswith("sha512-") for each in packages.values())
    assert "resolved" not in text and "registry" not in text


def test_without_node_the_check_is_skipped_with_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check.main() == 0
    assert "SKIPPED" in capsys.readouterr().err
