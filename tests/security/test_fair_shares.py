# SPDX-License-Identifier: Apache-2.0
"""One principal cannot exhaust the gateway for other principals (LG-DIS-19, LG-DIS-16).

The bounds are wide because other work on the machine adds latency; `tests/security/soak.py` measures for longer.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.load.load_generators import abuse, large_batch, load_steadily
from tests.support.rows.parts import free_port
from tests.support.servers.toxic import second_gateway
from tests.support.stack.world import Person, Table, World, error_of, unique

pytestmark = pytest.mark.chaos

#: Seconds of latency that other work on the machine may add to a 95th percentile.
FLOOR = 1.0
FEW, WAIT = 2, 0.5


@pytest.fixture(scope="module")
def tables(world: World) -> list[Table]:
    """Return tables of the administrator in a namespace that other users do not see."""
    ns = world.namespace(unique("crowded"))
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda _: world.table(ns), range(60)))


@pytest.fixture(scope="module")
def narrow(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a gateway with small shares and one worker process."""
    limits = {
        "WORKERS": "1",
        "SHARES__REQUESTS": str(FEW),
        "SHARES__WAITING": "1",
        "SHARES__WAIT": f"{WAIT}s",
        "SHARES__QUESTIONS_PER_SECOND": "5",
        "SHARES__QUESTION_BURST": "40",
        "SHARES__BYTES": "10000",
    }
    with second_gateway(world.ready, tmp_path_factory.mktemp("narrow") / "gateway.log", **limits) as (base, _):
        yield base


def at(base: str, person: Person) -> Person:
    """Return the same user as a client of another gateway."""
    return Person(person.name, person.id, person.token, base)


@pytest.mark.threat("LG-DIS-19")
def test_batch_checks_of_a_stranger_neither_block_nor_slow_other_callers(world: World, tables: list[Table]) -> None:
    stranger, body = world.stranger("abuser"), large_batch(world, tables)
    load_steadily(world.admin, tables[:10], seconds=1)
    alone = load_steadily(world.admin, tables[:10], seconds=5)
    with abuse(stranger, body) as abused:
        beside = load_steadily(world.admin, tables[:10], seconds=15)
        fresh = world.admin.post(f"{world.root}/namespaces", {"namespace": [unique("fresh")]})
        there = world.admin.get(f"{world.root}/namespaces/{fresh.json()['namespace'][0]}")
    measured = f"alone: {alone}; beside: {beside}; abuser: {abused}"
    assert (fresh.status_code, there.status_code) == (200, 200), measured
    assert set(beside.statuses) == {200}, measured
    assert beside.p95 <= 3 * alone.p95 + FLOOR, measured
    assert set(abused.statuses) <= {200, 429, 503}, measured


