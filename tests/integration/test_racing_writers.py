# SPDX-License-Identifier: Apache-2.0
"""Sixteen concurrent writers on both workers of a gateway lose no commit and apply none twice."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections import Counter
from functools import partial
from typing import Any

import httpx
import msgspec
import pytest

from tests.contract import conftest as shared
from tests.support.load.appends import (
    Ledger,
    Try,
    append,
    append_until,
    at_once,
    check_history,
    client,
    continues,
    load,
    new_snapshot_id,
    send,
)
from tests.support.stack.views import create as create_view
from tests.support.stack.views import replace, sql_of
from tests.support.stack.world import World

# These are the stack and users of the contract tests: no test here damages them.
stack, world, ns, people = shared.stack, shared.world, shared.ns, shared.people

WRITERS = 16

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

_SHORT_AND_LONG = [
    pytest.param(4.0, id="short"),
    pytest.param(60.0, id="long", marks=[pytest.mark.long, pytest.mark.timeout(400)]),
]


def _refusals(ledger: Ledger) -> Counter[str]:
    """Return the number of conflicts by kind. A failed requirement of the client counts as "requirement"; only the
    client can resolve it.

    An overloaded machine answers 429, which means that nothing was changed; it is no conflict.
    """
    assert {status for _, status, _ in ledger.refused} <= {409, 429}
    conflicts = [text for _, status, text in ledger.refused if status == 409]
    return Counter("requirement" if "Requirement failed" in text else text for text in conflicts)


def _now(world: World, path: str) -> dict[str, Any]:
    """Return the table's metadata; retry while the machine is busy."""
    found = load(world.admin.http, path, time.monotonic() + 60)
    assert found is not None
    return found


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("seconds", _SHORT_AND_LONG)
def test_sixteen_writers_append_without_loss_or_duplicates(world: World, ns: str, seconds: float, version: str) -> None:
    table = world.table(ns, properties={"format-version": version})
    ledger = Ledger()
    until = time.monotonic() + seconds
    clients = [client(world.base, world.admin.token) for _ in range(WRITERS)]
    at_once([partial(append_until, http, table.path, until, ledger, enough=3) for http in clients])
    chain = check_history(_now(world, table.path), ledger)
    assert ledger.unknown == []
    assert sorted(chain) == sorted(ledger.snapshots())
    kinds = _refusals(ledger)
    print(f"v{version}: {len(chain)} appends in {seconds:.0f} s, refused: {dict(kinds)}")
    # A writer whose parent snapshot is outdated fails its own requirement; the gateway must resolve any other conflict.
    assert set(kinds) <= {"requirement"}
    # Of sixteen commits on one state fifteen lose, so the number of successes depends on the machine. The writers
    # continue until this number is reached.
    assert len(chain) >= 3


