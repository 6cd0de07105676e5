# SPDX-License-Identifier: Apache-2.0
"""Test what engines write into a table that the catalog created: the compression codec and the chosen location.

The catalog stores `write.parquet.compression-codec` = `zstd` in new tables, as the Java library does since 1.4. Without
the property, Java engines write gzip and PyIceberg writes zstd.
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.engines.lake import below
from tests.support.engines.spark import Session
from tests.support.stack.world import World, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CODEC = "write.parquet.compression-codec"
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


def codecs(world: World, location: str) -> set[str]:
    """Return the compression codecs of the Parquet files below a location."""
    found = set()
    for key in below(world, location):
        if key.endswith(".parquet"):
            data = world.s3.get_object(Bucket=world.bucket, Key=key)["Body"].read()
            found.add(pq.read_metadata(io.BytesIO(data)).row_group(0).column(0).compression)
    return found


def test_engines_write_zstd_into_a_table_without_a_codec(world: World, catalog: Any, admin: Session, ns: str) -> None:
    made = catalog.create_table((ns, "plain"), schema=ROWS.schema)
    assert made.properties[CODEC] == "zstd"
    made.append(ROWS)
    admin.sql(f"INSERT INTO lake.{ns}.plain VALUES (4)")
    assert len(below(world, made.location() + "/data")) == 2
    assert codecs(world, made.location()) == {"ZSTD"}
    assert sorted(catalog.load_table((ns, "plain")).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]


@pytest.mark.parametrize("codec", ["snappy", "gzip"])
def test_engines_write_the_codec_of_the_creator(
    world: World, catalog: Any, admin: Session, ns: str, codec: str
) -> None:
    name = f"by_{codec}"
    admin.sql(f"CREATE TABLE lake.{ns}.{name} (id bigint) USING iceberg TBLPROPERTIES ('{CODEC}' '{codec}')")
    admin.sql(f"INSERT INTO lake.{ns}.{name} VALUES (4)")
    table = catalog.load_table((ns, name))
    table.append(ROWS)
    assert table.properties[CODEC] == codec
    assert codecs(world, table.location()) == {codec.upper()}


def test_engines_write_below_an_explicit_location(world: World, catalog: Any, admin: Session, ns: str) -> None:
    base = catalog.create_table((ns, "base"), schema=ROWS.schema).location().rsplit("/", 1)[0]
    chosen = f"{base}/{unique('chosen')}"
    table = catalog.create_table((ns, "t"), schema=ROWS.schema, location=chosen)
    assert table.location() == chosen
    table.append(ROWS)
    admin.sql(f"INSERT INTO lake.{ns}.t VALUES (4)")
    assert len(below(world, f"{chosen}/data")) == 2
    assert len(below(world, f"{chosen}/metadata")) > 2
    assert codecs(world, chosen) == {"ZSTD"}
