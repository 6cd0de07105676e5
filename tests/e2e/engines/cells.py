# SPDX-License-Identifier: Apache-2.0
"""The six cells of an engine with SQL statements: the same steps for each engine, in its own dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.engines.engine_results import Row
from tests.support.stack.world import Person, World

Run = Callable[[str], Sequence[Sequence[Any]]]
ROWS = [(1, "ada"), (2, "bob")]


@dataclass(frozen=True)
class Dialect:
    """The statements of an engine; `{table}` is the full name of a table.

    `error` is the class of the engine's errors, and `refusal` a pattern of the message after a refusal.
    """

    error: type[Exception]
    namespaces: str
    create: str
    insert: str
    select: str
    refusal: str
    catalog: str = "lake"


def _read(run: Run, dialect: Dialect, table: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(each) for each in run(dialect.select.format(table=table)))


def six_cells(row: Row, world: World, ns: str, dialect: Dialect, connect: Callable[[Person], Run]) -> None:
    """Make the row of an engine. `connect` opens a session of one user and returns a function that runs statements."""
    with row.cell("connect"):
        owner = connect(world.admin)
        assert ns in {each[0] for each in owner(dialect.namespaces)}
    table, other = f"{dialect.catalog}.{ns}.people", f"{dialect.catalog}.{ns}.other"
    path = f"{world.root}/namespaces/{ns}/tables/people"
    with row.cell("create"):
        for name in (table, other):
            owner(dialect.create.format(table=name))
        assert world.admin.head(path).status_code == 204
    with row.cell("write"):
        for name in (table, other):
            owner(dialect.insert.format(table=name))
        # Trino has an empty first snapshot, so that their number differs between engines.
        assert world.admin.get(path).json()["metadata"]["snapshots"][-1]["summary"]["total-records"] == "2"
    with row.cell("read"):
        assert _read(owner, dialect, table) == ROWS
    reader = world.stranger("reader")
    found = world.admin.get(f"{world.root}/namespaces/{ns}/tables/other").json()
    readable = str(found["metadata"]["table-uuid"])
    world.grant("select", reader, "table", readable)
    with row.cell("refused"):
        as_reader = connect(reader)
        assert _read(as_reader, dialect, other) == ROWS
        with pytest.raises(dialect.error, match=dialect.refusal) as refused:
            as_reader(dialect.select.format(table=table))
        assert "ada" not in str(refused.value)
        with pytest.raises(dialect.error):
            as_reader(dialect.insert.format(table=other))
        assert _read(owner, dialect, other) == ROWS
    with row.cell("revoked"):
        world.revoke("select", reader, "table", readable)
        with pytest.raises(dialect.error, match=dialect.refusal):
            as_reader(dialect.select.format(table=other))
