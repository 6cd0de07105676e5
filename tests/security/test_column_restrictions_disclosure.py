# SPDX-License-Identifier: Apache-2.0
"""Disclosure to users with access to one column of a table, by every operation, with and without an engine.

The attack is LG-DEC-11 of `docs/threats.md`. Everything else about the table contains a marker, and no response may
contain it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import gateway.features.all_routes  # noqa: F401  fills OPERATIONS
from gateway.access.operation import OPERATIONS
from tests.support.stack.columns import give, take
from tests.support.stack.exchanging import acting
from tests.support.stack.lifecycle import deleted, fill, soft_world, undrop
from tests.support.stack.world import Table, World, error_triple, unique

MARK = "hidden"
#: Further texts that no response may contain: keys, file locations and the table's metadata file.
NOT_THEIRS = (MARK, "s3.", "/metadata", ".avro", "/data")
HELD_BACK = [1, 3]
#: Paths of operations on other objects, and of operations that change the caller.
_ELSEWHERE = ("/ui", "/swagger-ui", "/api-docs", "/scim", "/health", "/management/v1/user", "/management/v1/bootstrap")


def marked(world: World, namespace: str) -> Table:
    """Create a table with a history, whose column `name` (field id 2) can be granted."""
    fields = [
        {"id": 1, "name": f"{MARK}_number", "type": "long", "required": True, "doc": f"{MARK} doc"},
        {"id": 2, "name": "name", "type": "string", "required": False},
        {"id": 3, "name": f"{MARK}_text", "type": "string", "required": False},
    ]
    schema = {"type": "struct", "fields": fields}
    table = world.table(namespace, schema=schema, properties={f"{MARK}.property": MARK, "comment": MARK})
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": int(time.time() * 1000),
        "manifest-list": f"{table.location}/metadata/{MARK}.avro",
        "summary": {"operation": "append", MARK: "1"},
        "schema-id": 0,
    }
    statistics = {
        "snapshot-id": 1,
        "statistics-path": f"{table.location}/metadata/{MARK}.puffin",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [
            {"type": MARK, "snapshot-id": 1, "sequence-number": 1, "fields": [1], "properties": {"ndv": MARK}}
        ],
    }
    done = world.commit(
        world.admin,
        table.path,
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
        {"action": "set-snapshot-ref", "ref-name": f"{MARK}_tag", "type": "tag", "snapshot-id": 1},
        {"action": "set-statistics", "statistics": statistics},
    )
    assert done.status_code == 200, done.text
    fill(world, table.location)
    return table


@pytest.fixture
def table(world: World, ns: str) -> Iterator[Table]:
    """Yield a marked table with a task about it; one column of it is carol's only grant."""
    people = (world.carol, world.etl)
    for person in people:
        world.strip(person)
    table = marked(world, ns)
    assert give(world, table, "name", world.carol).status_code == 204
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    world.sql(
        "insert into tasks (id, queue, warehouse_id, entity_type, entity_id, payload, scheduled_for, created_at) "
        "select $1::text::uuid, 'soft_deletion', warehouse_id, kind, id, '{}', now() + interval '1 day', now() "
        "from tables where id = $1::text::uuid",
        table.uuid,
    )
    yield table
    world.sql("delete from tasks where id = $1::text::uuid", table.uuid)
    for person in people:
        world.strip(person)


