# SPDX-License-Identifier: Apache-2.0
"""Callers never get keys for the location of another user's table (`docs/threats.md`, LG-LOC)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from gateway.storage.s3.profile import SCHEME
from tests.support.stack.location_layouts import LAYOUTS, warehouse
from tests.support.stack.world import SCHEMA, Table, World, error_triple, send_until_decided, unique


@pytest.mark.threat("LG-LOC-16")
def test_table_cannot_claim_the_folder_of_a_namespace(world: World) -> None:
    """With namespaces in the path, a user that creates one table could claim the parent folder of all tables."""
    layout = {"type": "full-hierarchy", "namespace": "{name}-{uuid}", "tabular": "{name}-{uuid}"}
    root = warehouse(world, **{"storage-layout": layout})
    assert world.admin.post(f"{root}/namespaces", {"namespace": ["n"]}).status_code == 200
    tables = f"{root}/namespaces/n/tables"
    sample = world.admin.post(tables, {"name": "sample", "schema": SCHEMA, "stage-create": True}).json()
    world.sql("delete from tables where location = $1", sample["metadata"]["location"])
    folder = sample["metadata"]["location"].rpartition("/")[0]
    trap = {"name": "trap", "schema": SCHEMA, "location": folder}
    assert error_triple(world.admin.post(tables, trap))[:2] == (400, "InvalidLocation")
    # A row of an earlier version or of another layout: its keys would reach a table below it.
    assert world.admin.post(tables, {"name": "trap", "schema": SCHEMA}).status_code == 200
    location = SCHEME.parse(folder)
    world.sql(
        "update tables set location = $1, location_key = $2 where name = 'trap' and location like $3",
        location.text,
        location.overlap_key,
        f"{folder}/%",
    )
    for staged in (False, True):
        victim = world.admin.post(tables, {"name": "victim", "schema": SCHEMA, "stage-create": staged})
        assert error_triple(victim)[:2] == (409, "LocationAlreadyTaken")


@pytest.mark.threat("LG-LOC-07")
@pytest.mark.parametrize("kind", LAYOUTS)
def test_namespace_location_never_places_a_table_inside_another(world: World, kind: str) -> None:
    """A namespace may name any location in its warehouse, but no table is created inside another one."""
    root = warehouse(world, **LAYOUTS[kind])
    assert world.admin.post(f"{root}/namespaces", {"namespace": ["n"]}).status_code == 200
    victim = world.admin.post(f"{root}/namespaces/n/tables", {"name": "victim", "schema": SCHEMA})
    folder = victim.json()["metadata"]["location"]
    for number, location in enumerate((folder, f"{folder}/below", folder.rpartition("/")[0])):
        space = {"namespace": [f"m{number}"], "properties": {"location": location}}
        if world.admin.post(f"{root}/namespaces", space).status_code == 400:
            continue
        made = world.admin.post(f"{root}/namespaces/m{number}/tables", {"name": "t", "schema": SCHEMA})
        if made.status_code == 200:
            assert not f"{made.json()['metadata']['location']}/".startswith(f"{folder}/")
        else:
            assert error_triple(made)[:2] == (409, "LocationAlreadyTaken")
    outside = {"namespace": ["o"], "properties": {"location": f"s3://{world.bucket}/elsewhere"}}
    assert error_triple(world.admin.post(f"{root}/namespaces", outside))[:2] == (400, "InvalidLocation")


@pytest.mark.threat("LG-LOC-18")
def test_racing_default_and_explicit_locations_never_overlap(world: World) -> None:
    root = warehouse(world)
    made = world.admin.post(f"{root}/namespaces", {"namespace": ["n"]}).json()
    folder = f"{made['properties']['location']}{unique('folder')}"

    def create(i: int) -> httpx.Response:
        location = {} if i % 4 == 3 else {"location": [folder, f"{folder}/a", f"{folder}/a/{i}"][i % 4]}
        body = {"name": f"t{i}", "schema": SCHEMA, **location}
        return send_until_decided(lambda: world.admin.post(f"{root}/namespaces/n/tables", body))

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(create, range(24)))
    made = {answer.json()["metadata"]["location"] for answer in answers if answer.status_code == 200}
    refused = {error_triple(answer)[:2] for answer in answers if answer.status_code != 200}
    # 400: the winning request's file already existed; 409: its row existed.
    assert refused <= {(409, "LocationAlreadyTaken"), (400, "UnexpectedFilesInLocation")}
    assert refused
    assert [answers[i].status_code for i in range(3, 24, 4)] == [200] * 6, (
        "a creation at its default location must succeed"
    )
    rows = world.sql("select location, location_key from tables where location = any($1)", list(made))
    assert {row["location"] for row in rows} == made
    keys = [row["location_key"] for row in rows if row["location"].startswith(folder)]
    assert keys
    assert not [(a, b) for a in keys for b in keys if a != b and a.startswith(b)]


def test_a_warehouse_inside_another_one_is_refused_in_any_project(world: World) -> None:
    project = world.admin.post("/management/v1/project", {"project-name": unique("tenant")}).json()["project-id"]
    credential = {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": world.ready.s3.access_key,
        "secret-access-key": world.ready.s3.secret_key,
    }
    for prefix in ("demo", "demo/inner", "DEMO", None):
        profile = {
            **world.ready.s3.profile,
            "bucket": world.bucket,
            **({} if prefix is None else {"key-prefix": prefix}),
        }
        body = {
            "warehouse-name": unique("wh"),
            "storage-profile": profile,
            "storage-credential": credential,
            "project-id": project,
        }
        answer = world.admin.post("/management/v1/warehouse", body)
        assert error_triple(answer)[:2] == (400, "CreateWarehouseStorageProfileOverlap")


# ---- reach of vended keys ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def siblings(world: World) -> dict[str, Table]:
    """Create tables whose names and folders have a common prefix."""
    namespace, stem = world.namespace(), f"s3://{world.bucket}/demo/{unique('sib')}"
    made = {}
    for suffix in ("", "0", "_x", "."):
        name = f"t1{suffix}"
        made[name] = world.table(namespace, name, location=f"{stem}/{name}" if suffix != "." else f"{stem}/t1.x")
    return made


def _key(world: World, table: Table, name: str = "data/file") -> str:
    return f"{table.location.removeprefix(f's3://{world.bucket}/')}/{name}"


def _refused(action: Any, **arguments: Any) -> None:
    with pytest.raises(ClientError) as refusal:
        action(**arguments)
    assert refusal.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403, refusal.value


@pytest.mark.threat("LG-LOC-01")
def test_keys_of_one_table_give_no_access_to_a_sibling(world: World, siblings: dict[str, Table]) -> None:
    keys = world.store_of(world.admin.get(siblings["t1"].path).json()["config"])
    keys.put_object(Bucket=world.bucket, Key=_key(world, siblings["t1"]), Body=b"mine")
    for name in ("t10", "t1_x", "t1."):
        world.s3.put_object(Bucket=world.bucket, Key=_key(world, siblings[name]), Body=b"theirs")
        _refused(keys.get_object, Bucket=world.bucket, Key=_key(world, siblings[name]))
        _refused(keys.put_object, Bucket=world.bucket, Key=_key(world, siblings[name], "new"), Body=b"x")
        _refused(keys.delete_object, Bucket=world.bucket, Key=_key(world, siblings[name]))
        _refused(keys.list_objects_v2, Bucket=world.bucket, Prefix=_key(world, siblings[name], ""))
    bare = _key(world, siblings["t1"], "").rstrip("/")
    _refused(keys.list_objects_v2, Bucket=world.bucket, Prefix=bare)
    _refused(keys.list_objects_v2, Bucket=world.bucket)
    own = keys.list_objects_v2(Bucket=world.bucket, Prefix=f"{bare}/")
    assert {found["Key"] for found in own["Contents"]} >= {_key(world, siblings["t1"])}


@pytest.mark.threat("LG-DEC-07")
def test_reader_gets_read_only_keys_for_every_request(world: World, siblings: dict[str, Table]) -> None:
    """alice has `select`; the keys of every kind of load request must neither write nor delete."""
    header = {"X-Iceberg-Access-Delegation": "vended-credentials, remote-signing"}
    keys = world.store_of(world.alice.get(siblings["t1"].path, headers=header).json()["config"])
    key = siblings["t1"].answer["metadata-location"].removeprefix(f"s3://{world.bucket}/")
    assert keys.get_object(Bucket=world.bucket, Key=key)["Body"].read()
    _refused(keys.put_object, Bucket=world.bucket, Key=_key(world, siblings["t1"], "new"), Body=b"x")
    _refused(keys.delete_object, Bucket=world.bucket, Key=key)
    _refused(keys.create_multipart_upload, Bucket=world.bucket, Key=_key(world, siblings["t1"], "new"))


@pytest.mark.threat("LG-LOC-22")
def test_table_keys_give_no_control_plane_access(world: World, siblings: dict[str, Table]) -> None:
    """Keys of a table must not manage identities, policies or buckets of the store."""
    keys = world.store_of(world.admin.get(siblings["t1"].path).json()["config"])
    bucket = {"Bucket": world.bucket}
    _refused(keys.get_bucket_policy, **bucket)
    _refused(keys.put_bucket_policy, **bucket, Policy="{}")
    _refused(keys.delete_bucket, **bucket)
    _refused(keys.create_bucket, Bucket="mine-all-mine")
    _refused(keys.put_bucket_versioning, **bucket, VersioningConfiguration={"Status": "Enabled"})
    _refused(keys.put_object_acl, **bucket, Key=_key(world, siblings["t1"]), ACL="public-read")
    assert not keys.list_buckets().get("Buckets")


def test_foreign_object_cannot_be_copied_into_a_table(world: World, siblings: dict[str, Table]) -> None:
    keys = world.store_of(world.admin.get(siblings["t1"].path).json()["config"])
    world.s3.put_object(Bucket=world.bucket, Key=_key(world, siblings["t10"]), Body=b"theirs")
    source = {"Bucket": world.bucket, "Key": _key(world, siblings["t10"])}
    _refused(keys.copy_object, Bucket=world.bucket, Key=_key(world, siblings["t1"], "copy"), CopySource=source)


@pytest.mark.threat("LG-POL-01", "LG-POL-02", "LG-POL-03")
@pytest.mark.parametrize("name", ["*", "**", "t?", "${aws:username}", "${*}", "$${", '","Effect":"Allow', "},{"])
def test_name_with_policy_syntax_gives_no_further_access(world: World, siblings: dict[str, Table], name: str) -> None:
    """Wildcards, policy variables and JSON in a name must be literal text in the session policy."""
    table = world.table(siblings["t1"].namespace, f"{unique('odd')} {name}")
    keys = world.store_of(table.answer["config"])
    keys.put_object(Bucket=world.bucket, Key=_key(world, table), Body=b"mine")
    _refused(keys.get_object, Bucket=world.bucket, Key=_key(world, siblings["t10"]))
    _refused(keys.put_object, Bucket=world.bucket, Key=_key(world, siblings["t10"], "new"), Body=b"x")


@pytest.mark.threat("LG-DEC-16", "LG-LOC-17")
def test_a_dropped_and_recreated_table_inherits_nothing(world: World, ns: str) -> None:
    """The new table has neither the folder nor the grants of the old one."""
    first = world.table(ns)
    world.grant("select", world.analyst, "table", first.uuid)
    old = world.store_of(world.analyst.get(first.path).json()["config"])
    assert world.admin.delete(first.path).status_code == 204
    second = world.table(ns, first.name)
    assert error_triple(world.analyst.get(second.path))[0] == 404
    key = second.answer["metadata-location"].removeprefix(f"s3://{world.bucket}/")
    _refused(old.get_object, Bucket=world.bucket, Key=key)
    assert world.tuples(f"table:{first.uuid}") == set()
    assert world.sql("select 1 from grants where object_id = $1", first.uuid) == []
