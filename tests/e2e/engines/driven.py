# SPDX-License-Identifier: Apache-2.0
"""Make the six cells of an engine that runs in a worker process of its own environment (`drive_loop.py`)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.e2e.engines import environment
from tests.support.engines.engine_results import CellName, Row, row
from tests.support.engines.lake import catalog_of
from tests.support.stack.world import Person, World, unique

HERE = Path(__file__).parent
ROWS = [(1, "ada"), (2, "bob"), (3, "cyd")]
_END_SECONDS = 30
#: An engine reports a refusal in its own words, with the gateway's text or the name of its own exception.
_REFUSAL = re.compile(r"not exist|no such|not found|cannot be found|unknown_table|forbidden|403|404", re.IGNORECASE)


class EngineFailed(Exception):
    """An engine returned an error; the message is the engine's."""


class Worker:
    """An engine in a process of its own, as one user."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, command: str, *arguments: object) -> Any:
        """Return the result of a command of the driver. Raises EngineFailed if the engine raised."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([command, *arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise EngineFailed(f"the engine ended with the exit code {self._process.wait(_END_SECONDS)}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineFailed(answer["error"])
        return answer["result"]

    def rows(self, namespace: str, table: str) -> list[tuple[int, str]]:
        """Return the rows of a table as the engine reads them."""
        return [(id, word) for id, word in self.run("read", namespace, table)]


Opened = Callable[[Person], AbstractContextManager[Worker]]


@contextmanager
def worker(engine: str, world: World, person: Person, variables: Mapping[str, str] | None = None) -> Iterator[Worker]:
    """Start the driver of an engine as one user, with further environment variables; end it after the block."""
    own = {
        "CATALOG_URI": world.ready.catalog_uri,
        "WAREHOUSE": str(world.ready.warehouse),
        "TOKEN": person.token,
        "S3_ENDPOINT": world.ready.s3.endpoint,
        "PYTHONPATH": "",
    }
    process = subprocess.Popen(
        [str(environment.of(engine).python), str(HERE / f"drive_{engine}.py")],
        env=dict(os.environ) | own | dict(variables or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Worker(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def make_row(
    engine: str,
    title: str,
    page: str,
    world: World,
    ns: str,
    *,
    impossible: Mapping[CellName, str] | None = None,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Make the row of an engine.

    `impossible` are the cells that the engine itself cannot do, with the reason. `variables` are environment variables
    of its processes.
    """

    def opened(person: Person) -> AbstractContextManager[Worker]:
        return worker(engine, world, person, variables)

    with opened(world.admin) as owner, row(engine, title, owner.run("versions"), page=page) as cells:
        make_cells(cells, world, ns, owner, opened, impossible=dict(impossible or {}))


def make_cells(
    cells: Row,
    world: World,
    ns: str,
    owner: Worker,
    opened: Opened,
    *,
    impossible: Mapping[CellName, str],
) -> None:
    """Make the cells; `opened` starts the engine as another user."""
    table = unique("t")
    path = f"{world.root}/namespaces/{ns}/tables/{table}"
    for name, reason in impossible.items():
        cells.not_possible(name, reason)
    if "create" in impossible:
        world.table(ns, table)
    with cells.cell("connect"):
        assert ns in owner.run("namespaces")
    if "create" not in impossible:
        with cells.cell("create"):
            owner.run("create", ns, table)
            assert world.admin.head(path).status_code == 204
    if "write" in impossible:
        columns = {"id": pa.array([id for id, _ in ROWS], pa.int64()), "word": [word for _, word in ROWS]}
        catalog_of(world, world.admin).load_table((ns, table)).append(pa.table(columns))
    else:
        with cells.cell("write"):
            owner.run("write", ns, table, ROWS)
            assert world.admin.get(path).json()["metadata"]["snapshots"]
    with cells.cell("read"):
        assert owner.rows(ns, table) == ROWS
    with cells.cell("refused"):
        _refused(opened, world, ns, table)
    with cells.cell("revoked"):
        _revoked(opened, world, ns, table, path)


def _refused(opened: Opened, world: World, ns: str, table: str) -> None:
    """Require that a user who has rights on another table of the namespace gets an error and no row."""
    reader, other = world.stranger(), world.table(ns)
    world.grant("select", reader, "table", other.uuid)
    with opened(reader) as user:
        with pytest.raises(EngineFailed, match=_REFUSAL) as refused:
            user.rows(ns, table)
        assert not any(word in str(refused.value) for _, word in ROWS)


def _revoked(opened: Opened, world: World, ns: str, table: str, path: str) -> None:
    """Require that a user reads with `select`, and that the next read after the revocation fails."""
    reader = world.stranger()
    id = str(world.admin.get(path).json()["metadata"]["table-uuid"])
    world.grant("select", reader, "table", id)
    with opened(reader) as user:
        assert user.rows(ns, table) == ROWS
        world.revoke("select", reader, "table", id)
        with pytest.raises(EngineFailed, match=_REFUSAL):
            user.rows(ns, table)
