# SPDX-License-Identifier: Apache-2.0
"""Recursive namespace drops, and protection of namespaces, tables and views."""

from __future__ import annotations

import json
import threading
import time
import uuid
from typing import Any

import httpx
import pytest

from tests.support.stack.grants import strangers  # noqa: F401 - a fixture
from tests.support.stack.lifecycle import deleted, end_now, fill, keys, undrop, until
from tests.support.stack.views import create as create_view
from tests.support.stack.world import SCHEMA, World, error_triple, unique

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("strangers")]


def _drop(world: World, ns: str, **flags: object) -> httpx.Response:
    query = {name: str(value).lower() for name, value in flags.items()}
    return world.admin.delete(f"{world.root}/namespaces/{ns}", params=query)


def test_files_of_a_dropped_view_are_deleted_after_a_forced_namespace_drop(soft: World) -> None:
    ns = soft.namespace()
    view, shared = create_view(soft, ns), create_view(soft, ns)
    assert soft.admin.delete(view["path"]).status_code == 204
    assert soft.admin.delete(f"{shared['path']}?purgeRequested=false").status_code == 204
    assert _drop(soft, ns, recursive=True, force=True, purge=False).status_code == 204
    noted = "select location from pending_files where warehouse_id = $1::text::uuid"
    assert [row["location"] for row in soft.sql(noted, soft.warehouse)] == [view["metadata-location"]]
    soft.sql("update pending_files set written_at = now() - interval '2 hours' where location = $1", _file(view))
    until(lambda: keys(soft, view["metadata"]["location"]) == set(), "the last file of the view was not deleted", 60)
    assert len(keys(soft, shared["metadata"]["location"])) == 1


def _file(view: dict[str, Any]) -> str:
    return str(view["metadata-location"])


def test_lists_report_protection_on_request(world: World, ns: str) -> None:
    """The flags match the listed names by position, on each page, also for a reader with a single grant."""
    inner = [_child(world, ns, name) for name in ("a", "b")]
    tables = [world.table(ns, f"t{number}") for number in range(3)]
    views = [create_view(world, ns, f"v{number}") for number in range(2)]
    generic = [
        world.admin.post(
            f"/lakekeeper/v1/{world.warehouse}/namespaces/{ns}/generic-tables", {"name": f"g{number}", "format": "csv"}
        ).json()["table"]
        for number in range(2)
    ]
    listing = {
        f"{world.root}/namespaces?parent={ns}": [False, True],
        f"{world.root}/namespaces/{ns}/tables": [False, True, False],
        f"{world.root}/namespaces/{ns}/views": [True, False],
        f"/lakekeeper/v1/{world.warehouse}/namespaces/{ns}/generic-tables": [False, True],
    }
    _protect(world, "namespace", world.namespace_id(inner[1]))
    _protect(world, "table", tables[1].uuid)
    _protect(world, "view", _view_id(world, views[0]))
    [generic_id] = world.sql("select id::text from tables where location = $1", generic[1]["base-location"])
    _protect(world, "generic-table", generic_id["id"])
    for path, protected in listing.items():
        more = "&" if "?" in path else "?"
        listed_all = world.admin.get(f"{path}{more}returnProtectionStatus=true").json()
        assert listed_all["protection-status"] == protected, path
        assert "protection-status" not in world.admin.get(f"{path}{more}returnProtectionStatus=false").json()
        assert world.admin.get(f"{path}{more}returnProtectionStatus=perhaps").status_code == 400
        second = world.admin.get(f"{path}{more}pageSize=1&returnProtectionStatus=true").json()
        assert second["protection-status"] == protected[:1]
    world.grant("select", world.carol, "table", tables[1].uuid)
    seen = world.carol.get(f"{world.root}/namespaces/{ns}/tables?returnProtectionStatus=true&returnUuids=true").json()
    assert (seen["table-uuids"], seen["protection-status"]) == ([tables[1].uuid], [True])
    top = world.carol.get(f"{world.root}/namespaces?returnProtectionStatus=true").json()
    assert dict(zip((name for [name] in top["namespaces"]), top["protection-status"], strict=True))[ns] is False
    world.revoke("select", world.carol, "table", tables[1].uuid)


def _child(world: World, *levels: str) -> str:
    assert world.admin.post(f"{world.root}/namespaces", {"namespace": list(levels)}).status_code == 200
    return "%1F".join(levels)


def _protection(world: World, kind: str, id: str) -> str:
    return f"/management/v1/warehouse/{world.warehouse}/{kind}/{id}/protection"


