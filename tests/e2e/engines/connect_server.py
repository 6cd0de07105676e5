# SPDX-License-Identifier: Apache-2.0
"""A real Kafka Connect worker (standalone) with Iceberg's sink, which tests configure by its REST interface."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from gateway.worker_processes import die_with_parent
from tests.e2e.engines import environment
from tests.e2e.engines.worker import java_environment
from tests.support.rows.parts import free_port
from tests.support.servers.nats_server import wait_for_port

_JVM = ("-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_SECONDS = 120.0


class Connect:
    """One worker. Its connectors run until `delete`."""

    def __init__(self, port: int, log: Path) -> None:
        self.log = log
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False)

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Start a connector."""
        made = self._http.post("/connectors", json={"name": name, "config": dict(config)})
        assert made.status_code == 201, made.text

    def delete(self, name: str) -> None:
        """Stop a connector."""
        gone = self._http.delete(f"/connectors/{name}")
        assert gone.status_code == 204, gone.text

    def task(self, name: str) -> dict[str, Any]:
        """Return the state of the only task of a connector: `state`, and `trace` if it has failed."""
        found = self._http.get(f"/connectors/{name}/status")
        tasks: list[dict[str, Any]] = found.json().get("tasks", []) if found.status_code == 200 else []
        return tasks[0] if tasks else {"state": "UNASSIGNED"}

    def plugins(self) -> set[str]:
        """Return the classes of the installed connectors; none while the worker starts."""
        found = self._http.get("/connector-plugins")
        return {each["class"] for each in found.json()} if found.status_code == 200 else set()

    def wait(self, what: str, condition: Callable[[], bool], *, running: str = "") -> None:
        """Wait until a condition holds; fail after the deadline, or if the task of `running` has failed."""
        deadline = time.monotonic() + _SECONDS
        while not condition():
            assert not running or self.task(running)["state"] != "FAILED", self.task(running)["trace"]
            assert time.monotonic() < deadline, f"{what}: {self.log.read_text(errors='replace')[-3000:]}"
            time.sleep(0.3)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


@contextmanager
def running(bootstrap: str, home: Path) -> Iterator[Connect]:
    """Run a worker until the end of the block, with its files in `home`."""
    parts = environment.of("kafka_connect")
    plugins = home / "plugins"
    plugins.mkdir()
    (plugins / "iceberg").symlink_to(parts.folders["plugin"])
    port = free_port()
    config = home / "worker.properties"
    converter = "org.apache.kafka.connect.json.JsonConverter"
    config.write_text(
        f"bootstrap.servers={bootstrap}\nlisteners=http://127.0.0.1:{port}\nplugin.path={plugins}\n"
        f"key.converter={converter}\nvalue.converter={converter}\n"
        "key.converter.schemas.enable=false\nvalue.converter.schemas.enable=false\n"
        f"offset.storage.file.filename={home}/offsets\noffset.flush.interval.ms=1000\n"
    )
    variables = java_environment(home)
    java = f"{variables['JAVA_HOME']}/bin/java"
    log = home / "connect.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                java,
                *_JVM,
                *("-cp", f"{parts.folders['connect']}/*"),
                "org.apache.kafka.connect.cli.ConnectStandalone",
                str(config),
            ],
            cwd=home,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
    connect = Connect(port, log)
    try:
        wait_for_port(port, _SECONDS, log)
        # The worker binds its port before it has scanned its plugins.
        connect.wait("the worker does not start", lambda: bool(connect.plugins()))
        yield connect
    finally:
        connect.close()
        process.kill()
        process.wait()
