# SPDX-License-Identifier: Apache-2.0
"""Table definitions of the pipeline."""

from __future__ import annotations

import pytest

from lakegate.spark import schemas
from lakegate.spark.schemas import Table
from lakegate.spark.tables import create_statement

KEYED = (*schemas.SILVER, *schemas.GOLD, schemas.QUALITY_RESULTS)


@pytest.mark.parametrize("table", KEYED, ids=lambda table: str(table.ident))
def test_every_key_is_a_required_column(table: Table) -> None:
    assert table.key
    assert not [name for name in table.key if table.schema[name].nullable]


@pytest.mark.parametrize("table", KEYED, ids=lambda table: str(table.ident))
def test_the_row_hash_covers_all_columns_except_pipeline_columns(table: Table) -> None:
    assert set(table.schema.names) - set(table.business_columns) == {schemas.ROW_HASH, schemas.UPDATED_AT}


@pytest.mark.parametrize("table", schemas.BRONZE.values(), ids=lambda table: str(table.ident))
def test_bronze_tables_store_delivered_columns_as_text(table: Table) -> None:
    assert table.business_columns == schemas.DELIVERED[table.name]
    assert {table.schema[name].dataType.simpleString() for name in table.business_columns} == {"string"}


def test_every_table_has_a_known_namespace_and_a_unique_name() -> None:
    assert {table.namespace for table in schemas.ALL} == set(schemas.NAMESPACES)
    assert len({table.ident for table in schemas.ALL}) == len(schemas.ALL)


def test_flights_are_partitioned_by_month_without_a_partition_column() -> None:
    statement = create_statement(schemas.FLIGHTS)
    assert "PARTITIONED BY (months(scheduled_departure))" in statement
    assert "`scheduled_departure` timestamp" in statement


def test_a_quote_in_a_comment_does_not_end_it() -> None:
    table = Table("a", "b", "the carrier's delays", schemas.WEATHER.schema)
    assert create_statement(table).endswith(r"COMMENT 'the carrier\'s delays'")