def _protect(world: World, kind: str, id: str, protected: bool = True) -> None:
    assert world.admin.post(_protection(world, kind, id), {"protected": protected}).status_code == 200


def _view_id(world: World, view: dict[str, Any]) -> str:
    return str(world.sql("select id::text from tables where name = $1", view["name"])[0]["id"])


def test_only_an_empty_namespace_is_dropped_without_recursive(world: World, ns: str) -> None:
    inner = _child(world, ns, "inner")
    assert error_triple(_drop(world, ns))[:2] == (409, "NamespaceNotEmptyException")
    table = world.table(inner)
    assert error_triple(_drop(world, inner, force=True))[:2] == (409, "NamespaceNotEmptyException")
    assert world.admin.delete(f"{table.path}?purgeRequested=false").status_code == 204
    assert _drop(world, inner).status_code == 204
    assert _drop(world, ns).status_code == 204
    assert error_triple(_drop(world, ns))[:2] == (404, "NoSuchNamespaceException")


def test_recursive_drop_removes_all_descendants(world: World, ns: str) -> None:
    deep = _child(world, ns, "a")
    deeper = _child(world, ns, "a", "b")
    tables = [world.table(each) for each in (ns, deep, deeper)]
    shared = world.table(deep, properties={"gc.enabled": "false"})
    view = create_view(world, deeper)
    staged = world.admin.post(
        f"{world.root}/namespaces/{deep}/tables", {"name": unique("t"), "schema": SCHEMA, "stage-create": True}
    ).json()["metadata"]
    ids = [world.namespace_id(each) for each in (ns, deep, deeper)]
    for table in tables:
        fill(world, table.location)
    outside = world.table(world.namespace())
    before = keys(world, outside.location) | keys(world, shared.location)
    assert world.carol.get(f"{world.root}/namespaces/{ns}").status_code == 404
    others = world.tuples_of(f"user:{world.carol.id}", "warehouse")
    world.grant("select", world.carol, "table", tables[2].uuid)
    assert world.carol.get(f"{world.root}/namespaces/{ns}").status_code == 200
    assert _drop(world, ns, recursive=True).status_code == 204
    assert error_triple(world.admin.get(tables[2].path))[0] == 404
    world.delivered()
    for id in ids:
        assert world.tuples(f"namespace:{id}") == set()
    for table in (*tables, shared):
        assert world.tuples(f"table:{table.uuid}") == set()
    gone = [*ids, *(table.uuid for table in (*tables, shared)), staged["table-uuid"]]
    assert world.sql("select 1 from grants where object_id = any($1::text[])", gone) == []
    assert world.sql("select 1 from tables where id = any($1::uuid[])", gone) == []
    assert world.sql("select 1 from namespaces where id = any($1::uuid[])", gone) == []
    assert world.tuples_of(f"user:{world.carol.id}", "warehouse") == others
    locations = [*(table.location for table in tables), view["metadata"]["location"], staged["location"]]
    until(lambda: not any(keys(world, location) for location in locations), "files were not deleted")
    assert keys(world, outside.location) | keys(world, shared.location) == before
    [row] = world.sql(
        "select convert_from(record, 'UTF8') as r from audit_log where operation = 'drop_namespace' "
        "and convert_from(record, 'UTF8') like '%' || $1 || '%'",
        tables[2].uuid,
    )
    detail = json.loads(row["r"])["detail"]
    assert set(detail["namespaces"].split()) == set(ids)
    assert {table.uuid for table in tables} <= set(detail["tabulars"].split())
    assert shared.uuid not in detail["purged"]


def test_recursive_drop_without_purge_keeps_files(world: World, ns: str) -> None:
    table = world.table(ns)
    before = keys(world, table.location)
    assert _drop(world, ns, recursive=True, purge=False).status_code == 204
    world.quiet()
    assert keys(world, table.location) == before


def test_objects_recreated_under_dropped_names_inherit_nothing(world: World, ns: str) -> None:
    table = world.table(ns)
    world.grant("modify", world.carol, "namespace", world.namespace_id(ns))
    assert world.carol.get(table.path).status_code == 200
    assert _drop(world, ns, recursive=True).status_code == 204
    world.namespace(ns)
    assert world.carol.get(world.table(ns, table.name).path).status_code == 404


