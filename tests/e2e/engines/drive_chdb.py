# SPDX-License-Identifier: Apache-2.0
"""Drive chDB, which is ClickHouse as a library: the database engine `DataLakeCatalog`."""

from __future__ import annotations

import json
import os

from chdb import session
from drive_loop import serve


class Lake:
    """ClickHouse with the warehouse as the database `lake`."""

    def __init__(self) -> None:
        self._session = session.Session()
        self._session.query("SET allow_database_iceberg = 1, allow_insert_into_iceberg = 1")
        self._session.query(
            f"CREATE DATABASE lake ENGINE = DataLakeCatalog('{os.environ['CATALOG_URI']}/v1') "
            f"SETTINGS catalog_type = 'rest', warehouse = '{os.environ['WAREHOUSE']}', vended_credentials = 1, "
            f"auth_header = 'Authorization: Bearer {os.environ['TOKEN']}'"
        )

    def namespaces(self) -> list[str]:
        tables = self._rows("SHOW TABLES FROM lake")
        return sorted({name.rpartition(".")[0] for (name,) in tables})

    def write(self, namespace: str, table: str, rows: list[tuple[int, str]]) -> None:
        values = ", ".join(f"({id}, '{word}')" for id, word in rows)
        self._session.query(f"INSERT INTO lake.`{namespace}.{table}` VALUES {values}")

    def read(self, namespace: str, table: str) -> list[tuple[int, str]]:
        return self._rows(f"SELECT id, word FROM lake.`{namespace}.{table}` ORDER BY id")

    def _rows(self, statement: str) -> list[tuple]:
        # ClickHouse writes 64-bit integers as strings in JSON unless it is set otherwise.
        found = self._session.query(f"{statement} SETTINGS output_format_json_quote_64bit_integers = 0", "JSONCompact")
        return [tuple(row) for row in json.loads(str(found))["data"]]


serve(Lake, "chdb")
