# SPDX-License-Identifier: Apache-2.0
"""Delete a warehouse while other requests create, drop and load objects in it. It is deleted completely or stays, and
no request gets a server error.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest

from tests.contract.conftest import stack, world
from tests.support.stack import warehouses
from tests.support.stack.warehouses import WAREHOUSE, Made
from tests.support.stack.world import SCHEMA, World, error_triple, send_with_retries, unique

__all__ = ["stack", "world"]

pytestmark = pytest.mark.integration

_FINE = {
    ("namespace", 200, ""),
    ("namespace", 404, "NoSuchWarehouseException"),
    ("drop namespace", 204, ""),
    ("table", 200, ""),
    ("drop table", 204, ""),
    ("load", 200, ""),
    ("list", 200, ""),
    ("list", 404, "NoSuchWarehouseException"),
    ("grant", 204, ""),
    ("grant", 404, "NoSuchWarehouseException"),
}


class Crowd:
    """Concurrent users that work in a warehouse until `end` is called."""

    def __init__(self, world: World, made: Made) -> None:
        self.world, self.made = world, made
        self.seen: Counter[tuple[str, int, str]] = Counter()
        self.namespaces: list[str] = []
        self._stop = threading.Event()
        self._failed: list[BaseException] = []

    def work(self, *tasks: Callable[[httpx.Client], None]) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._go, args=(task,)) for task in tasks]
        for thread in threads:
            thread.start()
        return threads

    def end(self, threads: list[threading.Thread]) -> None:
        self._stop.set()
        for thread in threads:
            thread.join(150)
        assert not self._failed, self._failed

    def _go(self, task: Callable[[httpx.Client], None]) -> None:
        token = {"Authorization": f"Bearer {self.world.admin.token}"}
        with httpx.Client(base_url=self.world.base, headers=token, timeout=60, trust_env=False) as http:
            try:
                while not self._stop.is_set():
                    task(http)
                    time.sleep(random.uniform(0.05, 0.4))
            except BaseException as failed:
                self._failed.append(failed)

    def _note(self, action: str, send: Callable[[], httpx.Response]) -> bool:
        """Send a request, with retries while concurrent revocations overtake its decision; return True on success."""
        answer = settled(send)
        self.seen[action, answer.status_code, "" if answer.is_success else error_triple(answer)[1]] += 1
        return answer.is_success

    def _space(self, http: httpx.Client, name: str) -> bool:
        def make() -> httpx.Response:
            made = http.post(f"{self.made.root}/namespaces", json={"namespace": [name]})
            if made.is_success:
                self.namespaces.append(made.json()["properties"]["namespace_id"])
            return made

        return self._note("namespace", make)

    def spaces(self, http: httpx.Client) -> None:
        name = unique("ns")
        if self._space(http, name):
            self._note("drop namespace", lambda: http.delete(f"{self.made.root}/namespaces/{name}"))

    def tables(self, http: httpx.Client) -> None:
        name = unique("ns")
        space = f"{self.made.root}/namespaces/{name}"
        if not self._space(http, name):
            return
        if self._note("table", lambda: http.post(f"{space}/tables", json={"name": "t", "schema": SCHEMA})):
            self._note("load", lambda: http.get(f"{space}/tables/t"))
            self._note("drop table", lambda: http.delete(f"{space}/tables/t?purgeRequested=true"))
        self._note("drop namespace", lambda: http.delete(space))

    def lists(self, http: httpx.Client) -> None:
        self._note("list", lambda: http.get(f"{self.made.root}/namespaces"))

    def grants(self, http: httpx.Client) -> None:
        path = self.world.grants_path("warehouse", self.made.id)
        for verb in ("writes", "deletes"):
            body = {verb: [{"type": "describe", "user": self.world.carol.id}]}
            self._note("grant", partial(http.post, path, json=body))


def settled(send: Callable[[], httpx.Response]) -> httpx.Response:
    """Send a request again while it is refused as undecided with no change made; give up after a minute."""
    return send_with_retries(send, seconds=60, pause=0.05)


def _waiting(world: World, count: int) -> None:
    """Wait until this number of transactions wait for a row lock."""
    query = "select count(*) as n from pg_locks where not granted and locktype in ('transactionid', 'tuple')"
    warehouses.until(lambda: world.sql(query)[0]["n"] >= count, seconds=60)


def _queued(world: World, lock: str, id: str, *asks: Callable[[], httpx.Response]) -> list[httpx.Response]:
    """Return the answers of requests that compete for the row which `lock` locks, queued in this order."""
    with ThreadPoolExecutor(len(asks)) as pool:
        world.sql("begin")
        try:
            world.sql(lock, id)
            answers = []
            for number, send in enumerate(asks, 1):
                answers.append(pool.submit(send))
                _waiting(world, number)
        finally:
            world.sql("rollback")
        return [answer.result() for answer in answers]


def test_namespace_creation_fails_if_its_warehouse_is_being_deleted(world: World) -> None:
    made = warehouses.make(world)
    gone, late = _queued(
        world,
        "select 1 from warehouses where id = $1::text::uuid for update",
        made.id,
        lambda: world.admin.delete(made.path),
        lambda: world.admin.post(f"{made.root}/namespaces", {"namespace": [unique("ns")]}),
    )
    assert gone.status_code == 204, gone.text
    assert error_triple(late)[:2] == (404, "NoSuchWarehouseException")


def test_warehouse_with_a_concurrent_namespace_is_not_deleted(world: World) -> None:
    made = warehouses.make(world)
    new, kept = _queued(
        world,
        "select 1 from warehouses where id = $1::text::uuid for update",
        made.id,
        lambda: world.admin.post(f"{made.root}/namespaces", {"namespace": [unique("ns")]}),
        lambda: world.admin.delete(made.path),
    )
    assert new.status_code == 200, new.text
    assert error_triple(kept)[:2] == (409, "WarehouseNotEmpty")


def test_warehouse_creation_fails_if_its_project_is_being_deleted(world: World) -> None:
    project = warehouses.project(world)
    header = {"x-project-id": project}
    gone, late = _queued(
        world,
        "select 1 from projects where id = $1 for update",
        project,
        lambda: world.admin.delete("/management/v1/project", headers=header),
        lambda: world.admin.post(WAREHOUSE, warehouses.creation(world), headers=header),
    )
    assert gone.status_code == 204, gone.text
    assert error_triple(late)[:2] == (404, "ProjectNotFound")


@pytest.mark.generated
def test_warehouse_deletion_under_load_leaves_no_rows_and_no_errors(world: World) -> None:
    prefix = unique("crowd")
    for _ in range(3):
        made = warehouses.make(world, **warehouses.stored_at(world, prefix))
        crowd = Crowd(world, made)
        threads = crowd.work(crowd.spaces, crowd.tables, crowd.lists, crowd.lists, crowd.grants)
        attempts: Counter[tuple[int, str]] = Counter()
        deadline = time.monotonic() + 80
        try:
            while (204, "") not in attempts:
                assert time.monotonic() < deadline, (attempts, crowd.seen)
                answer = settled(lambda: world.admin.delete(f"{WAREHOUSE}/{made.id}"))  # noqa: B023 - called within the iteration
                attempts[answer.status_code, "" if answer.is_success else error_triple(answer)[1]] += 1
                time.sleep(0.03)
            time.sleep(0.6)
        finally:
            crowd.end(threads)
        assert set(attempts) <= {(204, ""), (409, "WarehouseNotEmpty"), (409, "WarehouseHasUnfinishedTasks")}
        assert set(crowd.seen) <= _FINE, set(crowd.seen) - _FINE
        world.delivered()
        for table in ("namespaces", "tables", "tasks", "pending_files"):
            left = world.sql(f"select * from {table} where warehouse_id = $1::text::uuid", made.id)
            assert left == [], table
        ids = [made.id, *crowd.namespaces]
        assert world.sql("select 1 from grants where object_id = any($1::text[])", ids) == []
        assert world.tuples(f"warehouse:{made.id}") == set()
        for id in crowd.namespaces:
            assert world.tuples(f"namespace:{id}") == set()
        assert world.objects(f"{prefix}/") == frozenset(), "the deleted warehouse must have no files"
