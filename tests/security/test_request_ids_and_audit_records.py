# SPDX-License-Identifier: Apache-2.0
"""Request contents must neither break a request nor falsify its audit record."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import httpx
import pytest

from tests.support.stack.exchanging import acting, delegating
from tests.support.stack.warehouses import until
from tests.support.stack.world import World, unique

JSON = {"Content-Type": "application/json"}


def recorded(world: World, answer: httpx.Response) -> dict[str, Any]:
    """Return the single audit record of a request."""
    query = "select convert_from(record, 'UTF8') as record from audit_log where request_id = $1"
    until(lambda: bool(world.sql(query, answer.headers["x-request-id"])))
    [row] = world.sql(query, answer.headers["x-request-id"])
    record: dict[str, Any] = json.loads(row["record"])
    return record


# ---- U+0000 ---------------------------------------------------------------------------------------------------------

PATHS = [
    "/catalog/v1/config?warehouse=%00",
    "/catalog/v1/config?warehouse=demo&nobody-reads-this=%00",
    "{root}/namespaces?parent=a%00b",
    "{root}/namespaces?pageToken=%00&pageSize=1",
    "{root}/namespaces/a%00b",
    "{root}/namespaces/n/tables/t?snapshots=refs%00",
    "{root}/namespaces/n/tables/t?referenced-by=n%1F%00",
    "/management/v1/user?name=%00",
    "/management/v1/user/oidc~%00",
    "/management/v1/project-list?%00=1",
    "/management/v1/grants?principalUser=oidc~a%00",
    "/management/v1/action/%00",
    "/scim/v2/Users?filter=userName%20eq%20%22%00%22",
    "/scim/v2/Users?attributes=%00",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_nul_in_path_or_query_is_a_bad_request(world: World, path: str) -> None:
    answer = world.admin.get(path.format(root=world.root))
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("{root}/namespaces", {"namespace": ["a\0b"]}),
        ("{root}/namespaces", {"namespace": ["n"], "properties": {"a": "\0"}}),
        ("{root}/namespaces/n/tables", {"name": "\0", "schema": {"type": "struct", "fields": []}}),
        ("{root}/transactions/commit", {"table-changes": [{"updates": [{"action": "\0"}]}]}),
        ("/management/v1/user", {"name": "\0", "id": "oidc~x", "user-type": "human"}),
        ("/management/v1/role", {"name": "r", "description": "\0"}),
        ("/management/v1/search/user", {"search": "\0"}),
        ("/management/v1/warehouse", {"warehouse-name": "w\0"}),
        ("/management/v1/action/batch-check", {"checks": [{"id": "\0"}]}),
        ("/management/v1/permissions/check", {"operation": "\0"}),
        ("/scim/v2/Users", {"userName": "\0"}),
        ("/scim/v2/Users", {"userName": "a", "nobody-reads-this": "\0"}),
        ("/scim/v2/Groups", {"displayName": "a", "\0": 1}),
    ],
)
def test_a_nul_anywhere_in_a_body_is_a_bad_request(world: World, path: str, body: dict[str, Any]) -> None:
    answer = world.admin.send("POST", path.format(root=world.root), content=json.dumps(body), headers=JSON)
    assert answer.status_code == 400, answer.text
    if answer.status_code != 400:
        pytest.fail(f"{path} is not served, so the case proves nothing")


@pytest.mark.parametrize("field", ["subject_token", "scope", "grant_type", "resource"])
def test_a_nul_in_a_form_is_a_bad_request(world: World, field: str) -> None:
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": world.alice.token,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "scope": "catalog",
    }
    form[field] = form.get(field, "") + "\0"
    answer = world.admin.send("POST", "/catalog/v1/oauth/tokens", data=form)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), answer.text
    assert "U+0000" in answer.text


def test_an_escaped_backslash_is_no_nul(world: World) -> None:
    body = rb'{"namespace": ["%s"], "properties": {"a": "C:\\u0000"}}' % unique("n").encode()
    assert world.admin.send("POST", f"{world.root}/namespaces", content=body, headers=JSON).status_code == 200


# ---- request ids of clients -----------------------------------------------------------------------------------------


def test_requests_with_the_same_id_are_distinct_in_the_audit(world: World) -> None:
    given = unique("mine")
    first, second = (
        person.get(f"{world.root}/namespaces", headers={"X-Request-Id": given}) for person in (world.admin, world.carol)
    )
    ids = {first.headers["x-request-id"], second.headers["x-request-id"]}
    assert len(ids) == 2 and given not in ids
    assert [recorded(world, each)["client_request_id"] for each in (first, second)] == [given, given]
    assert world.sql("select 1 from audit_log where request_id = $1", given) == []


# ---- proven and asserted identities ---------------------------------------------------------------------------------


@pytest.mark.parametrize("proven", [True, False])
def test_audit_records_whether_the_subject_was_proven(world: World, ns: str, proven: bool) -> None:
    with delegating(world, world.etl, "warehouse", world.warehouse):
        world.grant("describe", world.bob, "namespace", world.namespace_id(ns))
        used = acting(world, world.etl, world.bob, proven=proven).get(f"{world.root}/namespaces/{ns}")
        assert used.status_code == 200, used.text
        actor = recorded(world, used)["actor"]
        assert (actor["id"], actor["engine"]) == (world.bob.id, world.etl.id)
        assert actor.get("subject_proven", True) is proven
        himself = world.bob.get(f"{world.root}/namespaces/{ns}")
        assert "subject_proven" not in recorded(world, himself)["actor"]


# ---- size of a record -----------------------------------------------------------------------------------------------


def test_audit_record_of_a_large_request_is_small_and_has_the_count(world: World) -> None:
    name = "n" * 200
    checks = [
        {
            "id": str(number),
            "operation": {
                "table": {
                    "action": "read_data",
                    "warehouse-id": world.warehouse,
                    "namespace": [name, f"{number}"],
                    "table": name,
                }
            },
        }
        for number in range(200)
    ]
    answer = world.admin.post("/management/v1/action/batch-check", {"checks": checks})
    assert answer.status_code == 200, answer.text
    record = recorded(world, answer)
    [size] = world.sql(
        "select length(record) as bytes from audit_log where request_id = $1", answer.headers["x-request-id"]
    )
    assert size["bytes"] <= 65_536
    left = [record.get("decisions_left_out"), *(each.get("resources_left_out") for each in record["decisions"])]
    left += list(record.get("detail_left_out", {}).values())
    assert sum(each["count"] for each in left if each) > 0
    assert all(len(each["sha256"]) == len(hashlib.sha256().hexdigest()) for each in left if each)


# ---- what changed ---------------------------------------------------------------------------------------------------


def test_sealed_record_of_a_grant_states_who_got_or_lost_what_until_when(world: World, ns: str) -> None:
    path = f"/management/v1/warehouse/{world.warehouse}/namespace/{world.namespace_id(ns)}/grants"
    entry = {"privilege": "describe", "principal": {"user": world.carol.id}}
    until = "2031-02-03T04:05:06Z"
    given = world.admin.post(path, {"writes": [{**entry, "expires-at": until, "reason": "an audit"}]})
    taken = world.admin.post(path, {"deletes": [entry]})
    assert (given.status_code, taken.status_code) == (204, 204), given.text + taken.text
    writes, deletes = (
        json.loads(recorded(world, answer)["detail"]["facts"])["change_namespace_grants"] for answer in (given, taken)
    )
    (grant,), (revoked,) = writes["writes"], deletes["deletes"]
    assert (writes["deletes"], deletes["writes"]) == ([], [])
    for each in (grant, revoked):
        assert (each["privilege"], each["principal"]) == ("describe", {"type": "user", "id": world.carol.id})
    assert (grant["expires_at"], grant["reason"]) == (until, "an audit")


def test_record_of_a_refused_grant_states_what_was_tried(world: World, ns: str) -> None:
    path = f"/management/v1/warehouse/{world.warehouse}/namespace/{world.namespace_id(ns)}/grants"
    world.grant("describe", world.bob, "namespace", world.namespace_id(ns))
    entry = {"privilege": "ownership", "principal": {"user": world.bob.id}}
    refused = world.bob.post(path, {"writes": [entry]})
    assert refused.status_code == 403, refused.text
    facts = json.loads(recorded(world, refused)["detail"]["facts"])
    assert facts["change_namespace_grants"]["writes"][0]["principal"]["id"] == world.bob.id
