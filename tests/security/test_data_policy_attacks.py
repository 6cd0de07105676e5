# SPDX-License-Identifier: Apache-2.0
"""Attacks on data policies through operations that are not reads: replays, registrations, users that return."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.adoption import register
from tests.support.stack.columns import WIDE, wide
from tests.support.stack.data_policies import change, make, target
from tests.support.stack.roles import add
from tests.support.stack.roles import make as make_role
from tests.support.stack.token_groups import give
from tests.support.stack.world import Person, Table, World, error_triple, send_until_decided, unique

DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}


@pytest.fixture(autouse=True)
def clean(world: World) -> Iterator[None]:
    """Remove all policies after the test."""
    yield
    world.remove_policies()


@pytest.fixture
def owner(world: World) -> Person:
    """Return a user without rights."""
    return world.stranger("owner")


def keyed() -> dict[str, str]:
    """Return the headers of a request for credentials with a new idempotency key."""
    return {**DELEGATION, "Idempotency-Key": str(uuid4())}


def with_summary(world: World, owner: Person) -> Table:
    """Return a table of the owner in its own namespace, with a snapshot whose summary counts 12345 rows."""
    ns = world.namespace()
    world.grant("ownership", owner, "namespace", world.namespace_id(ns))
    table = wide(world, ns, by=owner)
    snapshot = {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": 1_700_000_000_000,
        "manifest-list": f"{table.location}/metadata/snap.avro",
        "summary": {"operation": "append", "total-records": "12345"},
        "schema-id": 0,
    }
    updates = (
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
    )
    done = send_until_decided(lambda: world.commit(owner, table.path, *updates))
    assert done.status_code == 200, done.text
    table.answer["metadata-location"] = done.json()["metadata-location"]
    return table


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_registration_of_a_restricted_table_shows_nothing_that_was_computed_from_rows(
    world: World, owner: Person, overwrite: bool
) -> None:
    table = with_summary(world, owner)
    policy = make(world)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    assert owner.get(table.path).status_code == 403
    if not overwrite:
        assert owner.delete(f"{table.path}?purgeRequested=false").status_code == 204
    name = table.name if overwrite else unique("again")
    answer = register(owner, world, table.namespace, table.answer["metadata-location"], name, overwrite=overwrite)
    assert answer.status_code == 200, answer.text
    assert "12345" not in answer.text
    assert not answer.json().get("storage-credentials")
    assert answer.json()["metadata"]["snapshots"][0]["summary"] == {"operation": "append"}


def test_a_subject_does_not_lift_its_policy_by_deleting_itself(world: World) -> None:
    """Rights by the groups of a token survive the deletion of the user, and the grant of `subject` would not."""
    leaver, member = world.stranger("leaver"), world.stranger("member")
    more: dict[str, Any] = {"applies-to": "subjects"}
    policy = make(world, **more)
    inner, outer = make_role(world), make_role(world)
    assert add(world, inner, "user", member.id).status_code == 204
    assert add(world, outer, "role", inner["id"]).status_code == 204
    give(world, "subject", outer, "data-policy", policy["id"])
    world.grant("subject", leaver, "data-policy", policy["id"])
    for person in (leaver, member):
        refused = person.delete(f"/management/v1/user/{person.id}")
        assert error_triple(refused)[:2] == (409, "UserRestricted")
    world.revoke("subject", leaver, "data-policy", policy["id"])
    assert leaver.delete(f"/management/v1/user/{leaver.id}").status_code == 204
    assert world.admin.delete(f"/management/v1/user/{member.id}").status_code == 204


def test_a_deleted_user_has_no_values_in_mapping_tables(world: World) -> None:
    made = world.admin.post("/management/v1/mapping-table", {"name": unique("regions")})
    assert made.status_code == 201, made.text
    path = f"/management/v1/mapping-table/{made.json()['id']}"
    leaver, role = world.stranger("leaver"), make_role(world)
    both = [{"principal": {"user": leaver.id}, "values": ["eu"]}, {"principal": {"role": role["id"]}, "values": ["us"]}]
    assert send_until_decided(lambda: world.admin.post(f"{path}/entries", {"set": both})).status_code == 204
    assert world.admin.delete(f"/management/v1/user/{leaver.id}").status_code == 204
    assert world.admin.delete(f"/management/v1/role/{role['id']}").status_code == 204
    assert world.admin.get(f"{path}/entries").json()["entries"] == []
    assert world.admin.delete(path).status_code == 204


@pytest.mark.parametrize("staged", [False, True])
def test_the_replay_of_a_creation_has_no_credentials_after_a_policy_was_bound(
    world: World, owner: Person, staged: bool
) -> None:
    ns = world.namespace()
    world.grant("ownership", owner, "namespace", world.namespace_id(ns))
    headers, path = keyed(), f"{world.root}/namespaces/{ns}/tables"
    body = {"name": unique("t"), "schema": WIDE, "stage-create": staged}
    first = owner.post(path, body, headers=headers)
    assert first.status_code == 200, first.text
    assert first.json()["storage-credentials"]
    policy = make(world)
    bound = {"type": "namespace", "id": world.namespace_id(ns), "warehouse-id": world.warehouse}
    assert change(world, policy, add=[bound]).status_code == 204
    again = owner.post(path, body, headers=headers)
    assert again.status_code == (200 if staged else 403), again.text
    assert not again.json().get("storage-credentials")
    assert "secret-access-key" not in again.text


def test_the_replay_of_a_commit_shows_nothing_after_an_exemption_ended(world: World, owner: Person) -> None:
    table = with_summary(world, owner)
    policy = make(world)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    world.grant("exempt", owner, "data-policy", policy["id"])
    headers = keyed()
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    first = send_until_decided(lambda: owner.post(table.path, body, headers=headers))
    assert first.status_code == 200, first.text
    assert "12345" in first.text
    world.revoke("exempt", owner, "data-policy", policy["id"])
    again = owner.post(table.path, body, headers=headers)
    assert again.status_code == 403, again.text
    assert "12345" not in again.text


def test_the_replay_of_a_registration_shows_nothing_of_a_restricted_table(world: World, owner: Person) -> None:
    table = with_summary(world, owner)
    assert owner.delete(f"{table.path}?purgeRequested=false").status_code == 204
    headers, name = keyed(), unique("again")
    file = table.answer["metadata-location"]
    first = register(owner, world, table.namespace, file, name, headers=headers)
    assert first.json()["storage-credentials"]
    policy = make(world)
    bound = {"type": "namespace", "id": world.namespace_id(table.namespace), "warehouse-id": world.warehouse}
    assert change(world, policy, add=[bound]).status_code == 204
    again = register(owner, world, table.namespace, file, name, headers=headers)
    assert again.status_code == 403, again.text
    assert "12345" not in again.text


def test_one_restricted_table_refuses_the_commit_to_several(world: World, owner: Person) -> None:
    table = with_summary(world, owner)
    free = wide(world, table.namespace, by=owner)
    policy = make(world)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    update = {"action": "set-properties", "updates": {"a": "b"}}
    changes = [
        {"identifier": {"namespace": [each.namespace], "name": each.name}, "requirements": [], "updates": [update]}
        for each in (free, table)
    ]
    for some in (changes, changes[::-1]):
        refused = owner.post(f"{world.root}/transactions/commit", {"table-changes": some})
        assert refused.status_code == 403, refused.text
    assert "a" not in owner.get(free.path).json()["metadata"]["properties"]
    assert owner.post(f"{world.root}/transactions/commit", {"table-changes": changes[:1]}).status_code == 204


def test_a_new_subject_ends_requests_that_were_decided_before(world: World) -> None:
    """Credentials of a request in progress are refused only if a revision changes after OpenFGA has the tuple."""
    more: dict[str, Any] = {"applies-to": "subjects"}
    policy = make(world, **more)
    person, inner, outer, plain = world.stranger(), *(make_role(world) for _ in range(3))

    def changes(grant: Callable[[], object]) -> bool:
        before = world.sql("select revision from server")[0]["revision"]
        grant()
        assert world.sql("select count(*) as n from outbox where takes_away")[0]["n"] == 0
        return bool(world.sql("select revision from server")[0]["revision"] != before)

    def leaves_one(role: dict[str, Any]) -> bool:
        """Return True if one of several new members changes nothing: other tests and tasks change the revision too."""
        return any(not changes(lambda: add(world, role, "user", world.stranger().id)) for _ in range(10))

    assert leaves_one(inner)
    assert changes(lambda: world.grant("subject", person, "data-policy", policy["id"]))
    assert changes(lambda: give(world, "subject", outer, "data-policy", policy["id"]))
    assert changes(lambda: add(world, outer, "role", inner["id"])), "the members of the inner role become subjects"
    assert changes(lambda: add(world, inner, "user", person.id)), "a member of a nested role becomes a subject"
    assert leaves_one(plain)
