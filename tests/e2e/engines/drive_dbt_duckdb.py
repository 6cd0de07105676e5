# SPDX-License-Identifier: Apache-2.0
"""Drive dbt with DuckDB on the project `tests/e2e/dbt`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import duckdb
from dbt_project import Project
from drive_loop import serve

HERE = Path(__file__).resolve().parent


def extensions(scratch: Path) -> Path:
    """Return a directory in which DuckDB finds its extensions, so that `INSTALL` downloads nothing."""
    packages = Path(duckdb.__file__).parents[1]
    platform = duckdb.execute("PRAGMA platform").fetchall()[0][0]
    directory = scratch / f"v{duckdb.__version__}" / platform
    directory.mkdir(parents=True)
    for name in ("avro", "httpfs", "aws", "iceberg"):
        [found] = packages.glob(f"duckdb_extension_{name}/extensions/v*/{name}.duckdb_extension")
        (directory / found.name).symlink_to(found)
    return scratch


class Lake(Project):
    """The project, with DuckDB in this process."""

    def __init__(self) -> None:
        scratch = Path(tempfile.mkdtemp(prefix="lakegate-dbt-"))
        os.environ["DUCKDB_EXTENSIONS"] = str(extensions(scratch))
        super().__init__(HERE.parent / "dbt", "duckdb", scratch)

    def namespaces(self) -> list[str]:
        super().namespaces()
        found = self.show(
            "select schema_name as name from information_schema.schemata where catalog_name = 'lake'", schema="dbt"
        )
        return [row["name"] for row in found]


serve(Lake, "dbt-core", "dbt-duckdb", "duckdb")
