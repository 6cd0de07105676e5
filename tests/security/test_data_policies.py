# SPDX-License-Identifier: Apache-2.0
"""Tables with data policies: no answer, credential or signature shows what a policy hides.

The attacks are D14, D17, D30, D33 and D34 of the catalogue of attacks on catalogs. The policies are written to the
database directly, so that the tests do not depend on the management API.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.stack.bound_policies import (
    DELEGATION,
    MASK,
    ONE,
    SIGN,
    bind,
    clean,
    engine,
    id_of,
    refused_with_remedy,
    restrictions,
    table,
)
from tests.support.stack.columns import BATCH, evolve, give
from tests.support.stack.data_policies import change, make, target
from tests.support.stack.exchanging import acting
from tests.support.stack.roles import add
from tests.support.stack.roles import make as make_role
from tests.support.stack.token_groups import give as give_role
from tests.support.stack.token_groups import of_group, take
from tests.support.stack.world import Person, Table, World, send_until_decided, unique

__all__ = ["clean", "engine", "table"]


CLAIMS = {
    "User-Agent": "Trino/476 trusted-enforcer",
    "X-Iceberg-Client-Capabilities": "read-restrictions",
    "X-Lakegate-Enforcer": "true",
}


@pytest.mark.parametrize("level", ["table", "namespace", "warehouse"])
def test_the_owner_without_an_enforcer_gets_neither_metadata_nor_keys_nor_signatures(
    world: World, ns: str, table: Table, level: str
) -> None:
    ids = {"table": id_of(table), "namespace": world.namespace_id(ns), "warehouse": world.warehouse}
    bind(world, MASK, level, ids[level])
    for headers in ({}, DELEGATION, {**DELEGATION, **CLAIMS}):
        refused_with_remedy(world.admin.get(table.path, headers=headers))
        refused_with_remedy(world.admin.get(f"{table.path}?snapshots=refs", headers=headers))
        refused_with_remedy(world.admin.get(f"{table.path}/credentials", headers=headers))
        refused_with_remedy(world.admin.post(f"{table.path}/sign", SIGN, headers=headers))


def test_a_restricted_principal_does_not_write(world: World, table: Table, engine: Person) -> None:
    bind(world, ONE, "table", id_of(table))
    update = {"action": "set-properties", "updates": {"a": "b"}}
    for person in (world.admin, acting(world, engine, world.admin)):
        assert world.commit(person, table.path, update).status_code == 403
        change = {"identifier": {"namespace": [table.namespace], "name": table.name}, "requirements": []}
        body = {"table-changes": [{**change, "updates": [update]}]}
        assert person.post(f"{world.root}/transactions/commit", body).status_code == 403
    assert world.admin.post(f"{table.path}/unregister", {}).status_code == 403


def test_an_enforcer_gets_the_restrictions_and_keys_that_only_read(world: World, table: Table, engine: Person) -> None:
    bind(world, MASK, "table", id_of(table))
    bind(world, ONE, "warehouse", world.warehouse)
    through = acting(world, engine, world.admin)
    loaded = through.get(table.path, headers=DELEGATION)
    assert restrictions(loaded) == {
        "required-column-projections": [{"field-id": 2, "action": "mask-alphanum"}],
        "required-row-filter": {
            "type": "eq",
            "left": {"type": "reference", "id": 2},
            "right": {"type": "literal", "value": "one"},
        },
    }
    assert "no-" in loaded.headers["cache-control"]
    assert "private" in loaded.headers["cache-control"]
    [credential] = loaded.json()["storage-credentials"]
    store = world.store_of(credential["config"])
    key = f"{table.location.removeprefix(f's3://{world.bucket}/')}/data/0.parquet"
    assert store.get_object(Bucket=world.bucket, Key=key)["Body"].read() == b"x"
    with pytest.raises(ClientError):
        store.put_object(Bucket=world.bucket, Key=f"{key}2", Body=b"x")
    assert through.get(f"{table.path}/credentials").status_code == 403
    assert through.post(f"{table.path}/sign", SIGN).status_code == 403


def test_a_column_that_is_withheld_stays_withheld_under_a_mask(world: World, table: Table, engine: Person) -> None:
    given = give(world, table, "id", world.carol)
    assert given.status_code == 204, given.text
    bind(world, MASK, "table", id_of(table))
    found = restrictions(acting(world, engine, world.carol).get(table.path))
    by_id = {each["field-id"]: each["action"] for each in found["required-column-projections"]}
    assert by_id[2] == "replace-with-null"
    assert set(by_id) == {2, 3, 4}


def test_a_new_policy_changes_the_etag_and_an_exemption_ends_with_its_revocation(
    world: World, table: Table, engine: Person
) -> None:
    through = acting(world, engine, world.admin)
    before = through.get(table.path)
    assert restrictions(before) == {}
    policy = make(world, MASK)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    again = through.get(table.path, headers={"If-None-Match": before.headers["etag"]})
    assert again.status_code == 200
    assert restrictions(again) != {}
    assert through.get(table.path, headers={"If-None-Match": again.headers["etag"]}).status_code == 304
    assert through.get(table.path, headers={"If-None-Match": "*"}).status_code == 200
    world.grant("exempt", world.admin, "data-policy", policy["id"])
    assert restrictions(send_until_decided(lambda: through.get(table.path))) == {}
    world.revoke("exempt", world.admin, "data-policy", policy["id"])
    refused_with_remedy(world.admin.get(table.path))


def test_a_user_that_may_only_describe_sees_no_summaries(world: World, table: Table) -> None:
    snapshot = {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": 1_700_000_000_000,
        "manifest-list": f"{table.location}/metadata/snap.avro",
        "summary": {"operation": "append", "total-records": "12345"},
        "schema-id": 0,
    }
    updates = (
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
    )
    done = send_until_decided(lambda: world.commit(world.admin, table.path, *updates))
    assert done.status_code == 200, done.text
    world.grant("describe", world.carol, "table", id_of(table))
    assert "12345" in world.carol.get(table.path).text
    bind(world, MASK, "table", id_of(table))
    shown = world.carol.get(table.path, headers=DELEGATION)
    assert shown.status_code == 200, shown.text
    assert "12345" not in shown.text
    assert shown.json()["metadata"]["snapshots"][0]["summary"] == {"operation": "append"}
    assert not shown.json().get("storage-credentials")
    assert "read-restrictions" not in shown.json()


def test_a_renamed_column_stays_masked_after_its_old_schema_was_removed(
    world: World, table: Table, engine: Person
) -> None:
    fields = [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "nickname", "type": "string", "required": False},
        {"id": 3, "name": "card", "type": "string", "required": True},
    ]
    evolve(world, table, fields, 5)
    removed = send_until_decided(
        lambda: world.commit(world.admin, table.path, {"action": "remove-schemas", "schema-ids": [0]})
    )
    assert removed.status_code == 200, removed.text
    bind(world, MASK, "table", id_of(table))
    found = restrictions(acting(world, engine, world.admin).get(table.path))
    assert {each["field-id"] for each in found["required-column-projections"]} == {2}


def test_a_policy_that_cannot_be_read_or_applied_never_shows_the_data(
    world: World, table: Table, engine: Person
) -> None:
    through = acting(world, engine, world.admin)
    bind(world, {**ONE, "test": {**ONE["test"], "column": {"name": "absent"}}}, "table", id_of(table))  # type: ignore[dict-item]  # a dictionary of this test
    assert restrictions(through.get(table.path)) == {"required-row-filter": False}
    deadline = time.monotonic() + 60
    while not world.sql("select 1 from data_policy_alerts where table_id = $1", table.uuid):
        assert time.monotonic() < deadline, "the alert was not recorded before the deadline"
        time.sleep(0.1)
    bind(world, {"kind": "of-a-later-version"}, "table", id_of(table))
    assert through.get(table.path).status_code == 403
    assert through.get(f"{table.path}/credentials").status_code == 403


def test_an_old_bridge_is_denied_and_a_new_one_gets_the_expressions(world: World, table: Table) -> None:
    policy = make(world, MASK)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    about = {"warehouse-id": world.warehouse, "table-id": table.uuid}
    actions = [
        {**about, "action": "read_data"},
        {**about, "action": "read_columns"},
        {**about, "action": "write_data"},
        {**about, "action": "read_columns", "restrictions": "trino"},
    ]
    answer = world.admin.post(BATCH, {"checks": [{"operation": {"table": each}} for each in actions]})
    assert answer.status_code == 200, answer.text
    results = answer.json()["results"]
    assert [each["allowed"] for each in results] == [False, False, False, True]
    assert "name" in results[3]["columns"]
    assert [each["column"] for each in results[3]["restrictions"]["column-masks"]] == ["name"]
    single = {"operation": {"table": {**about, "action": "read_data"}}}
    refused = {"allowed": False, "restricted": True}
    assert world.admin.post("/management/v1/permissions/check", single).json() == refused
    world.grant("select", world.carol, "table", table.uuid)
    [own] = world.carol.post(BATCH, {"checks": [{"operation": {"table": actions[3]}}]}).json()["results"]
    assert own == refused, "a restricted user does not read the literals of its policies"


def test_the_creator_of_a_table_below_a_policy_gets_no_credentials_for_it(world: World, ns: str) -> None:
    bind(world, MASK, "namespace", world.namespace_id(ns))
    made = world.admin.post(
        f"{world.root}/namespaces/{ns}/tables",
        {"name": "t", "schema": {"type": "struct", "fields": []}},
        headers=DELEGATION,
    )
    assert made.status_code == 200, made.text
    assert not made.json().get("storage-credentials")


def test_an_append_is_allowed_only_by_policies_that_allow_it(world: World, table: Table, engine: Person) -> None:
    def append(id: int, parent: int | None) -> tuple[tuple[object, ...], tuple[object, ...]]:
        snapshot = {
            "snapshot-id": id,
            **({} if parent is None else {"parent-snapshot-id": parent}),
            "sequence-number": id,
            "timestamp-ms": 1_700_000_000_000 + id,
            "manifest-list": f"{table.location}/metadata/snap-{id}.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        updates = (
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id},
        )
        return updates, ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},)

    through = acting(world, engine, world.admin)
    bind(world, MASK, "table", id_of(table), allow_append=True)
    updates, requirements = append(1, None)
    assert world.commit(world.admin, table.path, *updates, requirements=requirements).status_code == 403
    done = send_until_decided(lambda: world.commit(through, table.path, *updates, requirements=requirements))
    assert done.status_code == 200, done.text
    updates, requirements = append(2, 1)
    bind(world, ONE, "table", id_of(table))
    assert world.commit(through, table.path, *updates, requirements=requirements).status_code == 403


def test_a_named_user_does_not_escape_a_policy_about_a_group(world: World, table: Table) -> None:
    """D31: a bridge names users and knows none of their groups, and a group can make the user a subject."""
    group = of_group(world, unique("contractors"), world.carol.id.partition("~")[0])
    stored, outer = make_role(world), make_role(world)
    assert add(world, outer, "role", group["id"]).status_code == 204
    more: dict[str, Any] = {"applies-to": "subjects"}
    policy = make(world, MASK, **more)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    world.grant("select", world.carol, "table", table.uuid)
    about = {"action": "read_data", "warehouse-id": world.warehouse, "table-id": table.uuid}
    check = {"identity": {"user": world.carol.id}, "operation": {"table": about}}

    def reads() -> bool:
        answer = world.admin.post("/management/v1/permissions/check", check)
        assert answer.status_code == 200, answer.text
        return bool(answer.json()["allowed"])

    give_role(world, "subject", stored, "data-policy", policy["id"])
    assert reads(), "no group can give a role that only the gateway has"
    give_role(world, "subject", outer, "data-policy", policy["id"])
    assert not reads()
    take(world, "subject", outer, "data-policy", policy["id"])
    assert reads()
