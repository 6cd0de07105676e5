# SPDX-License-Identifier: Apache-2.0
"""One Flink process with a table environment per session. It runs with the packages of `flink.lock`.

Each input line is JSON with a session and a statement; each output line is JSON with the answer. A session starts with
the properties of its catalog, so that a token is passed through the pipe only.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # Py4J has no types
from pyflink.table import (  # type: ignore[import-not-found]  # only in the environment of Flink
    EnvironmentSettings,
    TableEnvironment,
)


def table_environment(catalog: dict[str, str], *, streaming: bool) -> Any:
    """Return a table environment with the catalog `lake` of one user."""
    settings = EnvironmentSettings.in_streaming_mode() if streaming else EnvironmentSettings.in_batch_mode()
    found = TableEnvironment.create(settings)
    found.get_config().set("parallelism.default", "1")
    found.get_config().set("execution.checkpointing.interval", "1s")
    found.get_config().set("restart-strategy.type", "disable")
    options = ", ".join(f"'{name}' = '{value}'" for name, value in catalog.items())
    found.execute_sql(f"CREATE CATALOG lake WITH ({options})")
    found.execute_sql("USE CATALOG lake")
    return found


def plain(value: Any) -> Any:
    """Convert a value for JSON."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def run(found: Any, statement: str) -> list[list[Any]]:
    """Run a statement to its end and return its rows."""
    result = found.execute_sql(statement)
    if statement.split(maxsplit=1)[0].upper() in ("SELECT", "SHOW"):
        with result.collect() as rows:
            return [[plain(value) for value in row] for row in rows]
    result.wait()
    return []


def causes(error: Py4JJavaError) -> list[str]:
    """Return the chain of Java errors, the outermost first, each as `class: first line of the message`."""
    found, chain = error.java_exception, []
    while found is not None:
        lines = str(found.getMessage() or "").strip().splitlines()
        chain.append(f"{found.getClass().getSimpleName()}: {lines[0] if lines else ''}")
        found = found.getCause()
    return chain


def main() -> None:
    """Answer statements until the pipe is closed."""
    sessions: dict[str, Any] = {}
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if "catalog" in question:
                streaming = question.get("streaming", False)
                sessions[question["session"]] = table_environment(question["catalog"], streaming=streaming)
                answer: dict[str, Any] = {"rows": []}
            else:
                answer = {"rows": run(sessions[question["session"]], question["statement"])}
        except Py4JJavaError as error:
            answer = {"error": "Py4JJavaError", "message": " <- ".join(causes(error))}
        except Exception as error:  # any error of the statement is part of the answer
            answer = {"error": type(error).__name__, "message": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
