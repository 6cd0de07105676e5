# SPDX-License-Identifier: Apache-2.0
"""Dropped tables and views in a warehouse with soft deletion.

They are unreachable. Undrop restores them unchanged; after their retention they are deleted.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.grants import strangers  # noqa: F401 - a fixture
from tests.support.stack.lifecycle import deleted, deleted_path, end_now, fill, keys, undrop, until
from tests.support.stack.views import body as view_body
from tests.support.stack.views import create as create_view
from tests.support.stack.world import SCHEMA, Table, World, error_triple, unique

pytestmark = pytest.mark.usefixtures("strangers")


@pytest.fixture
def location(soft: World) -> str:
    """Create a namespace of this warehouse; return its name."""
    return soft.namespace()


def _dropped(soft: World, location: str, **more: Any) -> Table:
    table = soft.table(location, **more)
    assert soft.admin.delete(table.path).status_code == 204
    return table


def test_soft_deleted_grants_can_be_read_and_revoked_but_not_added(soft: World, location: str) -> None:
    table = soft.table(location)
    [row] = soft.sql("select id::text from tables where table_uuid = $1::text::uuid", table.uuid)
    soft.grant("ownership", soft.carol, "table", row["id"])
    soft.grant("select", soft.carol, "table", row["id"])
    assert soft.admin.delete(table.path).status_code == 204
    rights = f"/management/v1/permissions/warehouse/{soft.warehouse}/table/{row['id']}/assignments"
    held = soft.admin.get(rights)
    assert held.status_code == 200, held.text
    assert {"type": "ownership", "user": soft.carol.id} in held.json()["assignments"]
    given = soft.admin.post(rights, {"writes": [{"type": "modify", "user": soft.carol.id}]})
    assert error_triple(given)[:2] == (404, "NoSuchTableException")
    taken = soft.admin.post(rights, {"deletes": [{"type": "ownership", "user": soft.carol.id}]})
    assert taken.status_code == 204, taken.text
    grants = f"/management/v1/warehouse/{soft.warehouse}/table/{row['id']}/grants"
    select = {"privilege": "select", "principal": {"user": soft.carol.id}}
    assert soft.admin.post(grants, {"deletes": [select]}).status_code == 204
    assert undrop(soft.admin, soft, ("table", row["id"])).status_code == 204
    assert soft.carol.get(table.path).status_code == 404


def test_soft_deleted_objects_are_unreachable_by_any_operation(soft: World, location: str) -> None:
    table = soft.table(location)
    fill(soft, table.location)
    before = keys(soft, table.location)
    assert soft.admin.delete(table.path).status_code == 204
    change = {"action": "set-properties", "updates": {"a": "b"}}
    refused = [
        soft.admin.get(table.path),
        soft.admin.get(f"{table.path}/credentials"),
        soft.commit(soft.admin, table.path, change),
        soft.admin.delete(table.path),
        soft.admin.post(f"{table.path}/unregister"),
        soft.admin.get(f"/management/v1/warehouse/{soft.warehouse}/table/{table.uuid}/protection"),
    ]
    assert {(each.status_code, error_triple(each)[1]) for each in refused} == {(404, "NoSuchTableException")}
    assert soft.admin.head(table.path).status_code == 404
    assert soft.admin.get(f"{soft.root}/namespaces/{location}/tables").json()["identifiers"] == []
    assert keys(soft, table.location) == before, "soft deletion must keep the files"


def test_soft_delete_keeps_the_location_blocked_and_lists_live_keys(soft: World, location: str) -> None:
    base = soft.table(location).location.rsplit("/", 1)[0]
    table = soft.table(location, location=f"{base}/{unique('place')}")
    assert soft.admin.delete(table.path).status_code == 204
    retired = "select retired_by, keys_until > now() + interval '50 minutes' as live, count(*) over () as n from "
    [row] = soft.sql(f"{retired} retired_locations where table_id = $1", table.uuid)
    assert dict(row) == {"retired_by": soft.admin.id, "live": True, "n": 1}
    taken = {"name": unique("t"), "schema": SCHEMA, "location": table.location}
    for who in (soft.admin, soft.admin):
        made = who.post(f"{soft.root}/namespaces/{location}/tables", taken)
        assert error_triple(made)[:2] == (409, "LocationAlreadyTaken")
    assert undrop(soft.admin, soft, ("table", table.uuid)).status_code == 204
    assert soft.sql("select 1 from retired_locations where table_id = $1", table.uuid) == []
    assert soft.admin.delete(table.path).status_code == 204
    end_now(soft, table.uuid)
    assert len(soft.sql("select 1 from retired_locations where table_id = $1", table.uuid)) == 1


def test_soft_delete_advances_the_revision(soft: World, location: str) -> None:
    def revision() -> Any:
        soft.delivered()
        return soft.sql("select revision from warehouses where id = $1", soft.warehouse)[0]["revision"]

    table = soft.table(location)
    before = revision()
    assert soft.admin.delete(table.path).status_code == 204
    after = revision()
    assert after != before
    assert undrop(soft.admin, soft, ("table", table.uuid)).status_code == 204
    assert revision() == after


def test_soft_deleted_name_is_free_and_its_next_table_inherits_nothing(soft: World, location: str) -> None:
    table = soft.table(location)
    soft.grant("select", soft.carol, "table", table.uuid)
    assert soft.carol.get(table.path).status_code == 200
    assert soft.admin.delete(table.path).status_code == 204
    again = soft.table(location, table.name)
    assert again.uuid != table.uuid
    assert soft.carol.get(again.path).status_code == 404
    refused = undrop(soft.admin, soft, ("table", table.uuid))
    assert error_triple(refused)[:2] == (409, "AlreadyExistsException")
    assert table.uuid in deleted(soft.admin, soft)
    assert soft.admin.delete(f"{again.path}?force=true").status_code == 204
    assert undrop(soft.admin, soft, ("table", table.uuid)).status_code == 204
    assert soft.carol.get(table.path).json()["metadata"]["table-uuid"] == table.uuid
    soft.revoke("select", soft.carol, "table", table.uuid)


def test_undropped_table_is_unchanged(soft: World, location: str) -> None:
    soft.grant("create", soft.bob, "namespace", soft.namespace_id(location))
    table = soft.table(location, by=soft.bob)
    soft.grant("select", soft.carol, "table", table.uuid)
    fill(soft, table.location)
    before = soft.bob.get(table.path).json()
    files, tuples = keys(soft, table.location), soft.tuples(f"table:{table.uuid}")
    grants = soft.admin.get(soft.grants_path("table", table.uuid)).json()
    assert soft.bob.delete(table.path).status_code == 204
    assert soft.tuples(f"table:{table.uuid}") == tuples
    assert undrop(soft.bob, soft, ("table", table.uuid)).status_code == 204
    after = soft.bob.get(table.path).json()
    assert (after["metadata-location"], after["metadata"]) == (before["metadata-location"], before["metadata"])
    assert soft.carol.get(table.path).status_code == 200
    assert keys(soft, table.location) == files
    assert soft.admin.get(soft.grants_path("table", table.uuid)).json() == grants
    assert soft.commit(soft.bob, table.path, {"action": "set-properties", "updates": {"a": "b"}}).status_code == 200
    [task] = soft.sql("select status from tasks where entity_id = $1 and queue = 'soft_deletion'", table.uuid)
    assert task["status"].lower() == "cancelled"
    soft.revoke("select", soft.carol, "table", table.uuid)


def test_repeated_undrop_changes_nothing(soft: World, location: str) -> None:
    table = _dropped(soft, location)
    key = {"Idempotency-Key": str(uuid4())}
    for _ in range(3):
        assert undrop(soft.admin, soft, ("table", table.uuid), headers=key).status_code == 204
    state = soft.sql("select version from tables where id = $1", table.uuid)
    assert undrop(soft.admin, soft, ("table", table.uuid), ("table", table.uuid)).status_code == 204
    assert soft.sql("select version from tables where id = $1", table.uuid) == state
    assert soft.admin.get(table.path).status_code == 200


def test_undrop_of_several_targets_is_atomic(soft: World, location: str) -> None:
    first, second = _dropped(soft, location), _dropped(soft, location)
    view = create_view(soft, location, second.name)
    both = (("table", first.uuid), ("table", second.uuid))
    assert error_triple(undrop(soft.admin, soft, *both))[:2] == (409, "AlreadyExistsException")
    for absent in (("table", str(uuid4())), ("view", first.uuid)):
        assert undrop(soft.admin, soft, ("table", first.uuid), absent).status_code == 404
    assert {first.uuid, second.uuid} <= set(deleted(soft.admin, soft))
    assert soft.admin.delete(view["path"]).status_code == 204
    assert undrop(soft.admin, soft, *both).status_code == 204
    assert {first.uuid, second.uuid} & set(deleted(soft.admin, soft)) == set()


def test_undrop_of_two_objects_of_one_name_fails(soft: World, location: str) -> None:
    name = unique("twin")
    one, other = _dropped(soft, location, name=name), _dropped(soft, location, name=name.upper())
    refused = undrop(soft.admin, soft, ("table", one.uuid), ("table", other.uuid))
    assert error_triple(refused)[:2] == (409, "AlreadyExistsException")
    assert {one.uuid, other.uuid} <= set(deleted(soft.admin, soft))


def test_undrop_needs_the_right_and_hides_invisible_objects(soft: World, location: str) -> None:
    table = _dropped(soft, location)
    assert error_triple(undrop(soft.carol, soft, ("table", table.uuid)))[:2] == (404, "NoSuchTableException")
    assert error_triple(undrop(soft.carol, soft, ("table", str(uuid4()))))[:2] == (404, "NoSuchTableException")
    soft.grant("select", soft.carol, "namespace", soft.namespace_id(location))
    assert error_triple(undrop(soft.carol, soft, ("table", table.uuid)))[:2] == (403, "TableActionForbidden")
    soft.revoke("select", soft.carol, "namespace", soft.namespace_id(location))
    soft.grant("modify", soft.carol, "namespace", soft.namespace_id(location))
    assert undrop(soft.carol, soft, ("table", table.uuid)).status_code == 204
    soft.revoke("modify", soft.carol, "namespace", soft.namespace_id(location))
    unknown = {"type": "role", "id": table.uuid}
    bad_ones: tuple[dict[str, list[dict[str, str]]], ...] = ({}, {"targets": []}, {"targets": [unknown]})
    for bad in bad_ones:
        assert soft.admin.post(f"{deleted_path(soft)}/undrop", bad).status_code == 400


def test_deleted_list_has_deletion_and_expiry_times(soft: World, location: str) -> None:
    table = _dropped(soft, location)
    view = create_view(soft, location)
    assert soft.admin.delete(view["path"]).status_code == 204
    id = soft.sql("select id::text from tables where name = $1", view["name"])[0]["id"]
    found = deleted(soft.admin, soft, namespaceId=soft.namespace_id(location))
    assert set(found) == {table.uuid, id}
    listed = found[table.uuid]
    assert set(listed) == {
        "id",
        "name",
        "namespace",
        "typ",
        "warehouse-id",
        "created-at",
        "deleted-at",
        "expiration-date",
    }
    assert (listed["name"], listed["namespace"], listed["typ"]) == (
        table.name,
        [location],
        "table",
    )
    assert found[id]["typ"] == "view"
    kept = datetime.fromisoformat(listed["expiration-date"]) - datetime.fromisoformat(listed["deleted-at"])
    assert 3595 < kept.total_seconds() < 3605
    assert deleted(soft.admin, soft, namespaceId=str(uuid4())) == {}
    assert soft.admin.get(deleted_path(soft), params={"namespaceId": "x"}).status_code == 400


def test_deleted_list_holds_exactly_the_visible_objects(soft: World, location: str) -> None:
    inner = f"{location}%1Finner"
    assert soft.admin.post(f"{soft.root}/namespaces", {"namespace": [location, "inner"]}).status_code == 200
    own, below, hidden = _dropped(soft, location), _dropped(soft, inner), _dropped(soft, soft.namespace())
    assert soft.carol.get(deleted_path(soft)).status_code == 404
    assert undrop(soft.admin, soft, ("table", own.uuid)).status_code == 204
    soft.grant("describe", soft.carol, "table", own.uuid)
    assert soft.admin.delete(own.path).status_code == 204
    assert set(deleted(soft.carol, soft)) == {own.uuid}
    soft.grant("select", soft.carol, "namespace", soft.namespace_id(inner))
    assert set(deleted(soft.carol, soft)) == {own.uuid, below.uuid}
    assert hidden.uuid in deleted(soft.admin, soft)
    soft.revoke("select", soft.carol, "namespace", soft.namespace_id(inner))


def test_deleted_list_pages_are_complete(soft: World, location: str) -> None:
    made = {_dropped(soft, location).uuid for _ in range(5)}
    seen: list[str] = []
    query = {"namespaceId": soft.namespace_id(location), "pageSize": "2"}
    while True:
        page = soft.admin.get(deleted_path(soft), params=query).json()
        assert len(page["tabulars"]) <= 2
        seen += [each["id"] for each in page["tabulars"]]
        if "next-page-token" not in page:
            break
        query["pageToken"] = page["next-page-token"]
    assert sorted(seen) == sorted(made)


@pytest.mark.parametrize("purge", [True, False])
def test_soft_delete_expiry_removes_row_grants_and_requested_files(soft: World, location: str, purge: bool) -> None:
    table = soft.table(location)
    fill(soft, table.location)
    soft.grant("select", soft.carol, "table", table.uuid)
    before = keys(soft, table.location)
    assert soft.admin.delete(f"{table.path}?purgeRequested={str(purge).lower()}").status_code == 204
    end_now(soft, table.uuid)
    soft.delivered()
    assert soft.tuples(f"table:{table.uuid}") == set()
    assert soft.sql("select 1 from grants where object_id = $1", table.uuid) == []
    assert error_triple(undrop(soft.admin, soft, ("table", table.uuid)))[:2] == (404, "NoSuchTableException")
    if purge:
        until(lambda: keys(soft, table.location) == set(), "the files were not deleted before the deadline")
    else:
        soft.quiet()
        assert keys(soft, table.location) == before


def test_soft_delete_with_gc_enabled_false_keeps_the_files(soft: World, location: str) -> None:
    table = _dropped(soft, location, properties={"gc.enabled": "false"})
    end_now(soft, table.uuid)
    soft.quiet()
    assert len(keys(soft, table.location)) == 1


def test_forced_drop_is_permanent(soft: World, location: str) -> None:
    table = soft.table(location)
    assert soft.admin.delete(f"{table.path}?force=true").status_code == 204
    assert table.uuid not in deleted(soft.admin, soft)
    assert soft.sql("select 1 from tables where id = $1", table.uuid) == []
    until(lambda: keys(soft, table.location) == set(), "the files were not deleted before the deadline")


def test_view_is_soft_deleted_and_undropped_like_a_table(soft: World, location: str) -> None:
    view = create_view(soft, location)
    assert soft.admin.delete(view["path"]).status_code == 204
    assert error_triple(soft.admin.get(view["path"]))[:2] == (404, "NoSuchViewException")
    assert soft.admin.post(f"{soft.root}/namespaces/{location}/views", view_body(view["name"])).status_code == 200
    assert soft.admin.delete(f"{view['path']}?force=true").status_code == 204
    id = soft.sql("select id::text from tables where name = $1", view["name"])[0]["id"]
    assert error_triple(undrop(soft.admin, soft, ("table", id)))[:2] == (404, "NoSuchTableException")
    assert undrop(soft.admin, soft, ("view", id)).status_code == 204
    assert soft.admin.get(view["path"]).json()["metadata"] == view["metadata"]
    assert soft.admin.delete(f"{view['path']}?purgeRequested=true").status_code == 204
    end_now(soft, id)
    until(lambda: keys(soft, view["metadata"]["location"]) == set(), "the files were not deleted before the deadline")
