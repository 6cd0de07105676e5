# SPDX-License-Identifier: Apache-2.0
"""Renames of tables and views: the name, the rights afterwards, and the refusals."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.stack.renames import rename
from tests.support.stack.views import create as create_view
from tests.support.stack.world import World, error_triple, send_until_decided, unique


def make(world: World, kind: str, ns: str) -> dict[str, Any]:
    """Create a table or view; return name, path, row id, and the loaded response."""
    if kind == "views":
        made = create_view(world, ns)
        name = made["name"]
    else:
        table = world.table(ns)
        made, name = table.answer, table.name
    id = str(world.sql("select id from tables where name = $1", name)[0]["id"])
    return {"name": name, "id": id, "metadata": made["metadata"], "metadata-location": made["metadata-location"]}


def path(world: World, kind: str, ns: str, name: str) -> str:
    """Return the path from which a table or view is loaded."""
    return f"{world.root}/namespaces/{ns}/{kind}/{name}"


KINDS = pytest.mark.parametrize("kind", ["tables", "views"])


def _type(kind: str) -> str:
    return kind.removesuffix("s")


@KINDS
def test_rename_changes_only_the_name(world: World, ns: str, kind: str) -> None:
    made, name = make(world, kind, ns), unique("renamed")
    answer = rename(world.admin, world, kind, (ns, made["name"]), (ns, name))
    assert (answer.status_code, answer.content) == (204, b"")
    assert world.admin.head(path(world, kind, ns, made["name"])).status_code == 404
    loaded = world.admin.get(path(world, kind, ns, name)).json()
    assert loaded["metadata"] == made["metadata"]
    assert loaded["metadata-location"] == made["metadata-location"]
    listed = world.admin.get(f"{world.root}/namespaces/{ns}/{kind}").json()["identifiers"]
    assert listed == [{"namespace": [ns], "name": name}]


@KINDS
def test_a_name_may_change_its_letter_case_only(world: World, ns: str, kind: str) -> None:
    made = make(world, kind, ns)
    assert rename(world.admin, world, kind, (ns, made["name"]), (ns, made["name"].upper())).status_code == 204
    listed = world.admin.get(f"{world.root}/namespaces/{ns}/{kind}").json()["identifiers"]
    assert [each["name"] for each in listed] == [made["name"].upper()]


@KINDS
def test_rename_moves_visibility_to_readers_of_the_new_namespace(world: World, kind: str) -> None:
    old, new = world.namespace(), world.namespace()
    made, neighbour = make(world, kind, old), make(world, kind, old)
    world.grant("select", world.carol, "namespace", world.namespace_id(old))
    world.grant("select", world.analyst, "namespace", world.namespace_id(new))
    name = unique("moved")
    assert world.carol.get(path(world, kind, old, made["name"])).status_code == 200
    assert rename(world.admin, world, kind, (old, made["name"]), (new, name)).status_code == 204
    assert world.carol.get(path(world, kind, new, name)).status_code == 404
    assert world.carol.get(path(world, kind, old, made["name"])).status_code == 404
    assert world.analyst.get(path(world, kind, new, name)).status_code == 200
    assert world.carol.get(path(world, kind, old, neighbour["name"])).status_code == 200
    assert world.analyst.get(path(world, kind, old, neighbour["name"])).status_code == 404
    parents = {user for user, relation in world.tuples(f"{_type(kind)}:{made['id']}") if relation == "parent"}
    assert parents == {f"namespace:{world.namespace_id(new)}"}


@KINDS
def test_grantee_of_a_renamed_table_keeps_access_and_sees_the_new_path_only(world: World, kind: str) -> None:
    old, new = world.namespace(), world.namespace()
    made = make(world, kind, old)
    world.grant("select", world.contractor, _type(kind), made["id"])
    assert world.contractor.head(f"{world.root}/namespaces/{old}").status_code == 204
    assert rename(world.admin, world, kind, (old, made["name"]), (new, made["name"])).status_code == 204
    assert world.contractor.get(path(world, kind, new, made["name"])).status_code == 200
    assert world.contractor.head(f"{world.root}/namespaces/{new}").status_code == 204
    assert world.contractor.head(f"{world.root}/namespaces/{old}").status_code == 404
    world.revoke("select", world.contractor, _type(kind), made["id"])
    assert world.contractor.head(f"{world.root}/namespaces/{new}").status_code == 404
    assert world.sql("select 1 from outbox where subject_id = $1", world.contractor.id) == []


def test_grantee_of_a_sibling_still_sees_the_old_namespace(world: World) -> None:
    old, new = world.namespace(), world.namespace()
    leaving, staying = make(world, "tables", old), make(world, "tables", old)
    for each in (leaving, staying):
        world.grant("select", world.contractor, "table", each["id"])
    assert rename(world.admin, world, "tables", (old, leaving["name"]), (new, leaving["name"])).status_code == 204
    assert world.contractor.head(f"{world.root}/namespaces/{old}").status_code == 204
    assert world.contractor.get(path(world, "tables", old, staying["name"])).status_code == 200
    assert world.contractor.get(path(world, "tables", new, leaving["name"])).status_code == 200


@pytest.mark.threat("LG-DEC-03")
@KINDS
def test_rename_needs_the_right_on_the_source_and_create_at_the_destination(world: World, kind: str) -> None:
    old, new = world.namespace(), world.namespace()
    made = make(world, kind, old)
    here, there = (old, made["name"]), (new, made["name"])
    forbidden = "TableActionForbidden" if kind == "tables" else "ViewActionForbidden"
    assert rename(world.steward, world, kind, here, there).status_code == 404
    world.grant("select", world.steward, _type(kind), made["id"])
    assert error_triple(rename(world.steward, world, kind, here, (old, "x")))[:2] == (403, forbidden)
    world.grant("modify", world.steward, _type(kind), made["id"])
    assert error_triple(rename(world.steward, world, kind, here, there)) == (
        404,
        "NoSuchNamespaceException",
        f"Namespace does not exist: {new}",
    )
    world.grant("describe", world.steward, "namespace", world.namespace_id(new))
    assert error_triple(rename(world.steward, world, kind, here, there))[:2] == (403, forbidden)
    world.grant("manage_grants", world.steward, _type(kind), made["id"])
    assert error_triple(rename(world.steward, world, kind, here, there))[:2] == (403, "NamespaceActionForbidden")
    world.revoke("manage_grants", world.steward, _type(kind), made["id"])
    assert world.admin.head(path(world, kind, old, made["name"])).status_code == 204
    name = unique("within")
    assert rename(world.steward, world, kind, here, (old, name)).status_code == 204
    world.grant("create", world.steward, "namespace", world.namespace_id(new))
    assert error_triple(rename(world.steward, world, kind, (old, name), there))[:2] == (403, forbidden)
    world.grant("manage_grants", world.steward, _type(kind), made["id"])
    assert rename(world.steward, world, kind, (old, name), there).status_code == 204


@KINDS
def test_rename_of_a_table_does_not_accept_a_view_and_vice_versa(world: World, ns: str, kind: str) -> None:
    other = "views" if kind == "tables" else "tables"
    made = make(world, other, ns)
    noun = _type(kind).capitalize()
    assert error_triple(rename(world.admin, world, kind, (ns, made["name"]), (ns, "x")))[1] == f"NoSuch{noun}Exception"


def test_invalid_name_is_no_rename_destination(world: World, ns: str) -> None:
    table = world.table(ns)
    for name in ("a+b", "a/b", " a", ""):
        assert rename(world.admin, world, "tables", (ns, table.name), (ns, name)).status_code == 400


@pytest.mark.threat("LG-LOC-17")
def test_a_table_created_under_the_old_name_shares_nothing_with_the_renamed_one(world: World, ns: str) -> None:
    first = world.table(ns)
    assert rename(world.admin, world, "tables", (ns, first.name), (ns, unique("away"))).status_code == 204
    second = world.table(ns, first.name)
    assert second.location != first.location
    assert not second.location.startswith(f"{first.location}/")
    assert second.uuid != first.uuid


def test_a_table_is_committed_to_under_its_new_name_only(world: World, ns: str) -> None:
    table, name = world.table(ns), unique("new")
    assert rename(world.admin, world, "tables", (ns, table.name), (ns, name)).status_code == 204
    change = {"action": "set-properties", "updates": {"a": "b"}}
    assert world.commit(world.admin, table.path, change).status_code == 404
    assert world.commit(world.admin, path(world, "tables", ns, name), change).status_code == 200


def test_rename_audit_has_both_names(world: World, ns: str) -> None:
    table, name = world.table(ns), unique("new")
    answer = rename(world.admin, world, "tables", (ns, table.name), (ns, name))
    request_id = answer.headers["x-request-id"]
    (record,) = world.sql("select operation, outcome, record from audit_log where request_id = $1", request_id)
    assert (record["operation"], record["outcome"]) == ("rename_table", "allowed")
    assert f"{ns}.{name}".encode() in record["record"]
    assert f"{ns}.{table.name}".encode() in record["record"]


def _sent(
    together: ThreadPoolExecutor, send: Callable[..., httpx.Response], *arguments: object
) -> Future[httpx.Response]:
    """Send the request concurrently with others, and again after 429 or 503.

    A rename revokes visibility, which may outdate concurrent decisions.
    """
    return together.submit(send_until_decided, partial(send, *arguments))


def test_grant_racing_with_a_rename_makes_the_current_path_visible(world: World) -> None:
    for _ in range(6):
        old, new = world.namespace(), world.namespace()
        made = make(world, "tables", old)
        with ThreadPoolExecutor(2) as together:
            granting = together.submit(world.grant, "select", world.contractor, "table", made["id"])
            moving = _sent(together, rename, world.admin, world, "tables", (old, made["name"]), (new, made["name"]))
        granting.result()
        assert moving.result().status_code == 204
        assert world.contractor.get(path(world, "tables", new, made["name"])).status_code == 200
        assert world.contractor.head(f"{world.root}/namespaces/{new}").status_code == 204
        assert world.contractor.head(f"{world.root}/namespaces/{old}").status_code == 404


def test_commit_racing_with_a_rename_applies_to_its_table_or_fails(world: World) -> None:
    for attempt in range(6):
        old, new = world.namespace(), world.namespace()
        table = world.table(old)
        update = {"action": "set-properties", "updates": {"turn": str(attempt)}}
        with ThreadPoolExecutor(2) as together:
            committing = _sent(together, world.commit, world.admin, table.path, update)
            moving = _sent(together, rename, world.admin, world, "tables", (old, table.name), (new, table.name))
        assert moving.result().status_code == 204
        assert committing.result().status_code in (200, 404)
        now = world.admin.get(path(world, "tables", new, table.name)).json()["metadata"]
        assert now["properties"].get("turn") == (str(attempt) if committing.result().status_code == 200 else None)


def test_one_of_two_renames_onto_one_name_succeeds(world: World, ns: str) -> None:
    first, second, name = world.table(ns), world.table(ns), unique("wanted")
    with ThreadPoolExecutor(2) as together:
        answers = [
            _sent(together, rename, world.admin, world, "tables", (ns, each.name), (ns, name))
            for each in (first, second)
        ]
    assert sorted(each.result().status_code for each in answers) == [204, 409]
    listed = world.admin.get(f"{world.root}/namespaces/{ns}/tables").json()["identifiers"]
    assert len(listed) == 2


def test_one_of_two_moves_of_a_table_succeeds_with_one_parent(world: World) -> None:
    old, left, right = world.namespace(), world.namespace(), world.namespace()
    made = make(world, "tables", old)
    with ThreadPoolExecutor(2) as together:
        answers = [
            _sent(together, rename, world.admin, world, "tables", (old, made["name"]), (to, made["name"]))
            for to in (left, right)
        ]
    assert sorted(each.result().status_code for each in answers) == [204, 404]
    parents = [user for user, relation in world.tuples(f"table:{made['id']}") if relation == "parent"]
    [row] = world.sql("select namespace_id from tables where id = $1::uuid", made["id"])
    assert parents == [f"namespace:{row['namespace_id']}"]
