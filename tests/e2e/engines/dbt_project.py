# SPDX-License-Identifier: Apache-2.0
"""Run a dbt project as an engine: its seed is the source, and its incremental model is the table."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner


class Project:
    """One project. Commands of the same process share the connection, as the models of one run do."""

    def __init__(self, project: Path, target: str, scratch: Path) -> None:
        os.environ["DO_NOT_TRACK"] = "1"
        self._where = ["--project-dir", str(project), "--profiles-dir", str(project), "--target", target]
        os.environ["DBT_TARGET_PATH"] = str(scratch / "target")
        os.environ["DBT_LOG_PATH"] = str(scratch / "logs")

    def namespaces(self) -> list[str]:
        """Check the connection; a driver adds the names."""
        self.run("debug", schema="dbt")
        return []

    def create(self, namespace: str, table: str) -> None:
        """Load the seed and create the model without rows."""
        self.run("seed", schema=namespace)
        self.run("run", "--vars", json.dumps({"table": table, "until": 0}), schema=namespace)

    def write(self, namespace: str, table: str, rows: list[tuple[int, str]]) -> None:
        """Append the rows of the seed to the model, and test the model."""
        self.run("run", "--vars", json.dumps({"table": table, "until": len(rows)}), schema=namespace)
        self.run("test", "--vars", json.dumps({"table": table}), schema=namespace)

    def read(self, namespace: str, table: str) -> list[tuple[int, str]]:
        """Return the rows of the model by `dbt show`."""
        found = self.show(f"select id, word from lake.{namespace}.{table} order by id", schema=namespace)
        return [(row["id"], row["word"]) for row in found]

    def show(self, statement: str, *, schema: str) -> list[dict[str, Any]]:
        """Return the rows of a statement, each with the names of its columns."""
        shown = self.run("show", "--inline", statement, "--limit", "-1", schema=schema)
        [result] = shown.results
        columns = result.agate_table.column_names
        return [dict(zip(columns, row.values(), strict=True)) for row in result.agate_table.rows]

    def run(self, *arguments: str, schema: str) -> Any:
        """Run a command of dbt; return its result. Raises RuntimeError with the messages of the failed nodes."""
        os.environ["DBT_NAMESPACE"] = schema
        messages: list[str] = []
        done = dbtRunner(callbacks=[lambda event: messages.append(f"{event.info.name}: {event.info.msg}")]).invoke(
            [*arguments, *self._where]
        )
        if done.exception is not None:
            raise RuntimeError(f"dbt {arguments[0]}: {done.exception}")
        if not done.success:
            raise RuntimeError(f"dbt {arguments[0]}: {' '.join(messages)[-2000:]}")
        return done.result
