# SPDX-License-Identifier: Apache-2.0
"""Drive Polars: `scan_iceberg` and `write_iceberg` of tables that PyIceberg loads. PyIceberg creates the table."""

from __future__ import annotations

import polars as pl
from drive_loop import serve
from drive_pyiceberg import Lake as Tables


class Lake(Tables):
    """Polars on the catalog of PyIceberg."""

    def write(self, namespace: str, table: str, rows: list[tuple[int, str]]) -> None:
        frame = pl.DataFrame(rows, schema={"id": pl.Int64, "word": pl.String}, orient="row")
        frame.write_iceberg(self._catalog.load_table((namespace, table)), mode="append")

    def read(self, namespace: str, table: str) -> list[tuple[int, str]]:
        found = self._catalog.load_table((namespace, table))
        # Polars reads the files itself. It takes the vended keys and the endpoint only from `storage_options`.
        scan = pl.scan_iceberg(found, storage_options=dict(found.io.properties))
        return scan.select("id", "word").sort("id").collect().rows()


serve(Lake, "polars", "pyiceberg")
