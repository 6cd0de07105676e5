# SPDX-License-Identifier: Apache-2.0
"""Run the Java library as a judge: one question and one answer a line."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from gateway.settings import java_home, load, search_path
from lakegate.local import jdk, spark_jars, toolchain

SOURCE = Path(__file__).with_name("Judge.java")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Hold the document that the library stores or its error, and its reading of our document or its error.

    `document` and `ours` are the documents as the library writes them.
    """

    document: dict[str, Any] | None
    error: str | None
    ours: dict[str, Any] | None
    unreadable: str | None


class Judge:
    """A process of the Java library. Use it as a context manager."""

    def __init__(self) -> None:
        home = jdk.find(java_home(), search_path())
        (library,) = (
            path for path in spark_jars.locate(toolchain.cache(load({})).jars()) if "spark-runtime" in path.name
        )
        self._argv = [str(home / "bin/java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._argv += ["-cp", f"{library}:{_logging_interface()}", str(SOURCE)]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process is not None
        self._pipe(self._process.stdin).close()
        self._process.wait(timeout=30)

    def ask(self, question: Mapping[str, Any]) -> Verdict:
        """Return the verdict on a question. Raises RuntimeError if the process ended."""
        assert self._process is not None
        pipe = self._pipe(self._process.stdin)
        pipe.write(json.dumps(question) + "\n")
        pipe.flush()
        line = self._pipe(self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"the Java process ended. Run it by hand: {' '.join(self._argv)}")
        answer = json.loads(line)
        return Verdict(
            document=_parsed(answer.get("document")),
            error=answer.get("error"),
            ours=_parsed(answer.get("ours")),
            unreadable=answer.get("unreadable"),
        )

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


def _logging_interface() -> Path:
    """Return SLF4J's archive, which the library needs and Spark contains."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    (path,) = (Path(spec.origin).parent / "jars").glob("slf4j-api-*.jar")
    return path


def _parsed(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    document: dict[str, Any] = json.loads(text)
    return document
