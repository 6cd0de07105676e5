# SPDX-License-Identifier: Apache-2.0
"""A failed probe ends the trust in an engine for the next request, although it still holds `enforcer`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stack.columns import give, wide
from tests.support.stack.engine_probes import opened, passed, posted, shown
from tests.support.stack.exchanging import acting
from tests.support.stack.lifecycle import fill
from tests.support.stack.world import Person, Table, World, error_of

DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}


@pytest.fixture(autouse=True)
def unprobed(world: World) -> Iterator[None]:
    """Remove all probes, and the grants of the engine and of carol, before and after the test."""

    def clean() -> None:
        world.sql("delete from engine_probes")
        for person in (world.etl, world.carol):
            world.strip(person)

    clean()
    yield
    clean()


@pytest.fixture
def table(world: World, ns: str) -> Table:
    """Return a table with files, of which carol may read one column."""
    table = wide(world, ns)
    fill(world, table.location)
    assert give(world, table, "name", world.carol).status_code == 204
    return table


@pytest.fixture
def carol(world: World) -> Person:
    """Return carol as a user of an engine that holds `enforcer`."""
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    return acting(world, world.etl, world.carol)


def test_failed_probe_ends_the_trust_at_once_and_a_passed_one_restores_it(
    world: World, table: Table, carol: Person
) -> None:
    assert carol.get(table.path, headers=DELEGATION).status_code == 200
    challenge = opened(world, world.etl)
    assert carol.get(table.path).status_code == 200, "an open probe changes nothing"
    leaked = shown(challenge) + challenge["rows"][0]["hidden"]
    assert posted(world, challenge, leaked).json()["verdict"] == "failed"
    for path in (table.path, f"{table.path}/credentials"):
        refused = carol.get(path, headers=DELEGATION)
        assert refused.status_code == 403, refused.text
        assert "enforcer" in error_of(refused)["message"]
    challenge = opened(world, world.etl)
    assert carol.get(table.path).status_code == 403, "a new probe must not restore the trust before its result"
    assert posted(world, challenge, shown(challenge)).json()["self-test"] == "passed"
    assert carol.get(table.path).status_code == 403, "evidence of a principal must not restore it"
    passed(world, world.etl)
    assert carol.get(table.path, headers=DELEGATION).status_code == 200


def test_failed_engine_still_reads_what_the_user_may_read_entirely(world: World, table: Table, carol: Person) -> None:
    challenge = opened(world, world.etl)
    posted(world, challenge, "")
    assert carol.get(table.path).status_code == 403
    world.grant("select", world.carol, "table", table.uuid)
    assert carol.get(table.path, headers=DELEGATION).status_code == 200


@pytest.mark.parametrize("place", ["table", "namespace"])
def test_enforcer_of_one_table_or_namespace_is_not_trusted_beside_it(world: World, ns: str, place: str) -> None:
    beside = ns if place == "table" else world.namespace()
    table, neighbour = wide(world, ns), wide(world, beside)
    for each in (table, neighbour):
        fill(world, each.location)
        assert give(world, each, "name", world.carol).status_code == 204
    world.grant("delegate", world.etl, "warehouse", world.warehouse)
    user = acting(world, world.etl, world.carol)
    for each in (table, neighbour):
        assert user.get(each.path, headers=DELEGATION).status_code == 403, "`delegate` alone is no trust"
    [held] = world.sql("select namespace_id from tables where id = $1", table.uuid)
    id = table.uuid if place == "table" else str(held["namespace_id"])
    world.grant("enforcer", world.etl, place, id)
    assert user.get(table.path, headers=DELEGATION).status_code == 200
    for path in (neighbour.path, f"{neighbour.path}/credentials"):
        assert user.get(path, headers=DELEGATION).status_code == 403, path
    world.revoke("enforcer", world.etl, place, id)
    assert user.get(table.path, headers=DELEGATION).status_code == 403


def test_open_probe_gives_an_untrusted_engine_its_canary_and_no_other_table(
    world: World, table: Table, carol: Person
) -> None:
    posted(world, opened(world, world.etl), "")
    challenge = opened(world, world.etl)
    [level] = challenge["namespace"]
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [level]})
    assert made.status_code in (200, 409), made.text
    canary, other = (wide(world, level, name=name) for name in (challenge["table"], f"{challenge['table']}0"))
    for each in (canary, other):
        assert give(world, each, "name", world.carol).status_code == 204
    assert carol.get(canary.path, headers=DELEGATION).status_code == 200
    assert carol.get(other.path, headers=DELEGATION).status_code == 403
    assert carol.get(table.path, headers=DELEGATION).status_code == 403
    posted(world, challenge, "")
    assert carol.get(canary.path, headers=DELEGATION).status_code == 403, "the canary is closed with its probe"
    for each in (canary, other):
        assert world.admin.send("DELETE", each.path).status_code == 204
