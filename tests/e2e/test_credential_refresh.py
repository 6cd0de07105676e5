# SPDX-License-Identifier: Apache-2.0
"""A Spark job and a PyIceberg reader outlive their first credential, on a store that refuses expired ones.

The shortest credential of an S3 store lives 900 seconds, so this takes 21 minutes and belongs to `make test-long`.
"""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

from tests.support.engines.lake import catalog_of
from tests.support.engines.spark import Session, Spark
from tests.support.stack import warehouses
from tests.support.stack.world import World, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1500)]

_LIFE_SECONDS = 900
# Spark opens one file per task, one task after the other. The last file is opened after three sleeps.
_FILES = 4
_SLEEP_SECONDS = 305


def test_a_spark_job_and_a_pyiceberg_reader_outlive_their_first_credential(world: World, spark: Spark) -> None:
    short: dict[str, Any] = {"sts-token-validity-seconds": _LIFE_SECONDS}
    stored: dict[str, Any] = {"storage-profile": warehouses.profile(world, **short)}
    made = warehouses.make(world, **stored)
    catalog = catalog_of(world, world.admin, warehouse=made.name)
    namespace = unique("ns")
    catalog.create_namespace(namespace)
    table = catalog.create_table(
        (namespace, "t"),
        schema=pa.schema([("id", pa.int64())]),
        properties={"read.split.open-file-cost": str(1 << 30)},
    )
    for number in range(_FILES):
        table.append(pa.table({"id": [number]}))

    reader = catalog.load_table((namespace, "t"))
    expires_at = _expiry(reader)
    assert 0 < expires_at - time.time() <= _LIFE_SECONDS
    admin = Session(spark, world.admin, warehouse=made.name)
    started = time.monotonic()
    slow = f"reflect('java.lang.Thread', 'sleep', CAST({_SLEEP_SECONDS * 1000} AS BIGINT))"
    rows = admin.sql(f"SELECT id, {slow} FROM lake.{namespace}.t")
    assert time.monotonic() - started > (_FILES - 1) * _SLEEP_SECONDS
    assert sorted(number for number, _ in rows) == list(range(_FILES))

    assert time.time() > expires_at
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        reader.scan().to_arrow()  # the store refuses the first credential now, so the job had another one
    assert sorted(reader.refresh().scan().to_arrow()["id"].to_pylist()) == list(range(_FILES))
    assert _expiry(reader) > expires_at


def _expiry(table: Any) -> float:
    """Return when the credential of a PyIceberg table expires, in seconds since the epoch."""
    return int(table.io.properties["s3.session-token-expires-at-ms"]) / 1000
