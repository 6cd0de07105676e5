# SPDX-License-Identifier: Apache-2.0
"""Search for tables and views: fuzzy, in any script, and limited to the best visible matches."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.world import Person, Table, World, error_triple, unique

Found = list[dict[str, Any]]


def path(world: World, warehouse: str | None = None) -> str:
    return f"/management/v1/warehouse/{warehouse or world.warehouse}/search-tabular"


def search(world: World, text: str, by: Person | None = None) -> Found:
    answer = (by or world.admin).post(path(world), {"search": text})
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"tabulars"}
    found: Found = answer.json()["tabulars"]
    return found


def names(found: Found) -> list[str]:
    return [each["tabular-name"] for each in found]


def many(world: World, like: Table, stem: str, count: int) -> list[str]:
    """Insert `count` tables beside one by SQL, without tuples in OpenFGA; return their ids."""
    rows = world.sql(
        """
        insert into tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, location_key,
                            metadata_location, metadata)
        select gen_random_uuid(), t.warehouse_id, t.namespace_id, t.kind, $2 || n, $2 || n, gen_random_uuid(),
               t.location || '-' || n, rtrim(t.location_key, '/') || '-' || n || '/', t.metadata_location, t.metadata
        from tables t, generate_series(1, $3) n where t.id = $1::text::uuid returning id
        """,
        like.uuid,
        stem,
        count,
    )
    return [str(row["id"]) for row in rows]


@pytest.fixture(autouse=True)
def _revoke_after_test(world: World) -> Iterator[None]:
    """Revoke carol's grants afterwards: other tests rely on a user without grants."""
    yield
    world.strip(world.carol)


@pytest.fixture
def forgotten(world: World) -> Iterator[list[str]]:
    """Yield a list of table ids; delete these tables afterwards."""
    ids: list[str] = []
    yield ids
    world.sql("delete from tables where id = any($1::text[]::uuid[])", ids)


def test_search_finds_a_table_by_name_path_and_id(world: World) -> None:
    ns = world.namespace(unique("Retail"))
    table = world.table(ns, unique("CustomerOrders"))
    hit = {
        "namespace-name": [ns],
        "tabular-name": table.name,
        "tabular-id": {"type": "table", "id": table.uuid},
        "distance": 0.0,
    }
    assert search(world, table.name)[0] == hit
    assert search(world, table.name.upper())[0] == hit, "the search must ignore letter case"
    assert search(world, f"{ns}.{table.name}"[:64])[0]["tabular-id"] == hit["tabular-id"]
    assert search(world, table.uuid) == [{key: value for key, value in hit.items() if key != "distance"}]
    assert search(world, str(uuid4())) == []
    assert search(world, "") == []
    assert search(world, "?!") == [], "a search without letters must match nothing"


def test_search_by_path_ranks_that_namespaces_table_first(world: World) -> None:
    east, west = world.namespace(unique("eastern")), world.namespace(unique("western"))
    name = unique("ledger")
    tables = {ns: world.table(ns, name) for ns in (east, west)}
    for ns in (east, west):
        found = search(world, f"{ns}.{name}"[:64])
        assert found[0]["tabular-id"]["id"] == tables[ns].uuid
    both = [each["tabular-id"]["id"] for each in search(world, name)]
    assert set(both[:2]) == {table.uuid for table in tables.values()}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("quarterly_revenue", "quaterly"),
        ("quarterly_revenue", "revenu"),
        ("quarterly_revenue", "reevnue quarterly"),
        ("Kundenaufträge", "KUNDENAUFTRAGE"),
        ("Straßenverzeichnis", "strassenverz"),
        ("売上明細", "売上"),
        ("売上明細", "明細"),
        ("Заказы_клиентов", "заказы"),
        ("παραγγελίες", "ΠΑΡΑΓΓΕΛΙΕΣ"),
        ("emoji😀facts", "😀facts"),
    ],
)
def test_search_matches_parts_and_misspellings_in_any_script(world: World, name: str, text: str) -> None:
    ns = world.namespace()
    table = world.table(ns, name)
    assert table.uuid in [each["tabular-id"]["id"] for each in search(world, text)]
    assert world.admin.delete(f"{table.path}?purgeRequested=false").status_code == 204
    assert table.uuid not in [each["tabular-id"]["id"] for each in search(world, text)]


def test_unrelated_names_of_one_script_do_not_match(world: World) -> None:
    ns = world.namespace()
    world.table(ns, "在庫")
    assert "在庫" not in names(search(world, "顧客")), "unrelated names in one script must not match"


def test_renamed_table_is_found_by_its_new_name_at_once(world: World) -> None:
    ns = world.namespace()
    table = world.table(ns, unique("before"))
    fresh = unique("zebra_afterwards")
    body = {
        "source": {"namespace": [ns], "name": table.name},
        "destination": {"namespace": [ns], "name": fresh},
    }
    assert world.admin.post(f"{world.root}/tables/rename", body).status_code == 204
    assert table.uuid in [each["tabular-id"]["id"] for each in search(world, fresh)]


