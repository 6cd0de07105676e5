# SPDX-License-Identifier: Apache-2.0
"""`Idempotency-Key`: one effect for any number of identical requests (REST specification)."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.stack.views import body as view_body
from tests.support.stack.world import SCHEMA, World, error_of, error_triple, unique


def _key() -> dict[str, str]:
    return {"Idempotency-Key": str(uuid.uuid4())}


def _properties(world: World, path: str) -> dict[str, str]:
    found: dict[str, str] = world.admin.get(path).json()["metadata"]["properties"]
    return found


def test_the_lifetime_is_advertised(world: World) -> None:
    config = world.admin.get(f"/catalog/v1/config?warehouse={world.ready.warehouse}").json()
    assert config["idempotency-key-lifetime"] == "PT30M"


def test_repeated_create_returns_one_table_with_new_credentials(world: World, ns: str) -> None:
    key, body = _key(), {"name": unique("t"), "schema": SCHEMA}
    path = f"{world.root}/namespaces/{ns}/tables"
    first = world.admin.post(path, body, headers=key)
    again = world.admin.post(path, body, headers=key)
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert again.json()["metadata"] == first.json()["metadata"]
    assert again.json()["storage-credentials"][0]["prefix"] == first.json()["storage-credentials"][0]["prefix"]
    secrets = [answer.json()["config"]["s3.secret-access-key"] for answer in (first, again)]
    kept = world.sql("select coalesce(string_agg(detail::text, ''), '') as told from idempotency")[0]["told"]
    assert not any(secret in kept for secret in secrets), "the recorded response must contain no credentials"
    error_triple = f'%"prefix":"{first.json()["storage-credentials"][0]["prefix"]}"%'
    vended = world.sql("select count(*) as n from audit_log where convert_from(record, 'UTF8') like $1", error_triple)
    assert vended[0]["n"] == 2, "each response with credentials must have an audit record"
    assert world.admin.post(path, body, headers=_key()).status_code == 409
    assert world.admin.post(path, body).status_code == 409


def test_repeated_drop_is_204_without_a_second_effect(world: World, ns: str) -> None:
    table, key = world.table(ns), _key()
    assert world.admin.delete(table.path, headers=key).status_code == 204
    assert world.admin.delete(table.path, headers=key).status_code == 204
    assert world.admin.delete(table.path, headers=_key()).status_code == 404
    # A later table has that name: the old key does not drop it.
    new = world.table(ns, table.name)
    assert world.admin.delete(table.path, headers=key).status_code == 204
    assert world.admin.head(new.path).status_code == 204


def test_repeated_commit_returns_the_current_state_without_a_change(world: World, ns: str) -> None:
    table, key = world.table(ns), _key()
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    first = world.admin.post(table.path, body, headers=key)
    assert first.status_code == 200
    later = world.commit(world.admin, table.path, {"action": "set-properties", "updates": {"a": "2"}})
    again = world.admin.post(table.path, body, headers=key)
    assert again.status_code == 200
    assert again.json()["metadata-location"] == later.json()["metadata-location"]
    assert _properties(world, table.path)["a"] == "2"
    assert "config" not in again.json()


def test_retry_never_returns_another_object_of_the_same_name(world: World, ns: str) -> None:
    tables, name = f"{world.root}/namespaces/{ns}/tables", unique("t")
    created = {"name": name, "schema": SCHEMA}
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    views, view = f"{world.root}/namespaces/{ns}/views", unique("v")
    requests: list[tuple[str, object, str, object]] = [
        (tables, created, f"{tables}/{name}", created),
        (f"{tables}/{name}", change, f"{tables}/{name}", created),
        (views, view_body(view), f"{views}/{view}", view_body(view)),
    ]
    for path, body, thing, made in requests:
        key = _key()
        assert world.admin.post(path, body, headers=key).status_code == 200
        assert world.admin.post(path, body, headers=key).status_code == 200
        assert world.admin.delete(thing).status_code == 204
        assert world.admin.post(path, body, headers=key).status_code == 404, (
            "a repeated request about a dropped object must be not found"
        )
        assert world.admin.post(thing.rsplit("/", 1)[0], made).status_code == 200
        refused = world.admin.post(path, body, headers=key)
        assert refused.status_code == 422, refused.text
        assert "was dropped or renamed since. Another object has that name now" in error_of(refused)["message"]
        assert "metadata" not in refused.json()


def test_namespaces_are_created_changed_and_dropped_once(world: World) -> None:
    name, key = unique("ns"), _key()
    body = {"namespace": [name], "properties": {"a": "1", "b": "2"}}
    made = [world.admin.post(f"{world.root}/namespaces", body, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in made] == [200, 200]
    assert made[0].json() == made[1].json()
    key = _key()
    change = {"updates": {"a": "3"}, "removals": ["b", "c"]}
    path = f"{world.root}/namespaces/{name}"
    done = [world.admin.post(f"{path}/properties", change, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in done] == [200, 200], done[1].text
    assert done[0].json() == done[1].json() == {"updated": ["a"], "removed": ["b"], "missing": ["c"]}
    key = _key()
    assert [world.admin.delete(path, headers=key).status_code for _ in range(2)] == [204, 204]


def test_repeated_stage_returns_the_same_location_and_uuid(world: World, ns: str) -> None:
    key, body = _key(), {"name": unique("t"), "schema": SCHEMA, "stage-create": True}
    path = f"{world.root}/namespaces/{ns}/tables"
    first, again = (world.admin.post(path, body, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200), again.text
    for member in ("table-uuid", "location", "schemas"):
        assert first.json()["metadata"][member] == again.json()["metadata"][member]
    assert len(world.sql("select 1 from tables where name = $1", body["name"])) == 1


def test_repeated_stage_is_refused_in_a_recreated_namespace(world: World) -> None:
    ns, key = world.namespace(), _key()
    tables, body = f"{world.root}/namespaces/{ns}/tables", {"name": unique("t"), "schema": SCHEMA, "stage-create": True}
    assert world.admin.post(tables, body, headers=key).status_code == 200
    moved = f"/management/v1/warehouse/{world.warehouse}/namespace/{world.namespace_id(ns)}/move"
    assert world.admin.post(moved, {"destination": [unique("moved")]}).status_code == 200
    assert world.admin.post(f"{world.root}/namespaces", {"namespace": [ns]}).status_code == 200
    assert world.admin.post(tables, body, headers=key).status_code == 422


def test_another_body_or_query_under_the_same_key_is_422(world: World, ns: str) -> None:
    table, key = world.table(ns), _key()
    path = f"{world.root}/namespaces/{ns}/tables"
    assert world.admin.post(path, {"name": unique("t"), "schema": SCHEMA}, headers=key).status_code == 200
    other = world.admin.post(path, {"name": unique("t"), "schema": SCHEMA}, headers=key)
    assert error_triple(other)[:2] == (422, "UnprocessableEntityException")
    assert world.admin.delete(table.path, headers=key).status_code == 204, (
        "the same key with another path is another request"
    )
    assert world.admin.delete(f"{table.path}?purgeRequested=false", headers=key).status_code == 422


def test_idempotency_keys_are_scoped_to_their_user(world: World, ns: str) -> None:
    table, key = world.table(ns), _key()
    assert world.admin.delete(table.path, headers=key).status_code == 204
    assert world.carol.delete(table.path, headers=key).status_code == 404


def test_only_successes_are_recorded_under_an_idempotency_key(world: World, ns: str) -> None:
    key, body = _key(), {"name": unique("t"), "schema": SCHEMA}
    path = f"{world.root}/namespaces/{ns}/tables"
    assert world.carol.post(path, body, headers=key).status_code == 404
    world.grant("create", world.carol, "namespace", world.namespace_id(ns))
    assert world.carol.post(path, body, headers=key).status_code == 200
    table = world.table(ns)
    key = _key()
    wrong = {"requirements": [{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}], "updates": []}
    assert world.admin.post(table.path, wrong, headers=key).status_code == 409
    right = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"x": "y"}}]}
    assert world.admin.post(table.path, right, headers=key).status_code == 200


def test_retry_after_loss_of_the_right_returns_no_body(world: World, ns: str) -> None:
    table, key = world.table(ns), _key()
    world.grant("modify", world.carol, "table", table.uuid)
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"secret": "1"}}]}
    assert world.carol.post(table.path, body, headers=key).status_code == 200
    world.revoke("modify", world.carol, "table", table.uuid)
    again = world.carol.post(table.path, body, headers=key)
    assert again.status_code == 404
    assert "secret" not in again.text


ONE = "0190d9f2-6b1e-7b5c-9f3a-3c1d2e4f5a6b"


@pytest.mark.parametrize("value", ["x", "123", f"{{{ONE}}}", ONE.replace("-", ""), f"urn:uuid:{ONE}", f"{ONE}, {ONE}"])
def test_idempotency_key_that_is_no_uuid_is_refused(world: World, ns: str, value: str) -> None:
    answer = world.admin.delete(f"{world.root}/namespaces/{ns}", headers={"Idempotency-Key": value})
    assert error_triple(answer)[:2] == (400, "InvalidIdempotencyKey")


def test_two_idempotency_keys_are_refused_and_a_blank_one_is_ignored(world: World, ns: str) -> None:
    path = f"{world.root}/namespaces/{ns}"
    headers = [("Idempotency-Key", str(uuid.uuid4())), ("idempotency-key", str(uuid.uuid4()))]
    answer = world.admin.http.request("DELETE", path, headers=httpx.Headers(headers))
    assert error_triple(answer)[:2] == (400, "DuplicateIdempotencyKey")
    assert world.admin.delete(path, headers={"Idempotency-Key": ""}).status_code == 204


def test_concurrent_retries_have_one_effect_and_the_rest_must_wait(world: World, ns: str) -> None:
    path, body, key = f"{world.root}/namespaces/{ns}/tables", {"name": unique("t"), "schema": SCHEMA}, _key()
    start = threading.Barrier(8)

    def send(_: int) -> tuple[int, Any]:
        start.wait()
        answer = httpx.post(
            world.base + path, json=body, headers={**key, "Authorization": f"Bearer {world.admin.token}"}, timeout=60
        )
        return answer.status_code, answer.json()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    made = [answer for status, answer in answers if status == 200]
    assert made, answers
    assert len({answer["metadata"]["table-uuid"] for answer in made}) == 1
    others = {(status, answer["error"]["type"]) for status, answer in answers if status != 200}
    assert others <= {(409, "RequestInProgress")}
    assert len(world.sql("select 1 from tables where name = $1", body["name"])) == 1


def test_idempotency_key_of_a_killed_process_is_free_after_its_lease(world: World, ns: str) -> None:
    table, key = world.table(ns), _key()
    assert world.admin.delete(table.path, headers=key).status_code == 204
    world.sql(
        "update idempotency set status = null, written_in = null where expires_at > now() and operation = 'drop_table'"
    )
    assert error_triple(world.admin.delete(table.path, headers=key))[:2] == (409, "RequestInProgress")
    world.sql("update idempotency set expires_at = now() - interval '1 second' where status is null")
    assert world.admin.delete(table.path, headers=key).status_code == 404, (
        "a request that was not recorded must run again"
    )


def test_retry_first_delivers_undelivered_tuples_of_the_first_request(world: World, ns: str) -> None:
    key, body = _key(), {"name": unique("t"), "schema": SCHEMA}
    path = f"{world.root}/namespaces/{ns}/tables"
    made = world.admin.post(path, body, headers=key)
    id = made.json()["metadata"]["table-uuid"]
    # As after a crash following the commit: the outbox row exists and is undelivered.
    world.sql(
        "insert into outbox "
        "(subject_type, subject_id, relation, object_type, object_id, takes_away, not_before, written_in) "
        "select 'user', $1, 'ownership', 'table', $2, false, now() + interval '1 hour', written_in from idempotency "
        "where operation = 'create_table' and detail->>'table_id' = $2",
        world.admin.id,
        id,
    )
    assert len(world.sql("select 1 from outbox where object_id = $1", id)) == 1
    assert world.admin.post(path, body, headers=key).status_code == 200
    assert world.sql("select 1 from outbox where object_id = $1", id) == []
