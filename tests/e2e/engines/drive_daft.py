# SPDX-License-Identifier: Apache-2.0
"""Drive Daft: `read_iceberg` and `write_iceberg` of tables that PyIceberg loads. PyIceberg creates the table."""

from __future__ import annotations

import daft
from drive_loop import serve
from drive_pyiceberg import Lake as Tables


class Lake(Tables):
    """Daft on the catalog of PyIceberg."""

    def write(self, namespace: str, table: str, rows: list[tuple[int, str]]) -> None:
        frame = daft.from_pydict({"id": [id for id, _ in rows], "word": [word for _, word in rows]})
        frame.write_iceberg(self._catalog.load_table((namespace, table)), mode="append")

    def read(self, namespace: str, table: str) -> list[tuple[int, str]]:
        found = daft.read_iceberg(self._catalog.load_table((namespace, table))).sort("id").to_pydict()
        return list(zip(found["id"], found["word"], strict=True))


serve(Lake, "daft", "pyiceberg")
