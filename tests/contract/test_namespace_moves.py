# SPDX-License-Identifier: Apache-2.0
"""Namespace moves: the names of all descendants, the rights afterwards, and the refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import uuid4

import httpx
import pytest

from tests.support.stack.namespace_moves import at, make, move, new_table
from tests.support.stack.views import create as create_view
from tests.support.stack.world import SCHEMA, World, error_of, error_triple, send_until_decided, unique


def parents(world: World, id: str) -> set[str]:
    """Return the parents of a namespace in OpenFGA."""
    return {user for user, relation in world.tuples(f"namespace:{id}") if relation == "parent"}


def two(world: World) -> tuple[str, str, str]:
    """Return (name of a namespace, id of its child `inner`, name of another namespace)."""
    old, new = world.namespace(), world.namespace()
    return old, make(world, old, "inner"), new


def test_namespace_move_returns_the_new_path_and_parent(world: World) -> None:
    _, inner, new = two(world)
    answer = move(world.admin, world, inner, [new, "Placed"])
    assert answer.status_code == 200, answer.text
    parent = world.namespace_id(new)
    assert answer.json() == {"namespace": [new, "Placed"], "namespace-id": inner, "parent-namespace-id": parent}
    name = unique("top")
    answer = move(world.admin, world, inner, [name])
    assert answer.json() == {"namespace": [name], "namespace-id": inner}
    assert parents(world, inner) == {f"warehouse:{world.warehouse}"}


def test_namespace_move_changes_only_the_names_of_descendants(world: World) -> None:
    old, inner, new = two(world)
    make(world, old, "inner", "deep")
    table = new_table(world, old, "inner", "deep")
    before = world.admin.get(table).json()
    assert move(world.admin, world, inner, [new, "placed"]).status_code == 200
    after = world.admin.get(table.replace(f"{old}%1Finner", f"{new}%1Fplaced"))
    assert after.status_code == 200, after.text
    assert after.json()["metadata"] == before["metadata"]
    assert after.json()["metadata-location"] == before["metadata-location"]
    assert world.admin.get(table).status_code == 404
    assert world.admin.head(at(world, old, "inner")).status_code == 404
    listed = world.admin.get(f"{world.root}/namespaces?parent={new}%1Fplaced").json()["namespaces"]
    assert listed == [[new, "placed", "deep"]]
    rows = world.sql("select levels, path_key, cardinality(ancestors) as depth from namespaces where id = $1", inner)
    assert [tuple(row.values()) for row in rows] == [([new, "placed"], f"{new}\x1fplaced", 1)]
    assert make(world, old, "inner") != inner, "a namespace created under the old name must be another one"


def test_namespace_rename_in_the_same_parent_changes_no_rights(world: World) -> None:
    old, inner, _ = two(world)
    table = new_table(world, old, "inner")
    world.grant("select", world.carol, "namespace", world.namespace_id(old))
    assert move(world.admin, world, inner, [old, "Renamed"]).status_code == 200
    assert world.carol.get(table.replace("%1Finner", "%1Frenamed")).status_code == 200
    assert move(world.admin, world, inner, [old.upper(), "RENAMED"]).status_code == 200
    [row] = world.sql("select levels from namespaces where id = $1", inner)
    assert row["levels"] == [old, "RENAMED"], "only the spelling of the namespace's own name may change"
    assert parents(world, inner) == {f"namespace:{world.namespace_id(old)}"}


def test_namespace_move_moves_visibility_to_readers_of_the_new_parent(
    world: World,
) -> None:
    old, inner, new = two(world)
    make(world, old, "inner", "deep")
    table = new_table(world, old, "inner", "deep")
    world.grant("select", world.carol, "namespace", world.namespace_id(old))
    world.grant("select", world.analyst, "namespace", world.namespace_id(new))
    assert world.carol.get(table).status_code == 200
    assert move(world.admin, world, inner, [new, "inner"]).status_code == 200
    moved = table.replace(f"{old}%1F", f"{new}%1F")
    assert (world.carol.get(moved).status_code, world.carol.get(table).status_code) == (404, 404)
    assert world.analyst.get(moved).status_code == 200
    assert parents(world, inner) == {f"namespace:{world.namespace_id(new)}"}


def test_grantee_below_keeps_access_and_sees_the_new_path_only(world: World) -> None:
    old, inner, new = two(world)
    deep = make(world, old, "inner", "deep")
    table, view = new_table(world, old, "inner", "deep"), create_view(world, f"{old}%1Finner%1Fdeep")["name"]
    for person, kind, path in ((world.contractor, "table", table), (world.steward, "view", f"x/{view}")):
        [row] = world.sql("select id::text from tables where name = $1", path.rsplit("/", 1)[1])
        world.grant("select", person, kind, row["id"])
    try:
        assert move(world.admin, world, inner, [new, "inner"]).status_code == 200
        assert world.contractor.get(table.replace(f"{old}%1F", f"{new}%1F")).status_code == 200
        for person in (world.contractor, world.steward):
            assert world.admin.head(at(world, new, "inner", "deep")).status_code == 204
            assert person.head(at(world, new, "inner", "deep")).status_code == 204
            assert person.head(at(world, new)).status_code == 204
            assert person.head(at(world, old)).status_code == 404
        assert {"traverse"} <= {relation for _, relation in world.tuples(f"namespace:{deep}")}
        assert "traverse" not in {relation for _, relation in world.tuples(f"namespace:{world.namespace_id(old)}")}
    finally:
        world.strip(world.contractor)
        world.strip(world.steward)
    assert world.contractor.head(at(world, new)).status_code == 404


def test_namespace_move_needs_rights_on_source_and_destination(world: World) -> None:
    old, inner, new = two(world)
    person, into = world.steward, [new, "inner"]
    world.strip(person)
    try:
        assert error_triple(move(person, world, inner, into))[:2] == (404, "NoSuchNamespaceException")
        world.grant("modify", person, "namespace", inner)
        # A grantee sees the path to the object, and therefore the parent.
        assert error_triple(move(person, world, inner, [old, "x"]))[:2] == (403, "NamespaceActionForbidden")
        world.grant("manage_grants", person, "namespace", inner)
        assert error_triple(move(person, world, inner, into)) == (
            404,
            "NoSuchNamespaceException",
            f"Namespace does not exist: {new}",
        )
        world.grant("create", person, "namespace", world.namespace_id(new))
        assert error_triple(move(person, world, inner, into))[:2] == (403, "NamespaceActionForbidden")
        world.grant("manage_grants", person, "namespace", world.namespace_id(new))
        assert error_triple(move(person, world, inner, ["top"]))[:2] == (403, "WarehouseActionForbidden")
        assert world.admin.head(at(world, old, "inner")).status_code == 204
        assert move(person, world, inner, into).status_code == 200
    finally:
        world.strip(person)


def test_missing_and_invisible_namespaces_get_the_same_response(world: World) -> None:
    _, inner, new = two(world)
    missing = str(uuid4())
    assert error_triple(move(world.admin, world, missing, ["x"])) == (
        404,
        "NoSuchNamespaceException",
        f"Namespace does not exist: {missing}",
    )
    assert error_triple(move(world.admin, world, inner, ["nowhere_at_all", "x"]))[:2] == (
        404,
        "NoSuchNamespaceException",
    )
    world.strip(world.contractor)
    assert error_triple(move(world.contractor, world, inner, [new, "x"]))[:2] == (404, "NoSuchNamespaceException")
    path = f"/management/v1/warehouse/{uuid4()}/namespace/{inner}/move"
    assert world.admin.post(path, {"destination": ["x"]}).status_code == 404


def test_a_namespace_is_not_moved_into_itself(world: World) -> None:
    old, inner, _ = two(world)
    id = world.namespace_id(old)
    for into in ([old, "x"], [old, "inner", "x"]):
        assert error_triple(move(world.admin, world, id, into))[:2] == (400, "NamespaceCannotMoveIntoSelf")
    assert parents(world, inner) == {f"namespace:{id}"}


def test_taken_name_is_a_conflict_in_any_letter_case(world: World) -> None:
    old, inner, new = two(world)
    make(world, new, "Taken")
    assert error_triple(move(world.admin, world, inner, [new, "tAKEN"]))[:2] == (409, "AlreadyExistsException")
    assert world.admin.head(at(world, old, "inner")).status_code == 204


@pytest.mark.parametrize(
    ("destination", "type"),
    [
        (["a.b"], "NamespacePartContainsDot"),
        ([], "NamespaceEmpty"),
        (["a", ""], "NamespacePartEmpty"),
        (["system"], "ReservedNamespace"),
        (["a+b"], "InvalidNamespace"),
    ],
)
def test_invalid_namespace_path_is_no_move_destination(world: World, destination: list[str], type: str) -> None:
    _, inner, _ = two(world)
    if len(destination) > 1:
        destination = [world.namespace(), *destination[1:]]
    assert error_triple(move(world.admin, world, inner, destination))[:2] == (400, type)


def test_namespace_move_depth_counts_the_deepest_descendant(world: World) -> None:
    old, inner, new = two(world)
    make(world, old, "inner", "x")
    make(world, old, "inner", "x", "y")
    make(world, new, "1")
    make(world, new, "1", "2")
    assert error_triple(move(world.admin, world, inner, [new, "1", "2", "inner"]))[:2] == (
        400,
        "NamespaceDepthExceeded",
    )
    assert move(world.admin, world, inner, [new, "1", "inner"]).status_code == 200
    assert world.admin.head(at(world, new, "1", "inner", "x", "y")).status_code == 204


def test_protected_namespace_is_moved_by_force_only(world: World) -> None:
    _, inner, new = two(world)
    world.sql("update namespaces set protected = true where id = $1", inner)
    assert error_triple(move(world.admin, world, inner, [new, "inner"]))[:2] == (409, "NamespaceProtected")
    assert move(world.admin, world, inner, [new, "inner"], force=True).status_code == 200


def test_namespaces_of_a_folder_layout_cannot_be_moved(world: World) -> None:
    _, inner, new = two(world)
    layout = {"type": "full-hierarchy", "namespace": "{name}-{uuid}", "tabular": "{name}-{uuid}"}
    [row] = world.sql("select profile from warehouses where id = $1", world.warehouse)
    changed = json.dumps({**json.loads(row["profile"]), "storage-layout": layout}).encode()
    try:
        world.sql("update warehouses set profile = $1 where id = $2", changed, world.warehouse)
        answer = move(world.admin, world, inner, [new, "inner"])
    finally:
        world.sql("update warehouses set profile = $1 where id = $2", row["profile"], world.warehouse)
    assert error_triple(answer)[:2] == (400, "StorageLayoutForbidsNamespaceMove")


def test_namespace_move_audit_has_both_paths(world: World) -> None:
    old, inner, new = two(world)
    answer = move(world.admin, world, inner, [new, "inner"])
    request_id = answer.headers["x-request-id"]
    (record,) = world.sql("select operation, outcome, record from audit_log where request_id = $1", request_id)
    assert (record["operation"], record["outcome"]) == ("move_namespace", "allowed")
    assert f"{old}.inner".encode() in record["record"]
    assert f"{new}.inner".encode() in record["record"]


def test_managed_access_moves_with_the_namespace_and_is_inherited_anew(world: World) -> None:
    _, inner, new = two(world)
    path = f"/management/v1/permissions/namespace/{inner}"
    assert world.admin.get(path).json() == {"managed-access": False, "managed-access-inherited": False}
    of_new = f"/management/v1/permissions/namespace/{world.namespace_id(new)}/managed-access"
    assert world.admin.post(of_new, {"managed-access": True}).status_code == 200
    assert move(world.admin, world, inner, [new, "inner"]).status_code == 200
    assert world.admin.get(path).json() == {"managed-access": False, "managed-access-inherited": True}


# ---- concurrent requests -------------------------------------------------------------------------------------------


def together(*calls: Callable[[], httpx.Response]) -> list[int]:
    """Return the statuses of concurrent requests.

    A move revokes visibility, which may repeatedly outdate concurrent decisions; such a request is sent again.
    """
    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result().status_code for each in [pool.submit(send_until_decided, call) for call in calls]]


def consistent(world: World, *tops: str) -> None:
    """Require that every path below agrees with its parent's, in the rows and in OpenFGA, without a cycle."""
    world.delivered()
    rows = world.sql(
        "select n.id::text, n.levels, n.path_key, n.ancestors, p.id::text as parent, p.levels as parent_levels, "
        "p.path_key as parent_key, p.ancestors as parent_ancestors, n.warehouse_id::text as warehouse "
        "from namespaces n left join namespaces p on p.id = n.parent_id where n.path_key like any($1::text[])",
        [f"%{top}%" for top in tops],
    )
    assert rows
    for row in rows:
        if row["parent"] is None:
            assert (len(row["levels"]), row["ancestors"]) == (1, [])
            assert parents(world, row["id"]) == {f"warehouse:{row['warehouse']}"}
            continue
        assert row["levels"][:-1] == row["parent_levels"]
        assert row["path_key"].rpartition("\x1f")[0] == row["parent_key"]
        assert [str(each) for each in row["ancestors"]] == [*map(str, row["parent_ancestors"]), row["parent"]]
        assert row["id"] not in map(str, row["ancestors"])
        assert parents(world, row["id"]) == {f"namespace:{row['parent']}"}


