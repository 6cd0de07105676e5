# SPDX-License-Identifier: Apache-2.0
"""Drive DuckDB with its Iceberg extension, from the packages `duckdb-extension-…`."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
from drive_loop import serve


class Lake:
    """DuckDB with the warehouse attached as `lake`."""

    def __init__(self) -> None:
        self._duck = duckdb.connect()
        for name in ("avro", "httpfs", "aws", "iceberg"):
            packages = Path(duckdb.__file__).parents[1]
            [extension] = packages.glob(f"duckdb_extension_{name}/extensions/v*/{name}.duckdb_extension")
            self._duck.execute(f"LOAD '{extension}'")
        self._duck.execute(f"CREATE SECRET lake (TYPE ICEBERG, TOKEN '{os.environ['TOKEN']}')")
        self._duck.execute(
            f"ATTACH '{os.environ['WAREHOUSE']}' AS lake (TYPE ICEBERG, ENDPOINT '{os.environ['CATALOG_URI']}', "
            "SECRET lake, ACCESS_DELEGATION_MODE 'vended_credentials')"
        )

    def namespaces(self) -> list[str]:
        found = self._duck.execute("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake'").fetchall()
        return [name for (name,) in found]

    def create(self, namespace: str, table: str) -> None:
        self._duck.execute(f"CREATE TABLE lake.{namespace}.{table} (id BIGINT, word VARCHAR)")

    def write(self, namespace: str, table: str, rows: list[tuple[int, str]]) -> None:
        values = ", ".join(f"({id}, '{word}')" for id, word in rows)
        self._duck.execute(f"INSERT INTO lake.{namespace}.{table} VALUES {values}")

    def read(self, namespace: str, table: str) -> list[tuple[int, str]]:
        return self._duck.execute(f"SELECT id, word FROM lake.{namespace}.{table} ORDER BY id").fetchall()


serve(Lake, "duckdb", "duckdb-extension-iceberg")