def test_recursive_drop_needs_the_right_to_delete(world: World, ns: str) -> None:
    world.table(ns)
    path = f"{world.root}/namespaces/{ns}?recursive=true&force=true"
    assert error_triple(world.carol.delete(path))[:2] == (404, "NoSuchNamespaceException")
    world.grant("select", world.carol, "namespace", world.namespace_id(ns))
    assert error_triple(world.carol.delete(path))[:2] == (403, "NamespaceActionForbidden")
    world.revoke("select", world.carol, "namespace", world.namespace_id(ns))
    assert world.admin.delete(f"{world.root}/namespaces/{ns}?recursive=perhaps").status_code == 400


def test_only_force_removes_soft_deleted_objects_with_their_namespace(soft: World) -> None:
    ns = soft.namespace()
    table, other = soft.table(ns), soft.table(ns)
    assert error_triple(_drop(soft, ns, recursive=True))[:2] == (409, "NamespaceNotEmptyException")
    assert soft.admin.delete(f"{table.path}?purgeRequested=true").status_code == 204
    assert soft.admin.delete(f"{other.path}?purgeRequested=false").status_code == 204
    for flags in ({}, {"force": True}, {"recursive": True}):
        assert error_triple(_drop(soft, ns, **flags))[:2] == (409, "NamespaceHasRunningTabularExpirations")
    kept = keys(soft, other.location)
    assert _drop(soft, ns, recursive=True, force=True, purge=False).status_code == 204
    assert undrop(soft.admin, soft, ("table", table.uuid)).status_code == 404
    assert {table.uuid, other.uuid} & set(deleted(soft.admin, soft)) == set()
    active = "select 1 from tasks where entity_id = $1 and queue = 'soft_deletion' and status = 'scheduled'"
    assert soft.sql(active, table.uuid) == []
    until(
        lambda: keys(soft, table.location) == set(),
        "the files were not deleted, although the drop of the table requested it",
    )
    assert keys(soft, other.location) == kept


def test_namespace_can_be_dropped_after_its_soft_deletes_expire(soft: World) -> None:
    ns = soft.namespace()
    table = soft.table(ns)
    assert soft.admin.delete(table.path).status_code == 204
    end_now(soft, table.uuid)
    assert _drop(soft, ns).status_code == 204


@pytest.mark.parametrize("kind", ["table", "view"])
def test_protected_table_or_view_is_dropped_by_force_only(world: World, ns: str, kind: str) -> None:
    if kind == "table":
        table = world.table(ns)
        path, id = table.path, table.uuid
    else:
        view = create_view(world, ns)
        path, id = view["path"], _view_id(world, view)
    _protect(world, kind, id)
    assert error_triple(world.admin.delete(path))[:2] == (409, "ProtectedTabularDeletionWithoutForce")
    assert error_triple(_drop(world, ns, recursive=True))[:2] == (409, "ChildTabularProtected")
    assert world.admin.get(path).status_code == 200
    _protect(world, kind, id, False)
    _protect(world, kind, id)
    assert world.admin.delete(f"{path}?force=true").status_code == 204
    assert world.admin.get(path).status_code == 404


def test_a_protected_table_is_not_unregistered_and_may_be_renamed(world: World, ns: str) -> None:
    table = world.table(ns)
    _protect(world, "table", table.uuid)
    assert error_triple(world.admin.post(f"{table.path}/unregister"))[:2] == (
        409,
        "ProtectedTabularDeletionWithoutForce",
    )
    to = {"namespace": [ns], "name": unique("renamed")}
    body = {"source": {"namespace": [ns], "name": table.name}, "destination": to}
    assert world.admin.post(f"{world.root}/tables/rename", body).status_code == 204
    assert world.admin.get(_protection(world, "table", table.uuid)).json()["protected"] is True


def test_protected_namespace_blocks_its_own_drop_and_its_parents(world: World, ns: str) -> None:
    inner = _child(world, ns, "inner")
    _protect(world, "namespace", world.namespace_id(inner))
    assert error_triple(_drop(world, inner))[:2] == (409, "NamespaceProtected")
    assert error_triple(_drop(world, inner, recursive=True))[:2] == (409, "NamespaceProtected")
    assert error_triple(_drop(world, ns, recursive=True))[:2] == (409, "ChildNamespaceProtected")
    assert _drop(world, ns, recursive=True, force=True).status_code == 204


