# SPDX-License-Identifier: Apache-2.0
"""Definer views lend their owner's rights to their own SQL only (LG-DEC-29, LG-DEC-33).

Other users can replace an ownerless view below a definer view, so it is read with the caller's rights.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.servers.toxic import second_gateway
from tests.support.stack.definer_views import OWNER, grant_view, load, referenced, through, view_id
from tests.support.stack.exchanging import delegating
from tests.support.stack.roles import add, make
from tests.support.stack.views import body, create, replace
from tests.support.stack.world import Person, Table, World, error_triple, unique

pytestmark = pytest.mark.servers

Name = tuple[str, str]


@pytest.fixture(scope="module")
def trusting(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a gateway that trusts etl as an engine."""
    log: Path = tmp_path_factory.mktemp("nested") / "log"
    settings = {"TRUSTED_ENGINES__TRINO__IDENTITIES__OIDC__SUBJECTS": "etl"}
    with second_gateway(world.ready, log, **settings) as (base, _):
        yield base


@pytest.fixture
def engine(world: World, trusting: str) -> Iterator[Person]:
    """Return the engine, with `delegate` on the warehouse."""
    for person in (world.etl, world.steward, world.carol, world.bob):
        world.strip(person)
    with delegating(world, world.etl, "warehouse", world.warehouse):
        person = Person("etl", world.etl.id, world.etl.token, trusting)
        yield person
        person.http.close()
    for person in (world.steward, world.carol, world.bob):
        world.strip(person)


@pytest.fixture
def table(world: World, engine: Person) -> Table:
    """Return a table that only the steward may read."""
    made = world.table(world.namespace())
    world.grant("select", world.steward, "table", made.uuid)
    return made


def owned(world: World, engine: Person, by: Person) -> Name:
    """Create a definer view of `by`; return its name."""
    space = world.namespace()
    world.grant("create", by, "namespace", world.namespace_id(space))
    name = unique("owned")
    made = through(engine, world, by).post(
        f"{world.root}/namespaces/{space}/views", body(name, properties={OWNER: by.id.removeprefix("oidc~")})
    )
    assert made.status_code == 200, made.text
    return space, name


def ownerless(world: World, *readers: Person) -> Name:
    """Create a view without an owner property, readable by `readers`; return its name."""
    space, name = world.namespace(), unique("ownerless")
    create(world, space, name)
    for reader in readers:
        grant_view(world, name, reader)
    return space, name


@pytest.fixture
def outer(world: World, engine: Person) -> Name:
    """Return a definer view of the steward that carol may read."""
    made = owned(world, engine, world.steward)
    grant_view(world, made[1], world.carol)
    return made


@pytest.mark.threat("LG-DEC-29")
def test_replaced_ownerless_view_below_a_definer_view_gets_no_owner_rights(
    world: World, engine: Person, table: Table, outer: Name
) -> None:
    inner = ownerless(world, world.steward)
    for privilege in ("describe", "modify"):
        grant_view(world, inner[1], world.carol, privilege)
    path = f"{world.root}/namespaces/{inner[0]}/views/{inner[1]}"
    uuid = world.carol.get(path).json()["metadata"]["view-uuid"]
    replaced = world.carol.post(path, replace(uuid, f"select * from {table.namespace}.{table.name}"))
    assert replaced.status_code == 200, "carol, with modify, must be able to replace the inner view"
    carol = through(engine, world, world.carol)
    assert load(carol, table, outer).status_code == 200, "the definer view must be readable with its owner's rights"
    for at in ("", "/credentials"):
        assert error_triple(load(carol, table, outer, inner, at=at))[0] == 404, at


@pytest.mark.threat("LG-DEC-29")
def test_callers_own_rights_apply_below_an_ownerless_view(
    world: World, engine: Person, table: Table, outer: Name
) -> None:
    inner = ownerless(world, world.steward)
    carol = through(engine, world, world.carol)
    assert error_triple(load(carol, table, outer, inner))[0] == 404
    world.grant("select", world.carol, "table", table.uuid)
    assert load(carol, table, outer, inner, at="/credentials").status_code == 200
    record = world.sql(
        "select convert_from(record, 'UTF8') as record from audit_log where operation = 'vend_credentials' "
        "order by at desc limit 1"
    )[0]["record"]
    assert f'"id":"{world.carol.id}"' in record
    assert world.steward.id not in record
    world.revoke("select", world.steward, "table", table.uuid)
    assert load(carol, table, outer, inner).status_code == 200, (
        "below an ownerless view the caller's own right must suffice"
    )


