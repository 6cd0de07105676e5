# SPDX-License-Identifier: Apache-2.0
"""Governed reads and governed copies in a real Spark, with restrictions from the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from lakegate.spark.config import OnBehalfOf
from lakegate.spark.errors import GovernedReadRefused
from lakegate.spark.jobs.copy_files import FINGERPRINT
from lakegate.spark.session import as_principal
from tests.support.engines.governed_site import MASKED, Site, catalog_of, site
from tests.support.stack.columns import give, take, wide
from tests.support.stack.world import unique

__all__ = ["site"]

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


def test_governed_read_shows_the_masks_and_a_plain_read_is_refused(site: Site) -> None:
    assert site.rows() == MASKED
    plain = as_principal(site.root, catalog_of(site.world, site.world.carol))
    with pytest.raises(Exception, match=r"(?s)Forbidden.*enforcer"):
        plain.table(f"lake.{site.source}").collect()


POLICY = """
    with policy as (
        insert into data_policies (id, project_id, name, name_key, definition)
        select gen_random_uuid(), project_id, $3, $3, cast($4::text as jsonb) from warehouses where id = $1::uuid
        returning id)
    insert into data_policy_bindings (policy_id, object_type, object_id, warehouse_id, bound_by)
    select id, 'table', $2::uuid, $1::uuid, 'x' from policy
"""


@contextmanager
def policies(site: Site, *definitions: Mapping[str, Any]) -> Iterator[None]:
    """Bind data policies to the table of the site."""
    world, table = site.world, site.table
    for definition in definitions:
        world.sql(POLICY, world.warehouse, table.uuid, unique("policy"), json.dumps(definition))
    revise = "update warehouses set data_policy_revision = {} where id = $1::uuid"
    world.sql(revise.format("gen_random_uuid()"), world.warehouse)
    try:
        yield
    finally:
        world.sql("delete from data_policy_bindings where object_id = $1::uuid", table.uuid)
        world.sql(revise.format("null"), world.warehouse)


def compared(operator: str, column: str, value: str) -> dict[str, Any]:
    return {"type": "compare", "operator": operator, "column": {"name": column}, "value": value}


def test_data_policies_filter_and_mask_reads_and_copies(site: Site) -> None:
    table = wide(site.world, site.namespace)
    site = Site(site.world, site.root, site.namespace, table)
    site.admin("INSERT INTO {t} VALUES (7, 'ann', '4111-1', NULL), (8, 'bob', '4222-2', NULL), (9, NULL, 'x', NULL)")
    site.world.grant("select", site.world.carol, "table", table.uuid)
    mask = {"kind": "mask", "action": "show-last-4", "columns": [{"name": "card"}]}
    with policies(site, mask, {"kind": "row-filter", "test": compared("not-eq", "name", "bob")}):
        target = unique("copy")
        assert site.copy(target).change == "rewrite"
        assert site.rows() == site.copied(target, by=site.world.etl) == [(7, "ann", "nn11-1", None)]


def test_columns_that_exchanged_their_names_are_filtered_by_their_ids_before_the_next_snapshot(site: Site) -> None:
    """Iceberg plans a snapshot by today's names. A filter must not skip or keep partitions of the other column."""
    table = wide(site.world, site.namespace)
    site = Site(site.world, site.root, site.namespace, table)
    site.admin("ALTER TABLE {t} ADD PARTITION FIELD card AS part")
    site.admin("INSERT INTO {t} VALUES (1, 'eu', 'us', struct('a')), (2, 'us', 'eu', NULL), (3, 'eu', 'eu', NULL)")
    for old, new in (("name", "tmp"), ("card", "name"), ("tmp", "card"), ("address.street", "road")):
        site.admin(f"ALTER TABLE {{t}} RENAME COLUMN {old} TO {new}")
    site.world.grant("select", site.world.carol, "table", table.uuid)
    with policies(site, {"kind": "row-filter", "test": compared("eq", "card", "eu")}):
        frame = site.tables(trusted_code=True).table(site.source).orderBy("id")
        assert [tuple(row) for row in frame.collect()] == [(1, "eu", "us", ("a",)), (3, "eu", "eu", None)]
        assert frame.schema["address"].dataType.simpleString() == "struct<road:string>"
        assert [row.id for row in frame.where("name = 'us' AND address.road = 'a'").collect()] == [1]
        target = unique("copy")
        assert site.copy(target).change == "rewrite"
        assert [row[0] for row in site.copied(target)] == [3, 1]


