# SPDX-License-Identifier: Apache-2.0
"""Pages of a Trino coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.servers.loopback import Reply, Request, as_json, serving

PAGES: dict[str, dict[str, Any]] = {
    "select shown": {"data": [["v1"], ["v2"]]},
    "select hidden": {"error": {"message": "Access Denied: value h1"}},
}


@contextmanager
def trino(status: int = 200) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Serve Trino's protocol: each statement has one page with a link to a second one. Yield (address, statements)."""
    received: list[tuple[str, str]] = []

    def answer(request: Request) -> Reply:
        if request.method == "POST":
            received.append((request.headers["x-trino-user"], request.body.decode()))
            return as_json(status, {"nextUri": f"{service.url}/{len(received) - 1}"})
        statement = received[int(request.path[1:])][1]
        return as_json(status, next((page for start, page in PAGES.items() if statement.startswith(start)), {}))

    with serving(answer) as service:
        yield service.url, received
