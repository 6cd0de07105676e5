# SPDX-License-Identifier: Apache-2.0
"""HTTP servers on loopback in place of an object store or its STS."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.seen: list[tuple[str, str, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of clients that were disconnected."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.seen.append((self.command, self.path, self.headers.get("proxy-authorization")))
        status, headers, text = self.server.answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        text = text or body
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

    def log_message(self, *_: Any) -> None:
        return None


@contextmanager
def serving(status: int = 200, headers: dict[str, str] | None = None, body: bytes = b"") -> Iterator[Server]:
    server = Server((status, headers or {}, body))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


Request = tuple[str, str, dict[str, str], str]
Answering = Callable[[Request], tuple[int, str, str]]


@contextmanager
def recording(answering: Answering) -> Iterator[tuple[str, list[Request]]]:
    """Serve on loopback; yield the address and the requests in order."""
    seen: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            request = (self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            seen.append(request)
            status, kind, text = answering(request)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("etag", '"1"')  # object stores answer every PUT with one
            self.send_header("content-length", str(len(text)))
            if self.path == "/latest/api/token":
                self.send_header("x-aws-ec2-metadata-token-ttl-seconds", "21600")
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_PUT = do_POST = answer

        def log_message(self, *_: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()
