# SPDX-License-Identifier: Apache-2.0
"""Run the floor (`tests.bench.floor`) as a process beside a stack."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from lakegate.local.ready import Ready


@dataclass(frozen=True, slots=True)
class FloorServer:
    """A running floor: the URL that table ids are appended to, and the id of its process."""

    url: str
    pid: int


@contextmanager
def floor_server(running: Ready, table: str) -> Iterator[FloorServer]:
    """Context manager. Run the floor on a free port, with as many workers as the gateway.

    `table`: the id of any table, for the readiness check.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = os.environ | {
        "BENCH_POSTGRES": running.postgres.replace("postgresql://", "postgresql+asyncpg://", 1),
        # As long as the part of a load response before its metadata.
        "BENCH_PREFIX": json.dumps({"metadata-location": "s3://bucket/" + "x" * 120})[:-1] + ', "metadata": ',
        "BENCH_POOL": "5",
    }
    command = [sys.executable, "-m", "granian", "--interface", "asgi", "--factory", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "2", "--loop", "uvloop", "--no-ws", "tests.bench.floor:create_app"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}/table"
        for _ in range(100):
            try:
                httpx.get(f"{url}/{table}", trust_env=False).raise_for_status()
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield FloorServer(url, process.pid)
    finally:
        process.terminate()
        process.wait(20)