def requests(world: World, table: Table) -> Iterator[tuple[str, str, Any]]:
    """Yield (method, path, body) of each operation on this table, or on objects that could disclose it."""
    name = {"namespace": [table.namespace], "name": table.name}
    on = {"warehouse-id": world.warehouse, "table-id": table.uuid}
    update = {"action": "set-properties", "updates": {"a": "b"}}
    change = {"identifier": name, "requirements": [], "updates": [update]}
    bodies: dict[str, Any] = {
        "SearchTabular": {"search": table.name},
        "BatchCheck": {
            "checks": [{"operation": {"table": {**on, "action": each}}} for each in ("read_data", "read_columns")]
        },
        "CheckPermission": {"operation": {"table": {**on, "action": "read_data"}}},
        "CommitTable": {"requirements": [], "updates": [update]},
        "CommitTransaction": {"table-changes": [change]},
        "RenameTable": {"source": name, "destination": {**name, "name": unique("t")}},
        "SignRequest": {"method": "GET", "uri": f"{world.ready.s3.endpoint}/x", "region": "us-east-1", "headers": {}},
        "UndropTabulars": {"targets": [{"type": "table", "id": table.uuid}]},
        "ListTasks": {"queue-name": ["soft_deletion"]},
        "FindTask": {},
        "ControlProjectTasks": {"action": {"action-type": "stop"}, "task-ids": [table.uuid]},
        "ReportMetrics": {
            "report-type": "scan-report",
            "table-name": table.name,
            "snapshot-id": 1,
            "filter": True,
            "schema-id": 0,
            "projected-field-ids": [],
            "projected-field-names": [],
            "metrics": {},
        },
    }
    values = {
        "prefix": world.warehouse,
        "warehouse_id": world.warehouse,
        "project_id": world.project,
        "namespace": table.namespace,
        "namespace_id": world.namespace_id(table.namespace),
        "table": table.name,
        "view": table.name,
        "column": "field-id:3",
        "queue_name": "soft_deletion",
        "user_id": world.carol.id,
        "member_type": "user",
        "member_id": world.carol.id,
    }
    for operation, kind in sorted(OPERATIONS.items()):
        method, _, path = kind.endpoint.partition(" ")
        if path.startswith(_ELSEWHERE) or method == "DELETE" and "{table}" not in path:
            continue
        for part in [each[1:-1] for each in path.split("/") if each.startswith("{")]:
            path = path.replace(f"{{{part}}}", values.get(part, table.uuid))
        yield method, path, bodies.get(operation, {} if method in ("POST", "PUT", "PATCH") else None)


def leaks_hidden_columns(answer: httpx.Response) -> list[str]:
    """Return the forbidden texts that the body or the headers of a response contain."""
    text = answer.text + str(answer.headers)
    return [each for each in NOT_THEIRS if each in text]


@pytest.mark.threat("LG-DEC-11")
@pytest.mark.parametrize("through", ["herself", "an engine"])
def test_no_operation_reveals_ungranted_columns(world: World, table: Table, through: str) -> None:
    carol = world.carol if through == "herself" else acting(world, world.etl, world.carol)
    before = world.snapshot()
    requested = {}
    for method, path, body in requests(world, table):
        if through == "an engine" and (method, path) == ("GET", table.path):
            continue
        answer = carol.send(method, path, **({} if body is None else {"json": body}))
        requested[method, path] = answer.status_code
        assert answer.status_code < 500, (method, path, answer.text)
        assert not leaks_hidden_columns(answer), (method, path, answer.text)
    assert len(requested) > 100
    assert set(requested.values()) > {200, 403, 404}, "expected 200, 403 and 404 and at least one more status"
    assert world.snapshot().objects == before.objects
    assert world.sql("select status from tasks where id = $1::text::uuid", table.uuid)[0]["status"] == "scheduled"


DELEGATIONS = ("", "vended-credentials", "client-managed", "remote-signing", "remote-signing,vended-credentials", "x,*")


@pytest.mark.parametrize("query", ["", "?snapshots=refs", "?snapshots=all"])
def test_every_load_through_an_engine_returns_the_restrictions(world: World, table: Table, query: str) -> None:
    carol = acting(world, world.etl, world.carol)
    tag = world.admin.get(table.path + query).headers["etag"]
    for delegation in DELEGATIONS:
        for known in (None, tag, "*", f'*, {tag}, "lg1"'):
            headers = {"X-Iceberg-Access-Delegation": delegation} if delegation else {}
            answer = carol.get(
                table.path + query, headers=headers | ({} if known is None else {"If-None-Match": known})
            )
            if answer.status_code == 400:
                assert delegation in ("remote-signing", "x,*"), answer.text
                continue
            assert answer.status_code == 200, (delegation, known, answer.text)
            held = answer.json()["read-restrictions"]["required-column-projections"]
            assert [each["field-id"] for each in held] == HELD_BACK
            config = str(answer.json().get("config")) + str(answer.json().get("storage-credentials"))
            assert "refresh" not in config
            assert "sign" not in config
            assert delegation != "client-managed" or "secret" not in config