def _stalled(base: str, person: Person, length: int = 500) -> socket.socket:
    """Open a connection whose request body never arrives."""
    url = urlsplit(base)
    connection = socket.create_connection((url.hostname or "", url.port or 0), timeout=60)
    head = [
        "POST /management/v1/action/batch-check HTTP/1.1",
        "Host: gateway",
        f"Authorization: Bearer {person.token}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    ]
    connection.sendall(("\r\n".join([*head, "", ""]) + "{").encode())
    return connection


def test_slow_request_bodies_hold_no_slot(world: World, narrow: str) -> None:
    """Otherwise a few principals that send one byte every few seconds would occupy all slots of the process."""
    slow, other = at(narrow, world.stranger("slow")), at(narrow, world.stranger("quick"))
    stalled = [_stalled(narrow, slow) for _ in range(3 * FEW)]
    time.sleep(0.5)
    assert slow.get("/management/v1/whoami").status_code == 200
    assert other.get("/management/v1/whoami").status_code == 200
    for connection in stalled:
        connection.close()


def test_checks_are_charged_in_advance_to_their_principal(world: World, narrow: str, tables: list[Table]) -> None:
    greedy, other = at(narrow, world.stranger("greedy")), at(narrow, world.stranger("modest"))
    body = large_batch(world, tables[:1], items=40)
    assert greedy.post("/management/v1/action/batch-check", body).status_code == 200
    refused = greedy.post("/management/v1/action/batch-check", body)
    assert (refused.status_code, error_of(refused)["type"]) == (429, "ShareExceeded"), refused.text
    assert "authorization questions (5 a second" in refused.text
    assert 1 <= int(refused.headers["Retry-After"]) <= 8
    assert other.get("/management/v1/whoami").status_code == 200


def test_bytes_in_progress_are_bounded_per_principal_also_without_a_length(world: World, narrow: str) -> None:
    sender, other = at(narrow, world.stranger("sender")), at(narrow, world.stranger("reader"))
    stalled = _stalled(narrow, sender, length=9_000)
    time.sleep(0.3)
    large = json.dumps({"checks": [], "x": "x" * 5_000}).encode()
    sent = {"Content-Type": "application/json"}
    for content in (large, iter([large[:2_500], large[2_500:]])):
        try:
            refused = sender.http.post("/management/v1/action/batch-check", content=content, headers=sent)
        except (httpx.WriteError, httpx.RemoteProtocolError):
            continue  # the server closed the connection during the upload: a refusal too
        assert (refused.status_code, error_of(refused)["type"]) == (429, "ShareExceeded"), refused.text
    assert other.http.post("/management/v1/action/batch-check", content=large, headers=sent).status_code == 200
    stalled.close()


def test_overloaded_process_refuses_early_and_changes_nothing(world: World, tmp_path: Path) -> None:
    """Every decision counts as slow here, so the process runs two requests at once and predicts long waits."""
    overloaded = {
        "WORKERS": "1",
        "SHARES__DECISION_TARGET": "0.1ms",
        "SHARES__TOTAL_REQUESTS": "2",
        "SHARES__LEAST_REQUESTS": "2",
        "SHARES__OVERLOAD_WAIT": "1ms",
    }
    ns = world.namespace(unique("overloaded"))
    users = [world.admin, *(world.stranger(f"user{number}") for number in range(5))]
    with second_gateway(world.ready, tmp_path / "gateway.log", **overloaded) as (base, _):
        clients = [at(base, user) for user in users]

        def send(number: int) -> tuple[str, httpx.Response]:
            name = f"t{number}"
            body = {"name": name, "schema": {"type": "struct", "fields": []}}
            client, path = clients[number % len(clients)], f"{world.root}/namespaces/{ns}/tables"
            try:
                return name, client.post(path, body)
            except httpx.RemoteProtocolError:
                # After a refusal before the body was read, the server closes the connection, which this client had
                # taken for another request. If that had been carried out, the next answer would be 409.
                return name, client.post(path, body)

        with ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(send, range(240)))
        alone = [clients[0].get("/management/v1/whoami").status_code for _ in range(3)]
    refused = [(name, answer) for name, answer in answers if answer.status_code == 429]
    assert refused, "no request was refused"
    for _, answer in refused:
        assert (error_of(answer)["type"], answer.headers["Retry-After"]) == ("Overloaded", "1"), answer.text
        assert "Nothing was done" in error_of(answer)["message"]
    assert {answer.status_code for _, answer in answers} == {200, 404, 429}
    listed = world.admin.get(f"{world.root}/namespaces/{ns}/tables").json()["identifiers"]
    assert {each["name"] for each in listed} == {name for name, answer in answers if answer.status_code == 200}
    assert alone == [200, 200, 200]


def test_share_metrics_name_no_principals(world: World, tmp_path: Path) -> None:
    with second_gateway(
        world.ready, tmp_path / "gateway.log", METRICS__PORT=str(port := free_port()), SHARES__QUESTION_BURST="1"
    ) as (base, _):
        requested = at(base, world.stranger("measured"))
        for _ in range(3):
            requested.post("/management/v1/action/batch-check", {"checks": []})
        figures = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    assert 'lakegate_share_in_use{lane="user",share="requests"}' in figures
    assert "measured" not in figures
