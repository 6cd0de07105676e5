# SPDX-License-Identifier: Apache-2.0
"""One data policy gives the same rows and values in a real Trino as in `test_one_policy_every_engine.py`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.contract.world import Person, World
from tests.e2e.policy_site import COLUMNS, GRANTED, Cells, Site, policy_site
from tests.e2e.random_policies import COLUMN_NAMES, FIELDS, FILTERS, KEY, MASKS, ROUNDS, arrow, random_table, record
from tests.e2e.test_trino import pytestmark
from tests.e2e.trino import Refused
from tests.e2e.trino_lake import Lake
from tests.reference_policies import parsed

__all__ = ["pytestmark"]


def read(lake: Lake, person: Person, table: str, schema: pa.Schema, key: str) -> list[Cells]:
    """Return the columns of the schema, in the form of the reference interpreter, sorted by a column."""
    expressions = ", ".join(_expression(each) for each in schema)
    found = lake.trino.run(person, f"select {expressions} from {table}")
    rows = [{each.name: _value(each.type, cell) for each, cell in zip(schema, row, strict=True)} for row in found]
    return sorted(rows, key=lambda row: row[key])


def _expression(column: pa.Field) -> str:
    """Return an expression whose result in JSON is exact."""
    if pa.types.is_float32(column.type):
        return f"cast({column.name} as double)"
    if pa.types.is_binary(column.type):
        return f"to_hex({column.name})"
    if pa.types.is_timestamp(column.type) and column.type.tz:
        return f"cast({column.name} at time zone 'UTC' as varchar)"
    if pa.types.is_temporal(column.type):
        return f"cast({column.name} as varchar)"
    return str(column.name)


def _value(kind: pa.DataType, cell: Any) -> Any:
    if cell is None:
        return None
    if pa.types.is_floating(kind):
        return "NaN" if cell == "NaN" else float(cell)
    if pa.types.is_binary(kind):
        return bytes.fromhex(cell)
    if pa.types.is_decimal(kind):
        return Decimal(cell)
    if pa.types.is_date(kind):
        return parsed(cell, "date")
    if pa.types.is_timestamp(kind):
        return parsed(cell.removesuffix(" UTC").replace(" ", "T"), "timestamp")
    return cell


@pytest.fixture(scope="module")
def site(world: World, lake: Lake) -> Iterator[Site]:
    with policy_site(world) as site:
        yield site


def _schema(names: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, COLUMNS[name]) for name in names])


@pytest.mark.parametrize("case", ["exempt", "subject", "mapped", "columns"])
def test_each_principal_gets_the_expected_cells(lake: Lake, site: Site, case: str) -> None:
    """A column grantee names its columns: Trino refuses the others instead of showing null."""
    names = GRANTED if case == "columns" else tuple(COLUMNS)
    found = read(lake, site.people[case], f"{site.namespace}.{site.table}", _schema(names), "id")
    assert found == [{name: row[name] for name in names} for row in site.expected(case)]


@pytest.mark.parametrize(("case", "column"), [("nothing", "id"), ("columns", "phone")])
def test_tables_and_columns_without_rights_are_refused(lake: Lake, site: Site, case: str, column: str) -> None:
    with pytest.raises(Refused):
        lake.trino.run(site.people[case], f"select {column} from {site.namespace}.{site.table}")


def test_random_policies_give_the_expected_cells(world: World, lake: Lake) -> None:
    """The policies are those of the other engines: the seed is the same."""
    rnd = random.Random(19)
    schema, compared = arrow((), ()).schema, 0
    assert len(COLUMN_NAMES) == len(schema) == len(FIELDS) + 1
    with random_table(world, rnd) as table:
        for number in range(ROUNDS):
            expected = table.rewrite(rnd)
            found = read(lake, table.person, f"{table.namespace}.cells", schema, KEY)
            compared += expected.check(f"trino in round {number}", found, salted=False)
    record("trino", {"policies": ROUNDS * (FILTERS + MASKS), "compared cells": {"trino": compared}})
