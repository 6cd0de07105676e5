# SPDX-License-Identifier: Apache-2.0
"""`make bench`: the gateway next to its floor, on the embedded stack with audit on, measured in alternation.

Everything runs on this machine at once (gateway, PostgreSQL, OpenFGA, OPA, object store, load), so single figures say
little and the ratio to the floor of the same round is what to compare. Medians over the rounds are shown.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
from rich.console import Console
from rich.table import Table

from gateway.embedded import ready
from gateway.embedded.ready import Ready
from tests.bench.load import Load, Result

_CONNECTIONS = (1, 8, 32)
_SECONDS = float(os.environ.get("BENCH_SECONDS", "2"))
_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
_COLUMNS = 30
_SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": n, "name": f"column_{n}", "type": "long" if n % 2 else "string", "required": False}
        for n in range(1, _COLUMNS + 1)
    ],
}


class Generator:
    """The process that sends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._next = 0

    def send(self, method: str, url: str, headers: dict[str, str], body: str | None, connections: int) -> Result:
        """One load, one result."""
        load = Load(
            method=method,
            url=url,
            headers=headers,
            body=body,
            connections=connections,
            seconds=_SECONDS,
            first=self._next,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(load).decode() + "\n")
        self._process.stdin.flush()
        result = msgspec.json.decode(self._process.stdout.readline(), type=Result)
        self._next = result.last
        return result

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait(10)


@contextmanager
def _stack() -> Iterator[Ready]:
    with tempfile.TemporaryDirectory(prefix="lakegate-bench-", ignore_cleanup_errors=True) as scratch:
        ready_file = Path(scratch) / "ready.json"
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", "up", "--ready-file", str(ready_file), "--data", f"{scratch}/data"],
            stdout=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 120
            while not ready_file.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the stack did not come up: run `make up` to see why")
                time.sleep(0.1)
            yield ready.read(ready_file)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@contextmanager
def _floor(stack: Ready, table: str, prefix: bytes) -> Iterator[str]:
    """The floor server on a free port, with as many workers as the gateway."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = os.environ | {
        "BENCH_POSTGRES": stack.postgres.replace("postgresql://", "postgresql+asyncpg://", 1),
        "BENCH_TABLE": table,
        "BENCH_PREFIX": prefix.decode(),
        "BENCH_POOL": "5",
    }
    command = [sys.executable, "-m", "granian", "--interface", "asgi", "--factory", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "2", "--loop", "uvloop", "--no-ws", "tests.bench.floor:create_app"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}/table"
        for _ in range(100):
            try:
                httpx.get(url, trust_env=False).raise_for_status()
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def _prepare(stack: Ready, client: httpx.Client) -> tuple[str, str, bytes]:
    """(prefix of the warehouse, id of the table, all of a load answer before its metadata)."""
    config = client.get("/v1/config", params={"warehouse": stack.warehouse or ""}).raise_for_status().json()
    prefix = config["defaults"]["prefix"]
    client.post(f"/v1/{prefix}/namespaces", json={"namespace": ["bench"]}).raise_for_status()
    body = {"name": "table", "schema": _SCHEMA}
    client.post(f"/v1/{prefix}/namespaces/bench/tables", json=body).raise_for_status()
    listed = client.get(f"/v1/{prefix}/namespaces/bench/tables", params={"returnUuids": "true"}).json()
    loaded = client.get(
        f"/v1/{prefix}/namespaces/bench/tables/table", headers={"X-Iceberg-Access-Delegation": "client-managed"}
    ).raise_for_status()
    before = json.dumps({"metadata-location": loaded.json()["metadata-location"]})[:-1] + ', "metadata": '
    return prefix, listed["table-uuids"][0], before.encode()


def _worker_memory(stack: Ready) -> list[float]:
    """Resident megabytes of each gateway worker."""
    answer = subprocess.run(
        ["ps", "-o", "rss=", "-p", ",".join(map(str, stack.pids["gateway"][1:]))], capture_output=True, text=True
    )
    return [int(line) / 1024 for line in answer.stdout.split()]


def main() -> None:
    """Measure and print."""
    console = Console(width=110)
    shown = Table(title=f"{_ROUNDS} rounds of {_SECONDS:g} s each, medians; audit on, nothing cached", expand=True)
    for column in ("request", "connections", "answers/s", "p50 ms", "p99 ms", "floor/s", "of the floor", "failed"):
        shown.add_column(column, justify="left" if column == "request" else "right")
    with _stack() as stack:
        headers = {"Authorization": f"Bearer {stack.users['admin'].token}"}
        with httpx.Client(base_url=stack.catalog_uri, headers=headers, trust_env=False, timeout=30) as client:
            prefix, table, before = _prepare(stack, client)
        base = f"{stack.catalog_uri}/v1/{prefix}/namespaces/bench/tables"
        plain = {**headers, "X-Iceberg-Access-Delegation": "client-managed"}
        create = json.dumps({"name": "created_{n}", "schema": _SCHEMA})
        commit = '{"requirements":[],"updates":[{"action":"set-properties","updates":{"bench":"{n}"}}]}'
        requests: list[tuple[str, str, str, dict[str, str], str | None]] = [
            ("config", "GET", f"{stack.catalog_uri}/v1/config?warehouse={stack.warehouse}", headers, None),
            ("loadTable, no credentials", "GET", f"{base}/table", plain, None),
            ("loadTable, credentials vended", "GET", f"{base}/table", headers, None),
            ("create table", "POST", base, plain, create),
            ("commit (set a property)", "POST", f"{base}/table", headers, commit),
        ]
        with _floor(stack, table, before) as floor:
            generator = Generator()
            try:
                for name, method, url, with_headers, body in requests:
                    for connections in _CONNECTIONS:
                        rounds: list[tuple[Result, Result]] = []
                        for _ in range(_ROUNDS):
                            ours = generator.send(method, url, with_headers, body, connections)
                            rounds.append((ours, generator.send("GET", floor, {}, None, connections)))
                        shown.add_row(name, str(connections), *_row(rounds))
            finally:
                generator.close()
        memory = _worker_memory(stack)
    console.print(shown)
    console.print(f"memory of a gateway worker: {', '.join(f'{each:.0f} MB' for each in memory)}")
    console.print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")


def _row(rounds: list[tuple[Result, Result]]) -> list[str]:
    ours = statistics.median(each.per_second for each, _ in rounds)
    floors = statistics.median(each.per_second for _, each in rounds)
    ratio = statistics.median(each.per_second / floor.per_second for each, floor in rounds)
    return [
        f"{ours:,.0f}",
        f"{statistics.median(each.p50 for each, _ in rounds):.1f}",
        f"{statistics.median(each.p99 for each, _ in rounds):.1f}",
        f"{floors:,.0f}",
        f"{ratio:.3f}",
        str(sum(each.refused for each, _ in rounds)),
    ]


if __name__ == "__main__":
    main()
