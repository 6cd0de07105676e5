# SPDX-License-Identifier: Apache-2.0
"""Spark for tests: sessions of users that send statements, with the innermost Java error when a statement fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from gateway.settings import hadoop_environment, java_home, load, search_path
from lakegate.local import jdk, spark_jars, toolchain
from lakegate.local.demo.spark import SparkTools
from lakegate.local.ready import Ready
from lakegate.spark.config import Engine
from lakegate.spark.session import start_engine
from tests.support.stack.world import Person, World

_END_SECONDS = 30.0


class SparkRefused(Exception):
    """A failed statement: the simple name of the innermost Java error, and its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Spark:
    """The engine: one process that runs statements one after the other."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def java_process(self) -> int:
        """Return the id of the process of its Java."""
        below = psutil.Process(self._process.pid).children(recursive=True)
        return next(each.pid for each in below if each.name() == "java")

    def send_message(self, message: dict[str, Any]) -> list[list[Any]]:
        """Send one JSON line and return the rows of its answer; raises `SparkRefused`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the Spark process ended:\n{self._log.read_text(errors='replace')[-3000:]}"
        answer = json.loads(line)
        if "error" in answer:
            raise SparkRefused(answer["error"], answer["message"])
        rows: list[list[Any]] = answer["rows"]
        return rows


class Session:
    """One user's Spark session, with a warehouse as the catalog `lake`: the demo's, unless another is named.

    `credential` is (client id and secret, token endpoint), with which Spark gets a token instead of the user's.
    `options` are further options of the session, set before its first statement.
    """

    def __init__(
        self,
        spark: Spark,
        person: Person,
        label: str = "",
        *,
        warehouse: str | None = None,
        credential: tuple[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._spark = spark
        self._label = f"{person.name} {label} {warehouse} {credential is not None}"
        self._catalog: dict[str, Any] = {"options": dict(options or {})}
        if warehouse is not None:
            self._catalog["warehouse"] = warehouse
        if credential is None:
            self._catalog["token"] = person.token
        else:
            self._catalog["credential"], self._catalog["token_endpoint"] = credential

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; raises `SparkRefused`."""
        return self._send({"statement": statement})

    def remove_orphans(self, table: str) -> set[str]:
        """Remove orphan files and return their locations: files below the table that no snapshot of it references."""
        return {location for (location,) in self._send({"orphans": table})}

    def _send(self, question: dict[str, str]) -> list[tuple[Any, ...]]:
        whole = {"session": self._label, **self._catalog, **question}
        return [tuple(row) for row in self._spark.send_message(whole)]

    def value(self, statement: str) -> Any:
        """Return the single value that a statement selects."""
        [(value,)] = self.sql(statement)
        return value


def jars() -> list[str]:
    """Return the paths of the archives that Spark needs."""
    return [str(jar) for jar in spark_jars.locate(toolchain.cache(load({})).jars())]


@contextmanager
def in_process(work_dir: Path) -> Iterator[SparkSession]:
    """Run Spark with its driver in this process until the end of the block. Each process has one Spark at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(jdk.find(java_home(), search_path())))
        session = start_engine(Engine(jars=jars(), work_dir=str(work_dir), cores=1, shuffle_partitions=1))
        yield session
        session.stop()


@contextmanager
def started(
    ready: Ready, home: Path, *, python: str = sys.executable, jars: Sequence[Path] | None = None
) -> Iterator[Spark]:
    """Run an engine until the end of the block, with its scratch files below `home`.

    `python` has the PySpark of another version if it is given, and `jars` the archives for it.
    """
    tools = SparkTools(
        java_home=jdk.find(java_home(), search_path()),
        jars=spark_jars.locate(toolchain.cache(load({})).jars()) if jars is None else jars,
        work_dir=home,
    )
    log = home / "spark.log"
    with (
        log.open("wb") as chatter,
        subprocess.Popen(
            [python, "-m", "tests.support.engines.spark_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=chatter,
            env=tools.environment() | hadoop_environment(),
            cwd=Path(__file__).parents[3],
            text=True,
        ) as process,
    ):
        try:
            spark = Spark(process, log)
            spark.send_message({"uri": ready.catalog_uri, "warehouse": ready.warehouse, **tools.engine()})
            yield spark
        finally:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def metadata(world: World, namespace: str, name: str) -> dict[str, Any]:
    """Return a table's current metadata from the gateway, bypassing every cache of the engine."""
    found = world.admin.get(f"{world.root}/namespaces/{namespace}/tables/{name}")
    assert found.status_code == 200, found.text
    answer: dict[str, Any] = found.json()["metadata"]
    return answer
