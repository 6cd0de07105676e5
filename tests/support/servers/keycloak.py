# SPDX-License-Identifier: Apache-2.0
"""A real Keycloak for the tests: downloaded once with Maven, verified by checksum, and started on loopback.

The download is 180 MB, so these tests are opt-in (`make test-keycloak`). If a requirement is missing, the error names
it. The realm is `keycloak_realm.json`, which is also an example configuration. Its database is in memory, and all its
other files are in a folder that is deleted with the test.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from lakegate.local import jdk
from lakegate.local.errors import ToolMissing
from tests.support.rows.parts import free_port

VERSION = "26.7.3"
SHA256 = "77657f30b7e90d70f727712ce1c967f430fd6a5e9f458d32d8c6df0635345f47"
REALM = "lakegate"
_KEPT = Path.home() / ".cache" / "lakegate" / "keycloak"
_START_SECONDS = 900.0


class Missing(Exception):
    """A requirement of a real Keycloak is missing; the message names it."""


def archive() -> Path:
    """Return the distribution's archive; download it if it is not cached. Raises Missing."""
    kept = _KEPT / f"keycloak-quarkus-dist-{VERSION}.tar.gz"
    if kept.is_file() and _sha256(kept) == SHA256:
        return kept
    maven = shutil.which("mvn")
    if maven is None:
        raise Missing(f"Keycloak {VERSION} is fetched with Maven, which is not installed")
    _KEPT.mkdir(parents=True, exist_ok=True)
    artifact = f"-Dartifact=org.keycloak:keycloak-quarkus-dist:{VERSION}:tar.gz"
    for goal in (["dependency:get"], ["dependency:copy", f"-DoutputDirectory={_KEPT}"]):
        done = subprocess.run(
            [maven, "-B", "-q", *goal, artifact, "-Dtransitive=false"], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise Missing(f"Keycloak {VERSION} could not be fetched: {done.stdout[-300:]}")
    if (digest := _sha256(kept)) != SHA256:
        kept.unlink()
        raise Missing(f"{kept.name} has the checksum {digest}, not {SHA256}")
    return kept


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _java_home() -> Path:
    try:
        return jdk.find(os.environ.get("JAVA_HOME"), os.environ["PATH"])
    except ToolMissing as missing:
        raise Missing(str(missing)) from None


@dataclass(frozen=True)
class Keycloak:
    """A running server. `password` is the password of every user and the secret of every confidential client."""

    url: str
    password: str

    @property
    def issuer(self) -> str:
        return f"{self.url}/realms/{REALM}"

    def endpoint(self, name: str) -> str:
        """Return an endpoint URL by its name in the discovery document."""
        discovery = httpx.get(f"{self.issuer}/.well-known/openid-configuration", trust_env=False, timeout=60)
        return str(discovery.raise_for_status().json()[name])

    def token_of_client(self, client_id: str) -> str:
        """Return an access token from the client credentials grant."""
        requested = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": self.password}
        answer = httpx.post(self.endpoint("token_endpoint"), data=requested, trust_env=False, timeout=60)
        return str(answer.raise_for_status().json()["access_token"])

    def administered(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request to the realm's admin API as the administrator."""
        requested = {"grant_type": "password", "client_id": "admin-cli", "username": "root", "password": self.password}
        token = httpx.post(
            f"{self.url}/realms/master/protocol/openid-connect/token", data=requested, trust_env=False, timeout=60
        )
        headers = {"Authorization": f"Bearer {token.raise_for_status().json()['access_token']}"}
        answer = httpx.request(
            method, f"{self.url}/admin/realms/{REALM}{path}", headers=headers, trust_env=False, timeout=60, **more
        )
        return answer.raise_for_status()


@contextmanager
def keycloak_server(folder: Path) -> Iterator[Keycloak]:
    """Run Keycloak in `folder` until the end of the block. Raises Missing."""
    java = _java_home()
    with tarfile.open(archive()) as packed:
        packed.extractall(folder, filter="data")
    home = folder / f"keycloak-{VERSION}"
    realms = home / "data" / "import"
    realms.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("keycloak_realm.json"), realms / "lakegate-realm.json")
    port = free_port()
    running = Keycloak(f"http://127.0.0.1:{port}", secrets.token_urlsafe(24))
    arguments = [
        "start-dev",
        "--import-realm",
        "--db=dev-mem",
        "--http-host=127.0.0.1",
        f"--http-port={port}",
        f"--hostname={running.url}",
        "--log-level=warn",
    ]
    environment = {
        "PATH": f"{java / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder),
        "JAVA_HOME": str(java),
        "JAVA_OPTS_KC_HEAP": "-Xms64m -Xmx640m",
        "KC_BOOTSTRAP_ADMIN_USERNAME": "root",
        "KC_BOOTSTRAP_ADMIN_PASSWORD": running.password,
        "LAKEGATE_TEST_PASSWORD": running.password,
    }
    log = folder / "keycloak.log"
    with log.open("wb") as written:
        # A process group of its own: the script starts the server as a child process.
        process = subprocess.Popen(
            [str(home / "bin" / "kc.sh"), *arguments],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not _started(running):
                assert process.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < deadline, (
                    f"Keycloak did not answer before the deadline: {log.read_text()[-3000:]}"
                )
                time.sleep(0.5)
            yield running
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=10)
            shutil.rmtree(folder, ignore_errors=True)


def _started(server: Keycloak) -> bool:
    try:
        return (
            httpx.get(f"{server.issuer}/.well-known/openid-configuration", trust_env=False, timeout=60).status_code
            == 200
        )
    except httpx.TransportError:
        return False
