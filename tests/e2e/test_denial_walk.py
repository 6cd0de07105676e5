# SPDX-License-Identifier: Apache-2.0
"""The way from a refused statement to an expiring grant, with the engines' own error messages.

Spark, DuckDB and PyIceberg show the address of the page with the reason. Trino is in `test_trino_denials.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import duckdb
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import ForbiddenError

from tests.support.engines.duck import Duck
from tests.support.engines.spark import Session, Spark, SparkRefused, metadata
from tests.support.stack.explained import DENIAL_PAGE, REQUESTS, denial_in
from tests.support.stack.world import World, error_of, send_until_decided, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

_APPROVED_SECONDS = 15
_ENDED_SECONDS = 60


@pytest.fixture
def seen(world: World, ns: str, admin: Session) -> str:
    """Create a table that the analyst sees and may not change; return its name."""
    name = unique("t")
    admin.sql(f"CREATE TABLE lake.{ns}.{name} (id BIGINT)")
    world.grant("describe", world.analyst, "table", metadata(world, ns, name)["table-uuid"])
    return name


def test_a_refused_statement_leads_to_a_grant_that_ends_by_itself(
    world: World, ns: str, spark: Spark, seen: str
) -> None:
    bob = Session(spark, world.analyst, label=unique("bob"))
    statement = f"ALTER TABLE lake.{ns}.{seen} SET TBLPROPERTIES ('owner-team' = 'sales')"
    with pytest.raises(SparkRefused, match="it needs `can_commit` on the table") as refused:
        bob.sql(statement)
    denial = world.analyst.get(f"/management/v1/access/denials/{denial_in(str(refused.value))}").json()
    (missing,) = denial["explanation"]["relationships"]["repairs"][0]["grants"]
    assert missing["privilege"] == "modify"
    on = {"type": "table", "table-id": missing["object"]["id"], "warehouse-id": denial["explanation"]["warehouse-id"]}
    body = {"object": on, "privileges": ["modify"], "reason": "name the team", "duration-seconds": _APPROVED_SECONDS}
    made = world.analyst.post(REQUESTS, body).json()
    assert world.admin.post(f"{REQUESTS}/{made['id']}/approve", {}).status_code == 204
    bob.sql(statement)
    began = time.monotonic()
    # A value that the table has already is no change, and Spark sends no commit for it.
    while not _is_refused(lambda: bob.sql(statement.replace("sales", unique("team")))):
        assert time.monotonic() - began < _ENDED_SECONDS, "the grant did not end"
        time.sleep(1)


def test_the_java_client_shows_the_whole_message(world: World, ns: str, spark: Spark, seen: str) -> None:
    bob = Session(spark, world.analyst, label=unique("bob"))
    path = f"{world.root}/namespaces/{ns}/tables/{seen}"
    sent = error_of(send_until_decided(lambda: world.analyst.delete(path)))["message"]
    with pytest.raises(SparkRefused) as refused:
        bob.sql(f"DROP TABLE lake.{ns}.{seen}")
    assert refused.value.kind == "ForbiddenException"
    id = "ui?denial=<id>"
    shown = DENIAL_PAGE.sub(id, str(refused.value))
    assert shown == f"ForbiddenException: Forbidden: {DENIAL_PAGE.sub(id, sent)}"


def _is_refused(statement: Callable[[], object]) -> bool:
    try:
        statement()
    except SparkRefused:
        return True
    return False


def test_duckdb_and_pyiceberg_show_the_page_with_the_reason(world: World, ns: str, seen: str) -> None:
    duck = Duck(world, world.analyst)
    try:
        with pytest.raises(duckdb.Error) as refused:
            duck.run(f"DROP TABLE lake.{ns}.{seen}")
    finally:
        duck.close()
    assert DENIAL_PAGE.search(str(refused.value)) is not None, str(refused.value)
    catalog = load_catalog(
        "lake", type="rest", uri=world.ready.catalog_uri, warehouse=world.ready.warehouse, token=world.analyst.token
    )
    with pytest.raises(ForbiddenError) as denied:
        catalog.drop_table((ns, seen))
    id = denial_in(str(denied.value))
    found = world.analyst.get(f"/management/v1/access/denials/{id}").json()
    assert found["operation"] == "drop_table"