def test_the_ownerless_view_itself_is_read_with_the_outer_owners_rights(
    world: World, engine: Person, table: Table, outer: Name
) -> None:
    inner = ownerless(world, world.carol)
    world.grant("select", world.carol, "table", table.uuid)
    carol = through(engine, world, world.carol)
    assert error_triple(load(carol, table, outer, inner))[0] == 404, (
        "a view that the outer owner cannot see must be not found"
    )
    grant_view(world, inner[1], world.steward)
    assert load(carol, table, outer, inner).status_code == 200


def test_a_definer_view_below_an_ownerless_one_must_be_readable_to_the_caller(
    world: World, engine: Person, table: Table, outer: Name
) -> None:
    inner, last = ownerless(world, world.steward), owned(world, engine, world.bob)
    world.grant("select", world.bob, "table", table.uuid)
    grant_view(world, last[1], world.steward)
    carol = through(engine, world, world.carol)
    assert error_triple(load(carol, table, outer, inner, last))[0] == 404, (
        "a view that only the outer owner may read must be not found for the caller"
    )
    grant_view(world, last[1], world.carol)
    world.revoke("select", world.steward, "table", table.uuid)
    assert load(carol, table, outer, inner, last).status_code == 200, (
        "below an owned view the rights of its owner must apply"
    )
    world.revoke("select", world.bob, "table", table.uuid)
    assert error_triple(load(carol, table, outer, inner, last))[0] in (403, 404)


def test_a_caller_that_assumed_a_role_falls_back_to_the_role(
    world: World, engine: Person, table: Table, outer: Name
) -> None:
    inner, role = ownerless(world, world.steward), make(world)
    try:
        assert add(world, role, "user", world.carol.id).status_code == 204
        world.grant("select", world.carol, "table", table.uuid)
        assign(world, "view", view_id(world, outer[1]), role["id"])
        carol, headers = through(engine, world, world.carol), {"x-assume-role": role["id"]}
        path = f"{table.path}?{referenced(outer, inner)['query']}"
        assert error_triple(carol.get(path, headers=headers))[0] == 404, (
            "the assumed role must not read a table that only carol may read"
        )
        assign(world, "table", table.uuid, role["id"])
        assert carol.get(path, headers=headers).status_code == 200
    finally:
        assert world.admin.delete(f"/management/v1/role/{role['id']}").status_code == 204


def assign(world: World, kind: str, id: str, role: str) -> None:
    granted = world.admin.post(world.grants_path(kind, id), {"writes": [{"type": "select", "role": role}]})
    assert granted.status_code == 204, granted.text


@pytest.mark.threat("LG-DEC-33")
def test_keys_vended_behind_a_definer_view_end_with_the_role_membership(
    world: World, engine: Person, table: Table, outer: Name
) -> None:
    role = make(world)
    end = (datetime.now(UTC) + timedelta(minutes=25)).replace(microsecond=0)
    entry = {"privilege": "assignee", "principal": {"user": world.carol.id}, "expires-at": end.isoformat()}
    try:
        member = world.admin.post(f"/management/v1/role/{role['id']}/grants", {"writes": [entry]})
        assert member.status_code == 204, member.text
        assign(world, "view", view_id(world, outer[1]), role["id"])
        carol, headers = through(engine, world, world.carol), {"x-assume-role": role["id"]}
        path = f"{table.path}/credentials?{referenced(outer)['query']}"
        answer = carol.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        config = answer.json()["storage-credentials"][0]["config"]
        expires = datetime.fromtimestamp(int(config["s3.session-token-expires-at-ms"]) / 1000, UTC)
        assert expires <= end
    finally:
        assert world.admin.delete(f"/management/v1/role/{role['id']}").status_code == 204


def test_a_check_for_an_engine_tells_an_owned_view_from_an_ownerless_one(
    world: World, engine: Person, outer: Name
) -> None:
    inner = ownerless(world, world.carol)

    def allowed(name: Name, **more: object) -> bool:
        view = {"warehouse-id": world.warehouse, "namespace": [name[0]], "view": name[1], "action": "select", **more}
        answer = world.carol.post("/management/v1/action/batch-check", {"checks": [{"operation": {"view": view}}]})
        assert answer.status_code == 200, answer.text
        return bool(answer.json()["results"][0]["allowed"])

    needed = {"runs-as-owner": True}
    assert (allowed(outer), allowed(outer, **needed)) == (True, True)
    assert (allowed(inner), allowed(inner, **needed), allowed(inner, **{"runs-as-owner": False})) == (True, False, True)
    assert not allowed((inner[0], unique("absent")), **needed)
    world.strip(world.carol)
    assert not allowed(outer, **needed), "the caller must need the right although the view is owned"
    wrong = {"warehouse-id": world.warehouse, "namespace": ["n"], "view": "v", "action": "select", "runs-as-owner": 1}
    answer = world.carol.post("/management/v1/action/batch-check", {"checks": [{"operation": {"view": wrong}}]})
    assert error_triple(answer)[0] == 400
