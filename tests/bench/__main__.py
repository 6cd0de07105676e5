# SPDX-License-Identifier: Apache-2.0
"""`make bench`: compare the gateway with its floor, on the embedded stack with audit on, in alternating rounds.

Everything runs on this machine at once (gateway, PostgreSQL, OpenFGA, OPA, object store, load). So compare the ratio to
the floor of the same round, and CPU time, rather than single figures. The tables show medians over the rounds.
`BENCH_ONLY=commit,list` measures the requests with one of these words in their name.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlencode

import httpx
import msgspec
from rich.console import Console
from rich.table import Table

from gateway.embedded import ready
from gateway.embedded.ready import Ready
from tests.bench.cpu import seconds_of
from tests.bench.hot import Gateway, bytes_of_an_allow, forgetful, policies_last, revocations
from tests.bench.load import Load, Request, Result
from tests.bench.people import Company, interleaved
from tests.bench.searching import TEXT, SearchedTables, questions
from tests.bench.seeding import SCHEMA, ManyTables, with_snapshots
from tests.bench.tasks import throughput
from tests.bench.tokens import token_costs

_CONNECTIONS = tuple(map(int, os.environ.get("BENCH_CONNECTIONS", "1,8,32").split(",")))
_SECONDS = float(os.environ.get("BENCH_SECONDS", "2"))
_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
_SNAPSHOTS = tuple(map(int, os.environ.get("BENCH_SNAPSHOTS", "10,100,1000").split(",")))
_LARGE = int(os.environ.get("BENCH_LARGE_SNAPSHOTS", "1340"))
_TABLES = tuple(map(int, os.environ.get("BENCH_TABLES", "100,1000,10000").split(",")))
_SEARCHED = int(os.environ.get("BENCH_SEARCHED", "100000"))
_CHECKS = (1, 100, 1_000)
_TASKS = int(os.environ.get("BENCH_TASKS", "1000"))
_ONLY = [word for word in os.environ.get("BENCH_ONLY", "").split(",") if word]
_FEW = "analyst"
_MANY = "steward"
_ENGINE = "etl"
_EXCHANGE = "token exchange"
_MIX = "mix of 50 users in 5 roles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One kind of request. `floor_table` is the id of the table whose document the floor sends."""

    name: str
    method: str
    url: str
    headers: dict[str, str]
    floor_table: str
    body: str | None = None
    connections: tuple[int, ...] = _CONNECTIONS
    mix: list[Request] = field(default_factory=list)
    """Requests that are sent in turn instead of the one request."""
    lasting: bool = False
    """True if OPA's answers are cacheable."""
    forgetful: bool = False
    """True to use the gateway without a decision cache."""


@dataclass(frozen=True, slots=True)
class Round:
    """One load on the gateway and one on the floor; CPU seconds of the gateway's workers, PostgreSQL and OpenFGA."""

    ours: Result
    floor: Result
    gateway_cpu: float
    postgres_cpu: float
    openfga_cpu: float


class Generator:
    """The process that sends requests."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._next = 0

    def send(self, case: Case, connections: int) -> Result:
        """Send one load and return its result."""
        load = Load(
            method=case.method,
            url=case.url,
            headers=case.headers,
            body=case.body,
            connections=connections,
            seconds=_SECONDS,
            first=self._next,
            mix=case.mix,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(load).decode() + "\n")
        self._process.stdin.flush()
        result = msgspec.json.decode(self._process.stdout.readline(), type=Result)
        self._next = result.last
        return result

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait(10)


@contextmanager
def _stack() -> Iterator[tuple[Ready, Path]]:
    """Start the stack. Return (stack, its data directory)."""
    with tempfile.TemporaryDirectory(prefix="lakegate-bench-", ignore_cleanup_errors=True) as scratch:
        ready_file = Path(scratch) / "ready.json"
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", "up", "--ready-file", str(ready_file), "--data", f"{scratch}/data"],
            stdout=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 120
            while not ready_file.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the stack did not start: run `make up` to see why")
                time.sleep(0.1)
            yield ready.read(ready_file), Path(scratch) / "data"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@contextmanager
def _floor(stack: Ready, table: str) -> Iterator[str]:
    """Run the floor server on a free port, with as many workers as the gateway; `table` is any table for the readiness
    check.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = os.environ | {
        "BENCH_POSTGRES": stack.postgres.replace("postgresql://", "postgresql+asyncpg://", 1),
        # As long as the part of a load response before its metadata.
        "BENCH_PREFIX": json.dumps({"metadata-location": "s3://bucket/" + "x" * 120})[:-1] + ', "metadata": ',
        "BENCH_POOL": "5",
    }
    command = [sys.executable, "-m", "granian", "--interface", "asgi", "--factory", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "2", "--loop", "uvloop", "--no-ws", "tests.bench.floor:create_app"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}/table"
        for _ in range(100):
            try:
                httpx.get(f"{url}/{table}", trust_env=False).raise_for_status()
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def _is_selected(name: str) -> bool:
    return not _ONLY or any(word in name for word in _ONLY)