@pytest.mark.threat("LG-DIS-12")
def test_visible_table_is_found_behind_better_invisible_matches(world: World, forgotten: list[str]) -> None:
    ns = world.namespace()
    word = unique("walrus").replace("_", "")
    table = world.table(ns, f"a{word}seen")
    forgotten += many(world, table, word, 3000)
    assert table.uuid not in [each["tabular-id"]["id"] for each in search(world, word)], (
        "better matches must fill the result of a caller that sees all tables"
    )
    world.grant("select", world.carol, "table", table.uuid)
    found = search(world, word, world.carol)
    assert [each["tabular-id"]["id"] for each in found] == [table.uuid]
    assert search(world, table.uuid, world.carol)[0]["tabular-name"] == table.name
    assert search(world, forgotten[0], world.carol) == [], "the id of an invisible table must match nothing"
    world.revoke("select", world.carol, "table", table.uuid)
    assert world.carol.post(path(world), {"search": word}).status_code == 404, (
        "an invisible warehouse must be not found"
    )


def test_namespace_rights_find_its_descendants_only(world: World) -> None:
    outer = world.namespace()
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [outer, "inner"]})
    assert made.status_code == 200
    word = unique("otter").replace("_", "")
    inside = world.table(f"{outer}%1Finner", f"{word}_a")
    beside = world.table(world.namespace(), f"{word}_b")
    role = world.admin.post("/management/v1/role", {"name": unique("role")}).json()["id"]
    members = {"members": [{"type": "user", "id": world.carol.id}]}
    assert world.admin.post(f"/management/v1/role/{role}/members", members).status_code == 204
    id = world.namespace_id(outer)
    given = world.admin.post(world.grants_path("namespace", id), {"writes": [{"type": "describe", "role": role}]})
    assert given.status_code == 204
    assert [each["tabular-id"]["id"] for each in search(world, word, world.carol)] == [inside.uuid]
    assert {inside.uuid, beside.uuid} <= {each["tabular-id"]["id"] for each in search(world, word)}
    assert world.admin.delete(f"/management/v1/role/{role}").status_code == 204


def test_candidate_denied_by_openfga_is_replaced_by_the_next(world: World, forgotten: list[str]) -> None:
    """Grants without tuples in OpenFGA make the tables candidates of the search, and nothing more."""
    ns = world.namespace()
    word = unique("badger").replace("_", "")
    table = world.table(ns, f"{word}_confirmed")
    forgotten += many(world, table, word, 60)
    world.grant("select", world.carol, "table", table.uuid)
    world.sql(
        "insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by) "
        "select gen_random_uuid(), 'select', 'user', $1, 'table', id, 'test' from unnest($2::text[]) id",
        world.carol.id,
        forgotten,
    )
    try:
        found = search(world, word, world.carol)
        assert [each["tabular-id"]["id"] for each in found] == [table.uuid]
    finally:
        world.sql("delete from grants where object_id = any($1::text[])", forgotten)
        world.revoke("select", world.carol, "table", table.uuid)


def _took(world: World, texts: Sequence[str], by: Person) -> float:
    times = []
    for text in texts:
        began = time.perf_counter()
        search(world, text, by)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


@pytest.mark.long
def test_search_time_reveals_no_invisible_matches(world: World, forgotten: list[str]) -> None:
    """20,000 invisible tables match one of two words: ranking them first would take several times as long."""
    ns = world.namespace()
    table = world.table(ns, unique("mine"))
    word, other = unique("lemming").replace("_", ""), unique("sparrow").replace("_", "")
    forgotten += many(world, table, word, 20_000)
    world.sql("analyze tables")
    world.grant("select", world.carol, "table", table.uuid)
    try:
        for _ in range(3):
            hidden, absent = _took(world, [word] * 20, world.carol), _took(world, [other] * 20, world.carol)
            if hidden < 1.5 * absent:
                break
        assert hidden < 1.5 * absent
    finally:
        world.revoke("select", world.carol, "table", table.uuid)


def test_search_in_an_invisible_warehouse_is_not_found(world: World) -> None:
    world.strip(world.carol)
    hidden = world.carol.post(path(world), {"search": "x"})
    other = str(uuid4())
    absent = world.carol.post(path(world, other), {"search": "x"})
    assert error_triple(hidden)[:2] == error_triple(absent)[:2] == (404, "NoSuchWarehouseException")
    assert error_triple(hidden)[2].replace(world.warehouse, other) == error_triple(absent)[2]
    assert world.admin.post(path(world), {"search": "x" * 65}).status_code == 400
    assert world.admin.post(path(world), {"search": "a\x00"}).status_code == 400
    assert world.admin.post(path(world), {}).status_code == 400
    assert world.admin.post(path(world), {"search": "x", "more": 1}).status_code == 200
    assert world.unauthenticated.post(path(world), {"search": "x"}).status_code == 401
