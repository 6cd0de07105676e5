# SPDX-License-Identifier: Apache-2.0
"""Statements of several people on a real Trino that asks the bridge and takes its keys from the catalog.

Opt-in by `make test-trino`, which sets LAKEGATE_TEST_TRINO: see `tests/e2e/trino.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.contract.trino import bridged
from tests.contract.world import Person, World, unique
from tests.e2e.trino import Missing, Refused, Trino, trino_server

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_TRINO"), reason="a real Trino is asked by `make test-trino`"),
]


@dataclass(frozen=True)
class Lake:
    """A schema with a table and a view, and people: who owns it, who may select, who was given nothing."""

    trino: Trino
    schema: str
    owner: Person
    reader: Person
    stranger: Person

    def may(self, person: Person, sql: str) -> bool:
        """Whether Trino does it for the person; any other failure than a refusal fails the test."""
        try:
            self.trino.run(person, sql.format(s=self.schema))
        except Refused as refused:
            text = str(refused)
            # The catalog refuses as well: who may not see a table is told there that there is none.
            said = ("Access Denied", "does not exist", "Cannot access", "Failed analyzing stored view")
            assert any(each in text for each in said), text
            return False
        return True


@pytest.fixture(scope="module")
def lake(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A real Trino, its bridge, and what is asked about."""
    owner, reader, stranger = world.steward, world.analyst, world.contractor
    for person in (owner, reader, stranger):
        world.strip(person)
    schema = world.namespace(unique("trino"))
    id = world.namespace_id(schema)
    world.grant("ownership", owner, "namespace", id)
    world.grant("select", reader, "namespace", id)
    world.grant("delegate", world.etl, "warehouse", world.warehouse)
    # Trino's own service asks the catalog for its configuration, so it has to see the warehouse, and nothing in it.
    world.grant("describe", world.etl, "namespace", world.namespace_id(world.namespace()))
    try:
        with (
            bridged(world, tmp_path_factory.mktemp("bridge")) as bridge,
            trino_server(world, bridge, tmp_path_factory.mktemp("trino")) as trino,
        ):
            lake = Lake(trino, schema, owner, reader, stranger)
            assert lake.may(owner, "create table {s}.orders (id bigint, region varchar)")
            assert lake.may(owner, "insert into {s}.orders values (1, 'EU'), (2, 'US')")
            yield lake
    except Missing as missing:
        pytest.fail(str(missing))
    finally:
        world.revoke("delegate", world.etl, "warehouse", world.warehouse)


#: (statement, the owner may, the reader may); the stranger may nothing of it.
STATEMENTS = [
    ("select * from {s}.orders", True, True),
    ("select count(*) from {s}.orders", True, True),
    ('select * from {s}."orders$files"', True, True),
    ('select * from {s}."orders$partitions"', True, True),
    ('select * from {s}."orders$snapshots"', True, True),
    ("show columns from {s}.orders", True, True),
    ("show create table {s}.orders", True, True),
    ("insert into {s}.orders values (3, 'EU')", True, False),
    ("update {s}.orders set region = 'XX' where id = 3", True, False),
    ("delete from {s}.orders where id = 3", True, False),
    ("comment on table {s}.orders is 'said'", True, False),
    ("alter table {s}.orders add column more varchar", True, False),
    ("alter table {s}.orders execute optimize", True, False),
    ("create table {s}.others (id bigint)", True, False),
    ("drop table {s}.others", True, False),
    ("create table {s}.placed (id bigint) with (location = 's3://elsewhere/placed')", False, False),
    ("create schema elsewhere with (location = 's3://elsewhere/schema')", False, False),
    ("set session authorization admin", False, False),
]


@pytest.mark.parametrize(("sql", "owner", "reader"), STATEMENTS, ids=[each[0] for each in STATEMENTS])
def test_a_statement_is_done_for_who_may(lake: Lake, sql: str, owner: bool, reader: bool) -> None:
    # The stranger first: what the owner does may be gone afterwards.
    assert [lake.may(each, sql) for each in (lake.stranger, lake.reader, lake.owner)] == [False, reader, owner]


def test_what_is_read_is_what_was_written(lake: Lake) -> None:
    rows = lake.trino.run(lake.reader, f"select id, region from {lake.schema}.orders where id < 3 order by id")
    assert rows == [[1, "EU"], [2, "US"]]


def test_lists_have_what_each_may_see(lake: Lake) -> None:
    def listed(person: Person) -> bool:
        return [lake.schema] in lake.trino.run(person, "show schemas from ice")

    assert [listed(each) for each in (lake.owner, lake.reader)] == [True, True]
    assert not lake.may(lake.stranger, "show tables from {s}")
    assert ["orders"] in lake.trino.run(lake.reader, f"show tables from {lake.schema}")


def test_a_view_lends_nobody_what_its_maker_may_not_hand_out(world: World, lake: Lake) -> None:
    """The reader may make views and not grant: run as its owner the view is of use to nobody else."""
    namespace = world.namespace_id(lake.schema)
    world.grant("create", lake.reader, "namespace", namespace)
    assert lake.may(lake.reader, "create view {s}.lent as select region from {s}.orders")
    assert lake.may(lake.reader, "create view {s}.shared security invoker as select region from {s}.orders")
    assert lake.may(lake.reader, "select * from {s}.shared")
    assert [lake.may(lake.stranger, f"select * from {{s}}.{name}") for name in ("lent", "shared")] == [False, False]
    view = f"{world.root}/namespaces/{lake.schema}/views/lent"
    uuid = world.admin.get(view).json()["metadata"]["view-uuid"]
    world.grant("select", lake.stranger, "view", uuid)
    assert not lake.may(lake.stranger, "select * from {s}.lent")


def test_a_revoked_right_is_gone_with_the_next_statement(world: World, lake: Lake) -> None:
    namespace = world.namespace_id(lake.schema)
    assert not lake.may(lake.stranger, "select * from {s}.orders")
    world.grant("select", lake.stranger, "namespace", namespace)
    assert lake.may(lake.stranger, "select * from {s}.orders")
    world.revoke("select", lake.stranger, "namespace", namespace)
    assert not lake.may(lake.stranger, "select * from {s}.orders")
