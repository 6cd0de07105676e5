# SPDX-License-Identifier: Apache-2.0
"""Run Spark in the demonstration: the pipeline as a job, and a worker process for single statements.

Both run `python -m lakegate.spark`, as a scheduler would. They receive tokens through standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from lakegate.local.children import Child, Children, ChildSpec
from lakegate.local.errors import ChildFailed
from lakegate.local.ready import Ready

RUN_SECONDS = 900.0
STATEMENT_SECONDS = 120.0
_LINE_LIMIT = 1 << 22
_GRACE_SECONDS = 15.0
_LOOK_AGAIN = 0.5
_PROGRESS = re.compile(r"\w+ \.\.\.$|  \w+\.\w+: ")
_CHECKOUT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTools:
    """The Java installation, the archives, and the working directory of Spark."""

    java_home: Path
    jars: Sequence[Path]
    work_dir: Path

    def environment(self) -> dict[str, str]:
        """Return the whole environment of a Spark process. It inherits no variable of this process."""
        return {
            "JAVA_HOME": str(self.java_home),
            "PATH": f"{self.java_home / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": str(_CHECKOUT),
            "PYTHONUNBUFFERED": "1",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "LC_ALL": "C.UTF-8",
            "HOME": str(self.work_dir),
        }

    def engine(self) -> dict[str, Any]:
        """Return the section `engine` of a pipeline configuration."""
        return {"jars": [str(jar) for jar in self.jars], "work_dir": str(self.work_dir)}


class TableState(msgspec.Struct, frozen=True):
    """The state of a table: its metadata file and its snapshot."""

    metadata_location: str
    snapshot_id: int | None


class TableAccount(msgspec.Struct, frozen=True):
    """The changes of a run to a table, as numbers of rows by kind of change, and the state of the table after the
    run.
    """

    changes: dict[str, int]
    state: TableState


class Finding(msgspec.Struct, frozen=True):
    """The result of one expectation of data quality."""

    dataset: str
    expectation: str
    severity: str
    rows_checked: int
    violations: int
    outcome: str


class Account(msgspec.Struct, frozen=True):
    """The report of a pipeline run, reduced to the fields that the demonstration shows."""

    delivery: str
    changed: bool
    seconds: dict[str, float]
    tables: dict[str, TableAccount]
    quality: list[Finding]

    def states(self) -> dict[str, TableState]:
        """Return {table: its state at the end of the run}."""
        return {name: table.state for name, table in self.tables.items()}


async def run_pipeline(
    name: str,
    user: str,
    *,
    children: Children,
    logs: Path,
    tools: SparkTools,
    ready: Ready,
    notify: Callable[[str], None],
) -> Account:
    """Run the pipeline once as ``user``, and return its report. ``notify`` is called with each line of progress.

    Raises:
        ChildFailed: the run failed or took more than ``RUN_SECONDS``. The error names its log.
    """
    catalog = {
        "type": "rest",
        "uri": ready.catalog_uri,
        "warehouse": ready.warehouse,
        "token": ready.users[user].token,
    }
    report = tools.work_dir / f"{name}.json"
    report.unlink(missing_ok=True)
    log = logs / f"{name}.log"
    log.unlink(missing_ok=True)  # lines of an earlier demonstration are not progress of this one
    spec = ChildSpec(
        name=name,
        argv=[sys.executable, "-m", "lakegate.spark", "run", "--config", "-", "--report", str(report)],
        env=tools.environment(),
        cwd=tools.work_dir,
        text=msgspec.json.encode({"catalog": catalog, "engine": tools.engine()}).decode(),
        order=3,
    )
    child = await children.start(spec)
    code = await _watched(child, notify)
    if code != 0:
        raise ChildFailed(name, f"ended with status {code}: {_last_words(child.log)}", child.log)
    return msgspec.json.decode(report.read_bytes(), type=Account)


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:500] if lines else "it printed nothing"


async def _watched(child: Child, notify: Callable[[str], None]) -> int:
    """Wait for a child and return its exit code. Call ``notify`` with each line of progress in its log."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + RUN_SECONDS
    shown = 0
    while True:
        done, _ = await asyncio.wait({child.exited}, timeout=_LOOK_AGAIN)
        lines = child.log.read_text(errors="replace").splitlines() if child.log.exists() else []
        for line in lines[shown:]:
            if _PROGRESS.match(line):
                notify(f"    {line}")
        shown = len(lines)
        if done:
            return child.exited.result()
        if loop.time() > deadline:
            raise ChildFailed(child.name, f"did not finish within {RUN_SECONDS:.0f} seconds", child.log)


class Answer(msgspec.Struct, frozen=True):
    """The result of a statement: its rows as text, or the class and message of an error."""

    seconds: float
    rows: list[list[str | None]] = []
    error: str | None = None
    message: str | None = None

    def refusal(self) -> str:
        """Return the error in short form; an empty text if there was none."""
        first_line = (self.message or "").strip().splitlines()
        return f"{self.error}: {first_line[0][:100] if first_line else ''}" if self.error else ""


class Worker:
    """A Spark engine that runs statements one after the other, each in a new session with the statement's own token.

    It ends when its standard input is closed. Its input is also closed when its parent process ends.
    """

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._one_at_a_time = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._ended(), _GRACE_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _ended(self) -> None:
        """Wait for the end of the process and of its JVM, which shares its standard output."""
        if self._process.stdout is not None:
            await self._process.stdout.read()
        await self._process.wait()

    async def query(self, token: str, statement: str) -> Answer:
        """Run a statement as the holder of ``token``.

        Raises:
            ChildFailed: the engine has ended, or did not respond within ``STATEMENT_SECONDS``.
        """
        async with self._one_at_a_time:
            if self._process.stdin is None:
                raise ChildFailed("spark", "has no standard input", self._log)
            self._process.stdin.write(msgspec.json.encode({"token": token, "statement": statement}) + b"\n")
            await self._process.stdin.drain()
            return await self.answer()

    async def answer(self) -> Answer:
        """Read the engine's response to the last statement.

        Raises:
            ChildFailed: the engine has ended, or did not respond within ``STATEMENT_SECONDS``.
        """
        if self._process.stdout is None:
            raise ChildFailed("spark", "has no standard output", self._log)
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), STATEMENT_SECONDS)
        except TimeoutError:
            raise ChildFailed("spark", f"did not answer within {STATEMENT_SECONDS:.0f} seconds", self._log) from None
        if not line:
            raise ChildFailed("spark", "ended unexpectedly", self._log)
        return msgspec.json.decode(line, type=Answer)


@asynccontextmanager
async def worker(logs: Path, tools: SparkTools, ready: Ready) -> AsyncIterator[Worker]:
    """Context manager. Start a worker, and yield it when its engine is ready."""
    log = logs / "spark.log"
    config = {"uri": ready.catalog_uri, "warehouse": ready.warehouse, "engine": tools.engine()}
    with log.open("wb") as chatter:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "lakegate.spark",
            "statements",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=chatter,
            env=tools.environment(),
            cwd=tools.work_dir,
            limit=_LINE_LIMIT,
            # Ctrl-C in the terminal signals only the demonstration, which then closes the pipe.
            start_new_session=True,
        )
    async with Worker(process, log) as started:
        if process.stdin is not None:
            process.stdin.write(msgspec.json.encode(config) + b"\n")
            await process.stdin.drain()
        await started.answer()
        yield started
