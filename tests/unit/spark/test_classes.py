# SPDX-License-Identifier: Apache-2.0
"""Recorded classes of Spark: the name of their file, and the Java options that use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakegate.local import spark_jars
from lakegate.spark.classes import class_archive, class_options
from lakegate.spark.config import Engine
from lakegate.spark.session import engine_options


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "java"
    home.mkdir()
    (home / "release").write_text('JAVA_VERSION="17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    return home


@pytest.fixture
def jars(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "iceberg.jar", tmp_path / "aws.jar"]
    for path in paths:
        path.touch()
    return [str(path) for path in paths]


def archive_of(jars: list[str], java: Path) -> Path:
    archive = class_archive(jars, java)
    assert archive is not None
    return archive


def test_another_java_and_other_archives_have_another_file(jars: list[str], java: Path, tmp_path: Path) -> None:
    before = archive_of(jars, java)
    assert before.parent == tmp_path
    assert archive_of(jars[:1], java) != before
    (java / "release").write_text('JAVA_VERSION="17.0.2"')
    assert archive_of(jars, java) != before
    assert class_archive([], java) is None
    assert class_archive(jars, tmp_path) is None


def test_an_engine_uses_recorded_classes_and_needs_none(jars: list[str], java: Path, tmp_path: Path) -> None:
    archive, engine = archive_of(jars, java), Engine(jars=jars, work_dir=str(tmp_path))
    option = f"-XX:SharedArchiveFile={archive}"
    assert option not in engine_options(engine)["spark.driver.extraJavaOptions"]
    archive.write_bytes(b"classes")
    assert option in engine_options(engine)["spark.driver.extraJavaOptions"]
    assert option not in engine_options(engine, "-Xint")["spark.driver.extraJavaOptions"]


def test_a_java_that_records_no_classes_leaves_an_empty_file_that_is_not_used(
    jars: list[str], java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outdated = archive_of(jars, java)
    outdated.touch()
    (java / "release").write_text('JAVA_VERSION="17.0.2"')
    monkeypatch.setattr(spark_jars, "run", lambda *_: None)
    archive = archive_of(jars, java)
    spark_jars.record_classes(list(map(Path, jars)), archive, java=java, notify=print)
    assert archive.read_bytes() == b""
    assert not outdated.exists()
    assert class_options(jars) == ""
