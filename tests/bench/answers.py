# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.bench.answers`: measure explanations and lists of access on a large catalog.

The catalog has `BENCH_ANSWERS_TABLES` tables, `BENCH_ANSWERS_USERS` users and `BENCH_ANSWERS_GRANTS` grants on single
tables (`tests.bench.filling`). All users are members of one role, which may read the warehouse. One user holds
`BENCH_ANSWERS_OF_ONE` grants. Each question is sent `BENCH_ANSWERS_REQUESTS` times, one after the other, in slices in
turns with the baseline: a `batch-check` of one action, which has the same decision without its reasons.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import httpx
from rich.console import Console
from rich.table import Table

from gateway.fga.names import object_of, user_object
from tests.bench.catalogs import Catalog, Prepared
from tests.bench.cpu import seconds_by_group
from tests.bench.filling import Filler, Size
from tests.bench.stacks import Running, groups_of, stack

_SIZE = Size(
    tables=int(os.environ.get("BENCH_ANSWERS_TABLES", "100000")),
    users=int(os.environ.get("BENCH_ANSWERS_USERS", "100000")),
    grants=int(os.environ.get("BENCH_ANSWERS_GRANTS", "1000000")),
)
_OF_ONE = int(os.environ.get("BENCH_ANSWERS_OF_ONE", "10000"))
_REQUESTS = int(os.environ.get("BENCH_ANSWERS_REQUESTS", "20"))
_SLICES: Final = 4
_ATTEMPTS: Final = 20
_HOLDER = "oidc~holder-of-many-grants"
_MEMBER = "oidc~scale0"
_NOBODY = "oidc~holder-of-no-grants"
_EVERYONE = 100
_SECONDS = 120.0
_BASELINE: Final = "baseline: batch-check of 1"


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


@dataclass(frozen=True, slots=True)
class Question:
    """One question: its path below `/management/v1`, its body, and the member of the answer with its rows.

    `page` is the number of pages before the measured one.
    """

    path: str
    body: Mapping[str, Any]
    rows: str = "rows"
    page: int = 0


@dataclass(slots=True)
class Measured:
    """The milliseconds of each request, and the CPU milliseconds of each group of processes over all of them."""

    took: list[float] = field(default_factory=list)
    cpu: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    failed: int = 0

    def shares(self, groups: Sequence[str]) -> list[str]:
        """Return the CPU milliseconds of a request by group, and their sum."""
        each = [self.cpu[group] / max(1, len(self.took)) for group in groups]
        return [f"{value:.1f}" for value in (*each, sum(each))]


