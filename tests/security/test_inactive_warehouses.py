# SPDX-License-Identifier: Apache-2.0
"""Deactivation or new storage of a warehouse takes effect for each later request in every process (invariant 4).

Caches of earlier decisions and credentials do not delay it.
"""

from __future__ import annotations

import threading
import time

import httpx
import pytest

from tests.support.stack import warehouses
from tests.support.stack.lifecycle import until
from tests.support.stack.revocation import Readers, hits, other, readers
from tests.support.stack.world import World, error_triple

pytestmark = pytest.mark.chaos

__all__ = ["other", "readers"]


def test_deactivated_warehouse_is_absent_on_all_workers_at_once(world: World, readers: Readers) -> None:
    made = warehouses.make(world)
    path = made.table(world.admin)
    world.grant("select", readers.person, "warehouse", made.id)
    before = hits(world)
    for _ in range(3):
        for _ in range(2):
            assert set(readers.statuses(path)) == {200}
            assert set(readers.statuses(f"{path}/credentials")) == {200}
        assert world.admin.post(f"{made.path}/deactivate").status_code == 200
        answers = list(readers.pool.map(lambda client: client.get(path), readers.clients))
        answers += readers.pool.map(lambda client: client.get(f"{path}/credentials"), readers.clients)
        assert {error_triple(each)[:2] for each in answers} == {(404, "WarehouseNotActive")}
        assert all("secret-access-key" not in each.text for each in answers)
        assert world.admin.post(f"{made.path}/activate").status_code == 200
    assert hits(world) > before, "no decision was cached, so the test proves nothing"
    made.empty(world)
    assert world.admin.delete(made.path).status_code == 204


def test_change_begun_after_a_deactivation_is_refused(world: World, readers: Readers) -> None:
    """Writers run throughout: a write that began earlier may succeed or fail, a later one is refused."""
    made = warehouses.make(world)
    path = made.table(world.admin)
    world.grant("modify", readers.person, "warehouse", made.id)
    requested: list[tuple[float, int, str]] = []
    stop = threading.Event()

    def write(number: int) -> None:
        client = readers.clients[number]
        while not stop.is_set():
            began = time.monotonic()
            update = {"action": "set-properties", "updates": {f"writer-{number}": str(began)}}
            answer = client.post(path, json={"requirements": [], "updates": [update]})
            requested.append((began, answer.status_code, "" if answer.is_success else error_triple(answer)[1]))

    writers = [threading.Thread(target=write, args=(number,)) for number in (0, 1, -1, -2)]
    for writer in writers:
        writer.start()
    try:
        until(lambda: any(status == 200 for _, status, _ in list(requested)), "no write succeeded before the deadline")
        assert world.admin.post(f"{made.path}/deactivate").status_code == 200
        acknowledged = time.monotonic()
        until(
            lambda: sum(began >= acknowledged for began, _, _ in list(requested)) >= len(writers),
            "too few requests began after the deactivation",
        )
    finally:
        stop.set()
        for writer in writers:
            writer.join(60)
    early = {(status, type) for began, status, type in requested if began < acknowledged}
    late = {(status, type) for began, status, type in requested if began >= acknowledged}
    assert (200, "") in early
    # 409 and 429: contention of four writers of one table on a busy machine.
    assert {status for status, _ in early} <= {200, 404, 409, 429}
    assert late == {(404, "WarehouseNotActive")}


def test_no_worker_vends_keys_of_a_replaced_profile(world: World, readers: Readers) -> None:
    made = warehouses.make(world)
    path = f"{made.table(world.admin)}/credentials"
    world.grant("select", readers.person, "warehouse", made.id)

    def keys() -> set[str]:
        answers: list[httpx.Response] = list(readers.pool.map(lambda client: client.get(path), readers.clients))
        assert {each.status_code for each in answers} == {200}
        return {each.json()["storage-credentials"][0]["config"]["s3.access-key-id"] for each in answers}

    before = keys() | keys()
    body = {"new-storage-credential": warehouses.credential(world)}
    assert world.admin.post(f"{made.path}/storage-credential", body).status_code == 200
    assert not keys() & before
