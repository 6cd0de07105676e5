# SPDX-License-Identifier: Apache-2.0
"""A real emulator of Azure storage (Azurite) on a free loopback port.

`tests/locks/azurite/package-lock.json` pins it and its dependencies by checksum. npm installs them once, without their
install scripts, in the cache directory beside the other tools. The emulator has no file service and no signatures for a
directory, so it proves access to files and nothing about scope.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from xml.etree import ElementTree

from gateway.settings import load
from gateway.worker_processes import die_with_parent
from lakegate.local.toolchain import cache
from tests.support.rows.parts import free_port

_LOCK = Path(__file__).parents[2] / "locks" / "azurite"
_START_SECONDS = 60.0
_VERSION = "2022-11-02"


def program() -> Path:
    """Return the emulator's program, installed if it is missing. It needs npm and Node 20 or newer."""
    digest = hashlib.sha256((_LOCK / "package-lock.json").read_bytes()).hexdigest()[:12]
    target = cache(load({})).root / "tools" / f"azurite-{digest}"
    if not (target / "complete").exists():
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_LOCK / name, target)
        arguments = ["npm", "ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"]
        subprocess.run(arguments, cwd=target, check=True, timeout=600, stdout=subprocess.DEVNULL)
        (target / "complete").touch()
    return target / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


@dataclass(frozen=True)
class Emulator:
    """One storage account. `url` has the account in its path, as the emulator needs."""

    port: int
    account: str
    key: str

    @property
    def url(self) -> str:
        """Return the address for the gateway's setting."""
        return f"http://127.0.0.1:{self.port}/{{account}}"

    def make_container(self, name: str) -> None:
        """Create a container ("Create Container")."""
        assert self._send("PUT", f"/{name}", {"restype": "container"})[0] == 201

    def names(self, container: str) -> set[str]:
        """Return the names of all blobs in a container ("List Blobs")."""
        status, body = self._send("GET", f"/{container}", {"comp": "list", "restype": "container"})
        assert status == 200
        root = ElementTree.fromstring(body.decode("utf-8-sig"))  # noqa: S314 - the emulator's answer
        return {each.text or "" for each in root.iter("Name")}

    def _send(self, method: str, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        """Sign and send a request ("Authorize with Shared Key")."""
        date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        resource = f"/{self.account}/{self.account}{path}" + "".join(f"\n{k}:{v}" for k, v in sorted(query.items()))
        text = "\n".join([method, *[""] * 11, f"x-ms-date:{date}", f"x-ms-version:{_VERSION}", resource])
        signed = base64.b64encode(hmac.digest(base64.b64decode(self.key), text.encode(), "sha256")).decode()
        headers = {"x-ms-date": date, "x-ms-version": _VERSION, "authorization": f"SharedKey {self.account}:{signed}"}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        parameters = "&".join(f"{name}={value}" for name, value in query.items())
        connection.request(method, f"/{self.account}{path}?{parameters}", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


@contextmanager
def azure_emulator(directory: Path) -> Iterator[Emulator]:
    """Run the emulator with its files in this directory."""
    emulator = Emulator(free_port(), "account1", base64.b64encode(secrets.token_bytes(64)).decode())
    options = {"--blobHost": "127.0.0.1", "--blobPort": str(emulator.port), "--location": str(directory)}
    arguments = [str(each) for option in options.items() for each in option]
    with (directory / "log").open("wb") as output:
        process = subprocess.Popen(
            ["node", str(program()), *arguments, "--skipApiVersionCheck", "--disableTelemetry"],
            env={"PATH": _path(), "AZURITE_ACCOUNTS": f"{emulator.account}:{emulator.key}", "HOME": str(directory)},
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not _listens(emulator.port):
            assert process.poll() is None, (directory / "log").read_text()
            assert time.monotonic() < deadline, "the emulator does not answer"
            time.sleep(0.05)
        yield emulator
    finally:
        process.terminate()
        process.wait(10)


def _path() -> str:
    found = shutil.which("node")
    assert found is not None, "Node is not installed"
    return str(Path(found).parent)


def _listens(port: int) -> bool:
    try:
        connection = HTTPConnection("127.0.0.1", port, timeout=2)
        connection.request("GET", "/")
        return connection.getresponse().status < 500
    except OSError:
        return False
