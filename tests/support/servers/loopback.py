# SPDX-License-Identifier: Apache-2.0
"""HTTP servers on loopback that tests run in their own process."""

from __future__ import annotations

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
    """A request that a server received. The names of headers are in lower case."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


Reply = tuple[int, dict[str, str], bytes]
"""The status, the headers and the body of an answer."""


@dataclass
class Service:
    """A running server: its address and the requests so far."""

    url: str = ""
    seen: list[Request] = field(default_factory=list)
    ended: bool = False


def as_json(status: int, content: Any) -> Reply:
    """Return an answer with a JSON body."""
    return status, {"content-type": "application/json"}, json.dumps(content).encode()


@contextmanager
def serving(reply: Callable[[Request], Reply | None], tls: ssl.SSLContext | None = None) -> Iterator[Service]:
    """Answer every request with `reply`, over TLS if a context is given. Each connection has a thread.

    If `reply` returns None, the server closes the connection without an answer.
    """
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = parse_qs(parts.query, keep_blank_values=True)
            request = Request(self.command, parts.path, query, headers, body)
            if service.ended:
                # A client that reuses its connection must not get answers of a server that has ended.
                self.close_connection = True
                return
            service.seen.append(request)
            answer = reply(request)
            if answer is None:
                self.close_connection = True
                return
            status, more, content = answer
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
        service.ended = True
        server.shutdown()
        server.server_close()
