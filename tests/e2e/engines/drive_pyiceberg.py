# SPDX-License-Identifier: Apache-2.0
"""Drive PyIceberg."""

from __future__ import annotations

import os

import pyarrow as pa
from drive_loop import serve
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "word", StringType()))


class Lake:
    """The catalog of the warehouse."""

    def __init__(self) -> None:
        self._catalog = load_catalog(
            "lake",
            type="rest",
            uri=os.environ["CATALOG_URI"],
            warehouse=os.environ["WAREHOUSE"],
            token=os.environ["TOKEN"],
        )

    def namespaces(self) -> list[str]:
        return [name for (name,) in self._catalog.list_namespaces()]

    def create(self, namespace: str, table: str) -> None:
        self._catalog.create_table((namespace, table), schema=SCHEMA)

    def write(self, namespace: str, table: str, rows: list[tuple[int, str]]) -> None:
        columns = {"id": pa.array([id for id, _ in rows], pa.int64()), "word": [word for _, word in rows]}
        self._catalog.load_table((namespace, table)).append(pa.table(columns))

    def read(self, namespace: str, table: str) -> list[tuple[int, str]]:
        rows = self._catalog.load_table((namespace, table)).scan().to_arrow().to_pylist()
        return sorted((row["id"], row["word"]) for row in rows)


if __name__ == "__main__":
    serve(Lake, "pyiceberg", "pyarrow")