@pytest.mark.parametrize("seconds", _SHORT_AND_LONG)
def test_nonconflicting_commits_all_succeed(world: World, ns: str, seconds: float) -> None:
    """Server-side conflict resolution: commits without requirements are rebased, and none waits for long."""
    table = world.table(ns)
    until = time.monotonic() + seconds
    statuses: list[int] = []
    waits: list[float] = []

    def write(number: int) -> None:
        http = client(world.base, world.admin.token)
        count = 0
        while time.monotonic() < until:
            began = time.monotonic()
            update = {"action": "set-properties", "updates": {f"w{number}.{count}": "kept"}}
            statuses.append(http.post(table.path, json={"requirements": [], "updates": [update]}).status_code)
            waits.append(time.monotonic() - began)
            count += 1

    at_once([partial(write, number) for number in range(WRITERS)])
    lost = statuses.count(409)
    print(f"{len(statuses)} commits in {seconds:.0f} s, {lost} refused, longest wait {max(waits):.2f} s")
    assert set(statuses) <= {200, 409, 429}
    assert lost <= max(1, len(statuses) // 100), "at most one request in a hundred may be refused"
    kept = _now(world, table.path)["properties"]
    assert sum(value == "kept" for value in kept.values()) == statuses.count(200)


@pytest.mark.parametrize("seconds", _SHORT_AND_LONG)
def test_transactions_over_two_tables_are_atomic(world: World, ns: str, seconds: float) -> None:
    one, other = world.table(ns), world.table(ns, properties={"format-version": "3"})
    ledger = Ledger()
    until = time.monotonic() + seconds

    def write(number: int) -> None:
        http = client(world.base, world.admin.token)
        while continues(until, len(ledger.acknowledged), 2):
            # Every other writer names the tables in reverse order: this must not deadlock.
            pair = (one, other) if number % 2 else (other, one)
            states = [load(http, table.path, until + 60) for table in pair]
            snapshot = new_snapshot_id()
            changes = [
                {"identifier": {"namespace": [ns], "name": table.name}, **append(state, snapshot)}
                for table, state in zip(pair, states, strict=True)
                if state is not None
            ]
            if len(changes) == 2:
                body = {"table-changes": changes}
                tried = Try(snapshot, f"{world.root}/transactions/commit", body, str(uuid.uuid4()))
                ledger.note(tried, send(http, tried))

    at_once([partial(write, number) for number in range(WRITERS)])
    chains = [check_history(_now(world, table.path), ledger) for table in (one, other)]
    print(f"{len(chains[0])} transactions in {seconds:.0f} s, refused: {dict(_refusals(ledger))}")
    assert chains[0] == chains[1], "both tables must have the same transactions in the same order"
    assert sorted(chains[0]) == sorted(ledger.snapshots())
    assert len(chains[0]) >= 2
    assert set(_refusals(ledger)) <= {"requirement"}


@pytest.mark.parametrize("seconds", _SHORT_AND_LONG)
def test_concurrent_view_replacements_are_kept_and_numbered(world: World, ns: str, seconds: float) -> None:
    view = create_view(world, ns, properties={"version.history.num-entries": "100000"})
    until = time.monotonic() + seconds
    acknowledged: list[str] = []
    others: list[httpx.Response] = []

    def write(number: int) -> None:
        http = client(world.base, world.admin.token)
        count = 0
        while time.monotonic() < until:
            sql = f"select {number}, {count}"
            answer = http.post(view["path"], json=replace(view["metadata"]["view-uuid"], sql))
            if answer.status_code == 200:
                acknowledged.append(sql)
                assert sql_of(answer.json()["metadata"]) == sql, "the response must contain the caller's own version"
            else:
                others.append(answer)
            count += 1

    at_once([partial(write, number) for number in range(WRITERS)])
    metadata = _now(world, view["path"])
    versions = sorted(metadata["versions"], key=lambda each: int(each["version-id"]))
    assert [each["version-id"] for each in versions] == list(range(1, len(versions) + 1))
    kept = [each["representations"][0]["sql"] for each in versions[1:]]
    print(f"{len(kept)} replacements in {seconds:.0f} s, {len(others)} refused")
    assert sorted(kept) == sorted(acknowledged)
    assert metadata["current-version-id"] == len(versions)
    refused = Counter(answer.status_code for answer in others)
    assert set(refused) <= {409, 429}
    assert refused[409] <= max(1, len(acknowledged) // 100)


_ENGINE = """
import sys, time
import msgspec, pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException
given = msgspec.json.decode(sys.stdin.buffer.read())
catalog = load_catalog("lake", type="rest", uri=given["uri"], warehouse=given["warehouse"], token=given["token"])
name, until = tuple(given["table"]), time.monotonic() + given["seconds"]
done, unknown, number = [], [], 0
while time.monotonic() < until:
    id = given["writer"] * 1_000_000 + number
    number += 1
    try:
        table = catalog.load_table(name)
        table.append(pa.table({"id": pa.array([id], pa.int64()), "word": pa.array(["w"])}))
        done.append(id)
    except CommitFailedException:
        pass
    except Exception:
        unknown.append(id)
sys.stdout.buffer.write(msgspec.json.encode([done, unknown]))
"""


@pytest.mark.long
@pytest.mark.timeout(400)
def test_pyiceberg_processes_append_rows_and_each_acknowledged_row_is_read_once(world: World, ns: str) -> None:
    from pyiceberg.catalog import load_catalog

    table = world.table(ns)
    assert world.ready.warehouse is not None
    where = {"uri": world.ready.catalog_uri, "warehouse": world.ready.warehouse, "token": world.admin.token}
    running = []
    for writer in range(WRITERS):
        given = {**where, "table": [ns, table.name], "writer": writer, "seconds": 60}
        process = subprocess.Popen([sys.executable, "-c", _ENGINE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(given))
        process.stdin.close()
        running.append(process)
    acknowledged: list[int] = []
    unknown: list[int] = []
    for process in running:
        assert process.stdout is not None
        output = process.stdout.read()
        assert process.wait(60) == 0
        done, others = msgspec.json.decode(output, type=tuple[list[int], list[int]])
        acknowledged += done
        unknown += others
    rows = load_catalog("lake", type="rest", **where).load_table((ns, table.name)).scan().to_arrow()["id"].to_pylist()
    print(f"{len(acknowledged)} rows by {WRITERS} PyIceberg processes, {len(unknown)} with another end")
    assert len(acknowledged) >= 3
    assert len(rows) == len(set(rows)), "no row may be read twice"
    assert set(acknowledged) <= set(rows), "each acknowledged row must be read"
    assert set(rows) <= {*acknowledged, *unknown}, "no refused row may be read"
