# SPDX-License-Identifier: Apache-2.0
"""Measure decisions: cacheable policy answers, a gateway without decision cache, revocation time, and cache memory."""

from __future__ import annotations

import asyncio
import socket
import statistics
import subprocess
import time
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

import httpx
import psutil

from gateway.access.actor import Actor
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question
from gateway.fga.cache import CachedRelationships
from lakegate.local.ready import Ready

_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Gateway:
    """A measured gateway: its catalog, and the process with the counted workers."""

    catalog_uri: str
    pids: Sequence[int]


def policies_last(stack: Ready, seconds: int) -> None:
    """Make OPA's answers cacheable for `seconds`, and wait until every worker process applies it.

    With 0, OPA is called with every request. 1 is the value as shipped.
    """
    headers = {"Authorization": f"Bearer {stack.opa.token}"}
    url = f"{stack.opa.url}/v1/data/policy_data/memory"
    httpx.put(url, json={"answers_last_seconds": seconds}, headers=headers, trust_env=False).raise_for_status()
    time.sleep(2.5)


@contextmanager
def further(stack: Ready, settings: Mapping[str, str]) -> Iterator[Gateway]:
    """Context manager. Run another gateway on the same stack with changed settings."""
    main = psutil.Process(stack.pids["gateway"][0])
    port, metrics = _free_port(), _free_port()
    changed = {"LISTEN_PORT": str(port), "METRICS__PORT": str(metrics), **settings}
    environment = main.environ() | {f"LAKEGATE__{name}": value for name, value in changed.items()}
    process = subprocess.Popen(main.cmdline(), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not _healthy(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the second gateway did not start")
            time.sleep(0.2)
        yield Gateway(f"http://127.0.0.1:{port}/catalog", [process.pid])
    finally:
        process.terminate()
        process.wait(30)


def revocations(stack: Ready, table: str, warehouse: str, times: int) -> tuple[float, float]:
    """Return (median, longest) milliseconds from a revocation request to its success; no later request is allowed."""
    headers = {"Authorization": f"Bearer {stack.users['admin'].token}"}
    url = f"{stack.management_uri}/v1/permissions/warehouse/{warehouse}/table/{table}/assignments"
    grant = [{"type": "select", "user": stack.users["carol"].id}]
    took = []
    with httpx.Client(headers=headers, trust_env=False, timeout=30) as client:
        for _ in range(times):
            client.post(url, json={"writes": grant}).raise_for_status()
            begun = time.perf_counter()
            client.post(url, json={"deletes": grant}).raise_for_status()
            took.append(1000 * (time.perf_counter() - begun))
    return statistics.median(took), max(took)


def bytes_of_an_allow(entries: int) -> float:
    """Return the bytes of one cached allow, measured over `count` with distinct callers and tables."""

    class Always:
        async def check(
            self,
            actor: Actor,
            questions: Sequence[Question],
            *,
            now: datetime,
            pin: Pin | None = None,
            paced: bool = True,
        ) -> list[bool]:
            return [True] * len(questions)

        def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
            """Ignore the figure."""

    async def fill() -> None:
        cache = CachedRelationships(Always(), model_id=lambda: "model", entries=entries, seconds=600, observer=Always())
        pin = Pin(uuid4(), uuid4(), None)
        for number in range(entries):
            actor = Actor.user(f"oidc~{number}", name=None, email=None, application=False)
            question = Question(Can.GET_METADATA, ObjectKey(ObjectType.TABLE, str(uuid4())), uuid4())
            await cache.check(actor, [question], now=datetime.now(UTC), pin=pin)
        taken.append(tracemalloc.get_traced_memory()[0])

    taken: list[int] = []
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    asyncio.run(fill())
    tracemalloc.stop()
    return (taken[0] - before) / entries


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