def test_governed_reads_need_the_statement_that_the_code_is_trusted(site: Site) -> None:
    with pytest.raises(GovernedReadRefused, match="trusted_code=True"):
        site.tables()


def test_a_service_without_enforcer_reads_nothing(site: Site) -> None:
    site.world.revoke("enforcer", site.world.etl, "warehouse", site.world.warehouse)
    with pytest.raises(GovernedReadRefused, match="403"):
        site.rows()


def test_a_user_without_rights_gets_no_rows(site: Site) -> None:
    tables = site.tables(OnBehalfOf(token=site.world.steward.token), trusted_code=True)
    with pytest.raises(GovernedReadRefused):
        tables.table(site.source)


HIDDEN = ["_partition", "_file", "_pos", "_spec_id", "_field_3"]


def test_hidden_and_original_columns_are_not_reachable_by_name(site: Site) -> None:
    frame = site.tables(trusted_code=True).table(site.source)
    for column in HIDDEN:
        for attempt in (frame.select, frame.orderBy, lambda name: frame.where(f"{name} IS NOT NULL")):
            with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
                attempt(column).collect()
    frame.createOrReplaceTempView("governed_rows")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        frame.sparkSession.sql("SELECT name FROM governed_rows WHERE _field_3 LIKE '4111%'")


def test_a_read_is_pinned_to_the_snapshot_of_its_restrictions(site: Site) -> None:
    frame = site.tables(trusted_code=True).table(site.source)
    site.admin("INSERT INTO {t} VALUES (9, 'cid', '4333-3', NULL)")
    site.admin("ALTER TABLE {t} DROP COLUMN address")
    assert [row["name"] for row in frame.orderBy("name").collect()] == ["ann", "bob"]


def test_columns_changed_after_the_snapshot_are_matched_by_field_id(site: Site) -> None:
    site.admin("ALTER TABLE {t} RENAME COLUMN card TO old_card")
    site.admin("ALTER TABLE {t} ADD COLUMN card STRING")
    site.admin("ALTER TABLE {t} DROP COLUMN address")
    frame = site.tables(trusted_code=True).table(site.source)
    assert frame.columns == ["id", "name", "old_card", "card"]
    assert {row["old_card"] for row in frame.collect()} == {"XXXXXXXX"}
    assert {row["card"] for row in frame.collect()} == {None}


def test_empty_table_has_no_rows(site: Site) -> None:
    table = wide(site.world, site.namespace)
    assert give(site.world, table, "name", site.world.carol).status_code == 204
    frame = site.tables(trusted_code=True).table(f"{site.namespace}.{table.name}")
    assert (frame.columns, frame.collect()) == (["id", "name", "card", "address"], [])


def test_copy_is_masked_and_appends_only_new_rows(site: Site) -> None:
    target = unique("copy")
    assert site.copy(target).change == "rewrite"
    assert site.copied(target) == MASKED
    assert site.copy(target).change == "none"
    site.admin("INSERT INTO {t} VALUES (9, 'cid', '4333-3', NULL)")
    report = site.copy(target)
    assert (report.change, report.expired) == ("append", 0)
    assert site.copied(target) == [*MASKED, (0, "cid", "XXXXXXXX", None)]
    first, second = site.snapshots(target)
    assert second["summary"]["added-records"] == "1"
    assert first["summary"][FINGERPRINT] == second["summary"][FINGERPRINT] == report.fingerprint