class Questions:
    """The questions to one filled catalog. `url` is that of the management API, `pids` are the measured processes."""

    def __init__(self, url: str, token: str, pids: Mapping[str, Sequence[int]], warehouse: str, table: str) -> None:
        self._url, self._pids = f"{url}/v1", pids
        self._client = httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=_SECONDS, trust_env=False)
        self._warehouse = {"warehouse": {"warehouse-id": warehouse}}
        self._table = {"table": {"warehouse-id": warehouse, "table-id": table}}
        self.failed = 0

    def grant(self, warehouse: str, role: str) -> None:
        """Let the members of a role read the warehouse."""
        write = {"writes": [{"privilege": "select", "principal": {"role": role}}]}
        self._client.post(f"{self._url}/warehouse/{warehouse}/grants", json=write).raise_for_status()

    def all(self, role: str) -> dict[str, Question]:
        """Return the questions by name. `role` is the role of all users."""
        members = {"action": "read_data", "object": self._table, "expand": role}
        holder = {"principal": {"user": _HOLDER}, "object": self._warehouse}
        found = {
            _BASELINE: Question("action/batch-check", {"checks": [self._check("read_data", _MEMBER)]}, "results"),
            "explain a yes": self._explain("read_data", _MEMBER),
            "explain a no, with repairs": self._explain("read_data", _NOBODY),
            "explain a no of a member, with repairs": self._explain("drop", _MEMBER),
            "who-can read a table": self._who_can("read_data", self._table),
            "the same, members of the role": Question("access/who-can", members),
            "the same, a later page": Question("access/who-can", members, page=5),
            "who-can manage grants of a table": self._who_can("grant_select", self._table),
            "who-can create in a warehouse": self._who_can("create_namespace", self._warehouse),
            "who-can see a warehouse": self._who_can("get_metadata", self._warehouse),
            "what-can, first page": Question("access/what-can", holder),
            "what-can, a later page": Question("access/what-can", holder, page=5),
            "what-can, one action": Question("access/what-can", {**holder, "action": "get_metadata"}),
        }
        return found

    def _who_can(self, action: str, object: Mapping[str, Any]) -> Question:
        return Question("access/who-can", {"action": action, "object": object})

    def _check(self, action: str, user: str) -> dict[str, Any]:
        on = {**self._table["table"], "action": {"action": action}}
        return {"operation": {"table": on}, "identity": {"user": user}}

    def _explain(self, action: str, user: str) -> Question:
        return Question("access/explain", self._check(action, user), "relationships")

    def at_page(self, question: Question) -> Question:
        """Return the question for its page alone."""
        for _ in range(question.page):
            token = self.send(question)["next-page-token"]
            question = replace(question, body={**question.body, "page-token": token})
        return question

    def send(self, question: Question) -> dict[str, Any]:
        """Send one question and return the answer. A busy engine is asked again."""
        for _ in range(_ATTEMPTS):
            answer = self._client.post(f"{self._url}/{question.path}", json=question.body)
            if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                break
            self.failed += 1
        if answer.is_error:
            raise SystemExit(f"{question.path} {question.body}: {answer.status_code} {answer.text}")
        found: dict[str, Any] = answer.json()
        return found

    def measure(self, question: Question, found: Measured, times: int) -> None:
        """Send a question several times, and add its figures."""
        before, failed = seconds_by_group(self._pids), self.failed
        for _ in range(times):
            begun = time.perf_counter()
            rows = self.send(question)[question.rows]
            found.took.append((time.perf_counter() - begun) * 1000)
            found.rows = len(rows) if isinstance(rows, list) else len(rows.get("witnesses") or rows.get("repairs", []))
        after = seconds_by_group(self._pids)
        found.failed += self.failed - failed
        found.cpu.update({name: round(1000 * (after[name] - before[name])) for name in after})


def compared(questions: Questions, asked: Mapping[str, Question], groups: Sequence[str]) -> Table:
    """Measure each question in turns with the baseline. Return the table of the figures."""
    title = f"{_SIZE.tables:,} tables, {_SIZE.users:,} users, {_SIZE.grants:,} grants; {_REQUESTS} requests in turn"
    shown = Table(
        title=title, caption=f"gateway … sum: CPU milliseconds a request; ratio: of the p50 to the {_BASELINE}"
    )
    for column in ("question", "rows", "p50 ms", "p95 ms", "ratio", *groups, "sum", "failed"):
        shown.add_column(column, justify="left" if column == "question" else "right")
    for name, first in asked.items():
        ours, base, question = Measured(), Measured(), questions.at_page(first)
        questions.send(question)
        for _ in range(_SLICES):
            for each, into in ((question, ours), (asked[_BASELINE], base)):
                questions.measure(each, into, max(1, _REQUESTS // _SLICES))
        high = sorted(ours.took)[max(0, round(0.95 * len(ours.took)) - 1)]
        median = statistics.median(ours.took)
        ratio = median / statistics.median(base.took)
        shown.add_row(
            name, str(ours.rows), f"{median:.0f}", f"{high:.0f}", f"{ratio:.1f}", *ours.shares(groups), str(ours.failed)
        )
    return shown


def main() -> None:
    """Start a stack, fill it, measure, and print the figures."""
    with stack() as running:
        ready = running.ready
        token, groups = ready.users["admin"].token, groups_of(ready)
        prepared = Prepared(Catalog(name="lakegate", url=ready.catalog_uri, token=token, warehouse=ready.warehouse))
        begun = time.perf_counter()
        filler = AnswersFiller(running, prepared, _SIZE)
        asyncio.run(filler.fill())
        print(f"filled in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
        warehouse = prepared.namespaces.rsplit("/", 2)[-2]
        questions = Questions(ready.management_uri, token, groups, warehouse, filler.table)
        questions.grant(warehouse, filler.role)
        Console(width=160).print(compared(questions, questions.all(filler.role), list(groups)))


if __name__ == "__main__":
    main()