def _cases(stack: Ready, data: Path) -> list[Case]:
    """Create the data of the requests, and return the requests."""
    headers = {"Authorization": f"Bearer {stack.users['admin'].token}"}
    plain = {**headers, "X-Iceberg-Access-Delegation": "client-managed"}
    commit = '{"requirements":[],"updates":[{"action":"set-properties","updates":{"bench":"{n}"}}]}'
    with httpx.Client(base_url=stack.catalog_uri, headers=headers, trust_env=False, timeout=60) as client:
        config = client.get("/v1/config", params={"warehouse": stack.warehouse or ""}).raise_for_status().json()
        namespaces = f"{stack.catalog_uri}/v1/{config['defaults']['prefix']}/namespaces"
        client.post(namespaces, json={"namespace": ["bench"]}).raise_for_status()
        base = f"{namespaces}/bench/tables"
        client.post(base, json={"name": "table", "schema": SCHEMA}).raise_for_status()
        histories = {count: f"commit, {count:,} snapshots" for count in _SNAPSHOTS}
        for count, name in histories.items():
            if _is_selected(name):
                with_snapshots(client, base, f"history_{count}", count)
        megabyte = f"loadTable, {_LARGE:,} snapshots (1 MB)"
        if _is_selected(megabyte):
            with_snapshots(client, base, "large", _LARGE)
        readers = {count: {_FEW: 3, _MANY: count // 2} for count in _TABLES}
        for count, few in readers.items():
            if _is_selected(f"list {count:,} tables"):
                ManyTables(stack, client, namespaces, count=count).make(f"wide{count}", few)
        mix = (
            interleaved(Company(stack, data, client, namespaces).requests("office", 100)) if _is_selected(_MIX) else []
        )
        searches = _searches(stack, client, namespaces)
        listed = client.get(base, params={"returnUuids": "true"}).raise_for_status().json()
    ids = {each["name"]: id for each, id in zip(listed["identifiers"], listed["table-uuids"], strict=True)}
    table = ids["table"]
    create = json.dumps({"name": "created_{n}", "schema": SCHEMA})
    config_url = f"{stack.catalog_uri}/v1/config?warehouse={stack.warehouse}"
    cases = [
        Case(name="config", method="GET", url=config_url, headers=headers, floor_table=table),
        Case(name="loadTable", method="GET", url=f"{base}/table", headers=plain, floor_table=table),
        Case(
            name="loadTable, OPA's answers last",
            method="GET",
            url=f"{base}/table",
            headers=plain,
            floor_table=table,
            lasting=True,
        ),
        Case(
            name="loadTable, nothing remembered",
            method="GET",
            url=f"{base}/table",
            headers=plain,
            floor_table=table,
            forgetful=True,
        ),
        Case(name="table exists", method="HEAD", url=f"{base}/table", headers=headers, floor_table=table),
        Case(name="list namespaces", method="GET", url=namespaces, headers=headers, floor_table=table),
        Case(name="loadTable, vended", method="GET", url=f"{base}/table", headers=headers, floor_table=table),
        Case(name="create table", method="POST", url=base, headers=plain, floor_table=table, body=create),
        Case(name="commit", method="POST", url=f"{base}/table", headers=headers, floor_table=table, body=commit),
    ]
    for count, name in histories.items():
        history = f"{base}/history_{count}"
        id = ids.get(f"history_{count}", table)
        cases.append(
            Case(name=name, method="POST", url=history, headers=headers, floor_table=id, body=commit, connections=(8,))
        )
    large = ids.get("large", table)
    cases.append(
        Case(name=megabyte, method="GET", url=f"{base}/large", headers=plain, floor_table=large, connections=(1, 8))
    )
    for count, few in readers.items():
        for reader, sees in {**few, "admin": count}.items():
            name = f"list {count:,} tables, sees {sees:,}"
            token = {"Authorization": f"Bearer {stack.users[reader].token}"}
            url = f"{namespaces}/wide{count}/tables"
            at_once = (1,) if count > 1_000 else (1, 8)
            cases.append(Case(name=name, method="GET", url=url, headers=token, floor_table=table, connections=at_once))
    cases += [replace(case, floor_table=table) for case in searches]
    cases += [_exchange(stack, config["defaults"]["prefix"], table)] if _is_selected(_EXCHANGE) else []
    cases.append(Case(name=_MIX, method="GET", url="", headers={}, floor_table=table, mix=mix))
    return [case for case in cases if _is_selected(case.name)]


def _exchange(stack: Ready, warehouse: str, table: str) -> Case:
    """Return the token exchange of an engine that acts for a user with that user's token."""
    engine, other_user = stack.users[_ENGINE], stack.users[_FEW]
    may = {"writes": [{"type": "delegate", "user": engine.id}]}
    headers = {"Authorization": f"Bearer {stack.users['admin'].token}"}
    url = f"{stack.management_uri}/v1/permissions/warehouse/{warehouse}/assignments"
    httpx.post(url, json=may, headers=headers, trust_env=False, timeout=30).raise_for_status()
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": other_user.token,
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }
    return Case(
        name=_EXCHANGE,
        method="POST",
        url=f"{stack.catalog_uri}/v1/oauth/tokens",
        headers={
            "Authorization": f"Bearer {engine.token}",
            "Content-Type": "application/x-www-form-urlencoded",
        },
        floor_table=table,
        body=urlencode(form),
    )


def _searches(stack: Ready, client: httpx.Client, namespaces: str) -> list[Case]:
    """Return searches by users who see three, half and all of the tables, and batch checks."""
    if not (_is_selected("search") or _is_selected("batch-check")):
        return []
    searched = SearchedTables(stack, client, namespaces, count=_SEARCHED).make_for(_MANY, _FEW)
    management, warehouse = f"{stack.management_uri}/v1", namespaces.rsplit("/", 2)[-2]
    cases = []
    for reader, sees in {_FEW: 3, _MANY: _SEARCHED // 2, "admin": _SEARCHED}.items():
        cases.append(
            Case(
                name=f"search in {_SEARCHED:,} tables, sees {sees:,}",
                method="POST",
                url=f"{management}/warehouse/{warehouse}/search-tabular",
                headers={"Authorization": f"Bearer {stack.users[reader].token}"},
                floor_table="",
                body=json.dumps({"search": TEXT}),
                connections=(1,),
            )
        )
    for count in _CHECKS:
        for forgets in (False, True):
            cases.append(
                Case(
                    name=f"batch-check of {count:,}{', nothing remembered' if forgets else ''}",
                    method="POST",
                    url=f"{management}/action/batch-check",
                    headers={"Authorization": f"Bearer {stack.users[_MANY].token}"},
                    floor_table="",
                    body=questions(warehouse, searched[:count]),
                    connections=(1,),
                    forgetful=forgets,
                )
            )
    return cases


def _measured(
    stack: Ready, gateway: Gateway, generator: Generator, case: Case, floor: str, connections: int
) -> list[Round]:
    url = case.url.replace(stack.catalog_uri.removesuffix("/catalog"), gateway.catalog_uri.removesuffix("/catalog"))
    watched = (gateway.pids, stack.pids["postgres"], stack.pids["openfga"])
    rounds = []
    for _ in range(_ROUNDS):
        before = [seconds_of(pids) for pids in watched]
        ours = generator.send(replace(case, url=url), connections)
        took = [seconds_of(pids) - earlier for pids, earlier in zip(watched, before, strict=True)]
        beside = generator.send(replace(case, method="GET", url=floor, headers={}, body=None, mix=[]), connections)
        rounds.append(Round(ours, beside, *took))
    return rounds


def _warehouse(stack: Ready) -> str:
    """Return the id of the stack's warehouse."""
    headers = {"Authorization": f"Bearer {stack.users['admin'].token}"}
    url = f"{stack.catalog_uri}/v1/config?warehouse={stack.warehouse}"
    prefix: str = httpx.get(url, headers=headers, trust_env=False).raise_for_status().json()["defaults"]["prefix"]
    return prefix


def _worker_memory(stack: Ready) -> list[float]:
    """Return the resident megabytes of each gateway worker."""
    answer = subprocess.run(
        ["ps", "-o", "rss=", "-p", ",".join(map(str, stack.pids["gateway"][1:]))], capture_output=True, text=True
    )
    return [int(line) / 1024 for line in answer.stdout.split()]


def main() -> None:
    """Measure, and print the figures."""
    console = Console(width=140)
    shown = Table(title=f"{_ROUNDS} rounds of {_SECONDS:g} s each, medians; audit on", expand=True)
    columns = (
        "request",
        "conns",
        "answers/s",
        "p50 ms",
        "p99 ms",
        "gateway CPU ms",
        "PostgreSQL CPU ms",
        "OpenFGA CPU ms",
    )
    for column in (*columns, "floor/s", "of the floor", "failed"):
        shown.add_column(column, justify="left" if column == "request" else "right")
    # Measured before the stack starts, with a separate database.
    result = [_tasks_line(0, 0), _tasks_line(100_000, 100_000)] if _is_selected("tasks") else []
    if _ONLY == ["tasks"]:
        for line in result:
            console.print(line)
        return
    with ExitStack() as held:
        stack, data = held.enter_context(_stack())
        cases = _cases(stack, data)
        generator = Generator()
        held.callback(generator.close)
        floor = held.enter_context(_floor(stack, cases[0].floor_table))
        own = Gateway(stack.catalog_uri, stack.pids["gateway"])
        for case in cases:
            with ExitStack() as during:
                if case.lasting:
                    policies_last(stack, 600)
                    during.callback(policies_last, stack, 0)
                gateway = during.enter_context(forgetful(stack)) if case.forgetful else own
                for connections in case.connections:
                    rounds = _measured(stack, gateway, generator, case, f"{floor}/{case.floor_table}", connections)
                    shown.add_row(case.name, str(connections), *_row(rounds))
        if _is_selected("revoke"):
            median, longest = revocations(stack, cases[0].floor_table, _warehouse(stack), 30)
            result.append(f"revoke, until its success: median {median:.0f} ms, longest of 30 {longest:.0f} ms")
        memory = _worker_memory(stack)
    console.print(shown)
    for line in result:
        console.print(line)
    console.print(token_costs())
    console.print(f"a remembered allow: {bytes_of_an_allow(20_000):.0f} bytes")
    console.print(f"memory of a gateway worker: {', '.join(f'{each:.0f} MB' for each in memory)}")
    console.print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")


def _tasks_line(ended: int, waiting: int) -> str:
    found = throughput(_TASKS, _ROUNDS, ended=ended, waiting=waiting)
    beside = f", beside {ended:,} that ended and {waiting:,} for later" if ended else ""
    return (
        f"tasks that do nothing{beside}: {found.per_second:,.0f}/s in one process; "
        f"two bare transactions each: {found.floor_per_second:,.0f}/s; of that floor {found.ratio:.3f}"
    )


def _row(rounds: list[Round]) -> list[str]:
    ours = statistics.median(each.ours.per_second for each in rounds)
    floors = statistics.median(each.floor.per_second for each in rounds)
    ratio = statistics.median(each.ours.per_second / each.floor.per_second for each in rounds)

    def per_answer(cpu: list[float]) -> str:
        return f"{statistics.median(1000 * c / max(1, r.ours.answered) for c, r in zip(cpu, rounds, strict=True)):.2f}"

    return [
        f"{ours:,.0f}" if ours >= 10 else f"{ours:.1f}",
        f"{statistics.median(each.ours.p50 for each in rounds):.1f}",
        f"{statistics.median(each.ours.p99 for each in rounds):.1f}",
        per_answer([each.gateway_cpu for each in rounds]),
        per_answer([each.postgres_cpu for each in rounds]),
        per_answer([each.openfga_cpu for each in rounds]),
        f"{floors:,.0f}",
        f"{ratio:.3f}",
        str(sum(each.ours.refused for each in rounds)),
    ]


if __name__ == "__main__":
    main()
