# SPDX-License-Identifier: Apache-2.0
"""Tables with large metadata documents."""

from __future__ import annotations

from typing import Any

from tests.support.stack.world import Table, World

MIB = 1024 * 1024
LARGE = 8 * MIB


def make_large(world: World, *tables: Table) -> None:
    """Enlarge the stored documents of the tables to 8 MiB by blanks between two members.

    Each document gets a metadata location of its own, as every document has.
    """
    for table in tables:
        done = world.sql(
            "update tables set metadata_location = metadata_location || '.large', "
            "metadata = convert_to('{' || repeat(' ', $2) || "
            "substr(convert_from(metadata, 'UTF8'), 2), 'UTF8') where location = $1 returning octet_length(metadata)",
            table.location,
            LARGE,
        )
        assert done[0][0] > LARGE


def about(world: World, table: Table, action: str = "read_data") -> dict[str, Any]:
    """Return a check about the caller on a table by its name."""
    named = {"warehouse-id": world.warehouse, "namespace": [table.namespace], "table": table.name}
    return {"operation": {"table": {**named, "action": action}}}
