# SPDX-License-Identifier: Apache-2.0
"""Column grants on Trino: a user reads the granted columns through a trusted engine, and nothing in any other way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyiceberg.exceptions import ForbiddenError

from tests.support.engines.lake import catalog_of
from tests.support.engines.trino import Refused
from tests.support.engines.trino_calls import pytestmark
from tests.support.engines.trino_lake import Lake
from tests.support.stack.columns import give, take
from tests.support.stack.world import World, unique

__all__ = ["pytestmark"]

#: Statements that would reveal `ssn` if a check of columns were missing. Each is refused, or returns only nulls there.
WAYS = [
    "select ssn from {s}.orders",
    "select id from {s}.orders where ssn is not null",
    "select max(ssn) from {s}.orders",
    "select count(distinct ssn) from {s}.orders",
    "select id, row_number() over (order by ssn) from {s}.orders",
    "select id from {s}.orders group by id, ssn",
    "select o.ssn from (select * from {s}.orders) o",
    "with o as (table {s}.orders) select ssn from o",
    "select a.id from {s}.orders a left join {s}.orders b on a.ssn = b.ssn",
    "select id from {s}.orders a where exists (select 1 from {s}.orders b where b.ssn = '1')",
    "select ssn from table(exclude_columns(input => table({s}.orders), columns => descriptor(id)))",
    "select * from {s}.orders match_recognize (order by id measures last(ssn) as s pattern (a+) define a as true)",
    "explain analyze select ssn from {s}.orders",
    "show stats for (select ssn from {s}.orders)",
    'select "$partition" from {s}.orders',
    'select readable_metrics from {s}."orders$files"',
    'select data from {s}."orders$partitions"',
    'select * from {s}."orders$entries"',
    "select ssn from table(ice.system.table_changes('{s}', 'orders', {old}, {new}))",
    "insert into {s}.orders select id, region, ssn from {s}.orders",
    "delete from {s}.orders where ssn = '1'",
    "update {s}.orders set region = ssn",
]


def _shown(lake: Lake, sql: str) -> list[list[object]] | None:
    """Return the rows that the column reader gets; None if the statement is refused."""
    old, new = lake.snapshots
    try:
        return lake.trino.run(lake.columns, sql.format(s=lake.schema, old=old, new=new))
    except Refused:
        return None


def test_granted_columns_are_read(lake: Lake) -> None:
    rows = lake.trino.run(lake.columns, f"select id, region from {lake.schema}.orders where id < 3 order by id")
    assert rows == [[1, "EU"], [2, "US"]]
    hidden = {"hide_inaccessible_columns": "true"}
    rows = lake.trino.run(lake.columns, f"select * from {lake.schema}.orders where id = 1", session=hidden)
    assert rows == [[1, "EU"]], "with `hide-inaccessible-columns`, `*` must return the readable columns"


def test_names_of_ungranted_columns_are_hidden(lake: Lake) -> None:
    described = [row[0] for row in lake.trino.run(lake.columns, f"describe {lake.schema}.orders")]
    assert described == ["id", "region"]
    listed = lake.trino.run(
        lake.columns,
        f"select column_name from information_schema.columns where table_schema = '{lake.schema}' "
        "and table_name = 'orders' order by 1",
    )
    assert listed == [["id"], ["region"]]
    assert lake.trino.run(lake.columns, f"show tables from {lake.schema}") == [["orders"]]


@pytest.mark.parametrize("sql", WAYS)
def test_ungranted_columns_cannot_be_reached_indirectly(lake: Lake, sql: str) -> None:
    shown = _shown(lake, sql)
    assert shown is None or all(row[-1] is None for row in shown), shown


def test_former_name_of_another_column_is_not_read(world: World, lake: Lake) -> None:
    """Trino reads an old snapshot with the schema of that time, and does not say so in its request to the bridge."""
    name = unique("renamed")
    table = f"{lake.schema}.{name}"
    lake.trino.run(lake.owner, f"create table {table} (a bigint, secret varchar)")
    lake.trino.run(lake.owner, f"insert into {table} values (1, 'said')")
    made = world.admin.get(f"{world.root}/namespaces/{lake.schema}/tables/{name}").json()["metadata"]
    old = made["current-snapshot-id"]
    lake.trino.run(lake.owner, f"alter table {table} rename column secret to kept")
    lake.trino.run(lake.owner, f"alter table {table} rename column a to secret")
    assert give(world, made["table-uuid"], "secret", lake.columns).status_code == 204
    assert lake.trino.run(lake.owner, f"select secret from {table} for version as of {old}") == [["said"]]
    assert not lake.may(lake.columns, f"select secret from {table} for version as of {old}")


@pytest.fixture
def unenforcing(world: World, lake: Lake) -> Iterator[None]:
    """Revoke Trino's `enforcer` grant until the end of the test."""
    world.revoke("enforcer", lake.service, "warehouse", world.warehouse)
    yield
    world.grant("enforcer", lake.service, "warehouse", world.warehouse)


def test_trino_must_be_an_enforcer_for_column_grants(world: World, lake: Lake, unenforcing: None) -> None:
    assert not lake.may(lake.columns, "select id from {s}.orders")
    assert lake.may(lake.reader, "select id from {s}.orders"), "a reader of all columns needs no enforcer"


def test_the_users_own_token_proves_no_engine(world: World, lake: Lake) -> None:
    with pytest.raises(Refused, match="enforcer"):
        lake.trino.run(lake.columns, f"select id from {lake.schema}.orders", extra={"token": lake.columns.token})
    with pytest.raises(ForbiddenError, match="enforcer"):
        catalog_of(world, lake.columns).load_table((lake.schema, "orders"))


def test_revoked_column_is_refused_at_the_next_statement(world: World, lake: Lake) -> None:
    orders = world.admin.get(f"{world.root}/namespaces/{lake.schema}/tables/orders").json()["metadata"]["table-uuid"]
    source = unique("session")
    assert lake.may(lake.columns, "select region from {s}.orders", source=source)
    assert take(world, orders, "region", lake.columns).status_code == 204
    try:
        assert not lake.may(lake.columns, "select region from {s}.orders", source=source)
        assert lake.may(lake.columns, "select id from {s}.orders", source=source)
    finally:
        assert give(world, orders, "region", lake.columns).status_code == 204
    assert lake.may(lake.columns, "select region from {s}.orders", source=source)


def test_a_view_lends_no_columns(world: World, lake: Lake) -> None:
    """A user with column grants may create a view of these columns, but it gives other users no access to them."""
    namespace = world.namespace_id(lake.schema)
    world.grant("create", lake.columns, "namespace", namespace)
    name = unique("lent")
    try:
        lake.may(lake.columns, f"create view {{s}}.{name} as select id from {{s}}.orders")
        assert not lake.may(lake.stranger, f"select * from {{s}}.{name}")
        assert not lake.may(lake.reader, f"select * from {{s}}.{name}")
    finally:
        world.revoke("create", lake.columns, "namespace", namespace)
