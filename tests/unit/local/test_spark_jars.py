# SPDX-License-Identifier: Apache-2.0
"""Archives for Spark: only files with the pinned hash are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from lakegate.local import spark_jars
from lakegate.local.errors import StackError, ToolMissing
from lakegate.local.spark_jars import Archive

_RIGHT = b"the archive"
_ARCHIVE = Archive("g", "a", "1", hashlib.sha256(_RIGHT).hexdigest(), 1)


def _bring(
    content: bytes | None, problem: str | None = None
) -> Callable[[Archive, Path, str | None, dict[str, str]], str | None]:
    def _with_fake(archive: Archive, part: Path, java_home: str | None, environment: dict[str, str]) -> str | None:
        if content is not None:
            (part / archive.file_name).write_bytes(content)
        return problem

    return _with_fake


def _fetch(directory: Path) -> Path:
    return spark_jars.fetch(_ARCHIVE, directory, java_home=None, environment={})


def test_ivy_is_tried_if_maven_delivers_other_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_jars, "_with_maven", _bring(b"something else"))
    monkeypatch.setattr(spark_jars, "_with_ivy", _bring(_RIGHT))
    assert _fetch(tmp_path).read_bytes() == _RIGHT
    assert [path.name for path in tmp_path.iterdir()] == ["a-1.jar"]


def test_an_archive_with_a_wrong_hash_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_jars, "_with_maven", _bring(b"something else"))
    monkeypatch.setattr(spark_jars, "_with_ivy", _bring(None, "no route to host"))
    with pytest.raises(StackError, match="does not have the pinned SHA-256(.|\n)*no route to host"):
        _fetch(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_error_for_a_missing_archive_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="iceberg-spark-runtime-4.1_2.13-1.12.0.jar is missing .*make setup"):
        spark_jars.locate(tmp_path)
