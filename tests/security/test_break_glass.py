# SPDX-License-Identifier: Apache-2.0
"""Break-glass gives rights to its holders only, never confirmed or reviewed by the holder itself."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.stack.access_requests import may_read
from tests.support.stack.break_glass import BREAK_GLASS, change, expire, holder, listed, on_table, start, started
from tests.support.stack.exchanging import acting, delegating
from tests.support.stack.roles import ROLE, add
from tests.support.stack.roles import make as make_role
from tests.support.stack.world import Person, Table, World, error_triple


def refused(person: Person, id: str, action: str) -> tuple[int, str]:
    status, type, _ = error_triple(change(person, id, action))
    return status, type


@pytest.mark.parametrize("right", ["ownership", "manage_grants", "modify", "auditor"])
def test_other_rights_activate_nothing(world: World, table: Table, right: str) -> None:
    person = world.stranger()
    world.grant("describe", person, "warehouse", world.warehouse)
    world.grant(right, person, "warehouse", world.warehouse)
    assert start(person, on_table(world, table)).status_code == 403
    world.strip(person)


def test_absent_and_invisible_objects_are_refused_alike(world: World, table: Table) -> None:
    stranger = world.stranger()
    absent = {"type": "table", "warehouse-id": world.warehouse, "table-id": str(uuid.uuid4())}
    for on in (on_table(world, table), absent):
        assert start(stranger, on).status_code == 404


def test_the_relation_alone_gives_no_right_and_only_securers_grant_it(world: World, table: Table, ns: str) -> None:
    oncall, owner, other = holder(world), world.stranger("owner"), world.stranger("other")
    assert oncall.get(table.path).status_code == 404
    assert oncall.get(f"{table.path}/credentials").status_code == 404
    assert oncall.get(f"/management/v1/warehouse/{world.warehouse}/grants").status_code == 404
    world.grant("ownership", owner, "warehouse", world.warehouse)
    world.grant("ownership", owner, "namespace", world.namespace_id(ns))
    for kind, id in (("warehouse", world.warehouse), ("namespace", world.namespace_id(ns))):
        world.grant("break_glass", other, kind, id, by=owner, expect=403)
        world.grant("break_glass", owner, kind, id, by=owner, expect=403)
    world.strip(owner)


def test_the_holder_of_one_namespace_activates_nothing_beside_it(world: World, table: Table) -> None:
    oncall = holder(world, "namespace", world.namespace_id(world.namespace()))
    assert start(oncall, on_table(world, table)).status_code == 404
    assert start(oncall, {"type": "warehouse", "warehouse-id": world.warehouse}).status_code == 404


def test_nobody_confirms_or_reviews_its_own_activation(world: World, table: Table) -> None:
    oncall = holder(world)
    world.grant("security_admin", oncall, "project", world.project)
    id = started(oncall, on_table(world, table), second_person=True)
    assert refused(oncall, id, "confirm") == (403, "OwnBreakGlassForbidden")
    assert not may_read(oncall, world, table)
    assert change(world.admin, id, "confirm").status_code == 204
    assert change(oncall, id, "end").status_code == 204
    assert refused(oncall, id, "review") == (403, "OwnBreakGlassForbidden")
    assert listed(world.admin, "ended")[id]
    world.strip(oncall)


def test_an_activation_in_an_assumed_role_gives_rights_to_its_user_only(world: World, table: Table) -> None:
    oncall, other, role = world.stranger("oncall"), world.stranger("other"), make_role(world)
    for person in (oncall, other):
        assert add(world, role, "user", person.id).status_code == 204
    grants = f"/management/v1/warehouse/{world.warehouse}/grants"
    written = {"privilege": "break_glass", "principal": {"role": role["id"]}}
    assert world.admin.post(grants, {"writes": [written]}).status_code == 204
    body = {"object": on_table(world, table), "privileges": ["select"], "minutes": 15, "reason": "outage"}
    made = oncall.post(BREAK_GLASS, body, headers={"x-assume-role": role["id"]})
    assert made.status_code == 201, made.text
    assert may_read(oncall, world, table)
    assert not may_read(other, world, table)
    assert change(oncall, made.json()["id"], "end").status_code == 204
    assert not may_read(oncall, world, table)
    assert world.admin.delete(f"{ROLE}/{role['id']}").status_code == 204


def test_strangers_find_no_activation(world: World, table: Table) -> None:
    oncall, stranger, elsewhere = holder(world), world.stranger(), world.stranger("modifier")
    world.grant("modify", elsewhere, "warehouse", world.warehouse)
    id = started(oncall, on_table(world, table))
    absent = str(uuid.uuid4())
    for action in ("confirm", "end", "review"):
        assert refused(stranger, id, action) == (404, "BreakGlassNotFound")
        assert refused(stranger, absent, action) == (404, "BreakGlassNotFound")
        assert refused(elsewhere, id, action)[0] == 403
    assert listed(stranger) == listed(elsewhere) == {}
    assert may_read(oncall, world, table)
    assert change(world.admin, id, "end").status_code == 204
    world.strip(elsewhere)


def test_an_expiring_right_bounds_the_activation(world: World, table: Table) -> None:
    oncall = world.stranger("oncall")
    ends = datetime.now(UTC) + timedelta(seconds=6)
    written = {
        "privilege": "break_glass",
        "principal": {"user": oncall.id},
        "expires-at": ends.isoformat(),
    }
    path = f"/management/v1/warehouse/{world.warehouse}/grants"
    assert world.admin.post(path, {"writes": [written]}).status_code == 204
    made = start(oncall, on_table(world, table), minutes=60)
    assert made.status_code == 201, made.text
    assert datetime.fromisoformat(made.json()["ends-at"]) <= ends
    assert may_read(oncall, world, table)
    time.sleep(max(0.0, (ends - datetime.now(UTC)).total_seconds()) + 0.3)
    assert not may_read(oncall, world, table)
    assert start(oncall, on_table(world, table)).status_code == 404
    assert listed(oncall, "ended")


def test_an_activation_is_not_confirmed_for_a_former_holder(world: World, table: Table) -> None:
    oncall, second = holder(world), holder(world)
    id = started(oncall, on_table(world, table), second_person=True)
    world.revoke("break_glass", oncall, "warehouse", world.warehouse)
    assert refused(second, id, "confirm") == (409, "BreakGlassNotOpen")
    assert not may_read(oncall, world, table)


def test_an_expired_request_is_not_confirmed(world: World, table: Table) -> None:
    oncall, second = holder(world), holder(world)
    id = started(oncall, on_table(world, table), second_person=True)
    expire(world, id)
    assert refused(second, id, "confirm") == (409, "BreakGlassNotOpen")
    assert listed(oncall)[id]["status"] == "lapsed"


def test_engines_activate_nothing_for_their_users(world: World, table: Table) -> None:
    oncall, engine = holder(world), world.stranger("engine")
    with delegating(world, engine, "warehouse", world.warehouse):
        through = acting(world, engine, oncall)
        assert start(through, on_table(world, table)).status_code in (401, 403)
        assert through.get(BREAK_GLASS).status_code in (401, 403)
    assert oncall.id not in {each["principal"]["user"] for each in listed(oncall).values()}


def test_a_longer_grant_of_the_same_grantor_is_not_shortened(world: World, table: Table) -> None:
    oncall = holder(world)
    world.grant("manage_grants", oncall, "table", table.uuid)
    world.grant("select", oncall, "table", table.uuid, by=oncall)
    answer = start(oncall, on_table(world, table))
    assert error_triple(answer)[:2] == (409, "AccessAlreadyGranted")
    assert may_read(oncall, world, table)
    world.strip(oncall)
