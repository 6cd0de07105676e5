# SPDX-License-Identifier: Apache-2.0
"""DuckDB with its Iceberg extension."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from tests.support.stack.world import Person, World

_EXTENSIONS = ("avro", "httpfs", "aws", "iceberg")


def extension(name: str) -> Path:
    """Return the signed extension from the installed package; nothing is downloaded."""
    packages = Path(duckdb.__file__).parents[1]
    [found] = packages.glob(f"duckdb_extension_{name}/extensions/v*/{name}.duckdb_extension")
    return found


class Duck:
    """DuckDB with the warehouse attached as `lake`, as one user."""

    def __init__(self, world: World, person: Person) -> None:
        self._connection = duckdb.connect()
        for name in _EXTENSIONS:
            self._connection.execute(f"LOAD '{extension(name)}'")
        self._connection.execute(f"CREATE SECRET gateway (TYPE ICEBERG, TOKEN '{person.token}')")
        self._connection.execute(
            f"ATTACH '{world.ready.warehouse}' AS lake (TYPE ICEBERG, ENDPOINT '{world.ready.catalog_uri}', "
            "SECRET gateway, ACCESS_DELEGATION_MODE 'vended_credentials')"
        )

    def run(self, statement: str) -> list[Any]:
        """Return the rows of a statement."""
        return self._connection.execute(statement).fetchall()

    def close(self) -> None:
        """Close the database and free its memory."""
        self._connection.close()
