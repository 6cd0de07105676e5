# SPDX-License-Identifier: Apache-2.0
"""Grants on the real stack: which grants a user may make, what one grant makes visible, and cleanup after drops."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.stack.world import Person, World, error_of, error_triple, unique


@pytest.fixture
def ns(world: World) -> str:
    """Create a namespace of the administrator."""
    return world.namespace()


def _give(world: World, by: Person, privilege: str, to: Person, kind: str, id: str) -> int:
    body = {"writes": [{"type": privilege, "user": to.id}]}
    for _ in range(10):
        answer = by.post(world.grants_path(kind, id), body)
        # Concurrent revocations may overtake the decision twice; then the request is refused and changed nothing.
        if answer.status_code != 503:
            break
    return answer.status_code


def test_assignments_are_written_and_read_back(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    world.grant("select", world.analyst, "namespace", id)
    read = world.admin.get(world.grants_path("namespace", id)).json()
    assert read == {
        "assignments": [{"type": "ownership", "user": "oidc~admin"}, {"type": "select", "user": "oidc~analyst"}]
    }


def test_holder_of_a_privilege_alone_cannot_grant_it(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    world.grant("modify", world.analyst, "namespace", id)
    assert _give(world, world.analyst, "select", world.steward, "namespace", id) == 403
    assert world.analyst.get(world.grants_path("namespace", id)).status_code == 403


def test_pass_grants_allows_granting_held_privileges_only(world: World, ns: str) -> None:
    table = world.table(ns)
    id = world.namespace_id(ns)
    world.grant("select", world.analyst, "namespace", id)
    world.grant("pass_grants", world.analyst, "namespace", id)
    assert _give(world, world.analyst, "select", world.steward, "namespace", id) == 204
    assert _give(world, world.analyst, "describe", world.steward, "namespace", id) == 204
    for more in ("modify", "create", "manage_grants", "pass_grants", "ownership"):
        assert _give(world, world.analyst, more, world.steward, "namespace", id) == 403
    assert _give(world, world.analyst, "select", world.etl, "table", table.uuid) == 403, (
        "a role owner must not inherit the right to grant"
    )


def test_manage_grants_allows_all_grants_below_without_data_access(world: World, ns: str) -> None:
    table = world.table(ns)
    world.grant("manage_grants", world.analyst, "namespace", world.namespace_id(ns))
    assert _give(world, world.analyst, "modify", world.steward, "table", table.uuid) == 204
    assert world.analyst.get(world.grants_path("table", table.uuid)).status_code == 200
    assert world.analyst.get(table.path).status_code == 404


def test_owner_grants_and_revokes(world: World, ns: str) -> None:
    world.grant("create", world.analyst, "namespace", world.namespace_id(ns))
    table = world.table(ns, by=world.analyst)
    assert _give(world, world.analyst, "select", world.steward, "table", table.uuid) == 204
    assert world.steward.get(table.path).status_code == 200
    world.revoke("select", world.steward, "table", table.uuid, by=world.analyst)
    assert world.steward.get(table.path).status_code == 404


def test_security_admin_grants_rights_without_data_access(world: World, ns: str) -> None:
    project = world.admin.post("/management/v1/project", {"project-name": unique("sec")}).json()["project-id"]
    world.grant("security_admin", world.steward, "project", project)
    assert _give(world, world.steward, "data_admin", world.etl, "project", project) == 204
    assert _give(world, world.steward, "project_admin", world.etl, "project", project) == 403
    header = {"x-project-id": project}
    assert world.steward.get("/management/v1/warehouse", headers=header).json() == {"warehouses": []}
    assert world.steward.post(
        "/management/v1/warehouse", {"warehouse-name": "w", "storage-profile": {}}, headers=header
    ).status_code in (400, 403)


def test_grant_request_is_atomic(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    before = world.snapshot()
    writes = [{"type": "select", "user": "oidc~analyst"}, {"type": "select", "user": "oidc~never-seen"}]
    answer = world.admin.post(world.grants_path("namespace", id), {"writes": writes})
    assert error_triple(answer)[:2] == (404, "GrantTargetNotFound")
    deletes = [{"type": "modify", "user": "oidc~analyst"}]
    answer = world.admin.post(world.grants_path("namespace", id), {"writes": writes[:1], "deletes": deletes})
    assert error_triple(answer)[:2] == (404, "TupleNotFoundError")
    assert world.snapshot() == before


def test_grant_to_an_unknown_user_is_refused(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    body = {"writes": [{"type": "select", "user": "oidc~anlayst"}]}
    assert error_triple(world.admin.post(world.grants_path("namespace", id), body))[:2] == (404, "GrantTargetNotFound")
    body = {"writes": [{"type": "select", "role": "01900000-0000-7000-8000-000000000000"}]}
    assert error_triple(world.admin.post(world.grants_path("namespace", id), body))[:2] == (404, "GrantTargetNotFound")


def test_second_grant_is_a_conflict_and_revoking_a_missing_one_not_found(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    world.grant("select", world.analyst, "namespace", id)
    world.grant("select", world.analyst, "namespace", id, expect=409)
    world.revoke("select", world.analyst, "namespace", id)
    world.revoke("select", world.analyst, "namespace", id, expect=404)


def test_one_of_many_concurrent_identical_grants_succeeds(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    with ThreadPoolExecutor(6) as pool:
        codes = list(pool.map(lambda _: _give(world, world.admin, "select", world.analyst, "namespace", id), range(6)))
    assert sorted(codes) == [204] + [409] * 5
    assert (world.analyst.id.join(("user:", "")), "select") in world.tuples(f"namespace:{id}")


def test_alternating_grants_and_revocations_converge_to_the_rows(world: World, ns: str) -> None:
    """In whatever order the deliveries run, OpenFGA finally holds what PostgreSQL holds."""
    id = world.namespace_id(ns)

    def attempt(number: int) -> None:
        entry = [{"type": "select", "user": "oidc~analyst"}]
        world.admin.post(world.grants_path("namespace", id), {("writes", "deletes")[number % 2]: entry})

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(attempt, range(40)))
    # Deliveries that OpenFGA did not accept in time run in the background.
    world.delivered()
    expected = bool(world.sql("select 1 from grants where object_id = $1 and privilege = 'select'", id))
    assert ((f"user:{world.analyst.id}", "select") in world.tuples(f"namespace:{id}")) is expected
    assert (world.analyst.get(f"{world.root}/namespaces/{ns}").status_code == 200) is expected
    assert world.sql("select 1 from outbox where object_id = $1", id) == []


def test_path_to_a_granted_table_is_visible_until_its_last_reason_ends(world: World, ns: str) -> None:
    assert world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, "inner"]}).status_code == 200
    inner = f"{ns}%1Finner"
    first, second = world.table(inner), world.table(inner)
    other = world.namespace()
    for table in (first, second):
        world.grant("select", world.analyst, "table", table.uuid)
    names = world.analyst.get(f"{world.root}/namespaces").json()["namespaces"]
    assert [ns] in names
    assert [other] not in names
    assert world.analyst.get(f"{world.root}/namespaces?parent={ns}").json()["namespaces"] == [[ns, "inner"]]
    listed = world.analyst.get(f"{world.root}/namespaces/{inner}/tables").json()["identifiers"]
    assert {each["name"] for each in listed} == {first.name, second.name}
    world.revoke("select", world.analyst, "table", first.uuid)
    assert world.analyst.head(f"{world.root}/namespaces/{inner}").status_code == 204
    listed = world.analyst.get(f"{world.root}/namespaces/{inner}/tables").json()["identifiers"]
    assert [each["name"] for each in listed] == [second.name]
    world.revoke("select", world.analyst, "table", second.uuid)
    assert world.analyst.head(f"{world.root}/namespaces/{ns}").status_code == 404
    assert world.analyst.head(f"{world.root}/namespaces/{inner}").status_code == 404


def test_path_visibility_gives_no_other_right(world: World, ns: str) -> None:
    table, neighbour = world.table(ns), world.table(ns)
    world.grant("modify", world.analyst, "table", table.uuid)
    assert world.analyst.get(neighbour.path).status_code == 404
    body = {"updates": {"a": "b"}}
    assert world.analyst.post(f"{world.root}/namespaces/{ns}/properties", body).status_code == 403
    made = world.analyst.post(
        f"{world.root}/namespaces/{ns}/tables", {"name": "x", "schema": {"type": "struct", "fields": []}}
    )
    assert made.status_code == 403
    assert world.analyst.post(f"{world.root}/namespaces", {"namespace": [unique("x")]}).status_code == 403
    assert world.analyst.post(f"{world.root}/namespaces", {"namespace": [ns, "x"]}).status_code == 403


def test_creators_own_their_objects_and_the_descendants(world: World) -> None:
    name = world.namespace(by=world.bob)
    table = world.table(name, by=world.bob)
    id = world.namespace_id(name, by=world.bob)
    assert world.tuples(f"namespace:{id}") == {
        ("user:oidc~bob", "ownership"),
        (f"warehouse:{world.warehouse}", "parent"),
        ("user:oidc~bob", "traverse"),
    }
    assert world.tuples(f"table:{table.uuid}") == {("user:oidc~bob", "ownership"), (f"namespace:{id}", "parent")}
    assert world.bob.get(world.grants_path("table", table.uuid)).status_code == 200


def test_dropped_objects_leave_no_grant_and_no_tuple(world: World, ns: str) -> None:
    table = world.table(ns)
    id = world.namespace_id(ns)
    world.grant("select", world.analyst, "table", table.uuid)
    world.grant("describe", world.steward, "namespace", id)
    assert world.admin.delete(table.path).status_code == 204
    assert world.admin.delete(f"{world.root}/namespaces/{ns}").status_code == 204
    assert world.tuples(f"table:{table.uuid}") == set()
    assert world.tuples(f"namespace:{id}") == set()
    assert world.sql("select 1 from grants where object_id = any($1)", [table.uuid, id]) == []


def test_grant_racing_with_a_drop_leaves_no_tuple(world: World, ns: str) -> None:
    """Invariant 5: no grant on an object that does not exist, whichever request commits first."""
    for _ in range(12):
        table = world.table(ns)
        with ThreadPoolExecutor(4) as pool:
            given = [
                pool.submit(_give, world, world.admin, privilege, world.analyst, "table", table.uuid)
                for privilege in ("select", "modify", "describe")
            ]
            dropped = pool.submit(world.admin.delete, table.path)
        assert dropped.result().status_code == 204
        # 403: the first check of a batch still saw the grant, the second did not.
        assert {each.result() for each in given} <= {204, 403, 404}
        world.delivered()
        assert world.sql("select 1 from grants where object_id = $1", table.uuid) == []
        assert world.tuples(f"table:{table.uuid}") == set()


def test_user_id_unsupported_by_openfga_is_not_recorded(world: World) -> None:
    """60 ideographs are valid characters, but 540 bytes when percent-encoded: more than OpenFGA accepts."""
    absent = "oidc~" + "字" * 60
    made = world.admin.post("/management/v1/user", {"id": absent, "name": "x"})
    assert (made.status_code, error_of(made)["type"]) == (400, "UserIdTooLongError")
    path = world.grants_path("warehouse", world.warehouse)
    before = world.snapshot()
    given = world.admin.post(path, {"writes": [{"type": "select", "user": absent}]})
    assert (given.status_code, error_of(given)["type"]) == (400, "UserIdTooLongError")
    assert world.snapshot() == before