def test_one_of_two_moves_forming_a_cycle_succeeds(world: World) -> None:
    for _ in range(4):
        one, other = world.namespace(), world.namespace()
        ids = world.namespace_id(one), world.namespace_id(other)
        statuses = together(
            partial(move, world.admin, world, ids[0], [other, one]),
            partial(move, world.admin, world, ids[1], [one, other]),
        )
        assert sorted(statuses) in ([200, 400], [200, 404]), statuses
        consistent(world, one, other)


def test_objects_created_during_a_move_follow_the_namespace(world: World) -> None:
    for _ in range(4):
        old, inner, new = two(world)
        body = {"namespace": [old, "inner", "child"]}
        moved, made, table = together(
            partial(move, world.admin, world, inner, [new, "inner"]),
            partial(world.admin.post, f"{world.root}/namespaces", body),
            partial(world.admin.post, f"{at(world, old, 'inner')}/tables", {"name": "t", "schema": SCHEMA}),
        )
        assert moved == 200
        assert made in (200, 404)
        assert table in (200, 404)
        consistent(world, old, new)
        assert (world.admin.head(at(world, new, "inner", "child")).status_code == 204) == (made == 200)
        assert (world.admin.head(f"{at(world, new, 'inner')}/tables/t").status_code == 204) == (table == 200)


