# SPDX-License-Identifier: Apache-2.0
"""Engines that have no credentials read and write a table: the gateway signs each of their requests to the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import pyarrow as pa
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from pyiceberg.exceptions import SignError
from pyiceberg.io.fsspec import S3V4RestSigner
from pyiceberg.utils.concurrent import ExecutorFactory

from tests.support.engines.lake import catalog_of
from tests.support.engines.spark import Session, Spark
from tests.support.stack import warehouses
from tests.support.stack.lifecycle import soft_world, undrop, until
from tests.support.stack.remote_signing import REMOTE_SIGNING
from tests.support.stack.world import Table, World, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PyIceberg use one thread: its threads share a store client, and each replaces the signer of the others."""
    pytest.importorskip("s3fs", reason="needs aiobotocore, which does not support the gateway's botocore yet")
    monkeypatch.setenv("PYICEBERG_MAX_WORKERS", "1")
    monkeypatch.setattr(ExecutorFactory, "_instance", None)


@pytest.mark.parametrize("created", [False, True], ids=["loaded", "created"])
def test_pyiceberg_reads_and_writes(world: World, ns: str, one_worker: None, created: bool) -> None:
    catalog = catalog_of(world, world.admin, **{"header.X-Iceberg-Access-Delegation": "remote-signing"})
    rows = pa.table({"id": [1, 2, 3], "word": ["a", "b", "c"]})
    table = catalog.create_table((ns, "t"), schema=rows.schema)
    if not created:
        table = catalog.load_table((ns, "t"))
    assert "s3.secret-access-key" not in table.io.properties
    table.append(rows)
    table.append(rows)
    table.delete("id = 2")
    found = catalog.load_table((ns, "t")).scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == [1, 1, 3, 3]


def test_pyiceberg_creates_a_table_in_a_transaction(world: World, ns: str, one_worker: None) -> None:
    """Its files are written before the table exists."""
    catalog = catalog_of(world, world.admin, **{"header.X-Iceberg-Access-Delegation": "remote-signing"})
    rows = pa.table({"id": [1]})
    with catalog.create_table_transaction((ns, "t"), schema=rows.schema) as creation:
        creation.append(rows)
    assert catalog.load_table((ns, "t")).scan().to_arrow()["id"].to_pylist() == [1]


def _signing_store(world: World, table: Table, config: dict[str, str], token: str) -> Any:
    """Return an S3 client without keys that PyIceberg's signer signs for."""
    store = boto3.client(
        "s3",
        endpoint_url=config["s3.endpoint"],
        region_name=config["s3.region"],
        config=Config(s3={"addressing_style": "path"}, signature_version=UNSIGNED, retries={"total_max_attempts": 1}),
    )
    signer = S3V4RestSigner({**config, "uri": world.ready.catalog_uri, "token": token})
    store.meta.events.register_last("before-sign.s3", signer)
    return store


def test_pyiceberg_signer_signs_all_operations_of_a_store_client(world: World, table: Table) -> None:
    config = world.admin.get(table.path, headers=REMOTE_SIGNING).json()["config"]
    store = _signing_store(world, table, config, world.admin.token)
    prefix = table.location.removeprefix(f"s3://{world.bucket}/")
    place = {"Bucket": world.bucket, "Key": f"{prefix}/data/a b.parquet"}
    store.put_object(**place, Body=b"rows")
    assert store.head_object(**place)["ContentLength"] == 4
    assert store.get_object(**place, Range="bytes=1-2")["Body"].read() == b"ow"
    found = store.list_objects_v2(Bucket=world.bucket, Prefix=f"{prefix}/data/")
    assert [each["Key"] for each in found["Contents"]] == [place["Key"]]
    upload = store.create_multipart_upload(**place)["UploadId"]
    part = store.upload_part(**place, UploadId=upload, PartNumber=1, Body=b"parts")
    parts = {"Parts": [{"ETag": part["ETag"], "PartNumber": 1}]}
    store.complete_multipart_upload(**place, UploadId=upload, MultipartUpload=parts)
    assert store.get_object(**place)["Body"].read() == b"parts"
    store.delete_object(**place)
    attempts: list[Callable[[], object]] = [
        lambda: store.get_object(Bucket=world.bucket, Key="other/secret"),
        lambda: store.copy_object(**place, CopySource=f"{world.bucket}/other/secret"),
        lambda: store.list_objects_v2(Bucket=world.bucket, Prefix=prefix),
        lambda: store.get_object_acl(**place),
        lambda: store.delete_objects(Bucket=world.bucket, Delete={"Objects": [{"Key": place["Key"]}]}),  # sends no body
    ]
    for attempt in attempts:
        with pytest.raises(SignError):
            attempt()


