# SPDX-License-Identifier: Apache-2.0
"""One data policy gives the same rows and values in a real Trino as in `test_one_policy_every_engine.py`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.support.engines.policy_site import COLUMNS, GRANTED, Cells, Site, policy_site
from tests.support.engines.random_policies import (
    EVOLVING,
    FILTERS,
    FLAT,
    KEY,
    MASKS,
    RENAMED,
    ROUNDS,
    Shape,
    arrow,
    random_table,
    record,
)
from tests.support.engines.trino import Refused
from tests.support.engines.trino_calls import pytestmark
from tests.support.engines.trino_lake import Lake
from tests.support.policies.reference_policies import parsed
from tests.support.stack.world import Person, World

__all__ = ["pytestmark"]


def read(lake: Lake, person: Person, table: str, columns: Mapping[str, str], schema: pa.Schema) -> list[Cells]:
    """Return columns in the form of the reference interpreter, sorted by the last one.

    `schema` has the columns with their types, and `columns` maps their names to the present names in the table.
    """
    expressions = ", ".join(_expression(each.type, columns[each.name]) for each in schema)
    found = lake.trino.run(person, f"select {expressions} from {table}")
    rows = [{each.name: _value(each.type, cell) for each, cell in zip(schema, row, strict=True)} for row in found]
    return sorted(rows, key=lambda row: row[schema.names[-1]])


def _expression(kind: pa.DataType, name: str) -> str:
    """Return an expression whose result in JSON is exact."""
    if pa.types.is_float32(kind):
        return f"cast({name} as double)"
    if pa.types.is_binary(kind):
        return f"to_hex({name})"
    if pa.types.is_timestamp(kind) and kind.tz:
        return f"cast({name} at time zone 'UTC' as varchar)"
    if pa.types.is_temporal(kind):
        return f"cast({name} as varchar)"
    return name


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
    if pa.types.is_map(kind):
        return [(key, _value(kind.item_type, each)) for key, each in cell.items()]
    if pa.types.is_list(kind):
        return [_value(kind.value_type, each) for each in cell]
    if pa.types.is_struct(kind):
        return {each.name: _value(each.type, inner) for each, inner in zip(kind, cell, strict=True)}
    return cell


@pytest.fixture(scope="module")
def site(world: World, lake: Lake) -> Iterator[Site]:
    with policy_site(world) as site:
        yield site


@pytest.mark.parametrize("case", ["exempt", "subject", "mapped", "columns"])
def test_each_principal_gets_the_expected_cells(lake: Lake, site: Site, case: str) -> None:
    """A column grantee names its columns: Trino refuses the others instead of showing null."""
    names = [each for each in (GRANTED if case == "columns" else COLUMNS) if each != "id"]
    schema = pa.schema([(name, COLUMNS[name]) for name in (*names, "id")])
    found = read(
        lake, site.people[case], f"{site.namespace}.{site.table}", {each: each for each in schema.names}, schema
    )
    assert found == [{name: row[name] for name in schema.names} for row in site.expected(case)]


@pytest.mark.parametrize(("case", "column"), [("nothing", "id"), ("columns", "phone")])
def test_tables_and_columns_without_rights_are_refused(lake: Lake, site: Site, case: str, column: str) -> None:
    with pytest.raises(Refused):
        lake.trino.run(site.people[case], f"select {column} from {site.namespace}.{site.table}")


@pytest.mark.parametrize("shape", [FLAT, RENAMED, EVOLVING], ids=["flat", "nested-and-renamed", "names-reused"])
def test_random_policies_give_the_expected_cells(world: World, lake: Lake, shape: Shape) -> None:
    """The flat table and its policies are those of the other engines: the seed is the same.

    Trino reads columns by name: those whose name another column had are refused.
    """
    rnd = random.Random(19)
    rounds, compared, refused = ROUNDS // 4 if shape.evolves else ROUNDS, 0, 0
    schema = arrow((), (), shape).schema
    with random_table(world, rnd, shape) as table:
        for number in range(rounds):
            expected = table.rewrite(rnd).by_names()
            place = f"{table.namespace}.cells"
            columns = {f"c{id}": name for id, name in table.names.items()} | {KEY: KEY}
            for id in expected.shared:
                refused += 1
                with pytest.raises(Refused, match="Cannot select"):
                    lake.trino.run(table.person, f"select {table.names[id]} from {place}")
            shown = pa.schema([each for each in schema if each.name not in {f"c{id}" for id in expected.shared}])
            found = read(lake, table.person, place, columns, shown)
            compared += expected.check(f"trino in round {number}", found, salted=False)
    assert bool(refused) == (shape is EVOLVING)
    assert compared or refused
    counts = {"compared cells": {"trino": compared}, "policies": rounds * (FILTERS + MASKS), "refused columns": refused}
    record({FLAT: "trino", RENAMED: "trino, nested and renamed", EVOLVING: "trino, names reused"}[shape], counts)
