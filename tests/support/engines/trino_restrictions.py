# SPDX-License-Identifier: Apache-2.0
"""A proxy of the gateway that restricts tables for the bridge of Trino, as the gateway does by data policies.

It lets tests choose any restriction, invalid ones included, for one user and one table.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

#: Actions that a restricted user may not do, with the member that nevertheless permits them.
_CHANGES = frozenset({"commit", "write_data"})


@dataclass(frozen=True, kw_only=True)
class Restricted:
    """The restrictions of one user on one table. `members` are members of the result of a check of its columns."""

    members: Mapping[str, Any]
    append: bool = False


def restricted(columns: list[str], *, row_filter: str = "", append: bool = False, **masks: str) -> Restricted:
    """Return restrictions in the gateway's form: the readable columns, a row filter, and a mask by column."""
    restrictions: dict[str, Any] = {"row-filter": row_filter} if row_filter else {}
    if masks:
        restrictions["column-masks"] = [{"column": name, "expression": text} for name, text in masks.items()]
    return Restricted(members={"columns": columns, "restrictions": restrictions}, append=append)


@dataclass
class Proxy:
    """The running proxy. `rules` has the restrictions by user id and table."""

    url: str
    rules: dict[tuple[str, str], Restricted] = field(default_factory=dict)

    def changed(self, checks: list[dict[str, Any]], results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the results of the gateway with the restrictions."""
        return [self._result(check, result) for check, result in zip(checks, results, strict=True)]

    def _result(self, check: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        table = check["operation"].get("table", {})
        rule = self.rules.get((check["identity"]["user"], table.get("table", "")))
        if rule is None or not result["allowed"]:
            return result
        action = table["action"]["action"]
        if action == "read_columns" and table.get("restrictions") == "trino":
            return {**result, **rule.members}
        denied = action in {"read_columns", "read_data"} or (
            action in _CHANGES and not (rule.append and table.get("append") is True)
        )
        return {**result, "allowed": result["allowed"] and not denied}


@contextmanager
def restricting(gateway: str) -> Iterator[Proxy]:
    """Run the proxy on loopback until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    proxy = Proxy(f"http://127.0.0.1:{server.server_port}")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name: self.headers[name] for name in ("Authorization", "X-Request-ID")}
            headers["Content-Type"] = "application/json"
            answer = httpx.post(f"{gateway}{self.path}", content=sent, headers=headers, trust_env=False, timeout=60)
            body = answer.json()
            if answer.status_code == 200:
                body = {"results": proxy.changed(json.loads(sent)["checks"], body["results"])}
            content = json.dumps(body).encode()
            self.send_response(answer.status_code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server.RequestHandlerClass = Handler
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=60)