def _signing_catalog(world: World, session: Session, warehouse: str, name: str = "signing") -> str:
    """Configure a catalog of the session that asks for signatures; return its name."""
    options = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": world.ready.catalog_uri,
        ".warehouse": warehouse,
        ".token": world.admin.token,
        ".token-refresh-enabled": "false",
        ".header.X-Iceberg-Access-Delegation": "remote-signing",
    }
    for option, value in options.items():
        session.sql(f"SET `spark.sql.catalog.{name}{option}`=`{value}`")
    return name


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sts", [True, False], ids=["sessions", "own key"])
def test_spark_reads_writes_and_deletes(world: World, spark: Spark, sts: bool) -> None:
    fields: dict[str, Any] = {"sts-enabled": sts}
    fields = {"storage-profile": warehouses.profile(world, **fields)}
    made = warehouses.make(world, **fields)
    namespace, session = unique("ns"), Session(spark, world.admin, f"signing {sts}")
    lake = _signing_catalog(world, session, made.name)
    session.sql(f"CREATE NAMESPACE {lake}.{namespace}")
    table = f"{lake}.{namespace}.t"
    session.sql(f"CREATE TABLE {table} (id INT, word STRING) USING iceberg")
    session.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    session.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    session.sql(f"DELETE FROM {table} WHERE id = 2")
    assert session.sql(f"SELECT id, word FROM {table} ORDER BY id") == [(1, "a"), (3, "c")]
    session.sql(f"CREATE TABLE {lake}.{namespace}.copy USING iceberg AS SELECT * FROM {table}")
    assert session.value(f"SELECT count(*) FROM {lake}.{namespace}.copy") == 2
    signed = world.sql(
        "select convert_from(record, 'UTF8') as record from audit_log where operation = 'sign_write' "
        "and convert_from(record, 'UTF8') like '%' || $1 || '%' limit 1",
        made.id,
    )
    assert signed, "the engine asked for signatures"
    left = len(world.objects())
    session.sql(f"CALL {lake}.system.expire_snapshots(table => '{namespace}.t', older_than => TIMESTAMP '2100-01-01')")
    assert len(world.objects()) < left or not sts
    assert session.value(f"SELECT count(*) FROM {table}") == 2
    # No row and no right of the table is left that Spark's own purge could be decided by: the catalog purges.
    session.sql("SET `spark.sql.catalog.purging.rest-catalog-purge`=`true`")
    purging = _signing_catalog(world, session, made.name, "purging")
    prefix = _prefix(world, made.id, namespace)
    session.sql(f"DROP TABLE {purging}.{namespace}.t PURGE")
    until(lambda: not world.objects(prefix), "the catalog has deleted the files")


@pytest.mark.timeout(300)
def test_spark_purges_a_table_after_its_drop_and_the_table_can_be_restored(world: World, spark: Spark) -> None:
    soft = soft_world(world)
    name = world.admin.get(f"/management/v1/warehouse/{soft.warehouse}").json()["name"]
    namespace, session = unique("ns"), Session(spark, world.admin, "purging")
    lake = _signing_catalog(world, session, name, "kept")
    session.sql(f"CREATE NAMESPACE {lake}.{namespace}")
    session.sql(f"CREATE TABLE {lake}.{namespace}.t USING iceberg AS SELECT 1 AS id")
    id = soft.admin.get(f"{soft.root}/namespaces/{namespace}/tables/t").json()["metadata"]["table-uuid"]
    # Spark drops the table first. Then it reads the metadata by signed requests; the catalog deletes the files later.
    session.sql(f"DROP TABLE {lake}.{namespace}.t PURGE")
    assert soft.admin.head(f"{soft.root}/namespaces/{namespace}/tables/t").status_code == 404
    assert undrop(soft.admin, soft, ("table", id)).status_code == 204
    assert session.sql(f"SELECT id FROM {lake}.{namespace}.t") == [(1,)]
    soft.close()


def _prefix(world: World, warehouse: str, namespace: str) -> str:
    """Return the common prefix of the keys of the table `t`."""
    answer = world.admin.get(f"/catalog/v1/{warehouse}/namespaces/{namespace}/tables/t").json()
    return str(answer["metadata"]["location"]).removeprefix(f"s3://{world.bucket}/")
