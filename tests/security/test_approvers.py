# SPDX-License-Identifier: Apache-2.0
"""The privilege `approve_changes` leads to decisions about tickets and to metadata, and to nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.stack import warehouses
from tests.support.stack.world import Person, Table, World, error_triple, unique

UPDATE = {"action": "set-properties", "updates": {"a": "b"}}


def ticket(world: World, type: str, id: str, *, by: str = "oidc~requester", warehouse: str | None = None) -> str:
    """Insert a pending ticket, and return its path. The stack has no verifier that would open one."""
    warehouse = warehouse or world.warehouse
    ((made,),) = world.sql(
        "insert into change_tickets (id, digest, warehouse_id, object_type, object_id, name, kind, principal, reasons, "
        "change, expires_at) values (gen_random_uuid(), $1, $2::text::uuid, $3, $4::text::uuid, 'x', 'commit', $5, "
        "'{}', '{}', now() + interval '1 hour') returning id",
        unique("digest"),
        warehouse,
        type,
        id,
        by,
    )
    return f"/management/v1/warehouse/{warehouse}/change-tickets/{made}"


def status(world: World, path: str) -> str:
    ((found,),) = world.sql("select status from change_tickets where id = $1::text::uuid", path.rsplit("/", 1)[-1])
    return str(found)


def listed(person: Person, path: str) -> bool:
    """Return True if the list of tickets has this one."""
    at, id = path.rsplit("/", 1)
    answer = person.get(at, params={"status": "pending"})
    assert answer.status_code == 200, answer.text
    return id in {each["id"] for each in answer.json()["change-tickets"]}


def refused(answer: httpx.Response) -> tuple[int, str]:
    status_code, type, _ = error_triple(answer)
    return status_code, type


@pytest.fixture
def approver(world: World) -> Iterator[Person]:
    person = world.stranger("approver")
    yield person
    world.strip(person)


def test_approver_of_a_table_decides_about_its_tickets_and_reads_its_metadata(
    world: World, approver: Person, table: Table
) -> None:
    first, second = (ticket(world, "table", table.uuid) for _ in range(2))
    assert refused(approver.get(first))[0] == 404
    world.grant("approve_changes", approver, "table", table.uuid)
    assert listed(approver, first) and approver.get(first).status_code == 200
    assert approver.get(table.path).status_code == 200
    assert approver.post(f"{first}/approve", {}).status_code == 204
    assert approver.post(f"{second}/reject", {"comment": "no"}).status_code == 204
    assert (status(world, first), status(world, second)) == ("approved", "rejected")


def test_approver_gets_no_data_no_credentials_and_changes_nothing(
    world: World, approver: Person, table: Table, ns: str
) -> None:
    world.grant("approve_changes", approver, "namespace", world.namespace_id(ns))
    loaded = approver.get(table.path, headers={"X-Iceberg-Access-Delegation": "vended-credentials"})
    assert loaded.status_code == 200, loaded.text
    assert not loaded.json().get("storage-credentials")
    assert not {key for key in loaded.json().get("config", {}) if "secret" in key or "token" in key}
    assert refused(approver.get(f"{table.path}/credentials")) == (403, "TableActionForbidden")
    assert world.commit(approver, table.path, UPDATE).status_code == 403
    assert approver.delete(table.path).status_code == 403
    assert approver.post(f"{world.root}/namespaces", {"namespace": [ns, "x"]}).status_code == 403
    names = [{"namespace": [ns], "name": name} for name in (table.name, unique("other"))]
    renamed = approver.post(f"{world.root}/tables/rename", {"source": names[0], "destination": names[1]})
    assert renamed.status_code == 403


@pytest.mark.parametrize("kind", ["project", "warehouse", "namespace", "table"])
def test_approver_cannot_grant_anything_on(world: World, approver: Person, table: Table, ns: str, kind: str) -> None:
    ids = {
        "project": world.project,
        "warehouse": world.warehouse,
        "namespace": world.namespace_id(ns),
        "table": table.uuid,
    }
    world.grant("approve_changes", approver, kind, ids[kind])
    other = world.stranger()
    for privilege in ("approve_changes", "describe", "select", "modify"):
        world.grant(privilege, other, kind, ids[kind], by=approver, expect=403)
    assert approver.get(world.grants_path(kind, ids[kind])).status_code == 403
    taken = {"deletes": [{"type": "approve_changes", "user": approver.id}]}
    assert approver.post(world.grants_path(kind, ids[kind]), taken).status_code == 403
    # `pass_grants` covers what the privilege implies, and not the decision itself.
    if kind != "project":
        world.grant("pass_grants", approver, kind, ids[kind])
        world.grant("approve_changes", other, kind, ids[kind], by=approver, expect=403)
        world.grant("select", other, kind, ids[kind], by=approver, expect=403)


def test_approver_of_one_table_sees_no_ticket_of_another_object(
    world: World, approver: Person, table: Table, ns: str
) -> None:
    beside = world.table(ns)
    others = [
        ticket(world, "table", beside.uuid),
        ticket(world, "namespace", world.namespace_id(ns)),
        ticket(world, "warehouse", world.warehouse),
    ]
    world.grant("approve_changes", approver, "table", table.uuid)
    for path in others:
        assert not listed(approver, path)
        assert refused(approver.get(path)) == (404, "TicketNotFound")
        assert approver.post(f"{path}/approve", {}).status_code in (403, 404)
        assert status(world, path) == "pending"
    assert refused(approver.post(f"{others[0]}/approve", {})) == (404, "TicketNotFound")
    assert approver.get(beside.path).status_code == 404


def test_approver_of_a_project_decides_in_its_warehouses_and_in_no_other_project(
    world: World, approver: Person, table: Table
) -> None:
    elsewhere = {"x-project-id": warehouses.project(world)}
    foreign = warehouses.make(world, headers=elsewhere, **warehouses.stored_at(world, unique("foreign")))
    theirs = ticket(world, "warehouse", foreign.id, warehouse=foreign.id)
    world.grant("approve_changes", approver, "project", world.project)
    assert refused(approver.get(theirs))[0] == 404
    assert refused(approver.post(f"{theirs}/approve", {}))[0] == 404
    # The id of the ticket below the path of the caller's own warehouse.
    moved = theirs.replace(foreign.id, world.warehouse)
    assert refused(approver.get(moved)) == (404, "TicketNotFound")
    assert refused(approver.post(f"{moved}/approve", {})) == (404, "TicketNotFound")
    assert status(world, theirs) == "pending"
    ours = ticket(world, "table", table.uuid)
    assert listed(approver, ours)
    assert approver.post(f"{ours}/approve", {}).status_code == 204


def test_approver_cannot_decide_about_its_own_change_also_as_a_role(
    world: World, approver: Person, table: Table
) -> None:
    own = ticket(world, "table", table.uuid, by=approver.id)
    made = world.admin.post("/management/v1/role", {"name": unique("approvers")})
    assert made.status_code == 201, made.text
    role = made.json()["id"]
    members = {"members": [{"type": "user", "id": approver.id}]}
    assert world.admin.post(f"/management/v1/role/{role}/members", members).is_success
    written = world.admin.post(
        world.grants_path("table", table.uuid), {"writes": [{"type": "approve_changes", "role": role}]}
    )
    assert written.status_code == 204, written.text
    for headers in (None, {"x-assume-role": role}):
        answer = approver.post(f"{own}/approve", {}, headers=headers)
        assert refused(answer) == (403, "OwnChangeForbidden")
    another = ticket(world, "table", table.uuid)
    assert approver.post(f"{another}/approve", {}, headers={"x-assume-role": role}).status_code == 204
    assert status(world, own) == "pending"


def test_revoked_approver_is_refused_by_the_next_request(world: World, approver: Person, table: Table) -> None:
    path = ticket(world, "table", table.uuid)
    world.grant("approve_changes", approver, "table", table.uuid)
    assert approver.get(path).status_code == 200
    assert ("traverse", f"warehouse:{world.warehouse}") in world.tuples_of(f"user:{approver.id}", "warehouse")
    world.revoke("approve_changes", approver, "table", table.uuid)
    assert refused(approver.post(f"{path}/approve", {}))[0] == 404
    assert approver.get(table.path).status_code == 404
    assert not world.tuples_of(f"user:{approver.id}", "warehouse")
    assert status(world, path) == "pending"


def test_modify_does_not_approve(world: World, approver: Person, table: Table) -> None:
    path = ticket(world, "table", table.uuid)
    world.grant("modify", approver, "table", table.uuid)
    assert refused(approver.get(path)) == (404, "TicketNotFound")
    assert refused(approver.post(f"{path}/approve", {})) == (403, "TableActionForbidden")
    assert status(world, path) == "pending"


@pytest.mark.parametrize("right", ["ownership", "manage_grants"])
def test_owner_and_grant_manager_do_not_approve_the_changes_that_others_must_see(
    world: World, approver: Person, table: Table, right: str
) -> None:
    path = ticket(world, "table", table.uuid)
    world.grant(right, approver, "table", table.uuid)
    world.grant("describe", approver, "table", table.uuid)
    assert refused(approver.post(f"{path}/approve", {})) == (403, "TableActionForbidden")
    assert status(world, path) == "pending"
    security = world.stranger()
    world.grant("security_admin", security, "project", world.project)
    assert security.post(f"{path}/approve", {}).status_code == 204