def test_deleted_rows_and_narrower_restrictions_leave_no_older_snapshot(site: Site) -> None:
    target = unique("copy")
    assert give(site.world, site.table, "card", site.world.carol).status_code == 204
    site.copy(target)
    assert [row[2] for row in site.copied(target)] == ["4111-1", "4222-2"]
    path = f"{site.world.root}/namespaces/{site.namespace}/tables/{target}"
    old = site.world.admin.get(path).json()["metadata"]
    assert take(site.world, site.table, "card", site.world.carol).status_code == 204
    report = site.copy(target)
    assert (report.change, report.expired) == ("rewrite", 1)
    assert site.copied(target) == MASKED
    site.admin("DELETE FROM {t} WHERE name = 'ann'")
    report = site.copy(target)
    assert (report.change, report.expired) == ("rewrite", 1)
    assert site.copied(target) == MASKED[1:]
    [only] = site.snapshots(target)
    assert only["snapshot-id"] != old["current-snapshot-id"]
    assert site.world.admin.get(path).json()["metadata"]["table-uuid"] == old["table-uuid"]


def test_a_copy_with_foreign_rows_is_rewritten(site: Site) -> None:
    target = unique("copy")
    site.copy(target)
    as_principal(site.root, catalog_of(site.world, site.world.admin)).sql(
        f"INSERT INTO lake.{site.namespace}.{target} VALUES (1, 'eve', 'x', NULL)"
    )
    assert site.copy(target).change == "rewrite"
    assert site.copied(target) == MASKED


def test_a_new_column_of_the_source_is_added_to_the_copy(site: Site) -> None:
    target = unique("copy")
    site.copy(target)
    before = site.world.admin.get(f"{site.world.root}/namespaces/{site.namespace}/tables/{target}").json()
    site.admin("ALTER TABLE {t} ADD COLUMN phone STRING")
    assert site.copy(target).change == "rewrite"
    assert site.copied(target) == [(*row, None) for row in MASKED]
    after = site.world.admin.get(f"{site.world.root}/namespaces/{site.namespace}/tables/{target}").json()
    assert after["metadata"]["table-uuid"] == before["metadata"]["table-uuid"]
    assert len(after["metadata"]["snapshots"]) == 1


def test_a_table_that_is_no_copy_of_the_source_is_never_overwritten(site: Site) -> None:
    other = site.world.table(site.namespace)
    site.world.grant("modify", site.world.etl, "table", other.uuid)
    with pytest.raises(GovernedReadRefused, match="was not created by this service"):
        site.copy(other.name)


def test_a_role_gets_select_on_the_copy_only(site: Site) -> None:
    role = site.world.admin.post("/management/v1/role", {"name": unique("readers")}).json()["id"]
    target = unique("copy")
    for _ in range(2):
        site.copy(target, grant_to=role)
    table = site.world.admin.get(f"{site.world.root}/namespaces/{site.namespace}/tables/{target}").json()
    held = site.world.admin.get(site.world.grants_path("table", table["metadata"]["table-uuid"])).json()["assignments"]
    assert {"type": "select", "role": role} in held
    source = site.world.admin.get(site.world.grants_path("table", site.table.uuid)).json()["assignments"]
    assert not [each for each in source if each.get("role") == role]


def test_the_text_of_a_view_gives_the_rows_of_a_governed_read(site: Site) -> None:
    world, table = site.world, f"lake.{site.source}"
    where = ["--gateway", world.base, "--token", world.admin.token, "--warehouse", str(world.ready.warehouse)]
    named = ["--table", site.source, "--as", world.carol.id, "--dialect", "spark", "--source", table]
    done = world.lakegate("data-policy", "view", *where, *named)
    assert done.returncode == 0, done.stderr
    found = as_principal(site.root, catalog_of(world, world.admin)).sql(done.stdout)
    assert [tuple(row) for row in found.orderBy("name").collect()] == site.rows() == MASKED
