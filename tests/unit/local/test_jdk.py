# SPDX-License-Identifier: Apache-2.0
"""Selection of the Java installation for Spark, and the error if there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakegate.local import jdk
from lakegate.local.errors import ToolMissing


def _java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture(autouse=True)
def _nowhere_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jdk, "_PLACES", (f"{tmp_path}/usual/*",))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(("text", "number"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("25.0.3", 25)])
def test_the_version_is_read_from_the_release_file(text: str, number: int, tmp_path: Path) -> None:
    assert jdk.version_of(_java(tmp_path / "j", text)) == number


def test_java_home_takes_precedence_over_the_path(tmp_path: Path) -> None:
    named, on_path = _java(tmp_path / "named", "21.0.1"), _java(tmp_path / "path", "17.0.1")
    assert jdk.find(str(named), str(on_path / "bin")) == named


def test_a_java_version_unsupported_by_spark_is_skipped(tmp_path: Path) -> None:
    newer, older = _java(tmp_path / "newer", "25.0.3"), _java(tmp_path / "usual" / "java-17", "17.0.1")
    assert jdk.find(str(newer), "") == older


def test_the_missing_java_error_names_found_versions_and_the_remedy(tmp_path: Path) -> None:
    newer = _java(tmp_path / "newer", "25.0.3")
    with pytest.raises(ToolMissing) as missing:
        jdk.find(None, str(newer / "bin"))
    message = str(missing.value)
    assert f"found Java 25 in {newer}" in message
    assert "apt-get install openjdk-17-jre-headless" in message and "JAVA_HOME" in message


def test_a_directory_without_java_has_no_version(tmp_path: Path) -> None:
    (tmp_path / "release").write_text('JAVA_VERSION="17"\n')
    assert jdk.version_of(tmp_path) is None
