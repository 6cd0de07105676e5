# SPDX-License-Identifier: Apache-2.0
"""Measure the overhead of `lakegate.reader` on ten million rows: `python -m tests.bench.reader [ROWS]`.

The floor is the same query, written by hand with PyIceberg and the kernels of arrow, on the same files in turns. Both
results are compared first. The target is a ratio of 1.3 at most.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from lakegate.reader import RestrictedTable, decode

_ROWS = 10_000_000
_FILES = 10
_ROUNDS = 3
TARGET = 1.3

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Query:
    """A restriction, and the same query by hand: its filter for PyIceberg and the replacement of columns."""

    name: str
    restrictions: str
    row_filter: str
    masks: dict[str, Callable[[Any], Any]]


def _alphanum(values: Any) -> Any:
    masked = pc.replace_substring_regex(values, pattern=r"[^0-9(),.\-@]", replacement="x")
    return pc.replace_substring_regex(masked, pattern="[0-9]", replacement="n")


def _last_4(values: Any) -> Any:
    hidden = _alphanum(pc.utf8_slice_codeunits(values, 0, -4))
    return pc.binary_join_element_wise(hidden, pc.utf8_slice_codeunits(values, -4), pa.scalar("", values.type))


def _year(values: Any) -> Any:
    return pc.floor_temporal(values, unit="year")


def _digest(values: Any) -> Any:
    digests = [None if each is None else hashlib.sha256(each.encode()).hexdigest() for each in values.to_pylist()]
    return pa.array(digests, values.type)


def _restrictions(*projections: tuple[int, str], region: str | None = None) -> str:
    found: dict[str, Any] = {
        "required-column-projections": [{"field-id": field, "action": action} for field, action in projections]
    }
    if region is not None:
        found["required-row-filter"] = {"type": "eq", "left": {"type": "reference", "id": 3}, "right": region}
    return json.dumps(found)


QUERIES = (
    Query("no restriction", "{}", "", {}),
    Query("row filter", _restrictions(region="r1"), "region = 'r1'", {}),
    Query("mask-alphanum", _restrictions((2, "mask-alphanum")), "", {"mail": _alphanum}),
    Query("show-last-4", _restrictions((5, "show-last-4")), "", {"card": _last_4}),
    Query("truncate-to-year", _restrictions((4, "truncate-to-year")), "", {"born": _year}),
    Query("sha-256-global, few values", _restrictions((3, "sha-256-global")), "", {"region": _digest}),
    Query("sha-256-global, all distinct", _restrictions((2, "sha-256-global")), "", {"mail": _digest}),
    Query(
        "row filter and three masks",
        _restrictions((2, "mask-alphanum"), (4, "truncate-to-year"), (5, "show-last-4"), region="r1"),
        "region = 'r1'",
        {"mail": _alphanum, "born": _year, "card": _last_4},
    ),
)


def made(directory: Path, rows: int) -> Table:
    """Create a table of generated people in ten files."""
    catalog = SqlCatalog("bench", uri=f"sqlite:///{directory}/c.db", warehouse=f"file://{directory}")
    catalog.create_namespace("n")
    table: Table | None = None
    for number in range(_FILES):
        data = _people(number * (rows // _FILES), rows // _FILES)
        table = table or catalog.create_table("n.people", data.schema)
        table.append(data)
    assert table is not None
    return table


def _people(start: int, count: int) -> pa.Table:
    ids = pa.array(np.arange(start, start + count, dtype=np.int64))
    text = ids.cast(pa.string())
    random = np.random.default_rng(start)
    return pa.table(
        {
            "id": ids,
            "mail": pc.binary_join_element_wise("person", text, "@example.com", ""),
            "region": pa.array(["r0", "r1", "r2", "r3"]).take(pa.array(random.integers(0, 4, count))),
            "born": pa.array(random.integers(0, 20_000, count).astype(np.int32)).cast(pa.date32()),
            "card": pc.binary_join_element_wise("4111 ", pc.utf8_lpad(text, 12, "0"), ""),
        }
    )


def by_hand(table: Table, query: Query) -> Batches:
    """Return the batches of the query as a programmer would write it."""
    for batch in table.scan(row_filter=query.row_filter or "true").to_arrow_batch_reader():
        for name, mask in query.masks.items():
            index = batch.schema.get_field_index(name)
            batch = batch.set_column(index, batch.schema.field(index), mask(batch.column(index)))
        yield batch


def by_reader(table: Table, query: Query) -> Batches:
    """Return the batches of the reader."""
    return RestrictedTable(table.metadata, table.io, decode(query.restrictions)).scan()


def same(table: Table, query: Query) -> bool:
    """Return True if both ways have the same rows."""
    expected, found = (
        pa.Table.from_batches([each.cast(target) for each in batches], target).sort_by("id")
        for target in [table.schema().as_arrow().remove_metadata()]
        for batches in (by_hand(table, query), by_reader(table, query))
    )
    return bool(expected.equals(found))


def _seconds(batches: Batches) -> float:
    begun = time.perf_counter()
    for batch in batches:
        assert batch.num_columns
    return time.perf_counter() - begun


def measured(table: Table, query: Query) -> tuple[float, float]:
    """Return the median seconds by hand and by the reader, in turns."""
    both = [(_seconds(by_hand(table, query)), _seconds(by_reader(table, query))) for _ in range(_ROUNDS)]
    return statistics.median(hand for hand, _ in both), statistics.median(own for _, own in both)


def main(arguments: Sequence[str]) -> int:
    """Print a table of ratios. Return 1 if one is above the target."""
    rows = int(arguments[0]) if arguments else _ROWS
    failed = False
    with tempfile.TemporaryDirectory() as small, tempfile.TemporaryDirectory() as large:
        few, many = made(Path(small), 10_000), made(Path(large), rows)
        print(f"{rows:,} rows | by hand (s) | reader (s) | ratio", flush=True)
        for query in QUERIES:
            if not same(few, query):
                raise SystemExit(f"{query.name}: the rows differ")
            hand, own = measured(many, query)
            failed |= own > hand * TARGET
            print(f"{query.name} | {hand:.2f} | {own:.2f} | {own / hand:.2f}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
