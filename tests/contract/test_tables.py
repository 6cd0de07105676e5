# SPDX-License-Identifier: Apache-2.0
"""The table endpoints of the catalog protocol."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.stack.table_creation import creation
from tests.support.stack.world import SCHEMA, World, error_triple, unique

_SECRET = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")


def test_table_creation_returns_metadata_and_credentials(world: World, ns: str) -> None:
    table = world.table(ns, by=world.bob)
    answer = table.answer
    assert set(answer) == {"metadata-location", "metadata", "config", "storage-credentials"}
    assert answer["metadata-location"].startswith(f"{table.location}/metadata/00000-")
    assert answer["metadata"]["format-version"] == 2
    assert table.uuid in table.location, "a default location must contain the table's id"
    assert answer["storage-credentials"][0]["prefix"] == f"{table.location}/"


def test_load_with_credentials_has_the_fields_that_clients_read(world: World, ns: str) -> None:
    table = world.table(ns)
    before = time.time()
    loaded = world.alice.get(table.path, headers={"X-Iceberg-Access-Delegation": "vended-credentials"})
    assert loaded.status_code == 200
    config, (credential,) = loaded.json()["config"], loaded.json()["storage-credentials"]
    assert config["s3.region"] == config["client.region"] == world.ready.s3.region
    assert config["s3.endpoint"] == f"{world.ready.s3.endpoint}/"
    assert config["s3.path-style-access"] == "true"
    assert credential["prefix"] == f"{table.location}/"
    assert all(credential["config"][name] == config[name] for name in _SECRET)
    expires = int(credential["config"]["s3.session-token-expires-at-ms"]) / 1000
    assert before + 900 <= expires <= before + 3660
    assert credential["config"]["client.refresh-credentials-endpoint"].endswith(f"/tables/{table.name}/credentials")


def test_the_vended_keys_read_the_table(world: World, ns: str) -> None:
    table = world.table(ns)
    config = world.alice.get(table.path).json()["config"]
    key = table.answer["metadata-location"].removeprefix(f"s3://{world.bucket}/")
    assert world.store_of(config).get_object(Bucket=world.bucket, Key=key)["Body"].read()


def test_credentials_endpoint_returns_new_credentials(world: World, ns: str) -> None:
    table = world.table(ns)
    answer = world.alice.get(f"{table.path}/credentials")
    assert answer.status_code == 200
    (credential,) = answer.json()["storage-credentials"]
    assert credential["prefix"] == f"{table.location}/"
    key = table.answer["metadata-location"].removeprefix(f"s3://{world.bucket}/")
    assert world.store_of(credential["config"]).head_object(Bucket=world.bucket, Key=key)


def test_describe_privilege_gives_metadata_without_credentials(world: World, ns: str) -> None:
    table = world.table(ns)
    world.grant("describe", world.analyst, "table", table.uuid)
    loaded = world.analyst.get(table.path)
    assert loaded.status_code == 200
    assert loaded.json()["metadata"]["table-uuid"] == table.uuid
    assert not loaded.json().get("config")
    assert not loaded.json().get("storage-credentials")
    assert error_triple(world.analyst.get(f"{table.path}/credentials"))[0] == 403


def test_a_client_that_manages_its_storage_gets_region_and_endpoint_and_no_keys(world: World, ns: str) -> None:
    table = world.table(ns)
    loaded = world.alice.get(table.path, headers={"X-Iceberg-Access-Delegation": "client-managed"}).json()
    assert loaded["config"]["s3.region"] == world.ready.s3.region
    assert loaded["config"]["s3.endpoint"] == f"{world.ready.s3.endpoint}/"
    assert not set(_SECRET) & set(loaded["config"])
    assert not loaded.get("storage-credentials")
    both = world.alice.get(table.path, headers={"X-Iceberg-Access-Delegation": "client-managed, vended-credentials"})
    assert both.json()["storage-credentials"]


@pytest.mark.threat("LG-DEC-08")
def test_an_unknown_access_delegation_alone_gets_no_credentials(world: World, ns: str) -> None:
    table = world.table(ns)
    odd = world.alice.get(table.path, headers={"X-Iceberg-Access-Delegation": "vended-credential"})
    assert odd.status_code == 200, odd.text
    assert not set(_SECRET) & set(odd.json()["config"])
    assert not odd.json().get("storage-credentials")
    later = world.alice.get(table.path, headers={"X-Iceberg-Access-Delegation": "later, vended-credentials"})
    assert later.json()["storage-credentials"]


@pytest.mark.threat("LG-DIS-09")
def test_response_with_credentials_forbids_caching(world: World, ns: str) -> None:
    table = world.table(ns)
    for path in (table.path, f"{table.path}/credentials"):
        assert "private" in world.alice.get(path).headers["cache-control"]


def test_head_and_list_find_a_table(world: World, ns: str) -> None:
    table = world.table(ns)
    head = world.alice.head(table.path)
    assert (head.status_code, head.content) == (204, b"")
    listed = world.alice.get(f"{world.root}/namespaces/{ns}/tables?returnUuids=true").json()
    assert listed["identifiers"] == [{"namespace": [ns], "name": table.name}]
    assert len(listed["table-uuids"]) == 1


def test_missing_table_error_has_the_text_clients_expect(world: World, ns: str) -> None:
    path = f"{world.root}/namespaces/{ns}/tables/nope"
    expected = (404, "NoSuchTableException", f"Table does not exist: {ns}.nope")
    assert error_triple(world.admin.get(path)) == expected
    assert error_triple(world.admin.get(f"{path}/credentials")) == expected
    assert error_triple(world.admin.delete(path)) == expected
    assert (
        error_triple(world.commit(world.admin, path, {"action": "set-properties", "updates": {"a": "b"}})) == expected
    )
    assert world.admin.head(path).status_code == 404


def test_tables_are_found_in_any_letter_case(world: World, ns: str) -> None:
    table = world.table(ns, unique("Camel"))
    shouted = f"{world.root}/namespaces/{ns.upper()}/tables/{table.name.upper()}"
    assert world.admin.get(shouted).json()["metadata"]["table-uuid"] == table.uuid


@pytest.mark.parametrize(
    "name", ["with space", "dot.ted", "ünï", "日本", "quo'te\"", "star*", "${aws:userid}", "a?b#c"]
)
def test_table_name_is_decoded_once_with_a_safe_default_location(world: World, ns: str, name: str) -> None:
    made = world.admin.post(f"{world.root}/namespaces/{ns}/tables", {"name": name, "schema": SCHEMA})
    assert made.status_code == 200, made.text
    location = made.json()["metadata"]["location"]
    assert not set("*?${}'\"# ") & set(location.removeprefix("s3://"))
    path = f"{world.root}/namespaces/{ns}/tables/{quote(name, safe='')}"
    assert world.admin.get(path).json()["metadata"]["location"] == location
    assert world.admin.delete(path).status_code == 204
    assert world.admin.head(path).status_code == 404


def test_dropped_name_is_free_at_once_with_another_location(world: World, ns: str) -> None:
    first = world.table(ns)
    dropped = world.admin.delete(f"{first.path}?purgeRequested=false")
    assert (dropped.status_code, dropped.content) == (204, b"")
    second = world.table(ns, first.name)
    assert second.uuid != first.uuid
    assert second.location != first.location


def test_null_members_equal_omitted_members(world: World, ns: str) -> None:
    """Clients in several languages send null for members without a value."""
    body = {
        "name": "nulls",
        "schema": SCHEMA,
        "location": None,
        "partition-spec": None,
        "write-order": None,
        "stage-create": None,
        "properties": None,
    }
    assert world.admin.post(f"{world.root}/namespaces/{ns}/tables", body).status_code == 200


def test_explicit_location_below_the_base_is_used_unchanged(world: World, ns: str) -> None:
    location = f"s3://{world.bucket}/demo/{unique('mine')}/deep"
    table = world.table(ns, location=location)
    assert table.location == location
    assert table.answer["storage-credentials"][0]["prefix"] == f"{location}/"


@pytest.mark.threat("LG-LOC-18")
def test_one_of_fifty_creations_at_overlapping_locations_succeeds(world: World, ns: str) -> None:
    base = f"s3://{world.bucket}/demo/{unique('race')}"
    overlapping = [base, f"{base}/a", f"{base}/a/b"]

    def create(i: int) -> int:
        body = {"name": f"r{i}", "schema": SCHEMA, "location": overlapping[i % 3]}
        return (world.admin, world.bob)[i % 2].post(f"{world.root}/namespaces/{ns}/tables", body).status_code

    with ThreadPoolExecutor(16) as pool:
        codes = Counter(pool.map(create, range(50)))
    won = codes.pop(200)
    assert set(codes) <= {400, 409}
    locations = [row["location"] for row in world.sql("select location from tables where location like $1", f"{base}%")]
    # `…/a/b` and `…/a` overlap, and both overlap with the base: any two of them would share keys.
    assert won == len(locations) == 1
    written = world.objects(base.removeprefix(f"s3://{world.bucket}/"))
    assert len(written) == 1, "creations that lost the race must leave no metadata file"


def test_one_of_many_concurrent_table_creations_succeeds(world: World, ns: str) -> None:
    def create(_: int) -> int:
        return world.admin.post(f"{world.root}/namespaces/{ns}/tables", {"name": "rush", "schema": SCHEMA}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(create, range(16))) == [200] + [409] * 15


# ---- staged creation ------------------------------------------------------------------------------------------------


def _stage(world: World, ns: str, name: str) -> dict[str, Any]:
    body = {"name": name, "schema": SCHEMA, "stage-create": True}
    staged = world.bob.post(f"{world.root}/namespaces/{ns}/tables", body)
    assert staged.status_code == 200, staged.text
    answer: dict[str, Any] = staged.json()
    return answer


def test_staged_table_is_invisible_until_committed(world: World, ns: str) -> None:
    staged = _stage(world, ns, "staged")
    path = f"{world.root}/namespaces/{ns}/tables/staged"
    assert not staged.get("metadata-location")
    assert staged["storage-credentials"], "a staged table must be returned with credentials"
    assert world.bob.head(path).status_code == 404
    assert world.bob.get(f"{world.root}/namespaces/{ns}/tables").json()["identifiers"] == []
    committed = world.bob.post(path, creation(staged["metadata"]))
    assert committed.status_code == 200, committed.text
    loaded = world.bob.get(path).json()["metadata"]
    assert loaded["location"] == staged["metadata"]["location"]
    assert loaded["properties"]["made"] == "in two steps"
    assert loaded.get("metadata-log", []) == [], "a table after its first commit has no previous metadata"


def test_creator_refreshes_the_keys_of_a_staged_table_before_and_after_its_commit(world: World, ns: str) -> None:
    """A long CREATE TABLE AS SELECT outlives its first keys."""
    staged = _stage(world, ns, "long")
    [keys] = staged["storage-credentials"]
    address = f"/catalog/{keys['config']['client.refresh-credentials-endpoint']}"
    for _ in range(2):
        answer = world.bob.get(address)
        assert answer.status_code == 200, answer.text
        [fresh] = answer.json()["storage-credentials"]
        assert fresh["prefix"] == keys["prefix"] and fresh["config"]["s3.session-token"]
        path = f"{world.root}/namespaces/{ns}/tables/long"
        assert world.carol.get(address).status_code == 404
        if world.bob.head(path).status_code == 404:
            assert world.admin.get(address).status_code == 404, "only its creator gets keys of a staged table"
            assert world.bob.post(path, creation(staged["metadata"])).status_code == 200
    loaded = world.bob.get(path, headers={"X-Iceberg-Access-Delegation": "vended-credentials"}).json()
    assert loaded["storage-credentials"][0]["config"]["client.refresh-credentials-endpoint"].endswith(
        "/long/credentials"
    )


def test_one_of_many_commits_of_a_staged_table_succeeds(world: World, ns: str) -> None:
    creations = [creation(_stage(world, ns, "finish")["metadata"]) for _ in range(6)]
    path = f"{world.root}/namespaces/{ns}/tables/finish"
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda body: world.bob.post(path, body), creations))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 5
    assert {error_triple(a)[1] for a in answers if a.status_code == 409} == {"CommitFailedException"}


def test_staged_table_cannot_be_committed_by_another_user(world: World, ns: str) -> None:
    staged = _stage(world, ns, "stolen")
    theft = world.admin.post(f"{world.root}/namespaces/{ns}/tables/stolen", creation(staged["metadata"]))
    assert error_triple(theft)[:2] == (409, "LocationAlreadyTaken")
