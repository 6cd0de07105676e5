# SPDX-License-Identifier: Apache-2.0
"""Column names may be any text.

A name that a path cannot express is refused and matches no other column. Its grants can be listed and revoked by field
id.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.support.stack.columns import assignments_path, evolve, give, grants_path, readable, wide
from tests.support.stack.world import Person, Table, World

#: Path segments, as sent, between `/columns/` and `/grants` that are no column name.
UNSPEAKABLE = ["", ".", "..", "%2E", "%2e%2e", "%2F", "a%2Fb", "..%2F..", "a%5Cb", "%00", "%FF", "%ED%A0%80"]
#: Names of no column here, though similar columns exist.
INVALID_NAMES = [
    "%252F",
    "%01",
    "%0A",
    "%C2%85",
    "%20",
    "+",
    "name%20",
    "NAME",
    "field-id:-1",
    "field-id:+2",
    "field-id:02",
]
INVALID_NAMES += [
    "field-id:%D9%A2",
    "FIELD-ID:2",
    "field-id:99999999999",
    "name;v=1",
    "name%3F",
    "name%23",
    "x" * 10_000,
]


@pytest.fixture(autouse=True)
def stranger(world: World) -> Iterator[None]:
    """Remove all grants of carol, before and after."""
    world.strip(world.carol)
    yield
    world.strip(world.carol)


def as_written(world: World, person: Person, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    """Return the response to an unnormalised path: ordinary clients would rewrite some of them."""
    at = urlsplit(world.base)
    connection = http.client.HTTPConnection(str(at.hostname), at.port, timeout=60)
    headers = {"Authorization": f"Bearer {person.token}", "Content-Type": "application/json"}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    finally:
        connection.close()


def every_way(world: World, table: Table | str, column: str) -> Iterator[tuple[str, str, Any]]:
    """Send each endpoint that names a column, with the encoded column; a grant would go to carol."""
    id = table if isinstance(table, str) else table.uuid
    columns = f"/management/v1/warehouse/{world.warehouse}/table/{id}/columns/{column}"
    rights = f"/management/v1/permissions/warehouse/{world.warehouse}/table/{id}/columns/{column}/assignments"
    yield "GET", f"{columns}/grants", None
    yield "GET", f"{columns}/grants/history", None
    yield "POST", f"{columns}/grants", {"writes": [{"privilege": "select", "principal": {"user": world.carol.id}}]}
    yield "GET", rights, None
    yield "POST", rights, {"writes": [{"type": "select", "user": world.carol.id}]}


def nothing_given(world: World, id: str) -> None:
    """Require that only the owner holds a grant on a table or its columns."""
    rows = world.sql("select privilege from grants where object_id = $1 or object_id like $1 || '.%'", id)
    assert [row["privilege"] for row in rows] == ["ownership"]


def called(world: World, ns: str, name: str) -> str:
    """Create a table whose second column (field id 2) has this name; return its id."""
    fields = [{"id": at, "name": each, "type": "long", "required": False} for at, each in ((1, "kept"), (2, name))]
    return world.table(ns, schema={"type": "struct", "fields": fields}).uuid


def test_unaddressable_column_name_is_400_and_grants_nothing(world: World, ns: str) -> None:
    table = wide(world, ns)
    for column in UNSPEAKABLE:
        for method, path, body in every_way(world, table, column):
            status, response = as_written(world, world.admin, method, path, body)
            assert status == 400, (column, method, path, response)
            assert "field-id:<id>" in response["error"]["message"] or "UTF-8" in response["error"]["message"], column
    nothing_given(world, table.uuid)


def test_inexact_column_name_matches_no_column(world: World, ns: str) -> None:
    table = wide(world, ns)
    for column in INVALID_NAMES:
        for method, path, body in every_way(world, table, column):
            status, response = as_written(world, world.admin, method, path, body)
            assert (status, response["error"]["type"]) == (404, "ColumnNotFound"), (column, method, response)
    nothing_given(world, table.uuid)


@pytest.mark.parametrize(
    "name", [" ", "\n", "%2F", "a+b", "e\u0301", "\U0001f600", "history", "assignments", "x" * 10_000]
)
def test_column_with_an_unusual_name_is_granted_listed_and_revoked(world: World, ns: str, name: str) -> None:
    id = called(world, ns, name)
    assert give(world, id, name, world.carol).status_code == 204
    [grant] = world.admin.get(grants_path(world, id, name)).json()["grants"]
    assert (grant["resource"]["column"], grant["resource"]["field-id"]) == (name, 2)
    entry = {"type": "select", "user": world.carol.id}
    assert world.admin.get(assignments_path(world, id, name)).json()["assignments"] == [entry]
    assert world.admin.post(assignments_path(world, id, name), {"deletes": [entry]}).status_code == 204
    nothing_given(world, id)


def test_column_named_grants_is_granted_through_assignments_only(world: World, ns: str) -> None:
    id = called(world, ns, "grants")
    assert give(world, id, "grants", world.carol).status_code == 404
    entry = {"type": "select", "user": world.carol.id}
    assert world.admin.post(assignments_path(world, id, "grants"), {"writes": [entry]}).status_code == 204
    [grant] = world.admin.get(grants_path(world, id)).json()["grants"]
    assert (grant["resource"]["column"], grant["resource"]["field-id"]) == ("grants", 2)
    assert world.admin.get(grants_path(world, id, "field-id:2")).json()["grants"] == [grant]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "grants", "\n", "field-id:1"])
def test_column_grant_is_found_and_revoked_by_field_id(world: World, ns: str, name: str) -> None:
    table = wide(world, ns)
    assert give(world, table, "name", world.carol).status_code == 204
    fields = [dict(each) for each in table.answer["metadata"]["schemas"][0]["fields"]]
    fields[1]["name"] = name
    evolve(world, table, fields, 5)
    assert readable(world.carol, world, table) == [[name]], "the column's name must not change the decision"
    [grant] = world.admin.get(grants_path(world, table)).json()["grants"]
    assert (grant["resource"]["column"], grant["resource"]["field-id"]) == (name, 2)
    assert world.admin.get(grants_path(world, table, "field-id:2")).json()["grants"] == [grant]
    entry = {"type": "select", "user": world.carol.id}
    by_id = assignments_path(world, table, "field-id:2")
    assert world.admin.get(by_id).json() == {"assignments": [entry], "column": name, "field-id": 2}
    given = world.admin.post(by_id, {"writes": [{"type": "select", "user": world.steward.id}]})
    assert (given.status_code, "Use the name of the column to grant" in given.text) == (400, True), (
        "a grant by field id must be refused, because policies receive names"
    )
    both = world.admin.post(by_id, {"writes": [{"type": "select", "user": world.steward.id}], "deletes": [entry]})
    assert both.status_code == 400
    assert world.admin.post(by_id, {"deletes": [entry]}).status_code == 204
    nothing_given(world, table.uuid)
    ended = world.admin.get(f"{grants_path(world, table, 'field-id:2')}/history").json()["grants"]
    assert [each["resource"]["field-id"] for each in ended] == [2]


def test_column_named_like_a_field_id_is_not_that_column(world: World, ns: str) -> None:
    id = called(world, ns, "field-id:1")
    assert give(world, id, "kept", world.carol).status_code == 204
    response = world.admin.get(assignments_path(world, id, "field-id:1")).json()
    assert (response["column"], response["field-id"], len(response["assignments"])) == ("kept", 1, 1)
    assert give(world, id, "field-id:1", world.carol).status_code == 400


def test_column_names_reveal_no_table_to_a_stranger(world: World, ns: str) -> None:
    table = wide(world, ns)
    for column in (*INVALID_NAMES, "name", "field-id:2", quote("address.street", safe="")):
        for method, path, body in every_way(world, table, column):
            status, response = as_written(world, world.carol, method, path, body)
            assert (status, response["error"]["type"]) == (404, "NoSuchTableException"), (column, method, response)
