# SPDX-License-Identifier: Apache-2.0
"""Spark and the approval of changes: statements wait, show the reasons, and go through when they are run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import stopped_gateway
from tests.support.engines.spark import Session, SparkRefused, metadata, started
from tests.support.load.kills import Killable
from tests.support.stack.approval_site import Site, verified_site

__all__ = ["stopped_gateway"]

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def site(stopped_gateway: Killable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with verified_site(stopped_gateway, tmp_path_factory.mktemp("approval")) as site:
        yield site


@pytest.fixture(scope="module")
def bob(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    home: Path = tmp_path_factory.mktemp("spark")
    with started(site.world.ready, home) as spark:
        yield Session(spark, site.world.bob)


def _columns(site: Site, ns: str) -> list[str]:
    found = metadata(site.world, ns, "t")
    [current] = [each for each in found["schemas"] if each["schema-id"] == found["current-schema-id"]]
    return [field["name"] for field in current["fields"]]


def test_schema_change_waits_for_approval_and_goes_through_when_run_again(site: Site, bob: Session) -> None:
    ns = site.world.namespace()
    bob.sql(f"CREATE TABLE lake.{ns}.t (id BIGINT)")
    bob.sql(f"INSERT INTO lake.{ns}.t VALUES (1)")
    statement = f"ALTER TABLE lake.{ns}.t ADD COLUMN label STRING"
    with site.answering("commit:table", "pending", "new columns need a steward"):
        with pytest.raises(SparkRefused, match="steward: new columns need a steward") as refused:
            bob.sql(statement)
        ticket = site.only(f"{ns}.t")
        assert ticket["id"] in str(refused.value)
        assert _columns(site, ns) == ["id"]
        site.approve(ticket)
        bob.sql(statement)
    assert _columns(site, ns) == ["id", "label"]
    assert site.only(f"{ns}.t", status="used")["id"] == ticket["id"]
    assert bob.sql(f"SELECT * FROM lake.{ns}.t") == [(1, None)]


def test_rejected_statement_shows_the_reasons_and_leaves_the_rows(site: Site, bob: Session) -> None:
    ns = site.world.namespace()
    bob.sql(f"CREATE TABLE lake.{ns}.t (id BIGINT)")
    bob.sql(f"INSERT INTO lake.{ns}.t VALUES (1)")
    with site.answering("commit:table", "rejected", "the table is closed"):
        for statement in (f"ALTER TABLE lake.{ns}.t DROP COLUMN id", f"INSERT INTO lake.{ns}.t VALUES (2)"):
            with pytest.raises(SparkRefused, match="steward: the table is closed") as refused:
                bob.sql(statement)
            assert refused.value.kind == "ForbiddenException"
    assert bob.sql(f"SELECT * FROM lake.{ns}.t") == [(1,)]


def test_waiting_insert_leaves_the_rows_and_goes_through_when_run_again(site: Site, bob: Session) -> None:
    ns = site.world.namespace()
    bob.sql(f"CREATE TABLE lake.{ns}.t (id BIGINT)")
    bob.sql(f"INSERT INTO lake.{ns}.t VALUES (1)")
    with site.answering("commit:table", "pending", "the table is closed"):
        with pytest.raises(SparkRefused, match="the table is closed"):
            bob.sql(f"INSERT INTO lake.{ns}.t VALUES (2)")
        # The retries of Iceberg's Java library have the same ticket.
        site.approve(site.only(f"{ns}.t"))
        bob.sql(f"INSERT INTO lake.{ns}.t VALUES (2)")
    assert sorted(bob.sql(f"SELECT * FROM lake.{ns}.t")) == [(1,), (2,)]


def test_create_if_not_exists_does_not_hide_that_the_table_waits(site: Site, bob: Session) -> None:
    ns = site.world.namespace()
    statement = f"CREATE TABLE IF NOT EXISTS lake.{ns}.t (id BIGINT)"
    with site.answering("create:table", "pending", "new tables need an owner"):
        with pytest.raises(SparkRefused, match="new tables need an owner"):
            bob.sql(statement)
        site.approve(site.only(f"{ns}.t"))
        bob.sql(statement)
    assert _columns(site, ns) == ["id"]
