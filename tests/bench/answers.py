# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.bench.answers`: measure the lists of access on a large catalog.

The catalog has `BENCH_TABLES` tables, `BENCH_USERS` users and `BENCH_GRANTS` grants on single tables
(`tests.bench.filling`). All users are members of one role, which may read the warehouse. One user holds
`BENCH_GRANTS_OF_ONE` grants. Each question is sent `BENCH_REQUESTS` times, one after the other.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from gateway.fga.names import object_of, user_object
from tests.bench.catalogs import Catalog, Prepared
from tests.bench.filling import Filler, Size
from tests.bench.stacks import Running, stack

_SIZE = Size(
    tables=int(os.environ.get("BENCH_TABLES", "100000")),
    users=int(os.environ.get("BENCH_USERS", "100000")),
    grants=int(os.environ.get("BENCH_GRANTS", "1000000")),
)
_OF_ONE = int(os.environ.get("BENCH_GRANTS_OF_ONE", "10000"))
_REQUESTS = int(os.environ.get("BENCH_REQUESTS", "20"))
_HOLDER = "oidc~holder-of-many-grants"
_EVERYONE = 100
_SECONDS = 120.0


class AnswersFiller(Filler):
    """Fills a catalog, with a role of all users and a user with many grants."""

    def __init__(self, running: Running, prepared: Prepared, size: Size) -> None:
        super().__init__(running, prepared, size)
        self.role = ""
        self.table = ""

    def _granted(self, subjects: list[str], tables: list[str]) -> Iterator[tuple[str, str, str, str]]:
        yield from super()._granted(subjects, tables)
        self.role, self.table = self._role(_EVERYONE), tables[0]
        for subject in subjects:
            yield "assignee", f"oidc~{subject}", "role", self.role
        for table in tables[:_OF_ONE]:
            yield "describe", _HOLDER, "table", table

    def _traverse(self, subjects: list[str], spaces: list[str]) -> Iterator[tuple[str, str, str]]:
        yield from super()._traverse(subjects, spaces)
        user = user_object(_HOLDER)
        yield user, "traverse", object_of("project", self._ready.project_id)
        yield user, "traverse", object_of("warehouse", self._warehouse)
        for space in dict.fromkeys(spaces[:_OF_ONE]):
            yield user, "traverse", object_of("namespace", space)


class Questions:
    """The questions to one filled catalog."""

    def __init__(self, running: Running, filler: AnswersFiller, warehouse: str) -> None:
        ready = running.ready
        self._url = f"{ready.management_uri}/v1"
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {ready.users['admin'].token}"}, timeout=_SECONDS, trust_env=False
        )
        self._filler, self._warehouse = filler, warehouse
        write = {"writes": [{"privilege": "select", "principal": {"role": filler.role}}]}
        self._client.post(f"{self._url}/warehouse/{warehouse}/grants", json=write).raise_for_status()

    def all(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return the path and the body of each question."""
        warehouse = {"warehouse": {"warehouse-id": self._warehouse}}
        table = {"table": {"warehouse-id": self._warehouse, "table-id": self._filler.table}}
        members = {"action": "read_data", "object": table, "expand": self._filler.role}
        holder = {"principal": {"user": _HOLDER}, "object": warehouse}
        return {
            "who-can read a table": ("who-can", {"action": "read_data", "object": table}),
            "the same, members of the role": ("who-can", members),
            "the same, a later page": ("who-can", self._later("who-can", members)),
            "who-can manage grants of a table": ("who-can", {"action": "grant_select", "object": table}),
            "who-can create in a warehouse": ("who-can", {"action": "create_namespace", "object": warehouse}),
            "who-can see a warehouse": ("who-can", {"action": "get_metadata", "object": warehouse}),
            "what-can, first page": ("what-can", holder),
            "what-can, a later page": ("what-can", self._later("what-can", holder)),
            "what-can, one action": ("what-can", {**holder, "action": "get_metadata"}),
        }

    def _later(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        for _ in range(5):
            body = {**body, "page-token": self.send(path, body)["next-page-token"]}
        return body

    def send(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send one question and return the answer."""
        answer = self._client.post(f"{self._url}/access/{path}", json=body)
        if answer.is_error:
            raise SystemExit(f"{path} {body}: {answer.status_code} {answer.text}")
        found: dict[str, Any] = answer.json()
        return found


def _measured(questions: Questions) -> Table:
    title = f"{_SIZE.tables:,} tables, {_SIZE.users:,} users, {_SIZE.grants:,} grants; {_REQUESTS} requests in turn"
    shown = Table(title=title)
    for column in ("question", "rows", "p50 ms", "p95 ms"):
        shown.add_column(column, justify="left" if column == "question" else "right")
    for name, (path, body) in questions.all().items():
        took, rows = [], 0
        for _ in range(_REQUESTS):
            begun = time.perf_counter()
            rows = len(questions.send(path, body)["rows"])
            took.append((time.perf_counter() - begun) * 1000)
        high = sorted(took)[max(0, round(0.95 * len(took)) - 1)]
        shown.add_row(name, str(rows), f"{statistics.median(took):.0f}", f"{high:.0f}")
    return shown


def main() -> None:
    """Start a stack, fill it, measure, and print the figures."""
    with stack() as running:
        ready = running.ready
        prepared = Prepared(
            Catalog(name="lakegate", url=ready.catalog_uri, token=ready.users["admin"].token, warehouse=ready.warehouse)
        )
        begun = time.perf_counter()
        filler = AnswersFiller(running, prepared, _SIZE)
        asyncio.run(filler.fill())
        print(f"filled in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
        questions = Questions(running, filler, prepared.namespaces.rsplit("/", 2)[-2])
        Console(width=120).print(_measured(questions))


if __name__ == "__main__":
    main()
