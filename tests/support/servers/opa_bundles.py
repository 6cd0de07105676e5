# SPDX-License-Identifier: Apache-2.0
"""A real OPA that polls bundles, and a bundle server, for tests."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.support.rows.parts import free_port
from tests.support.servers.loopback import Reply, Request, serving
from tests.support.servers.opa_program import opa_program

GATEWAY = "gateway-token-of-the-test"
OPERATOR = "operator-token-of-the-test"
#: A generous limit; the polling interval of the tests is one second.
PATIENCE_SECONDS = 90


@dataclass
class BundleServer:
    """A server that answers each path with the bytes in `files`, with an entity tag as a bundle server has."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)


@contextmanager
def bundle_server() -> Iterator[BundleServer]:
    """Context manager. Run a bundle server on loopback."""

    def answer(request: Request) -> Reply:
        content = served.files.get(request.path)
        tag = f'"{hash(content)}"'
        status = 404 if content is None else 304 if request.headers.get("if-none-match") == tag else 200
        served.statuses.append(status)
        body = content if status == 200 and content is not None else b""
        return status, {"etag": tag, "content-type": "application/gzip"}, body

    with serving(answer) as service:
        served = BundleServer(service.url)
        yield served


def key_pair(kind: str) -> tuple[str, str]:
    """Return (private key, public key) in PEM form for RS256 or ES256; for HS256 the same secret twice."""
    if kind == "HS256":
        return "a-secret-of-the-test-with-40-characters!", "a-secret-of-the-test-with-40-characters!"
    key = ec.generate_private_key(ec.SECP256R1()) if kind == "ES256" else rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


class PollingOpa:
    """An OPA as the documentation configures it. `config` is its configuration file, without polling intervals."""

    def __init__(self, folder: Path, config: Mapping[str, Any], *, port: int | None = None) -> None:
        self._folder = folder
        self._port = port or free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._file = folder / "opa.json"
        self._file.write_text(json.dumps(config))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """Return the output of OPA."""
        file = self._folder / "opa.log"
        return file.read_text()[-20_000:] if file.exists() else ""

    def start(self) -> None:
        """Start OPA and wait until it listens. Its bundles may not be loaded yet."""
        command = [str(opa_program()), "run", "--server", f"--addr=127.0.0.1:{self._port}"]
        command += ["--authentication=token", "--authorization=basic", "--disable-telemetry", "--log-level=error"]
        tokens = {"LAKEGATE_OPA_GATEWAY_TOKEN": GATEWAY, "LAKEGATE_OPA_OPERATOR_TOKEN": OPERATOR}
        with (self._folder / "opa.log").open("ab") as written:
            self._process = subprocess.Popen(
                [*command, f"--config-file={self._file}"],
                cwd=self._folder,
                env={"PATH": os.environ["PATH"], **tokens},
                stdout=written,
                stderr=subprocess.STDOUT,
            )

        def listens() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self.log
            try:
                httpx.get(f"{self.url}/health", trust_env=False, timeout=10)
            except httpx.TransportError:
                return False
            return True

        until(listens, lambda: self.log)

    def kill(self) -> None:
        """Kill OPA without a chance to write anything."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=60)
            self._process = None

    def decisions(self, actor: str) -> list[dict[str, Any]] | None:
        """Return the decisions about one load of a table by this user; None if OPA has none."""
        question = {
            "operation": "load_table",
            "resource": {"type": "table", "id": "t", "name": "orders", "namespace": ["sales"]},
            "facts": {},
        }
        body = {
            "actor": {"id": actor, "kind": "user", "roles": []},
            "context": {"request_id": "r", "time": "2026-03-08T03:00:00Z"},
            "questions": [question],
        }
        answer = self.post("gateway/decisions", {"input": body})
        if answer.status_code != 200 or "result" not in answer.json():
            return None
        found: list[dict[str, Any]] = answer.json()["result"]["decisions"]
        return found

    def codes(self, actor: str) -> list[str] | None:
        """Return the codes of the denials of this user's request; None if OPA has no decision."""
        found = self.decisions(actor)
        return None if found is None else [reason["code"] for reason in found[0]["reasons"]]

    def revision(self) -> str | None:
        """Return the revision of policies and policy data."""
        answer = self.post("system/revision/current", {})
        found: str | None = answer.json().get("result") if answer.status_code == 200 else None
        return found

    def post(self, path: str, body: object) -> httpx.Response:
        """Query a document as the gateway."""
        headers = {"Authorization": f"Bearer {GATEWAY}"}
        return httpx.post(f"{self.url}/v1/data/{path}", json=body, headers=headers, trust_env=False, timeout=60)


@contextmanager
def polling(folder: Path, config: Mapping[str, Any]) -> Iterator[PollingOpa]:
    """Context manager. Run an OPA with this configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    opa = PollingOpa(folder, config)
    opa.start()
    try:
        yield opa
    finally:
        opa.kill()


def until(condition: Callable[[], bool], describe: Callable[[], object] = lambda: "") -> None:
    """Wait until the condition is true; fail the test with the description at the deadline."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, describe()
        time.sleep(0.1)


@contextmanager
def over_tls(token_endpoint: str, context: ssl.SSLContext) -> Iterator[str]:
    """Context manager. Serve a token endpoint over TLS, which OPA requires; yield its address."""

    def answer(request: Request) -> Reply:
        passed_on = ("authorization", "content-type")
        headers = {name: value for name, value in request.headers.items() if name in passed_on}
        answer = httpx.post(token_endpoint, content=request.body, headers=headers, trust_env=False, timeout=60)
        return answer.status_code, {"content-type": answer.headers["content-type"]}, answer.content

    with serving(answer, context) as service:
        yield f"{service.url}/token"
