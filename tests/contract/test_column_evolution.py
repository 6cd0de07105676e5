# SPDX-License-Identifier: Apache-2.0
"""Column grants during schema changes: a grant stays with its field id.

Each state is checked twice: by name, as Trino does (`batch-check`), and by field id, as an engine reads them in a
load's `read-restrictions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import httpx
import pytest

from tests.support.stack.columns import WIDE, evolve, give, grants_path, readable, take, wide
from tests.support.stack.exchanging import acting
from tests.support.stack.world import Person, Table, World, error_triple

FIELDS: list[dict[str, Any]] = [dict(each) for each in WIDE["fields"]]
NAME = FIELDS[1]


def but(*ids: int, **renamed: str) -> list[dict[str, Any]]:
    """Return the columns of `wide` without some, and with others renamed: `but(4, name="called")`."""
    return [{**each, "name": renamed.get(each["name"], each["name"])} for each in FIELDS if each["id"] not in ids]


def another(id: int, name: str) -> dict[str, Any]:
    """Return one more column."""
    return {"id": id, "name": name, "type": "string", "required": False}


@pytest.fixture(autouse=True)
def strangers(world: World) -> Iterator[None]:
    """Remove the grants of the column grantees before and after; the engine acts for them and enforces restrictions."""
    people = (world.carol, world.steward, world.etl)
    for person in people:
        world.strip(person)
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    yield
    for person in people:
        world.strip(person)


@pytest.fixture
def table(world: World, ns: str) -> Table:
    """Create a table of four columns, of which carol may read `name` (field id 2)."""
    table = wide(world, ns)
    assert give(world, table, "name", world.carol).status_code == 204
    return table


def seen(world: World, table: Table, person: Person) -> tuple[Any, list[int] | None]:
    """Return (readable names or False; the field ids an engine must withhold, or None).

    The second is None where nothing may be read.
    """
    answer = acting(world, world.etl, person).get(table.path)
    if answer.status_code != 200:
        assert answer.status_code in (403, 404), answer.text
        return readable(person, world, table)[0], None
    projections = answer.json().get("read-restrictions", {}).get("required-column-projections", [])
    return readable(person, world, table)[0], [each["field-id"] for each in projections]


def recorded(world: World, table: Table, column: str | None = None) -> list[tuple[str, int, bool]]:
    """Return (name, field id, is_dropped) of the grants on one column or on all of them."""
    answer = world.admin.get(grants_path(world, table, column))
    assert answer.status_code == 200, answer.text
    on = [each["resource"] for each in answer.json()["grants"]]
    return [(each["column"], each["field-id"], each.get("dropped", False)) for each in on]


def test_renamed_column_keeps_its_grants_under_its_new_name_only(world: World, table: Table) -> None:
    assert seen(world, table, world.carol) == (["name"], [1, 3, 4])
    evolve(world, table, but(name="called"), 5)
    assert seen(world, table, world.carol) == (["called"], [1, 3, 4])
    assert recorded(world, table, "called") == [("called", 2, False)]
    own = world.carol.get("/management/v1/grants").json()["grants"]
    assert [each["resource"]["column"] for each in own] == ["called"]
    assert error_triple(give(world, table, "name", world.steward))[:2] == (404, "ColumnNotFound")
    assert error_triple(take(world, table, "name", world.carol))[:2] == (404, "ColumnNotFound")
    assert seen(world, table, world.carol) == (["called"], [1, 3, 4])
    assert take(world, table, "called", world.carol).status_code == 204
    assert seen(world, table, world.carol) == (False, None)


def test_a_new_column_of_the_old_name_has_no_grant_of_the_old_one(world: World, table: Table) -> None:
    evolve(world, table, [*but(name="called"), another(6, "name")], 6)
    assert seen(world, table, world.carol) == (["called"], [1, 3, 4, 6])
    assert recorded(world, table, "name") == []
    assert give(world, table, "name", world.carol).status_code == 204
    assert seen(world, table, world.carol) == (["called", "name"], [1, 3, 4])
    assert take(world, table, "field-id:2", world.carol).status_code == 204
    assert seen(world, table, world.carol) == (False, [1, 2, 3, 4]), (
        "the name denotes another column in an old snapshot, so it must stay restricted"
    )


def test_dropped_column_grant_has_no_effect_and_is_addressed_by_field_id(world: World, table: Table) -> None:
    evolve(world, table, but(2), 5)
    assert seen(world, table, world.carol) == (False, None)
    evolve(world, table, [*but(2), another(6, "name")], 6)
    assert give(world, table, "name", world.steward).status_code == 204
    assert seen(world, table, world.carol) == (False, None)
    assert seen(world, table, world.steward) == (False, [1, 2, 3, 4])
    assert recorded(world, table) == [("name", 2, True), ("name", 6, False)]
    _names_the_columns(take(world, table, "name", world.carol))
    assert recorded(world, table, "field-id:2") == [("name", 2, True)]
    assert take(world, table, "field-id:2", world.carol).status_code == 204
    assert recorded(world, table) == [("name", 6, False)]
    assert take(world, table, "name", world.carol).status_code == 204, (
        "the name is unambiguous: the user has no grant on the former column"
    )


def _names_the_columns(answer: httpx.Response) -> None:
    assert error_triple(answer)[:2] == (409, "AmbiguousColumn")
    assert "field-id:2" in answer.json()["error"]["message"]


def test_ambiguous_column_name_is_refused_with_the_field_meant(world: World, table: Table) -> None:
    evolve(world, table, [*FIELDS, another(6, "NAME")], 6)
    _names_the_columns(take(world, table, "NAME", world.carol))
    assert take(world, table, "NAME", world.steward).status_code == 204, (
        "the name is unambiguous: the user has a grant on neither column"
    )
    answer = world.admin.post(
        grants_path(world, table, "NAME"),
        {
            "writes": [{"privilege": "select", "principal": {"user": world.steward.id}}],
            "deletes": [{"privilege": "select", "principal": {"user": world.carol.id}}],
        },
    )
    _names_the_columns(answer)
    assert recorded(world, table) == [("name", 2, False)], "a refused revocation must change nothing"
    assert take(world, table, "name", world.carol).status_code == 204
    assert recorded(world, table) == []


def test_struct_column_is_granted_kept_and_dropped_as_a_whole(world: World, table: Table) -> None:
    assert give(world, table, "address", world.carol).status_code == 204
    grown = {"type": "struct", "fields": [*FIELDS[3]["type"]["fields"], another(6, "door")]}
    evolve(world, table, [*but(4), {**FIELDS[3], "type": grown}], 6)
    assert seen(world, table, world.carol) == (["name", "address"], [1, 3])
    evolve(world, table, but(4), 6)
    assert seen(world, table, world.carol) == (["name"], [1, 3, 4])
    for field in ("address.street", "address.door", "street", "field-id:6"):
        assert give(world, table, field, world.steward).status_code in (400, 404), field
    assert error_triple(take(world, table, "address.street", world.carol))[:2] == (404, "ColumnNotFound")
    assert recorded(world, table, "address") == [("address", 4, True)]
    evolve(world, table, [*but(4), another(7, "street")], 7)
    assert seen(world, table, world.carol) == (["name"], [1, 3, 4, 7]), (
        "a new column named like a former nested field has no grant"
    )
    assert take(world, table, "address", world.carol).status_code == 204
    assert recorded(world, table) == [("name", 2, False)]


def test_columns_differing_by_case_are_distinct_and_readable_together(world: World, table: Table) -> None:
    evolve(world, table, [*FIELDS, another(6, "NAME")], 6)
    assert seen(world, table, world.carol) == (False, [1, 3, 4, 6]), (
        "Trino cannot distinguish columns by case, so the name must not be readable"
    )
    assert give(world, table, "NAME", world.carol).status_code == 204
    assert seen(world, table, world.carol) == (["name", "NAME"], [1, 3, 4])
    assert take(world, table, "name", world.carol).status_code == 204
    assert seen(world, table, world.carol) == (False, [1, 2, 3, 4])
    assert error_triple(give(world, table, "Name", world.carol))[:2] == (404, "ColumnNotFound")


def test_column_restored_by_an_older_schema_keeps_its_grants(world: World, table: Table) -> None:
    evolve(world, table, [*but(2), another(6, "name")], 6)
    assert give(world, table, "name", world.steward).status_code == 204
    assert seen(world, table, world.carol) == (False, None)
    back = world.commit(world.admin, table.path, {"action": "set-current-schema", "schema-id": 0})
    assert back.status_code == 200, back.text
    assert seen(world, table, world.carol) == (False, [1, 3, 4, 6]), (
        "a name that another column had in between must not be readable"
    )
    assert seen(world, table, world.steward) == (False, None)
    assert recorded(world, table) == [("name", 2, False), ("name", 6, True)]
    assert give(world, table, "name", world.steward).status_code == 204
    assert seen(world, table, world.steward) == (False, [1, 3, 4, 6]), "a grant on a dropped column has no effect"


def test_columns_that_swap_names_keep_their_own_grants(world: World, table: Table) -> None:
    evolve(world, table, but(name="card", card="name"), 5)
    assert seen(world, table, world.carol) == (False, [1, 3, 4])
    assert recorded(world, table) == [("card", 2, False)]
    _names_the_columns(take(world, table, "name", world.carol))
    assert recorded(world, table) == [("card", 2, False)]


def test_check_during_a_rename_uses_one_schema(world: World, ns: str) -> None:
    """In one commit the granted column gets a new name, and an ungranted column gets the old name."""
    for _ in range(4):
        table = wide(world, ns)
        assert give(world, table, "name", world.carol).status_code == 204
        begun, done = Event(), Event()

        def send(table: Table = table, begun: Event = begun, done: Event = done) -> list[Any]:
            answers = []
            while not done.is_set():
                answers.append(readable(world.carol, world, *[table] * 5))
                begun.set()
            return answers

        with ThreadPoolExecutor(2) as pool:
            requests = [pool.submit(send) for _ in range(2)]
            assert begun.wait(30)
            evolve(world, table, but(name="called", card="name"), 5)
            after = readable(world.carol, world, table)
            done.set()
            responses = [each.result(60) for each in requests]
        assert after == [["called"]]
        for answers in responses:
            assert all(each in ([["name"]] * 5, [["called"]] * 5) for each in answers), answers
            assert answers == sorted(answers, reverse=True), "no check may return the old name after the new one"
