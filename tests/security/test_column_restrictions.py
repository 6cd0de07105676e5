# SPDX-License-Identifier: Apache-2.0
"""Column-restricted tables: engines must be trusted, and no operation may disclose the other columns.

The tests cover LG-DEC-11 to LG-DEC-14, LG-DEC-20, LG-DEC-22 to LG-DEC-27 and LG-DIS-06 of `docs/threats.md`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.support.stack.columns import expiring_grant, give, readable, take, wide
from tests.support.stack.exchanging import acting
from tests.support.stack.lifecycle import fill
from tests.support.stack.views import body as view_body
from tests.support.stack.world import Person, Table, World, error_of, error_triple, unique

HELD_BACK = {
    "required-column-projections": [
        {"field-id": 1, "action": "mask-to-fixed-value"},
        {"field-id": 3, "action": "mask-to-fixed-value"},
        {"field-id": 4, "action": "replace-with-null"},
    ]
}


@pytest.fixture(autouse=True)
def strangers(world: World) -> Iterator[None]:
    """Revoke the grants of carol, the steward and the engine, before and after the test."""
    people = (world.carol, world.steward, world.etl)
    for person in people:
        world.strip(person)
    yield
    for person in people:
        world.strip(person)


@pytest.fixture
def table(world: World, ns: str) -> Table:
    """Return a table with files, of which carol may read one column."""
    table = wide(world, ns)
    fill(world, table.location)
    given = give(world, table, "name", world.carol)
    assert given.status_code == 204, given.text
    return table


@pytest.fixture
def engine(world: World) -> Person:
    """Return an engine with `delegate` and with `enforcer`, the right to enforce column restrictions."""
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    return world.etl


@pytest.fixture
def carol(world: World, engine: Person) -> Person:
    """Return carol as a user of that engine."""
    return acting(world, engine, world.carol)


def config_of(answer: httpx.Response) -> dict[str, str]:
    """Return the vended credential of a load."""
    assert answer.status_code == 200, answer.text
    [credential] = answer.json()["storage-credentials"]
    config: dict[str, str] = credential["config"]
    return config


def refused_with_remedy(answer: httpx.Response) -> None:
    """Assert a 403 whose message names the remedy, and neither keys nor the policy."""
    error = error_of(answer)
    assert (error["code"], error["type"]) == (403, "ForbiddenException"), error
    assert "enforcer" in error["message"]
    assert "`select`" in error["message"]
    for secret in ("name", "card", "field", "s3."):
        assert secret not in error["message"].replace("not allowed", "")


def recorded(world: World, answer: httpx.Response) -> dict[str, Any]:
    """Return the audit record of a request."""
    record = "convert_from(record, 'UTF8')"
    kept = f"select {record} as r from audit_log where {record} like '%' || $1 || '%'"
    deadline = time.monotonic() + 30
    while not (rows := world.sql(kept, answer.headers["x-request-id"])) and time.monotonic() < deadline:
        time.sleep(0.1)
    found: dict[str, Any] = json.loads(rows[0]["r"])
    return found


DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}
SIGN = {"region": "us-east-1", "method": "GET", "uri": "x", "headers": {}}
CLAIMS = {
    "User-Agent": "Trino/476 trusted-enforcer",
    "X-Iceberg-Client-Capabilities": "read-restrictions",
    "X-Lakegate-Enforcer": "true",
    "X-Trino-User": "etl",
}


@pytest.mark.threat("LG-DEC-26")
@pytest.mark.parametrize(
    "headers",
    [{}, DELEGATION, {**DELEGATION, **CLAIMS}],
    ids=["without delegation", "with delegation", "claiming to be an engine"],
)
def test_unverified_engine_gets_the_remedy_and_no_keys(
    world: World, table: Table, engine: Person, headers: dict[str, str]
) -> None:
    refused_with_remedy(world.carol.get(table.path, headers=headers))
    refused_with_remedy(world.carol.get(f"{table.path}?snapshots=refs", headers=headers))
    refused_with_remedy(world.carol.get(f"{table.path}/credentials", headers=headers))
    refused_with_remedy(world.carol.post(f"{table.path}/sign", SIGN))
    record = recorded(world, world.carol.get(table.path, headers=headers))
    assert record["decisions"][0]["failure"] == "RestrictedWithoutEnforcer"


@pytest.mark.threat("LG-DEC-11")
def test_a_trusted_engine_gets_the_restrictions_and_keys_that_only_read(
    world: World, table: Table, carol: Person
) -> None:
    loaded = carol.get(table.path)
    assert loaded.status_code == 200, loaded.text
    assert loaded.json()["read-restrictions"] == HELD_BACK
    key = f"{table.location.removeprefix(f's3://{world.bucket}/')}/data/"
    store = world.store_of(config_of(loaded))
    names = [each["Key"] for each in store.list_objects_v2(Bucket=world.bucket, Prefix=key)["Contents"]]
    assert store.get_object(Bucket=world.bucket, Key=names[0])["Body"].read() is not None
    attempts: tuple[Callable[[], object], ...] = (
        lambda: store.put_object(Bucket=world.bucket, Key=f"{key}written", Body=b"x"),
        lambda: store.delete_object(Bucket=world.bucket, Key=names[0]),
        lambda: store.create_multipart_upload(Bucket=world.bucket, Key=f"{key}written"),
    )
    for attempt in attempts:
        with pytest.raises(ClientError) as denied:
            attempt()
        assert denied.value.response["Error"]["Code"] == "AccessDenied"
    record = recorded(world, loaded)
    assert record["actor"]["engine"] == world.etl.id
    assert {each["obligations"].get("readable_columns") for each in record["decisions"]} == {1}
    assert record["detail"]["vended"] == "read"


def not_renewed(answer: httpx.Response) -> None:
    """Assert a 403 that makes an engine load the table again, where it receives the column restrictions."""
    error = error_of(answer)
    assert (error["code"], error["type"]) == (403, "NoCredentialsVended"), error
    assert error["message"].endswith("Load the table again.")
    assert "s3." not in answer.text


def test_keys_of_a_column_grantee_are_not_renewed(world: World, table: Table, carol: Person) -> None:
    assert give(world, table, "card", world.carol).status_code == 204
    loaded = carol.get(table.path)
    assert not [name for name in (*config_of(loaded), *loaded.json()["config"]) if "refresh" in name]
    not_renewed(carol.get(f"{table.path}/credentials"))
    assert take(world, table, "card", world.carol).status_code == 204
    for requested in ("", "?planId=1", "?refresh=true", f"?referenced-by={table.namespace}%1Fsome_view"):
        not_renewed(carol.get(f"{table.path}/credentials{requested}", headers=DELEGATION))
    record = recorded(world, carol.get(f"{table.path}/credentials"))
    assert (record["detail"]["vended"], "prefix" in record["detail"]) == ("nothing", False)
    assert carol.get(table.path).json()["read-restrictions"] == HELD_BACK, (
        "the remaining operation must return the restrictions"
    )


def test_keys_are_not_renewed_after_reduction_to_some_columns(world: World, table: Table, carol: Person) -> None:
    world.grant("select", world.carol, "table", table.uuid)
    assert config_of(carol.get(table.path))["client.refresh-credentials-endpoint"]
    assert carol.get(f"{table.path}/credentials").status_code == 200
    world.revoke("select", world.carol, "table", table.uuid)
    not_renewed(carol.get(f"{table.path}/credentials"))


def test_full_reader_is_unaffected_with_and_without_an_engine(world: World, table: Table, engine: Person) -> None:
    world.grant("select", world.steward, "table", table.uuid)
    for person in (world.steward, acting(world, engine, world.steward)):
        answer = person.get(table.path)
        assert "read-restrictions" not in answer.json()
        assert config_of(answer)["s3.access-key-id"]


def test_describe_gives_metadata_and_keys_only_through_an_enforcer(world: World, table: Table, carol: Person) -> None:
    world.grant("describe", world.carol, "table", table.uuid)
    own = world.carol.get(table.path)
    assert own.status_code == 200
    assert not own.json().get("storage-credentials")
    assert "read-restrictions" not in own.json()
    refused_with_remedy(world.carol.get(f"{table.path}/credentials"))
    through = carol.get(table.path)
    assert through.json()["read-restrictions"] == HELD_BACK
    assert config_of(through)


@pytest.mark.threat("LG-DEC-20")
def test_an_engine_that_lost_a_relation_is_refused_with_the_next_request(
    world: World, table: Table, carol: Person
) -> None:
    assert carol.get(table.path).status_code == 200
    world.revoke("enforcer", world.etl, "warehouse", world.warehouse)
    refused_with_remedy(carol.get(table.path))
    refused_with_remedy(carol.get(f"{table.path}/credentials"))
    world.grant("enforcer", world.etl, "project", world.project)
    assert carol.get(table.path).status_code == 200, "enforcer on the project must apply to its warehouses"
    world.revoke("delegate", world.etl, "warehouse", world.warehouse)
    assert carol.get(table.path).status_code == 404


def test_revoked_column_is_withheld_at_the_next_request(world: World, table: Table, carol: Person) -> None:
    assert give(world, table, "card", world.carol).status_code == 204
    more = carol.get(table.path).json()["read-restrictions"]["required-column-projections"]
    assert [each["field-id"] for each in more] == [1, 4]
    assert take(world, table, "card", world.carol).status_code == 204
    assert carol.get(table.path).json()["read-restrictions"] == HELD_BACK
    assert take(world, table, "name", world.carol).status_code == 204
    assert error_triple(carol.get(table.path))[:2] == (404, "NoSuchTableException")
    assert carol.get(f"{table.path}/credentials").status_code == 404


def test_etag_covers_the_column_restrictions(world: World, table: Table, carol: Person) -> None:
    first = carol.get(table.path)
    tag = {"If-None-Match": first.headers["etag"]}
    assert carol.get(table.path, headers=tag).status_code == 304
    assert give(world, table, "card", world.carol).status_code == 204
    changed = carol.get(table.path, headers=tag)
    assert changed.status_code == 200
    tag = {"If-None-Match": changed.headers["etag"]}
    refused_with_remedy(world.carol.get(table.path, headers=tag))
    world.revoke("enforcer", world.etl, "warehouse", world.warehouse)
    refused_with_remedy(carol.get(table.path, headers=tag))
    refused_with_remedy(carol.get(table.path, headers={"If-None-Match": "*"}))


@pytest.mark.threat("LG-DEC-14")
def test_keys_are_not_shared_between_different_column_sets(
    world: World, table: Table, engine: Person, carol: Person
) -> None:
    mine = config_of(carol.get(table.path))["s3.access-key-id"]
    assert give(world, table, "card", world.carol).status_code == 204
    wider = config_of(carol.get(table.path))["s3.access-key-id"]
    world.grant("select", world.carol, "table", table.uuid)
    whole = config_of(carol.get(table.path))["s3.access-key-id"]
    own = config_of(world.carol.get(table.path))["s3.access-key-id"]
    assert len({mine, wider, whole, own}) == 4


@pytest.mark.threat("LG-DIS-06")
def test_keys_expire_before_the_column_grant(world: World, ns: str, carol: Person) -> None:
    table = wide(world, ns)
    end = datetime.now(UTC) + timedelta(minutes=25)
    assert give(world, table, "name", world.carol, **expiring_grant(end)).status_code == 204
    config = config_of(carol.get(table.path))
    expires = datetime.fromtimestamp(int(config["s3.session-token-expires-at-ms"]) / 1000, UTC)
    assert expires <= end


@pytest.mark.threat("LG-DEC-13")
def test_column_grantee_cannot_write_by_any_operation(world: World, table: Table, carol: Person) -> None:
    before = world.snapshot()
    change = {"action": "set-properties", "updates": {"a": "b"}}
    rename = {
        "source": {"namespace": [table.namespace], "name": table.name},
        "destination": {"namespace": [table.namespace], "name": unique("t")},
    }
    several = {
        "table-changes": [
            {
                "identifier": {"namespace": [table.namespace], "name": table.name},
                "requirements": [],
                "updates": [change],
            }
        ]
    }
    register = {"name": unique("t"), "metadata-location": table.answer["metadata-location"]}
    over = {**register, "name": table.name, "overwrite": True}
    space = f"{world.root}/namespaces/{table.namespace}"
    for person in (world.carol, carol):
        attempts = [
            world.commit(person, table.path, change),
            person.post(f"{world.root}/transactions/commit", several),
            person.post(f"{world.root}/tables/rename", rename),
            person.delete(table.path),
            person.delete(f"{table.path}?purgeRequested=true"),
            person.post(f"{space}/register", register),
            person.post(f"{space}/register", over),
            person.post(f"{space}/views", view_body(unique("v"))),
            person.post(f"{space}/tables", {"name": unique("t"), "schema": {"type": "struct", "fields": []}}),
            person.post(f"{table.path}/unregister"),
        ]
        assert {each.status_code for each in attempts} <= {403, 404}, [each.text for each in attempts]
    assert world.snapshot().objects == before.objects


def test_policy_cannot_extend_a_column_restriction(world: World, table: Table, carol: Person, engine: Person) -> None:
    """A policy on appending narrows the credential of a writer; it gives nothing to a reader."""
    config = config_of(carol.get(table.path))
    store, key = world.store_of(config), f"{table.location.removeprefix(f's3://{world.bucket}/')}/data/more"
    with pytest.raises(ClientError):
        store.put_object(Bucket=world.bucket, Key=key, Body=b"x")


@pytest.mark.threat("LG-DEC-22")
def test_invalid_column_name_matches_no_column(world: World, table: Table) -> None:
    for name in (" ", "*", "%00", "name ", "\u00a0name", "#", "name,card"):
        answer = give(world, table, name, world.steward)
        assert answer.status_code == 404, (name, answer.text)
    assert readable(world.steward, world, table) == [False]


@pytest.mark.threat("LG-DEC-27")
def test_recreated_column_of_the_same_name_is_withheld(world: World, table: Table, carol: Person) -> None:
    fields = table.answer["metadata"]["schemas"][0]["fields"]
    fresh = [each for each in fields if each["id"] != 2] + [{**fields[1], "id": 6}]
    for some in ([each for each in fields if each["id"] != 2], fresh):
        done = world.commit(
            world.admin,
            table.path,
            {"action": "add-schema", "schema": {"type": "struct", "fields": some}, "last-column-id": 6},
            {"action": "set-current-schema", "schema-id": -1},
        )
        assert done.status_code == 200, done.text
    refused_with_remedy(carol.get(table.path))
    assert give(world, table, "card", world.carol).status_code == 204
    held = carol.get(table.path).json()["read-restrictions"]["required-column-projections"]
    assert [each["field-id"] for each in held] == [1, 2, 4, 6], (
        "the dropped column must stay restricted, because old files contain it"
    )


@pytest.mark.threat("LG-DEC-27")
def test_unenforceable_restriction_denies_the_read(world: World, ns: str, carol: Person) -> None:
    fields = [
        {"id": 1, "name": "name", "type": "string", "required": False},
        {"id": 2, "name": "place", "type": "geometry", "required": True},
    ]
    made = world.admin.post(
        f"{world.root}/namespaces/{ns}/tables",
        {"name": unique("t"), "schema": {"type": "struct", "fields": fields}, "properties": {"format-version": "3"}},
    )
    assert made.status_code == 200, made.text
    id, name = made.json()["metadata"]["table-uuid"], made.json()["metadata"]["location"]
    assert name
    assert give(world, id, "name", world.carol).status_code == 204
    listed = world.admin.get(f"{world.root}/namespaces/{ns}/tables").json()["identifiers"]
    refused_with_remedy(carol.get(f"{world.root}/namespaces/{ns}/tables/{listed[0]['name']}"))


@pytest.mark.threat("LG-DEC-24")
def test_column_grant_by_role_applies_through_the_engine(world: World, table: Table, engine: Person) -> None:
    through = acting(world, engine, world.steward)
    assert through.get(table.path).status_code == 404
    made = world.admin.post("/management/v1/role", {"name": unique("role")})
    role = made.json()["id"]
    member = {"members": [{"type": "user", "id": world.steward.id}]}
    assert world.admin.post(f"/management/v1/role/{role}/members", member).status_code == 204
    path = f"/management/v1/permissions/warehouse/{world.warehouse}/table/{table.uuid}/columns/card/assignments"
    assert world.admin.post(path, {"writes": [{"type": "select", "role": role}]}).status_code == 204
    held = through.get(table.path).json()["read-restrictions"]["required-column-projections"]
    assert [each["field-id"] for each in held] == [1, 2, 4]
    assert world.admin.delete(f"/management/v1/role/{role}").status_code == 204
    assert through.get(table.path).status_code == 404


@pytest.mark.threat("LG-DEC-12")
def test_named_view_gives_no_further_columns(world: World, table: Table, carol: Person) -> None:
    for person in (world.carol, carol):
        answer = person.get(f"{table.path}?referenced-by={table.namespace}%1Fsome_view")
        assert answer.status_code in (200, 403, 404)
        if answer.status_code == 200:
            assert answer.json()["read-restrictions"] == HELD_BACK


@pytest.mark.threat("LG-DEC-11")
def test_column_grantee_cannot_read_statistics_tasks_or_metrics(world: World, table: Table, carol: Person) -> None:
    about = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}"
    report = {
        "report-type": "scan-report",
        "table-name": table.name,
        "snapshot-id": 1,
        "filter": True,
        "schema-id": 0,
        "projected-field-ids": [],
        "projected-field-names": [],
        "metrics": {},
    }
    for person in (world.carol, carol):
        assert person.get(f"{about}/protection").status_code == 403
        assert person.post(f"{table.path}/metrics", report).status_code == 403
        assert person.get(f"{about}/grants").status_code == 403
        assert person.get(f"{about}/columns/grants").status_code == 403
