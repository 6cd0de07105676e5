# SPDX-License-Identifier: Apache-2.0
"""Grants beyond the grantor's rights are refused by every request path, and never outlive their expiry."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.stack.revocation import make_role
from tests.support.stack.world import Person, Table, World

pytestmark = pytest.mark.servers


def _grants(world: World, table: Table) -> str:
    [row] = world.sql("select id::text from tables where table_uuid = $1::text::uuid", table.uuid)
    return f"/management/v1/warehouse/{world.warehouse}/table/{row['id']}/grants"


def _entry(privilege: str, person: Person, ends: str | None = None) -> dict[str, object]:
    entry: dict[str, object] = {"privilege": privilege, "principal": {"user": person.id}}
    return {"writes": [entry if ends is None else {**entry, "expires-at": ends}]}


@pytest.mark.parametrize(("kind", "privilege"), [("server", "admin"), ("project", "project_admin")])
def test_security_admin_cannot_join_a_role_with_ungrantable_rights(world: World, kind: str, privilege: str) -> None:
    bob, role = world.bob, make_role(world)
    world.strip(bob)
    path = f"/management/v1/{kind}/grants"
    try:
        given = world.admin.post(path, {"writes": [{"privilege": privilege, "principal": {"role": role}}]})
        assert given.status_code == 204, given.text
        world.grant("security_admin", bob, "project", world.project)
        assert bob.post(path, _entry(privilege, bob)).status_code == 403
        joined = bob.post(world.grants_path("role", role), {"writes": [{"type": "assignee", "user": bob.id}]})
        assert joined.status_code == 403
    finally:
        world.strip(bob)
        world.admin.post(path, {"deletes": [{"privilege": privilege, "principal": {"role": role}}]})


@pytest.mark.parametrize("held", [("select", "pass_grants"), ("manage_grants",), ("ownership",)])
def test_holder_of_a_temporary_right_cannot_make_it_permanent(world: World, ns: str, held: tuple[str, ...]) -> None:
    bob, table = world.bob, world.table(ns)
    world.strip(bob)
    try:
        ends = datetime.now(UTC) + timedelta(seconds=8)
        for privilege in held:
            given = world.admin.post(_grants(world, table), _entry(privilege, bob, ends.isoformat()))
            assert given.status_code == 204, given.text
        bob.post(_grants(world, table), _entry("select", bob))
        time.sleep(max(0.0, (ends - datetime.now(UTC)).total_seconds()) + 0.5)
        assert bob.get(table.path).status_code == 404
    finally:
        world.strip(bob)


@pytest.mark.parametrize("ends", ["9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59-00:01"])
def test_expiry_beyond_the_calendar_range_is_refused(world: World, ns: str, ends: str) -> None:
    answer = world.admin.post(_grants(world, world.table(ns)), _entry("select", world.bob, ends))
    assert answer.status_code == 400


def test_accepted_grant_applies_at_once_and_blocks_no_move(world: World, ns: str) -> None:
    bob, table, elsewhere = world.bob, world.table(ns), world.namespace()
    world.strip(bob)
    try:
        given = world.admin.post(_grants(world, table), _entry("select", bob, "9999-12-31T23:59:59.999999Z"))
        if given.status_code == 400:
            return
        assert bob.get(table.path).status_code == 200
        body = {
            "source": {"namespace": [ns], "name": table.name},
            "destination": {"namespace": [elsewhere], "name": table.name},
        }
        assert world.admin.post(f"{world.root}/tables/rename", body).status_code == 204
    finally:
        world.strip(bob)


def test_unusual_grant_of_another_user_blocks_no_revocation(world: World, ns: str) -> None:
    bob, alice, theirs, table = world.bob, world.alice, world.table(ns), world.table(ns)
    world.strip(bob)
    [row] = world.sql("select id::text from tables where table_uuid = $1::text::uuid", theirs.uuid)
    world.grant("ownership", alice, "table", row["id"])
    assert world.admin.post(_grants(world, table), _entry("select", bob)).status_code == 204
    alice.post(_grants(world, theirs), _entry("describe", bob, "9999-12-31T23:59:59.999999Z"))
    try:
        taken = {"deletes": [{"privilege": "select", "principal": {"user": bob.id}}]}
        assert world.admin.post(_grants(world, table), taken).status_code == 204
    finally:
        world.strip(bob)