def test_grant_racing_with_a_move_makes_the_current_path_visible(world: World) -> None:
    for _ in range(4):
        old, inner, new = two(world)
        table = new_table(world, old, "inner")
        [row] = world.sql("select id::text from tables where name = $1", table.rsplit("/", 1)[1])
        with ThreadPoolExecutor(2) as pool:
            granting = pool.submit(world.grant, "select", world.contractor, "table", row["id"])
            moving = pool.submit(send_until_decided, partial(move, world.admin, world, inner, [new, "inner"]))
        granting.result()
        assert moving.result().status_code == 200
        assert world.contractor.get(table.replace(f"{old}%1F", f"{new}%1F")).status_code == 200
        assert world.contractor.head(at(world, new)).status_code == 204
        assert world.contractor.head(at(world, old)).status_code == 404
        world.revoke("select", world.contractor, "table", row["id"])


def test_repeated_move_delivers_undelivered_tuples_of_the_first(world: World) -> None:
    old, id, new = two(world)
    assert move(world.admin, world, id, [new, "inner"]).status_code == 200
    # As if OpenFGA had not acknowledged the move: its edge is undelivered and no retry is due soon.
    world.sql(
        "insert into outbox (subject_type, subject_id, relation, object_type, object_id, takes_away, not_before) "
        "values ('namespace', $1, 'parent', 'namespace', $2, true, now() + interval '1 hour')",
        world.namespace_id(old),
        id,
    )
    assert move(world.admin, world, id, [new, "inner"]).status_code == 200
    assert world.sql("select 1 from outbox where object_id = $1", id) == []
    assert parents(world, id) == {f"namespace:{world.namespace_id(new)}"}


