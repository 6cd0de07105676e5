# SPDX-License-Identifier: Apache-2.0
"""A revocation binds while OpenFGA answers checks and refuses writes: it still has the tuple, and allows by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.support.rows.parts import Proxy
from tests.support.servers.toxic import second_gateway
from tests.support.stack.columns import give, grants_path, wide
from tests.support.stack.data_policies import change, make, target
from tests.support.stack.exchanging import acting
from tests.support.stack.world import Loop, Person, Table, World, send_until_decided, unique

pytestmark = pytest.mark.servers


@dataclass(frozen=True)
class Rig:
    """The stack, and its administrator at a gateway whose writes to OpenFGA pass through a proxy."""

    world: World
    proxy: Proxy
    admin: Person

    def revoke(self, path: str, body: object) -> None:
        """Send a revocation that cannot be delivered, and keep it pending."""
        self.proxy.plan = lambda _: -0.01
        answer = self.admin.post(path, body)
        self.world.sql("update outbox set not_before = clock_timestamp() + interval '1 hour'")
        assert answer.status_code == 503, answer.text
        assert self.world.sql("select 1 from outbox where takes_away"), "nothing is pending, so the test proves nothing"

    def deliver(self) -> None:
        """Let OpenFGA accept writes again, and wait for the deliveries."""
        self.proxy.plan = lambda _: 0.0
        self.world.sql("update outbox set not_before = clock_timestamp()")
        self.world.delivered()


@pytest.fixture(scope="module")
def rig(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    loop, proxy, log = Loop(), Proxy(world.ready.openfga.url), tmp_path_factory.mktemp("log") / "gateway.log"
    serving = proxy.serving()
    endpoint = loop.run(serving.__aenter__())
    with second_gateway(world.ready, log, OPENFGA__ENDPOINT=endpoint) as (base, _):
        yield Rig(world, proxy, Person(world.admin.name, world.admin.id, world.admin.token, base))
    loop.run(serving.__aexit__(None, None, None))
    loop.close()


Case = tuple[Callable[[], int], str, object]
"""A read of the person that loses its right, and path and body of the revocation."""


def _status(person: Person, table: Table) -> Callable[[], int]:
    return lambda: send_until_decided(lambda: person.get(table.path)).status_code


def _of_table(world: World, table: Table, person: Person) -> Case:
    world.grant("select", person, "table", table.uuid)
    return _status(person, table), *_grant(world, "select", {"user": person.id}, "table", table.uuid)


def _of_namespace(world: World, table: Table, person: Person) -> Case:
    id = world.namespace_id(table.namespace)
    world.grant("select", person, "namespace", id)
    return _status(person, table), *_grant(world, "select", {"user": person.id}, "namespace", id)


def _role_on(world: World, table: Table, person: Person) -> str:
    role: str = world.admin.post("/management/v1/role", {"name": unique("role")}).json()["id"]
    world.grant("assignee", person, "role", role)
    given = {"writes": [{"type": "select", "role": role}]}
    answer = send_until_decided(lambda: world.admin.post(world.grants_path("table", table.uuid), given))
    assert answer.status_code == 204, answer.text
    return role


def _of_membership(world: World, table: Table, person: Person) -> Case:
    role = _role_on(world, table, person)
    return _status(person, table), *_grant(world, "assignee", {"user": person.id}, "role", role)


def _of_role(world: World, table: Table, person: Person) -> Case:
    return _status(person, table), *_grant(
        world, "select", {"role": _role_on(world, table, person)}, "table", table.uuid
    )


def _of_column(world: World, table: Table, person: Person) -> Case:
    assert give(world, table, "name", person).status_code == 204
    entry = {"privilege": "select", "principal": {"user": person.id}}
    return _status(acting(world, world.etl, person), table), grants_path(world, table, "name"), {"deletes": [entry]}


def _of_enforcer(world: World, table: Table, person: Person) -> Case:
    assert give(world, table, "name", person).status_code == 204
    through = acting(world, world.etl, person)
    return _status(through, table), *_grant(world, "enforcer", {"user": world.etl.id}, "warehouse", world.warehouse)


def _of_exemption(world: World, table: Table, person: Person) -> Case:
    world.grant("select", person, "table", table.uuid)
    policy = make(world)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    world.grant("exempt", person, "data-policy", policy["id"])
    return _status(person, table), *_grant(world, "exempt", {"user": person.id}, "data-policy", policy["id"])


def _grant(world: World, privilege: str, to: dict[str, str], kind: str, id: str) -> tuple[str, object]:
    return world.grants_path(kind, id), {"deletes": [{"type": privilege, **to}]}


#: Those of single users first: a pending key of a role may concern every caller.
_WAYS = (_of_table, _of_namespace, _of_membership, _of_column, _of_exemption, _of_role, _of_enforcer)


@pytest.mark.threat("LG-DIS-05")
def test_a_revocation_that_openfga_did_not_accept_binds_the_next_request(world: World, rig: Rig) -> None:
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    tables = [wide(world, world.namespace()) for _ in _WAYS]
    cases = [way(world, table, world.stranger("reader")) for way, table in zip(_WAYS, tables, strict=True)]
    again = world.stranger("again")
    world.grant("select", again, "table", tables[0].uuid)
    try:
        for way, (read, path, body) in zip(_WAYS, cases, strict=True):
            assert read() == 200, way
            rig.revoke(path, body)
            assert read() in (403, 404), way
        assert _status(world.admin, tables[0])() == 200, "other principals keep their rights"
        entry = {"type": "select", "user": again.id}
        rig.revoke(cases[0][1], {"deletes": [entry]})
        assert _status(again, tables[0])() == 404
        assert rig.admin.post(cases[0][1], {"writes": [entry]}).status_code == 204
        assert _status(again, tables[0])() == 200, "a new grant counts, although the revocation is not delivered"
        rig.deliver()
        assert {read() for read, _, _ in cases} <= {403, 404}
        assert _status(again, tables[0])() == 200
    finally:
        rig.deliver()
        world.remove_policies()
        world.strip(world.etl)
