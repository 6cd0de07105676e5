# SPDX-License-Identifier: Apache-2.0
"""A real OPA with the shipped policies, and questions for it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.access.decisions.policy import PolicyActor, PolicyContext, PolicyQuestion, PolicyRequest, PolicyResource
from tests.support.rows.parts import free_port
from tests.support.servers.opa_program import opa_program

GATEWAY = "gateway-token-of-the-test"
OPERATOR = "operator-token-of-the-test"
POLICIES = Path(__file__).parents[3] / "policies"
CONTRACTORS = "/v1/data/policy_data/contractors"
WEDNESDAY_NOON = "2026-03-04T12:00:00Z"
SUNDAY_NIGHT = "2026-03-08T03:00:00Z"
SHIPPED = {
    name: json.loads((POLICIES / "policy_data" / name / "data.json").read_text())
    for name in ("contractors", "credentials")
}


@contextmanager
def serving(**environment: str) -> Iterator[str]:
    """Run an OPA with the policies of this checkout and these environment variables; yield its address."""
    with serving_from(POLICIES, environment) as address:
        yield address


@contextmanager
def serving_from(policies: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run an OPA with the policies in a directory and these environment variables; yield its address."""
    binary = opa_program()
    port = free_port()
    arguments = ["run", "--server", f"--addr=127.0.0.1:{port}", "--authentication=token", "--authorization=basic"]
    arguments += ["--disable-telemetry", "--log-level=error", "--ignore=*_test.rego", "--ignore=schemas", "."]
    process = subprocess.Popen(
        [str(binary), *arguments],
        cwd=policies,
        env={"PATH": os.environ["PATH"], **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, "the OPA process ended"
            assert time.monotonic() < deadline, "OPA did not listen before the deadline"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)


def call(endpoint: str, method: str, path: str, body: Any = None, token: str | None = None) -> int:
    """Send one request directly to OPA; return its status."""
    headers = {"Content-Type": "application/json"}
    if path.startswith("/v1/policies"):
        headers["Content-Type"] = "text/plain"
    elif method == "PATCH":
        headers["Content-Type"] = "application/json-patch+json"
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    request = urllib.request.Request(endpoint + path, data=data, method=method, headers=headers)  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - loopback
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def table(name: str = "orders", namespace: str = "sales", warehouse: str = "main") -> PolicyResource:
    return PolicyResource(type="table", id="t", name=name, namespace=[namespace], warehouse_id="w", warehouse=warehouse)


def request(
    *resources: PolicyResource, actor: str = "oidc~contractor", kind: str = "user", at: str = WEDNESDAY_NOON
) -> PolicyRequest:
    return PolicyRequest(
        actor=PolicyActor(id=actor, kind=kind),
        context=PolicyContext(request_id="r", time=at, user_agent="test", client_address="127.0.0.1"),
        questions=tuple(
            PolicyQuestion(operation="load_table", resource=each, facts={"purge": False, "kinds": ("a", "b")})
            for each in resources or (table(),)
        ),
    )
