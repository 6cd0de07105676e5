# SPDX-License-Identifier: Apache-2.0
"""Transactions over several tables: atomic, with a separate authorization for each table."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.stack.transactions import change, commit, creation
from tests.support.stack.views import create as create_view
from tests.support.stack.world import Table, World, error_triple, unique


def put(name: str, value: str) -> dict[str, Any]:
    """Return the update that sets a property."""
    return {"action": "set-properties", "updates": {name: value}}


def properties(world: World, table: Table) -> dict[str, str]:
    """Return a table's properties from a load."""
    found: dict[str, str] = world.admin.get(table.path).json()["metadata"]["properties"]
    return found


def test_all_tables_change_together(world: World, ns: str) -> None:
    tables = [world.table(ns) for _ in range(3)]
    answer = commit(world.admin, world, *(change(each, put("a", each.name)) for each in tables))
    assert (answer.status_code, answer.content) == (204, b"")
    for each in tables:
        assert properties(world, each)["a"] == each.name


def test_a_transaction_of_one_table_is_a_commit(world: World, ns: str) -> None:
    table = world.table(ns)
    assert commit(world.admin, world, change(table, put("a", "b"))).status_code == 204
    assert properties(world, table)["a"] == "b"


def test_one_failed_requirement_fails_all_and_leaves_no_file(world: World, ns: str) -> None:
    tables = [world.table(ns) for _ in range(3)]
    before = world.snapshot()
    wrong = {"type": "assert-current-schema-id", "current-schema-id": 7}
    parts = [change(each, put("a", "b")) for each in tables[:2]]
    answer = commit(world.admin, world, *parts, change(tables[2], put("a", "b"), requirements=(wrong,)))
    assert error_triple(answer)[:2] == (409, "CommitFailedException")
    assert "Requirement failed: current schema changed" in error_triple(answer)[2]
    assert world.snapshot() == before


def test_one_illegal_update_fails_all(world: World, ns: str) -> None:
    first, second = world.table(ns), world.table(ns)
    before = world.snapshot()
    elsewhere = {"action": "set-location", "location": first.location}
    answer = commit(world.admin, world, change(first, put("a", "b")), change(second, elsewhere))
    assert error_triple(answer)[:2] == (400, "SetLocationNotAllowed")
    assert world.snapshot() == before


@pytest.mark.threat("LG-LOC-08")
def test_one_path_property_outside_its_table_fails_all(world: World, ns: str) -> None:
    first, second = world.table(ns), world.table(ns)
    before = world.snapshot()
    out = put("write.data.path", f"{first.location}/data")
    answer = commit(world.admin, world, change(first, put("a", "b")), change(second, out))
    assert error_triple(answer)[:2] == (400, "InvalidLocation")
    assert world.snapshot() == before


@pytest.mark.threat("LG-DEC-04")
def test_one_forbidden_table_fails_the_whole_transaction(world: World, ns: str) -> None:
    tables = [world.table(ns) for _ in range(8)]
    ids = {row["name"]: str(row["id"]) for row in world.sql("select id, name from tables")}
    for each in tables[:-1]:
        world.grant("modify", world.steward, "table", ids[each.name])
    world.grant("select", world.steward, "table", ids[tables[-1].name])
    before = world.snapshot()
    parts = [change(each, put("a", "b")) for each in tables]
    assert error_triple(commit(world.steward, world, *parts))[:2] == (403, "TableActionForbidden")
    assert world.snapshot() == before
    assert commit(world.steward, world, *parts[:-1]).status_code == 204
    assert "a" not in properties(world, tables[-1])


def test_invisible_table_equals_a_missing_one_in_a_transaction(world: World, ns: str) -> None:
    mine, hidden = world.table(ns), world.table(ns)
    id = str(world.sql("select id from tables where name = $1", mine.name)[0]["id"])
    world.grant("modify", world.contractor, "table", id)
    answer = commit(world.contractor, world, change(mine, put("a", "b")), change(hidden, put("a", "b")))
    assert error_triple(answer) == (404, "NoSuchTableException", f"Table does not exist: {ns}.{hidden.name}")
    absent = {**change(hidden, put("a", "b")), "identifier": {"namespace": [ns], "name": "nothing"}}
    answer = commit(world.contractor, world, change(mine, put("a", "b")), absent)
    assert error_triple(answer) == (404, "NoSuchTableException", f"Table does not exist: {ns}.nothing")
    assert "a" not in properties(world, mine)


def test_a_view_is_no_table_of_a_transaction(world: World, ns: str) -> None:
    table, view = world.table(ns), create_view(world, ns)
    part = {"identifier": {"namespace": [ns], "name": view["name"]}, "requirements": [], "updates": [put("a", "b")]}
    assert error_triple(commit(world.admin, world, change(table, put("a", "b")), part))[1] == "NoSuchTableException"


