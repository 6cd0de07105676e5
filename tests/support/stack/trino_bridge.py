# SPDX-License-Identifier: Apache-2.0
"""The Trino bridge as deployed (an OPA with its bundle), and recorded requests of Trino."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from lakegate.local.engines import OPA_OPTIONS, bridge_bundle
from tests.support.rows.parts import free_port
from tests.support.servers.opa_program import opa_program
from tests.support.stack.world import Person, World

ROOT = Path(__file__).parents[3]
RECORDING = ROOT / "policies" / "trino" / "recording_test.rego"
KEY = "key-of-the-engine-in-this-test"
ENTRY = {
    "allow": "allow",
    "batch": "batch",
    "rowFilters": "row_filters",
    "batchColumnMasks": "batch_column_masks",
}


@dataclass(frozen=True)
class Recorded:
    """A recorded request of Trino."""

    endpoint: str
    statement: str
    operation: str
    action: Mapping[str, Any]


def recorded() -> list[Recorded]:
    lines = [json.loads(line) for line in RECORDING.read_text().splitlines() if line.startswith('{"endpoint"')]
    return [
        Recorded(each["endpoint"], each["statement"], each["input"]["action"]["operation"], each["input"]["action"])
        for each in lines
    ]


@dataclass(frozen=True)
class Bridge:
    """The bridge's OPA."""

    url: str
    log: Path
    verify: ssl.SSLContext | bool = True
    pid: int = 0

    def send(self, entry: str, person: Person, action: object, *, key: str | None = KEY) -> httpx.Response:
        """Send a check to the bridge as Trino does for this user."""
        identity = {"user": person.id.removeprefix("oidc~"), "groups": []}
        input = {"context": {"identity": identity, "softwareStack": {"trinoVersion": "476"}}, "action": action}
        params = {} if key is None else {"key": key}
        with httpx.Client(trust_env=False, timeout=60, verify=self.verify) as http:
            return http.post(f"{self.url}/v1/data/trino/{entry}", params=params, json={"input": input})

    def result(self, entry: str, person: Person, action: object) -> Any:
        """Return the result of a check."""
        answer = self.send(entry, person, action)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    def may(self, person: Person, operation: str, **resource: Any) -> bool:
        """Return True if the bridge allows the operation."""
        return bool(self.result("allow", person, {"operation": operation, "resource": resource}))


@contextmanager
def bridged(
    world: World, folder: Path, *arguments: str, verify: ssl.SSLContext | bool = True, **more: str
) -> Iterator[Bridge]:
    """Run an OPA with the bridge's bundle and these extra arguments and variables; its service account is `etl`."""
    binary = str(opa_program())
    (folder / "bundle.tar.gz").write_bytes(bridge_bundle(ROOT / "policies")[0])
    port = free_port()
    log = folder / "decisions.log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [
                binary,
                "run",
                "--server",
                f"--addr=127.0.0.1:{port}",
                *OPA_OPTIONS,
                "--disable-telemetry",
                "--log-level=error",
                *arguments,
                "--bundle",
                str(folder / "bundle.tar.gz"),
            ],
            env={
                "PATH": os.environ["PATH"],
                "LAKEGATE_BRIDGE_URL": world.base,
                "LAKEGATE_BRIDGE_CATALOGS": json.dumps({"ice": world.warehouse}),
                "LAKEGATE_BRIDGE_TOKEN": world.etl.token,
                "LAKEGATE_BRIDGE_OPERATORS": json.dumps(["admin"]),
                "LAKEGATE_BRIDGE_ENGINE_KEY": KEY,
                # Long enough for a busy machine.
                "LAKEGATE_BRIDGE_TIMEOUT": "60s",
                **more,
            },
            stdout=written,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"{'http' if verify is True else 'https'}://127.0.0.1:{port}"
            deadline = time.monotonic() + 90
            while True:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, "OPA did not answer before the deadline"
                try:
                    if httpx.get(f"{url}/health", trust_env=False, timeout=5, verify=verify).status_code == 200:
                        break
                except httpx.TransportError:
                    time.sleep(0.05)
            yield Bridge(url, log, verify, process.pid)
        finally:
            process.terminate()
            process.wait(timeout=60)
