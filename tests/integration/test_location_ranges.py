# SPDX-License-Identifier: Apache-2.0
"""Overlaps of locations on a real PostgreSQL: the ranges of SQL agree with `overlaps`. No plan reads a whole table."""

from __future__ import annotations

from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from gateway.db.tables import retired_locations, tables
from gateway.scope.location import Location
from gateway.storage.s3.profile import SCHEME
from tests.support.rows.parts import Rows

pytestmark = pytest.mark.servers

PATHS = ("a", "a/b", "a/b/c", "A/b", "a0", "a-b", "a/b0", "a.b", "é", "é/x", "e", "z/a/b", "~", "a/~", "0", "a/b/c/d")
MANY = 5_000
_ADD = """
    insert into tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, location_key,
        metadata)
    select gen_random_uuid(), :warehouse, :namespace, 'table', n, n, gen_random_uuid(), n, n, '{}'
    from unnest(cast(:keys as text[])) n
"""


def _location(path: str) -> Location:
    return SCHEME.parse(f"s3://bucket/{path}")


async def _insert(connection: AsyncConnection, keys: list[str]) -> Rows:
    rows = Rows()
    await rows.insert(connection)
    await connection.execute(text("delete from tables"))
    values = {"warehouse": rows.warehouses[0], "namespace": rows.outer, "keys": keys}
    await connection.execute(text(_ADD), values)
    return rows


async def test_a_location_is_in_use_exactly_if_it_overlaps_one(url: str) -> None:
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            for there in map(_location, PATHS):
                await _insert(connection, [there.overlap_key])
                for new in map(_location, PATHS):
                    above = [each.overlap_key for each in new.ancestors()]
                    found = await tables.location_in_use(connection, new.overlap_key, above)
                    assert found == new.overlaps(there), (str(new), str(there))
            await connection.rollback()
    finally:
        await engine.dispose()


async def test_a_retired_location_above_or_below_counts_as_nested(url: str) -> None:
    statement = text(
        "insert into retired_locations (table_id, warehouse_id, location, location_key, keys_until) "
        "values (:id, :id, :key, :key, now() + interval '1 hour')"
    )
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            for there in map(_location, PATHS):
                await connection.execute(text("delete from retired_locations"))
                await connection.execute(statement, {"id": uuid4(), "key": there.overlap_key})
                for new in map(_location, PATHS):
                    above = [each.overlap_key for each in new.ancestors()]
                    found = await retired_locations.nested(connection, new.overlap_key, above)
                    assert found == (new.overlaps(there) and new.overlap_key != there.overlap_key), (new, there)
            await connection.rollback()
    finally:
        await engine.dispose()


async def test_the_check_of_a_new_location_reads_no_whole_table(url: str) -> None:
    """PostgreSQL plans a statement without its values after some uses. Such a plan must use the indexes too."""
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            await _insert(connection, [f"bucket/lake/{number:05}/" for number in range(MANY)])
            retire = text(
                "insert into retired_locations (table_id, warehouse_id, location, location_key, keys_until) "
                "select id, id, location, location_key, now() from tables"
            )
            await connection.execute(retire)
            await connection.commit()
            await connection.execute(text("analyze"))
            await connection.commit()
    finally:
        await engine.dispose()
    numbered = tables.LOCATION_TAKEN
    for number, name in enumerate(("at", "key", "after", "other_than", "owners"), 1):
        numbered = numbered.replace(f":{name}", f"${number}")
    plain = await asyncpg.connect(url.replace("postgresql+asyncpg", "postgresql"))
    try:
        await plain.execute("set plan_cache_mode = force_generic_plan")
        await plain.execute(f"prepare taken (text[], text, text, uuid, text[]) as {numbered}")
        values = "'{bucket/,bucket/lake/}', 'bucket/lake/x/', 'bucket/lake/x0', null, '{}'"
        plan = [row[0] for row in await plain.fetch(f"explain execute taken({values})")]
    finally:
        await plain.close()
    read = [line for line in plan if "Seq Scan on" in line]
    assert [line for line in read if "Seq Scan on tasks" not in line] == []
    assert any("tables_location_range_idx" in line for line in plan)
    assert any("retired_locations_location_range_idx" in line for line in plan)


def test_only_an_overlap_key_has_a_range() -> None:
    assert retired_locations.after("bucket/a/") == "bucket/a0"
    with pytest.raises(ValueError, match="ends with a slash"):
        retired_locations.after("bucket/a")
