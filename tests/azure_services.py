# SPDX-License-Identifier: Apache-2.0
"""HTTP servers on loopback with the documented answers of Entra ID, of delegation keys and of the file service."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Request:
    """A request that a server received."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


Reply = tuple[int, dict[str, str], bytes]


@dataclass
class Service:
    """A running server: its address and the requests so far."""

    url: str = ""
    seen: list[Request] = field(default_factory=list)


@contextmanager
def serving(reply: Callable[[Request], Reply], tls: ssl.SSLContext | None = None) -> Iterator[Service]:
    """Answer every request with `reply`, over TLS if a context is given."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = parse_qs(parts.query, keep_blank_values=True)
            request = Request(self.command, parts.path, query, headers, body)
            service.seen.append(request)
            status, more, content = reply(request)
            self.send_response(status)
            for name, value in {**more, "content-length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *_: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    service.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()


def entra_id(request: Request) -> Reply:
    """Answer as Entra ID.

    The token: https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow, "First case:
    Access token request with a shared secret". The client library reads the addresses of the tenant first (OpenID
    Connect Discovery 1.0, section 4).
    """
    tenant = request.path.split("/")[1]
    if request.path.endswith("/.well-known/openid-configuration"):
        base = f"https://{request.headers['host']}/{tenant}"
        document = {
            "issuer": f"{base}/v2.0",
            "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
            "token_endpoint": f"{base}/oauth2/v2.0/token",
        }
        return 200, {"content-type": "application/json"}, json.dumps(document).encode()
    answer = {"token_type": "Bearer", "expires_in": 3599, "ext_expires_in": 3599, "access_token": "entra-token"}
    return 200, {"content-type": "application/json"}, json.dumps(answer).encode()


KEY = b"k" * 32


def delegation_key(request: Request) -> Reply:
    """Answer as "Get User Delegation Key".

    https://learn.microsoft.com/en-us/rest/api/storageservices/get-user-delegation-key, "Response body".
    """
    text = request.body.decode()
    start, expiry = (text.partition(f"<{name}>")[2].partition("<")[0] for name in ("Start", "Expiry"))
    answer = (
        '\ufeff<?xml version="1.0" encoding="utf-8"?><UserDelegationKey>'
        "<SignedOid>11111111-1111-1111-1111-111111111111</SignedOid>"
        "<SignedTid>22222222-2222-2222-2222-222222222222</SignedTid>"
        f"<SignedStart>{start}</SignedStart><SignedExpiry>{expiry}</SignedExpiry>"
        "<SignedService>b</SignedService><SignedVersion>2022-11-02</SignedVersion>"
        f"<Value>{base64.b64encode(KEY).decode()}</Value></UserDelegationKey>"
    )
    return 200, {"content-type": "application/xml"}, answer.encode()
