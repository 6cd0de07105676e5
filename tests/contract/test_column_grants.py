# SPDX-License-Identifier: Apache-2.0
"""Grants on single columns: named by column name, stored by field id, and reported by `batch-check`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.checks import known_role
from tests.support.stack.columns import (
    WIDE,
    assignments_path,
    evolve,
    expiring_grant,
    give,
    grants_path,
    readable,
    take,
    wide,
)
from tests.support.stack.lifecycle import soft_world, undrop
from tests.support.stack.role_policies import put_in
from tests.support.stack.world import Person, Table, World, error_triple


@pytest.fixture(autouse=True)
def strangers(world: World) -> Iterator[None]:
    """Remove all grants of the analyst, the steward and carol, before and after."""
    people = (world.analyst, world.steward, world.carol)
    for person in people:
        world.strip(person)
    yield
    for person in people:
        world.strip(person)


@pytest.fixture
def table(world: World, ns: str) -> Table:
    """Create a table of four columns."""
    return wide(world, ns)


def test_column_grant_is_made_by_name_and_listed_with_its_field_id(world: World, table: Table) -> None:
    path = assignments_path(world, table, "name")
    entry = {"type": "select", "user": world.carol.id}
    assert world.admin.get(path).json() == {"assignments": [], "column": "name", "field-id": 2}
    assert world.admin.post(path, {"writes": [entry]}).status_code == 204
    assert world.admin.get(path).json()["assignments"] == [entry]
    again = world.admin.post(path, {"writes": [entry]})
    assert error_triple(again)[:2] == (409, "TupleAlreadyExistsError")
    assert world.admin.post(path, {"deletes": [entry]}).status_code == 204
    assert world.admin.get(path).json()["assignments"] == []
    assert world.admin.post(path, {"deletes": [entry]}).status_code == 404


def test_grants_api_lists_grantor_reason_expiry_and_history_of_columns(world: World, table: Table) -> None:
    requested = expiring_grant(datetime.now(UTC) + timedelta(hours=1), reason="monthly report")
    given = give(world, table, "name", world.carol, **requested)
    assert given.status_code == 204, given.text
    assert give(world, table, "name", world.carol, **requested).status_code == 204
    [grant] = world.admin.get(grants_path(world, table, "name")).json()["grants"]
    assert grant["reason"] == "monthly report"
    assert grant["granted-by"] == world.admin.id
    assert grant["resource"] == {
        "type": "column",
        "project-id": world.project,
        "warehouse-id": world.warehouse,
        "table-id": table.uuid,
        "column": "name",
        "field-id": 2,
    }
    assert world.admin.get(grants_path(world, table)).json()["grants"] == [grant]
    own = world.carol.get("/management/v1/grants").json()["grants"]
    assert [each["resource"] for each in own] == [grant["resource"]]
    assert take(world, table, "name", world.carol).status_code == 204
    [ended] = world.admin.get(f"{grants_path(world, table, 'name')}/history").json()["grants"]
    assert (ended["ended-because"], ended["resource"]["column"]) == ("revoked", "name")


def test_column_grants_of_one_principal_are_listed_alone(world: World, table: Table) -> None:
    assert give(world, table, "name", world.carol).status_code == 204
    assert give(world, table, "id", world.analyst).status_code == 204
    assert give(world, table, "name", world.analyst).status_code == 204
    wholly, one = grants_path(world, table), grants_path(world, table, "name")

    def holders(path: str, **query: str) -> list[tuple[str, str]]:
        grants = world.admin.get(path, params=query).json()["grants"]
        return sorted((each["principal"]["user"], each["resource"]["column"]) for each in grants)

    on_name = [(world.analyst.id, "name"), (world.carol.id, "name")]
    assert holders(wholly) == sorted([(world.analyst.id, "id"), *on_name])
    assert holders(one) == on_name
    for path in (wholly, one):
        assert holders(path, principalUser=world.carol.id) == [(world.carol.id, "name")]
        assert holders(path, principalUser=world.steward.id) == []
    assert take(world, table, "name", world.carol).status_code == 204
    assert take(world, table, "name", world.analyst).status_code == 204
    assert holders(f"{one}/history", principalUser=world.carol.id) == [(world.carol.id, "name")]


@pytest.mark.parametrize(
    ("column", "code", "type"),
    [
        ("address.street", 400, "BadRequestException"),
        ("nobody", 404, "ColumnNotFound"),
        ("NAME", 404, "ColumnNotFound"),
    ],
)
def test_only_grantors_learn_that_a_column_does_not_exist(
    world: World, table: Table, column: str, code: int, type: str
) -> None:
    body = {"writes": [{"type": "select", "user": world.carol.id}]}
    path = assignments_path(world, table, column)
    assert error_triple(world.admin.post(path, body))[:2] == (code, type)
    assert error_triple(world.admin.get(path))[:2] == (code, type)
    assert error_triple(world.analyst.post(path, body))[:2] == (404, "NoSuchTableException")
    world.grant("select", world.analyst, "table", table.uuid)
    assert error_triple(world.analyst.post(path, body))[:2] == (403, "TableActionForbidden")
    assert error_triple(world.analyst.get(path))[:2] == (403, "TableActionForbidden")


def test_column_grant_on_a_missing_table_or_privilege_is_refused(world: World, table: Table) -> None:
    body = {"writes": [{"type": "select", "user": world.carol.id}]}
    absent = assignments_path(world, str(uuid4()), "name")
    assert error_triple(world.admin.post(absent, body))[:2] == (404, "NoSuchTableException")
    modify = {"writes": [{"type": "modify", "user": world.carol.id}]}
    assert error_triple(world.admin.post(assignments_path(world, table, "name"), modify))[:2] == (
        400,
        "InvalidGrantPrivilege",
    )
    unknown = {"writes": [{"type": "select", "user": "oidc~nobody-knows"}]}
    assert world.admin.post(assignments_path(world, table, "name"), unknown).status_code == 404


def test_pass_grants_includes_column_grants(world: World, table: Table) -> None:
    assert give(world, table, "name", world.carol, by=world.analyst).status_code == 404
    world.grant("select", world.analyst, "table", table.uuid)
    assert error_triple(give(world, table, "name", world.carol, by=world.analyst))[:2] == (403, "TableActionForbidden")
    world.grant("pass_grants", world.analyst, "table", table.uuid)
    assert give(world, table, "name", world.carol, by=world.analyst).status_code == 204
    assert readable(world.carol, world, table) == [["name"]]
    assert error_triple(give(world, table, "id", world.steward, by=world.carol))[:2] == (403, "TableActionForbidden"), (
        "a column grantee cannot grant columns"
    )


def test_batch_check_reports_all_some_or_no_columns(world: World, ns: str, table: Table) -> None:
    whole, other = wide(world, ns), wide(world, ns)
    world.grant("select", world.carol, "table", whole.uuid)
    for column in ("card", "id"):
        assert give(world, table, column, world.carol).status_code == 204
    assert readable(world.carol, world, table, whole, other) == [["id", "card"], True, False]
    assert readable(world.steward, world, table, whole, other) == [False, False, False]
    assert readable(world.admin, world, table, whole, other) == [True, True, True]


def test_delegate_gets_the_readable_columns_of_other_users(world: World, table: Table) -> None:
    assert give(world, table, "name", world.carol).status_code == 204
    world.grant("delegate", world.steward, "warehouse", world.warehouse)
    about = {"identity": {"user": world.carol.id}, "delegated": True}
    assert readable(world.steward, world, table, **about) == [["name"]]
    assert take(world, table, "name", world.carol).status_code == 204
    assert readable(world.steward, world, table, **about) == [False], "a revoked column is denied by the next check"


def test_column_grantee_sees_the_table_but_not_its_metadata_or_data(world: World, ns: str, table: Table) -> None:
    listed = f"{world.root}/namespaces/{ns}/tables"
    assert world.carol.get(listed).status_code == 404
    assert give(world, table, "name", world.carol).status_code == 204
    assert [each["name"] for each in world.carol.get(listed).json()["identifiers"]] == [table.name]
    assert [ns] in world.carol.get(f"{world.root}/namespaces").json()["namespaces"]
    assert world.carol.head(table.path).status_code == 204
    search = world.carol.post(f"/management/v1/warehouse/{world.warehouse}/search-tabular", {"search": table.name})
    assert [each["tabular-name"] for each in search.json()["tabulars"]] == [table.name]
    assert world.carol.get(table.path).status_code == 403
    assert world.carol.get(f"{table.path}/credentials").status_code == 403
    assert world.carol.delete(table.path).status_code == 403
    assert take(world, table, "name", world.carol).status_code == 204
    assert world.carol.head(table.path).status_code == 404
    assert world.carol.get(listed).status_code == 404
    assert world.tuples(f"table:{table.uuid}") >= {(f"user:{world.admin.id.replace('~', '~')}", "ownership")}
    assert not world.tuples(f"column:{table.uuid}.2"), "OpenFGA must hold no tuple of the column"


def test_column_grant_expires_exactly_at_its_time(world: World, table: Table) -> None:
    end = datetime.now(UTC) + timedelta(seconds=8)
    assert give(world, table, "name", world.carol, **expiring_grant(end)).status_code == 204
    assert give(world, table, "id", world.carol).status_code == 204
    before = readable(world.carol, world, table)
    assert datetime.now(UTC) < end, "the machine was too slow for this test: the grant had already expired"
    time.sleep(max(0.0, (end - datetime.now(UTC)).total_seconds()) + 0.05)
    assert (before, readable(world.carol, world, table)) == ([["id", "name"]], [["id"]])


def test_column_grant_of_a_role_applies_to_its_members(world: World, table: Table) -> None:
    role = known_role(world)
    put_in(world, role, "user", world.carol.id)
    entry = {"writes": [{"type": "select", "role": role}]}
    assert world.admin.post(assignments_path(world, table, "name"), entry).status_code == 204
    assert readable(world.carol, world, table) == [["name"]]
    assert world.carol.head(table.path).status_code == 204
    gone = world.admin.post(assignments_path(world, table, "name"), {"deletes": entry["writes"]})
    assert gone.status_code == 204
    assert readable(world.carol, world, table) == [False]


def test_renamed_column_keeps_its_grants_and_a_recreated_one_has_none(world: World, table: Table) -> None:
    assert give(world, table, "name", world.carol).status_code == 204
    fields: list[dict[str, Any]] = [dict(each) for each in WIDE["fields"]]
    renamed = [{**each, "name": "called"} if each["id"] == 2 else each for each in fields]
    evolve(world, table, renamed, 5)
    assert readable(world.carol, world, table) == [["called"]]
    [grant] = world.admin.get(grants_path(world, table, "called")).json()["grants"]
    assert (grant["resource"]["column"], grant["resource"]["field-id"]) == ("called", 2)
    evolve(world, table, [each for each in fields if each["id"] != 2], 5)
    assert readable(world.carol, world, table) == [False]
    evolve(world, table, [*(e for e in fields if e["id"] != 2), {**fields[1], "id": 6, "name": "called"}], 6)
    assert readable(world.carol, world, table) == [False], "a recreated column of the same name has no grant"
    assert world.admin.get(grants_path(world, table, "called")).json()["grants"] == []
    [left] = world.admin.get(grants_path(world, table)).json()["grants"]
    assert left["resource"]["field-id"] == 2
    assert left["resource"]["dropped"] is True


def test_dropped_column_grants_are_listed_and_revoked_by_last_name(world: World, table: Table) -> None:
    assert give(world, table, "name", world.carol).status_code == 204
    evolve(world, table, [each for each in WIDE["fields"] if each["id"] != 2], 5)
    [grant] = world.admin.get(grants_path(world, table, "name")).json()["grants"]
    assert grant["resource"]["dropped"] is True
    assert error_triple(give(world, table, "name", world.steward))[:2] == (404, "ColumnNotFound")
    assert take(world, table, "name", world.carol).status_code == 204
    assert world.admin.get(grants_path(world, table)).json()["grants"] == []


def test_table_drop_removes_its_column_grants(world: World, ns: str) -> None:
    table = wide(world, ns)
    assert give(world, table, "name", world.carol).status_code == 204
    assert world.admin.delete(table.path).status_code == 204
    assert (
        world.sql("select 1 from grants where object_type = 'column' and object_id like $1 || '.%'", table.uuid) == []
    )
    world.delivered()
    assert not world.tuples(f"column:{table.uuid}.2")
    assert not world.tuples(f"table:{table.uuid}")
    again = wide(world, ns, name=table.name)
    assert readable(world.carol, world, again) == [False]


def test_recursive_namespace_drop_removes_column_grants(world: World) -> None:
    space = world.namespace()
    table = wide(world, space)
    assert give(world, table, "name", world.carol).status_code == 204
    gone = world.admin.delete(f"{world.root}/namespaces/{space}?recursive=true&force=true")
    assert gone.status_code == 204, gone.text
    assert (
        world.sql("select 1 from grants where object_type = 'column' and object_id like $1 || '.%'", table.uuid) == []
    )
    world.delivered()
    assert not world.tuples(f"column:{table.uuid}.2")


def test_undropped_table_keeps_its_column_grants(world: World) -> None:
    soft = soft_world(world)
    try:
        table = wide(soft, soft.namespace())
        [row] = soft.sql("select id::text from tables where table_uuid = $1::text::uuid", table.uuid)
        assert give(soft, row["id"], "name", soft.carol).status_code == 204
        assert soft.admin.delete(table.path).status_code == 204
        assert soft.carol.head(table.path).status_code == 404
        assert undrop(soft.admin, soft, ("table", row["id"])).status_code == 204
        assert soft.carol.head(table.path).status_code == 204
        assert readable(soft.carol, soft, table) == [["name"]]
        assert take(soft, row["id"], "name", soft.carol).status_code == 204
    finally:
        soft.close()


def test_deleted_user_keeps_no_column_grant(world: World, table: Table) -> None:
    made = Person("gone", f"oidc~gone-{uuid4().hex[:8]}", "", world.base)
    created = world.admin.post(
        "/management/v1/user", {"id": made.id, "name": "Gone", "email": "gone@example.com", "user-type": "human"}
    )
    assert created.status_code == 201, created.text
    assert give(world, table, "name", made).status_code == 204
    assert world.admin.delete(f"/management/v1/user/{made.id}").status_code == 204
    assert world.admin.get(grants_path(world, table)).json()["grants"] == []
    world.delivered()
    assert not world.tuples(f"column:{table.uuid}.2")


def test_column_grant_written_to_openfga_is_detected_as_drift(world: World, table: Table) -> None:
    world.write_tuple(f"user:{world.carol.id}", "select", f"column:{table.uuid}.2")
    world.write_tuple(f"user:{world.carol.id}", "read_columns", f"table:{table.uuid}")
    assert readable(world.carol, world, table) == [False], "a tuple without a row in PostgreSQL must have no effect"

    def left() -> list[tuple[str, str]]:
        of_table = (f"user:{world.carol.id}", "read_columns")
        there = [each for each in world.tuples(f"table:{table.uuid}") if each == of_table]
        return [*there, *world.tuples(f"column:{table.uuid}.2")]

    # Drift detection finds and repairs each of them.
    deadline = time.monotonic() + 30
    while left() and time.monotonic() < deadline:
        time.sleep(0.3)
    assert left() == []


def test_rename_and_move_keep_visibility_of_a_column(world: World, table: Table) -> None:
    assert give(world, table, "name", world.carol).status_code == 204
    other = world.namespace()
    body = {
        "source": {"namespace": [table.namespace], "name": table.name},
        "destination": {"namespace": [other], "name": table.name},
    }
    assert world.admin.post(f"{world.root}/tables/rename", body).status_code == 204
    assert world.carol.head(f"{world.root}/namespaces/{other}/tables/{table.name}").status_code == 204
    assert world.carol.get(f"{world.root}/namespaces/{table.namespace}").status_code == 404
    assert readable(world.carol, world, table) == [["name"]]
