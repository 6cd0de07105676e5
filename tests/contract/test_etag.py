# SPDX-License-Identifier: Apache-2.0
"""Entity tags of tables, 304, and the reduced view of `snapshots=refs` (REST specification, `loadTable`)."""

from __future__ import annotations

import time
from typing import Any

import httpx

from tests.support.stack.lifecycle import until
from tests.support.stack.world import SCHEMA, Table, World, error_triple, unique

PRIVATE = "private, no-cache"


def _etag(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    assert answer.headers["etag"].startswith('W/"lg1.')
    assert answer.headers["cache-control"] == PRIVATE
    assert "Authorization" in answer.headers["vary"]
    assert "X-Iceberg-Access-Delegation" in answer.headers["vary"]
    return answer.headers["etag"]


def _get_if_none_match(world: World, person: Any, table: Table, etag: str, **headers: str) -> httpx.Response:
    sent = {"If-None-Match": etag, **{name.replace("_", "-"): value for name, value in headers.items()}}
    answer: httpx.Response = person.get(table.path, headers=sent)
    return answer


def _append(
    world: World, table: Table, snapshot_id: int, sequence: int, parent: int | None, *, ref: str = "main"
) -> httpx.Response:
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": sequence,
        "timestamp-ms": int(time.time() * 1000),
        "manifest-list": f"{table.location}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
        **({} if parent is None else {"parent-snapshot-id": parent}),
    }
    done = world.commit(
        world.admin,
        table.path,
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": ref, "type": "branch", "snapshot-id": snapshot_id},
    )
    assert done.status_code == 200, done.text
    return done


def test_load_with_a_matching_etag_is_304_without_body(world: World, ns: str) -> None:
    table = world.table(ns)
    etag = _etag(world.admin.get(table.path))
    again = _get_if_none_match(world, world.admin, table, etag)
    assert again.status_code == 304
    assert again.content == b""
    assert again.headers["etag"] == etag
    assert again.headers["cache-control"] == PRIVATE
    assert "content-type" not in again.headers


def test_etag_of_a_creation_matches_the_next_load(world: World, ns: str) -> None:
    name = unique("t")
    made = world.admin.post(f"{world.root}/namespaces/{ns}/tables", {"name": name, "schema": SCHEMA})
    etag = _etag(made)
    assert (
        world.admin.get(f"{world.root}/namespaces/{ns}/tables/{name}", headers={"If-None-Match": etag}).status_code
        == 304
    )


def test_response_304_requests_no_storage_credential(world: World, ns: str) -> None:
    table = world.table(ns)
    etag = _etag(world.admin.get(table.path))
    keys = (
        "select count(*) as n from audit_log where convert_from(record, 'UTF8') like '%session_name%' and "
        "convert_from(record, 'UTF8') like '%' || $1 || '%'"
    )
    before = world.sql(keys, table.name)
    for _ in range(3):
        assert _get_if_none_match(world, world.admin, table, etag).status_code == 304
    loads = (
        "select count(*) as n from audit_log where operation = 'load_table' and "
        "convert_from(record, 'UTF8') like '%not modified%' and convert_from(record, 'UTF8') like '%' || $1 || '%'"
    )
    # Audit records of reads are written after a short delay.
    until(lambda: world.sql(loads, table.name)[0]["n"] >= 3, "the audit did not contain the loads before the deadline")
    assert world.sql(loads, table.name)[0]["n"] == 3
    assert world.sql(keys, table.name) == before


def test_commit_changes_the_etag_and_its_own_etag_matches_no_load(world: World, ns: str) -> None:
    table = world.table(ns)
    before = _etag(world.admin.get(table.path))
    done = world.commit(world.admin, table.path, {"action": "set-properties", "updates": {"a": "1"}})
    committed = _etag(done)
    assert _get_if_none_match(world, world.admin, table, before).status_code == 200
    # A commit's response has no credentials, so its tag must not prevent a load from returning some.
    assert _get_if_none_match(world, world.admin, table, committed).status_code == 200


def test_authorization_comes_before_304(world: World, ns: str) -> None:
    table = world.table(ns)
    world.grant("select", world.carol, "table", table.uuid)
    etag = _etag(world.carol.get(table.path))
    assert _get_if_none_match(world, world.carol, table, etag).status_code == 304
    world.revoke("select", world.carol, "table", table.uuid)
    assert _get_if_none_match(world, world.carol, table, etag).status_code == 404
    assert world.unauthenticated.get(table.path, headers={"If-None-Match": etag}).status_code == 401


def test_etags_of_other_users_or_other_rights_do_not_match(world: World, ns: str) -> None:
    table = world.table(ns)
    world.grant("select", world.carol, "table", table.uuid)
    etag = _etag(world.carol.get(table.path))
    assert _get_if_none_match(world, world.admin, table, etag).status_code == 200
    world.grant("modify", world.carol, "table", table.uuid)
    more = _get_if_none_match(world, world.carol, table, etag)
    assert more.status_code == 200, "larger rights must give a new ETag and a full response"
    assert more.headers["etag"] != etag


def test_delegation_and_snapshot_mode_change_the_etag(world: World, ns: str) -> None:
    table = world.table(ns)
    etag = _etag(world.admin.get(table.path))
    managed = _get_if_none_match(world, world.admin, table, etag, X_Iceberg_Access_Delegation="client-managed")
    assert managed.status_code == 200
    same = _get_if_none_match(
        world, world.admin, table, managed.headers["etag"], X_Iceberg_Access_Delegation="client-managed"
    )
    assert same.status_code == 304
    refs = world.admin.get(f"{table.path}?snapshots=refs", headers={"If-None-Match": etag})
    assert refs.status_code == 200
    assert (
        world.admin.get(f"{table.path}?snapshots=refs", headers={"If-None-Match": refs.headers["etag"]}).status_code
        == 304
    )


def test_etag_lists_and_wildcards_are_parsed(world: World, ns: str) -> None:
    table = world.table(ns)
    etag = _etag(world.admin.get(table.path))
    assert _get_if_none_match(world, world.admin, table, f'"other", {etag}').status_code == 304
    assert _get_if_none_match(world, world.admin, table, '"other"').status_code == 200
    assert _get_if_none_match(world, world.admin, table, "*").status_code == 200, (
        "`*` must not confirm a response with credentials"
    )
    managed = _get_if_none_match(world, world.admin, table, "*", X_Iceberg_Access_Delegation="client-managed")
    assert managed.status_code == 304


def test_snapshots_refs_omits_unreferenced_snapshots_without_storing_that(world: World, ns: str) -> None:
    table = world.table(ns)
    _append(world, table, 11, 1, None)
    _append(world, table, 12, 2, 11)
    refs = world.admin.get(f"{table.path}?snapshots=refs").json()["metadata"]
    whole = world.admin.get(f"{table.path}?snapshots=all").json()["metadata"]
    assert [each["snapshot-id"] for each in refs["snapshots"]] == [12]
    assert [each["snapshot-id"] for each in whole["snapshots"]] == [11, 12]
    assert refs["snapshot-log"] == whole["snapshot-log"]
    _append(world, table, 13, 3, 12)
    later = world.admin.get(table.path).json()["metadata"]
    assert [each["snapshot-id"] for each in later["snapshots"]] == [11, 12, 13]


def test_unknown_snapshot_mode_is_refused(world: World, ns: str) -> None:
    table = world.table(ns)
    answer = world.admin.get(f"{table.path}?snapshots=some")
    assert error_triple(answer)[:2] == (400, "BadRequestException")
    assert "all or refs" in answer.json()["error"]["message"]
