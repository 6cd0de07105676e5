# SPDX-License-Identifier: Apache-2.0
"""Requests of callers without rights cost little, whatever the objects that they name contain (LG-DIS-17, LG-DIS-18).

Documents are read after authorization: naming a table with a large metadata document costs as little as naming a small
one.
"""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import psutil
import pytest

from tests.support.stack.large_tables import LARGE, MIB, about, make_large
from tests.support.stack.world import Person, Table, World, send_until_decided, unique


def batch(by: Person, checks: list[dict[str, Any]]) -> httpx.Response:
    """Send a batch of checks; retry after 429 and 503."""
    return send_until_decided(lambda: by.post("/management/v1/action/batch-check", {"checks": checks}))


class Peak:
    """Measure the largest growth of resident memory of one worker while the block runs, in bytes."""

    def __init__(self, world: World) -> None:
        main = psutil.Process(world.ready.pids["gateway"][0])
        self._workers = [main, *main.children(recursive=True)]
        self._before: dict[int, int] = {}
        self._done = threading.Event()
        self.growth = 0

    def __enter__(self) -> Peak:
        self._before = {each.pid: each.memory_info().rss for each in self._workers}
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            now = {each.pid: each.memory_info().rss for each in self._workers}
            self.growth = max(self.growth, *(now[pid] - before for pid, before in self._before.items()))


@pytest.mark.threat("LG-DIS-17")
def test_batch_checks_on_large_tables_use_bounded_memory(world: World, ns: str) -> None:
    """One user without rights sends eight concurrent requests about twenty tables with documents of 8
    MiB.
    """
    tables = [world.table(ns) for _ in range(20)]
    make_large(world, *tables)
    stranger = world.stranger()
    checks = [about(world, table) for table in tables]
    assert batch(stranger, checks).status_code == 200, "the request that fills the caches of the processes must succeed"
    with Peak(world) as peak, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: batch(stranger, checks), range(8)))
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert [each["allowed"] for each in answer.json()["results"]] == [False] * len(tables)
    assert peak.growth <= 100 * MIB, f"a worker grew by {peak.growth / MIB:.0f} MiB"


def test_checks_of_a_large_table_do_not_read_its_document(world: World, ns: str) -> None:
    table = world.table(ns)
    make_large(world, table)
    with Peak(world) as peak:
        for _ in range(10):
            assert send_until_decided(lambda: world.admin.head(table.path)).status_code == 204
    assert peak.growth < LARGE, f"HEAD made a worker grow by {peak.growth / MIB:.0f} MiB"
    loaded = send_until_decided(lambda: world.admin.get(table.path))
    assert loaded.status_code == 200
    assert loaded.json()["metadata"]["table-uuid"] == table.uuid
    assert len(loaded.content) > LARGE, "the load must return the large document"
    again = send_until_decided(lambda: world.admin.get(table.path))
    assert again.json() == loaded.json() | {"config": again.json()["config"]} | {
        key: again.json()[key] for key in ("storage-credentials",) if key in again.json()
    }


def test_every_load_has_location_document_and_etag_of_one_commit(world: World, ns: str) -> None:
    """Loads run beside commits: the named metadata file and the returned document must be of the same commit."""
    table = world.table(ns)
    written: dict[str, str] = {}
    failed: list[str] = []

    def commit() -> None:
        for number in range(30):
            put = {"action": "set-properties", "updates": {"number": str(number)}}
            answer = send_until_decided(partial(world.commit, world.admin, table.path, put))
            if answer.status_code != 200:
                failed.append(answer.text)
                return
            written[answer.json()["metadata-location"]] = str(number)

    writer = threading.Thread(target=commit)
    writer.start()
    loads = []
    while writer.is_alive():
        answer = send_until_decided(lambda: world.admin.get(table.path))
        assert answer.status_code == 200, answer.text
        loads.append((answer.json(), answer.headers["etag"]))
    writer.join()
    assert failed == []
    for body, tag in loads:
        number = body["metadata"]["properties"].get("number")
        assert number == written.get(body["metadata-location"], number if number is None else "another commit")
        headers = {"If-None-Match": tag, "X-Iceberg-Access-Delegation": ""}
        confirmed = send_until_decided(partial(world.admin.get, table.path, headers=headers))
        newest = body["metadata-location"] == loads[-1][0]["metadata-location"]
        assert confirmed.status_code in ((200, 304) if newest else (200,)), (
            "the ETag must belong to the returned commit"
        )


ACTIONS = ("read_data", "write_data", "commit", "drop", "rename", "get_metadata", "grant_select", "manage_tags")


@pytest.mark.chaos
@pytest.mark.threat("LG-DIS-18")
def test_checks_of_invisible_and_absent_tables_take_equally_long(world: World, ns: str) -> None:
    """Two hundred checks about ten tables. In the defect, absent tables took 13 ms and invisible ones
    seconds.
    """
    there = [world.table(ns) for _ in range(10)]
    absent = [replace(table, name=unique("absent")) for table in there]
    stranger = world.stranger()

    def seconds(tables: list[Table]) -> float:
        checks = [about(world, table, action) for table in tables for action in (*ACTIONS, *ACTIONS)]
        took: list[float] = []
        while len(took) < 9:
            began = time.perf_counter()
            answer = stranger.post("/management/v1/action/batch-check", {"checks": checks})
            if answer.status_code in (429, 503):
                # Wait for the caller's share, which is used up; the wait is not measured.
                time.sleep(float(answer.headers["Retry-After"]))
                continue
            took.append(time.perf_counter() - began)
            assert answer.status_code == 200, answer.text
            assert not any(each["allowed"] for each in answer.json()["results"])
        return statistics.median(took)

    seconds(there)
    rounds = [(seconds(there), seconds(absent)) for _ in range(3)]
    invisible, missing = (min(each) for each in zip(*rounds, strict=True))
    assert invisible < 3 * missing + 0.05, f"invisible {1000 * invisible:.0f} ms, absent {1000 * missing:.0f} ms"
