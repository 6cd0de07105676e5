# SPDX-License-Identifier: Apache-2.0
"""Row filters and masks on a real Trino: no statement shows a value that they hide.

A proxy between the bridge and the gateway restricts the tables, so that each test chooses its restrictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.engines.trino import Refused, trino_server
from tests.support.engines.trino_calls import pytestmark
from tests.support.engines.trino_lake import Engine, Lake, trino_lake
from tests.support.engines.trino_restrictions import ROWS, WAYS, Proxy, Restricted, restricted, restricting
from tests.support.stack.trino_bridge import bridged
from tests.support.stack.world import World, unique

__all__ = ["pytestmark"]

COLUMNS = ["id", "name", "ssn", "city", "x", "born", "contact"]
#: Not a range of one column, so Trino does not move it to the front by itself.
FILTER = '"x" < 5 OR "city" = \'zzz\''
READER = restricted(COLUMNS, row_filter=FILTER, ssn="'***'", contact="CAST(NULL AS varchar)")
#: Values of the hidden row and of the masked columns. None of them may be in a result or in an error.
_NAMES = ("Ann", "Bob", "Cyd", "Dan")
SECRETS = ("HIDDEN", "111-11", "222-22", "333-33", "444-44", "555-55", "1999-09-09", "+1", "+4")


@dataclass(frozen=True)
class Site:
    """A Trino whose bridge receives restrictions from `proxy`, and the table `people` with an old snapshot."""

    lake: Lake
    proxy: Proxy
    old: str

    def restrict(self, name: str, rule: Restricted) -> None:
        self.proxy.rules[(self.lake.people[name].id, "people")] = rule

    def run(self, name: str, sql: str) -> list[list[object]]:
        return self.lake.trino.run(self.lake.people[name], sql.format(s=self.lake.schema, old=self.old))


@pytest.fixture(scope="module")
def running_site(world: World, people: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("restrictions")
    with (
        restricting(world.base) as proxy,
        bridged(world, folder, LAKEGATE_BRIDGE_URL=proxy.url) as bridge,
        trino_server(world, bridge, folder, world.alice) as trino,
        trino_lake(world, Engine(trino, bridge)) as lake,
    ):
        for sql in (
            "create table {s}.people (id bigint, name varchar, ssn varchar, city varchar, x integer, born date, "
            "phone varchar)",
            f"insert into {{s}}.people values {ROWS}",
        ):
            lake.trino.run(lake.owner, sql.format(s=lake.schema))
        named = lake.trino.run(
            lake.owner, f'select snapshot_id from {lake.schema}."people$snapshots" order by committed_at desc limit 1'
        )
        lake.trino.run(lake.owner, f"alter table {lake.schema}.people rename column phone to contact")
        yield Site(lake, proxy, str(named[0][0]))


@pytest.fixture
def site(running_site: Site) -> Iterator[Site]:
    """Return the site with a restricted reader; the restrictions end with the test."""
    running_site.proxy.rules.clear()
    running_site.restrict("reader", READER)
    yield running_site
    running_site.proxy.rules.clear()


def test_each_user_sees_the_rows_and_values_of_its_restrictions(site: Site) -> None:
    site.restrict("owner", restricted(COLUMNS, row_filter='"x" > 3', name="substr(name, 1, 1)"))
    select = "select id, name, ssn, contact from {s}.people order by id"
    assert site.run("reader", select) == [
        [1, "Ann", "***", None],
        [2, "Bob", "***", None],
        [3, "Cyd", "***", None],
        [4, "Dan", "***", None],
    ]
    assert site.run("owner", select) == [[4, "D", "444-44", "+4"], [5, "H", "555-55", "+5"]]
    assert [row[0] for row in site.run("manager", select)] == [1, 2, 3, 4, 5]
    assert site.run("reader", "select count(*) from {s}.people") == [[4]]
    assert site.run("reader", "select count(*) from {s}.people where ssn = '111-11'") == [[0]]
    assert site.run("reader", "select ID, SSN from {s}.PEOPLE where X = 1") == [[1, "***"]]


@pytest.mark.parametrize("sql", WAYS)
def test_no_statement_shows_a_hidden_value(site: Site, sql: str) -> None:
    try:
        shown = str(site.run("reader", sql))
    except Refused as refused:
        shown = str(refused)
    assert not [secret for secret in SECRETS if secret in shown], shown
    assert "Division by zero" not in shown, "an error of a hidden row must not be visible"


def test_prepared_statements_show_no_hidden_value(site: Site) -> None:
    lake = site.lake
    prepared = {
        "p": f"select id, name, ssn, contact from {lake.schema}.people where x < ? and 1/(id-5) + random() > -99"
    }
    rows = lake.trino.run(lake.reader, "execute p using 99", prepared=prepared)
    assert sorted(map(str, rows)) == [f"[{id}, '{name}', '***', None]" for id, name in enumerate(_NAMES, 1)]
    described = lake.trino.run(lake.reader, "describe output p", prepared=prepared)
    assert not [secret for secret in SECRETS if secret in str(described)]


@pytest.mark.parametrize("sql", [each for each in WAYS if "$" in each or "table_changes" in each or "phone" in each])
def test_operations_that_disclose_whole_columns_are_refused(site: Site, sql: str) -> None:
    with pytest.raises(Refused):
        site.run("reader", sql)


def test_statistics_of_hidden_rows_cannot_be_turned_on(site: Site) -> None:
    person = site.lake.reader
    with pytest.raises(Refused, match="statistics_enabled"):
        site.run("reader", "set session ice.statistics_enabled = true")
    with pytest.raises(Refused, match="statistics_enabled"):
        sql = f"show stats for {site.lake.schema}.people"
        site.lake.trino.run(person, sql, session={"ice.statistics_enabled": "true"})
    # The masks of the other columns are constants, whose statistics Trino knows from the text.
    shown = {row[0]: row[1:] for row in site.run("reader", "show stats for {s}.people")}
    for column in ("id", "name", "city", "x", "born", None):
        assert set(shown[column]) == {None}, column


@pytest.mark.parametrize(
    "sql",
    [
        "insert into {s}.people (id, x) values (9, 1)",
        "update {s}.people set id = 1 where x = 1",
        "delete from {s}.people where x = 1",
        "merge into {s}.people p using (values 1) v(i) on p.id = v.i when matched then delete",
        "truncate table {s}.people",
        "analyze {s}.people",
        "alter table {s}.people execute optimize",
        "alter table {s}.people add column more varchar",
        "alter table {s}.people rename column ssn to open",
    ],
)
def test_a_restricted_owner_does_not_change_the_table(site: Site, sql: str) -> None:
    site.restrict("owner", READER)
    with pytest.raises(Refused):
        site.run("owner", sql)
    assert site.run("manager", "select count(*) from {s}.people") == [[5]]


def test_rows_are_appended_only_where_permitted_and_only_visible_ones(site: Site) -> None:
    site.restrict("owner", restricted(COLUMNS, row_filter=FILTER, append=True))
    with pytest.raises(Refused, match="row filter"):
        site.run("owner", "insert into {s}.people (id, x) values (70, 7)")
    site.run("owner", "insert into {s}.people (id, x) values (60, 1)")
    with pytest.raises(Refused):
        site.run("owner", "delete from {s}.people where id = 60")
    with pytest.raises(Refused):
        site.run("owner", "analyze {s}.people")
    site.proxy.rules.clear()
    site.run("manager", "delete from {s}.people where id = 60")


def test_a_copy_contains_what_its_author_sees(site: Site) -> None:
    site.restrict("owner", READER)
    name = unique("copy")
    site.run("owner", f"create table {{s}}.{name} as select id, ssn from {{s}}.people")
    assert site.run("manager", f"select * from {{s}}.{name} order by id") == [[n, "***"] for n in (1, 2, 3, 4)]


def test_views_apply_the_restrictions_of_the_user_that_reads_the_table(world: World, site: Site) -> None:
    invoker, definer = unique("invoker"), unique("definer")
    site.run("owner", f"create view {{s}}.{invoker} security invoker as select id, ssn from {{s}}.people")
    site.run("owner", f"create view {{s}}.{definer} as select id, ssn from {{s}}.people")
    assert len(site.run("owner", f"select * from {{s}}.{invoker}")) == 5
    assert site.run("reader", f"select * from {{s}}.{invoker} order by 1") == [[n, "***"] for n in (1, 2, 3, 4)]
    assert len(site.run("reader", f"select * from {{s}}.{definer}")) == 5, "no policy restricts the owner of the view"
    site.restrict("owner", restricted(COLUMNS, row_filter='"x" > 3', ssn="'owner'"))
    for name in ("owner", "reader"):
        assert site.run(name, f"select * from {{s}}.{definer} order by 1") == [[4, "owner"], [5, "owner"]]
        assert site.run(name, f"select count(*) from {{s}}.{definer} where ssn = '444-44'") == [[0]]
    site.restrict("owner", restricted(["id", "x"], row_filter='"x" > 3'))
    with pytest.raises(Refused):
        site.run("reader", f"select * from {{s}}.{definer}")
    with pytest.raises(Refused):
        site.run("stranger", f"select * from {{s}}.{definer}")


@pytest.mark.parametrize(
    "query",
    [
        'select record_count from {s}."people$files"',
        'select id, "$path" p from {s}.people',
        "select id, phone from {s}.people for version as of {old}",
    ],
)
def test_view_of_a_restricted_owner_shows_no_more_than_the_owner_reads(site: Site, query: str) -> None:
    """The owner creates the view before a policy restricts it."""
    view = unique("wide")
    site.run("owner", f"create view {{s}}.{view} as {query}")
    site.run("reader", f"select * from {{s}}.{view}")
    site.restrict("owner", READER)
    with pytest.raises(Refused, match=r"View owner|Access Denied"):
        site.run("reader", f"select * from {{s}}.{view}")


def test_a_column_grantee_needs_the_columns_of_the_filter(site: Site) -> None:
    """Trino checks the columns of a row filter as columns of the query."""
    site.restrict("reader", restricted(["id", "x", "city"], row_filter=FILTER))
    assert site.run("reader", "select id from {s}.people order by 1") == [[1], [2], [3], [4]]
    with pytest.raises(Refused):
        site.run("reader", "select ssn from {s}.people")
    site.restrict("reader", restricted(["id"], row_filter=FILTER))
    with pytest.raises(Refused):
        site.run("reader", "select id from {s}.people")


@pytest.mark.parametrize(
    "members",
    [
        {"restrictions": {"row-filter": FILTER}},
        {"columns": COLUMNS, "restrictions": {"row-filter": None}},
        {"columns": COLUMNS, "restrictions": {"row-filter": FILTER, "unknown": True}},
        {"columns": COLUMNS, "restrictions": {"column-masks": [{"column": "ssn"}]}},
    ],
)
def test_an_invalid_restriction_refuses_the_table(site: Site, members: dict[str, object]) -> None:
    site.restrict("reader", Restricted(members=members))
    with pytest.raises(Refused):
        site.run("reader", "select id from {s}.people")


def test_an_expression_that_fails_shows_no_row(site: Site) -> None:
    site.restrict("reader", restricted(COLUMNS, row_filter='"gone" = 1'))
    with pytest.raises(Refused):
        site.run("reader", "select id from {s}.people")
    site.restrict("reader", restricted(COLUMNS, ssn="7"))
    with pytest.raises(Refused):
        site.run("reader", "select id, ssn from {s}.people")