@pytest.mark.parametrize("kind", ["namespace", "table", "view"])
def test_protection_is_read_by_viewers_and_set_with_the_right(world: World, ns: str, kind: str) -> None:
    id = {
        "namespace": lambda: world.namespace_id(ns),
        "table": lambda: world.table(ns).uuid,
        "view": lambda: _view_id(world, create_view(world, ns)),
    }[kind]()
    path = _protection(world, kind, id)
    refusal = {"namespace": "Namespace", "table": "Table", "view": "View"}[kind]
    assert world.admin.get(path).json()["protected"] is False
    for answer in (world.carol.get(path), world.carol.post(path, {"protected": True})):
        assert error_triple(answer)[:2] == (404, f"NoSuch{refusal}Exception")
    world.grant("describe", world.carol, kind, id)
    assert world.carol.get(path).json()["protected"] is False
    assert error_triple(world.carol.post(path, {"protected": True}))[:2] == (403, f"{refusal}ActionForbidden")
    world.revoke("describe", world.carol, kind, id)
    world.grant("modify", world.carol, kind, id)
    set_now = world.carol.post(path, {"protected": True})
    assert set_now.status_code == 200
    assert set_now.json()["protected"] is True
    assert set(set_now.json()) == {"protected", "updated_at"}
    assert world.carol.get(path).json() == set_now.json()
    world.revoke("modify", world.carol, kind, id)
    assert world.admin.post(path, {}).status_code == 400
    elsewhere = _protection(world, kind, "00000000-0000-4000-8000-000000000001")
    assert world.admin.get(elsewhere).status_code == 404


def test_drops_that_race_with_creates_leave_nothing_in_a_dead_namespace(world: World) -> None:
    """In each round users create tables, views and namespaces below a namespace that is dropped concurrently."""
    answers: list[int] = []

    def create(root: str, number: int, over: threading.Event) -> None:
        http = httpx.Client(
            base_url=world.base, headers={"Authorization": f"Bearer {world.admin.token}"}, timeout=60, trust_env=False
        )
        with http:
            while not over.is_set():
                name = unique(f"r{number}")
                made = http.post(f"{world.root}/namespaces", json={"namespace": [root, name]})
                answers.append(made.status_code)
                made = http.post(
                    f"{world.root}/namespaces/{root}%1F{name}/tables", json={"name": "t", "schema": SCHEMA}
                )
                answers.append(made.status_code)

    for _ in range(3):
        root, over = world.namespace(), threading.Event()
        threads = [threading.Thread(target=create, args=(root, number, over), daemon=True) for number in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.8)
        dropped = _drop(world, root, recursive=True)
        time.sleep(0.2)
        over.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert dropped.status_code == 204, dropped.text
    # 429: the drop's revocations repeatedly outdated the decision; nothing was created.
    assert set(answers) <= {200, 404, 429}
    assert 200 in answers
    assert world.sql("select 1 from tables t left join namespaces n on n.id = t.namespace_id where n.id is null") == []
    world.delivered()
    orphans = (
        "select 1 from grants g where g.object_type = 'namespace' "
        "and not exists (select 1 from namespaces n where n.id::text = g.object_id)"
    )
    assert world.sql(orphans) == []


@pytest.mark.timeout(600)  # OpenFGA receives the tuples in batches, one after the other.
@pytest.mark.parametrize("count", [1500, pytest.param(10_000, marks=pytest.mark.long)])
def test_one_drop_removes_thousands_of_namespaces(world: World, ns: str, count: int) -> None:
    top = world.namespace_id(ns)
    world.sql(
        "insert into namespaces (id, warehouse_id, parent_id, ancestors, levels, path_key, properties) "
        "select gen_random_uuid(), $1, $2, array[$2::uuid], array[$3, 'n' || i], lower($3) || chr(31) || 'n' || i, "
        "'{}' "
        "from generate_series(1, $4::int) i",
        world.warehouse,
        top,
        ns,
        count,
    )
    started = time.monotonic()
    assert _drop(world, ns, recursive=True).status_code == 204
    assert time.monotonic() - started < 50
    assert world.sql("select 1 from namespaces where id = $1 or parent_id = $1", top) == []
    records = world.sql("select convert_from(record, 'UTF8') as r from audit_log where operation = 'drop_namespace'")
    [record] = [json.loads(row["r"]) for row in records if top in row["r"]]
    _require_ids(record, count + 1)
    until(
        lambda: world.sql("select 1 from outbox limit 1") == [],
        "tuples were not deleted from OpenFGA before the deadline",
        300,
    )


def _require_ids(record: dict[str, Any], count: int) -> None:
    """Require that the record has the ids of `count` namespaces.

    A long list has the first ids and the number of omitted characters.
    """
    text = record["detail"]["namespaces"]
    left_out = record.get("detail_left_out", {}).get("namespaces", {"count": 0})
    assert len(text) + left_out["count"] == 37 * count - 1
    kept = text.split()
    assert len(set(kept)) == len(kept) >= min(count, 200)
    assert all(str(uuid.UUID(each)) == each for each in kept)