def test_column_grantee_cannot_register_the_tables_files_elsewhere(world: World, table: Table) -> None:
    """The file locations that an engine receives permit no user to register the files."""
    own = world.namespace()
    world.grant("create", world.carol, "namespace", world.namespace_id(own))
    through = acting(world, world.etl, world.carol)
    known = through.get(table.path).json()
    location, file = known["metadata"]["location"], known["metadata-location"]
    space = f"{world.root}/namespaces/{own}"
    schema = known["metadata"]["schemas"][0]
    inside = [
        location,
        f"{location}/",
        f"{location}/data",
        location.rpartition("/")[0],
        location.replace("s3://", "s3a://"),
    ]
    for person in (world.carol, through):
        mine = person.post(f"{space}/tables", {"name": unique("t"), "schema": schema}).json()["metadata"]
        listed = person.get(f"{space}/tables?returnUuids=true").json()
        at = listed["table-uuids"].index(mine["table-uuid"])
        path = f"{space}/tables/{listed['identifiers'][at]['name']}"
        attempts = [
            person.post(f"{space}/register", {"name": unique("t"), "metadata-location": file}),
            person.post(f"{space}/register-view", {"name": unique("v"), "metadata-location": file}),
            *(
                person.post(f"{space}/tables", {"name": unique("t"), "schema": schema, "location": at, **more})
                for at in inside
                for more in ({}, {"stage-create": True})
            ),
            *(
                person.post(f"{space}/tables", {"name": unique("t"), "schema": schema, "properties": {key: location}})
                for key in ("write.data.path", "write.metadata.path", "write.object-storage.path")
            ),
            *(world.commit(person, path, {"action": "set-location", "location": at}) for at in inside),
            *(
                world.commit(person, path, {"action": "set-properties", "updates": {key: location}})
                for key in ("write.data.path", "write.metadata.path", "write.folder-storage.path")
            ),
        ]
        assert {each.status_code for each in attempts} <= {400, 403, 404, 409}, [
            (each.request.content, each.text) for each in attempts if each.is_success
        ]


def test_dropped_table_reveals_nothing_and_is_restored_unchanged(world: World) -> None:
    soft = soft_world(world)
    try:
        table = marked(soft, soft.namespace())
        assert give(soft, table, "name", soft.carol).status_code == 204
        for privilege in ("delegate", "enforcer"):
            soft.grant(privilege, soft.etl, "warehouse", soft.warehouse)
        through = acting(soft, soft.etl, soft.carol)
        assert through.get(table.path).status_code == 200
        assert soft.admin.delete(table.path).status_code == 204
        for person in (soft.carol, through):
            for path in (table.path, f"{table.path}/credentials", f"{table.path}?snapshots=refs"):
                assert error_triple(person.get(path))[:2] == (404, "NoSuchTableException")
            assert undrop(person, soft, ("table", table.uuid)).status_code == 403
            listed = person.get(f"/management/v1/warehouse/{soft.warehouse}/deleted-tabulars")
            assert not leaks_hidden_columns(listed), listed.text
        assert table.uuid in deleted(soft.admin, soft)
        assert undrop(soft.admin, soft, ("table", table.uuid)).status_code == 204
        held = through.get(table.path).json()["read-restrictions"]["required-column-projections"]
        assert [each["field-id"] for each in held] == HELD_BACK
        assert take(soft, table, "name", soft.carol).status_code == 204
        assert through.get(table.path).status_code == 404
    finally:
        for person in (soft.carol, soft.etl):
            soft.strip(person)
        soft.close()