def test_move_to_a_concurrently_dropped_namespace_fails(world: World) -> None:
    for _ in range(4):
        old, inner, new = two(world)
        moved, dropped = together(
            partial(move, world.admin, world, inner, [new, "inner"]),
            partial(world.admin.delete, at(world, new)),
        )
        # 403: the new parent existed when the names were resolved, and its relationships were gone when it was judged.
        assert (moved, dropped) in ((200, 409), (404, 204), (403, 204)), (moved, dropped)
        consistent(world, old, new)


def test_table_renamed_into_a_moving_namespace_moves_or_stays(world: World) -> None:
    for _ in range(4):
        old, inner, new = two(world)
        source = world.namespace()
        table = world.table(source)
        body = {
            "source": {"namespace": [source], "name": table.name},
            "destination": {"namespace": [old, "inner"], "name": "arrived"},
        }
        moved, renamed = together(
            partial(move, world.admin, world, inner, [new, "inner"]),
            partial(world.admin.post, f"{world.root}/tables/rename", body),
        )
        assert moved == 200
        assert renamed in (204, 404)
        consistent(world, old, new)
        found = table.path if renamed == 404 else f"{at(world, new, 'inner')}/tables/arrived"
        assert world.admin.head(found).status_code == 204


def test_a_body_without_a_destination_is_malformed(world: World) -> None:
    _, inner, _ = two(world)
    path = f"/management/v1/warehouse/{world.warehouse}/namespace/{inner}/move"
    for body in ({}, {"destination": "x"}, {"other": ["x"]}):
        assert error_of(world.admin.post(path, body))["code"] == 400