def test_each_change_names_a_distinct_table(world: World, ns: str) -> None:
    table = world.table(ns)
    nameless = {key: value for key, value in change(table, put("a", "b")).items() if key != "identifier"}
    assert error_triple(commit(world.admin, world, nameless))[:2] == (
        400,
        "TableIdentifierRequiredForCommitTransaction",
    )
    shouting = {**change(table, put("a", "c")), "identifier": {"namespace": [ns], "name": table.name.upper()}}
    answer = commit(world.admin, world, change(table, put("a", "b")), shouting)
    assert error_triple(answer)[:2] == (400, "TableIdentifiersNotUnique")
    assert commit(world.admin, world).status_code == 400
    assert "a" not in properties(world, table)


def test_a_table_can_be_created_in_a_transaction_with_a_change_of_another(world: World, ns: str) -> None:
    table, name = world.table(ns), unique("made")
    answer = commit(world.admin, world, creation(ns, name), change(table, put("a", "b")))
    assert answer.status_code == 204, answer.text
    assert world.admin.head(f"{world.root}/namespaces/{ns}/tables/{name}").status_code == 204
    assert properties(world, table)["a"] == "b"


def test_a_taken_name_in_a_transaction_fails_all(world: World, ns: str) -> None:
    table, taken, view = world.table(ns), world.table(ns), create_view(world, ns)
    before = world.snapshot()
    answer = commit(world.admin, world, change(table, put("a", "b")), creation(ns, taken.name))
    assert error_triple(answer) == (409, "CommitFailedException", "Requirement failed: table already exists")
    answer = commit(world.admin, world, change(table, put("a", "b")), creation(ns, view["name"]))
    assert error_triple(answer)[2] == f"View with same name already exists: {ns}.{view['name']}"
    assert world.snapshot() == before


def test_two_new_tables_at_one_location_are_refused_together(world: World, ns: str) -> None:
    at = f"{world.table(ns).location.rsplit('/', 1)[0]}/{unique('place')}"
    before = world.snapshot()
    parts = [creation(ns, unique("t"), {"action": "set-location", "location": at}) for _ in range(2)]
    assert error_triple(commit(world.admin, world, *parts))[:2] == (409, "LocationAlreadyTaken")
    assert world.snapshot() == before


def test_creating_in_a_transaction_needs_the_right_to_create(world: World, ns: str) -> None:
    table = world.table(ns)
    id = str(world.sql("select id from tables where name = $1", table.name)[0]["id"])
    world.grant("modify", world.steward, "table", id)
    answer = commit(world.steward, world, change(table, put("a", "b")), creation(ns, unique("t")))
    assert error_triple(answer)[:2] == (403, "NamespaceActionForbidden")
    assert "a" not in properties(world, table)


def test_each_table_of_a_transaction_is_in_its_audit_record(world: World, ns: str) -> None:
    tables = [world.table(ns) for _ in range(2)]
    answer = commit(world.admin, world, *(change(each, put("a", "b")) for each in tables))
    request_id = answer.headers["x-request-id"]
    (row,) = world.sql("select operation, record from audit_log where request_id = $1", request_id)
    assert row["operation"] == "commit_transaction"
    for each in tables:
        assert f"{ns}.{each.name}".encode() in row["record"]
    assert row["record"].count(b'"commit_table"') == 2


def test_racing_transactions_over_the_same_tables_lose_nothing(world: World, ns: str) -> None:
    tables = [world.table(ns) for _ in range(3)]
    writers, rounds = 4, 4
    answers: list[tuple[str, int]] = []

    def write(number: int) -> None:
        ordered = tables if number % 2 else list(reversed(tables))
        for attempt in range(rounds):
            key = f"w{number}-{attempt}"
            status = commit(world.admin, world, *(change(each, put(key, "x")) for each in ordered)).status_code
            answers.append((key, status))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # 409 and 429: contention of four writers of the same tables on a busy machine.
    assert {status for _, status in answers} <= {204, 409, 429}
    won = {key for key, status in answers if status == 204}
    assert len(won) >= rounds
    for each in tables:
        assert {key for key in properties(world, each) if key.startswith("w")} >= won
    found = [{key for key in properties(world, each) if "-" in key and key.startswith("w")} for each in tables]
    assert found[0] == found[1] == found[2]
    files = {f"s3://{world.bucket}/{key}" for key, _ in world.objects()}
    for each in tables:
        metadata = world.admin.get(each.path).json()
        log = {entry["metadata-file"] for entry in metadata["metadata"]["metadata-log"]}
        mine = {file for file in files if file.startswith(f"{each.location}/metadata/")}
        assert mine == log | {metadata["metadata-location"]}


@pytest.mark.parametrize("verb", ["GET", "PUT"])
def test_transaction_endpoint_accepts_only_post(world: World, verb: str) -> None:
    assert world.admin.send(verb, f"{world.root}/transactions/commit").status_code == 405
