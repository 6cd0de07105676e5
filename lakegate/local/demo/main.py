# SPDX-License-Identifier: Apache-2.0
"""Run the demonstration from start to end: the stack, two runs of the pipeline, grants, and trials with their results.

A trial sends a request and shows whether it was permitted.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2
from rich.console import Console

from gateway.settings import Settings, java_home, search_path
from lakegate.local import bootstrap, jdk, spark_jars, stack, toolchain
from lakegate.local.children import Children
from lakegate.local.demo import keys, story
from lakegate.local.demo.board import Board, Observation, Trial
from lakegate.local.demo.spark import Account, SparkTools, Worker, run_pipeline, worker
from lakegate.local.demo.world import (
    CALL_SECONDS,
    CONTRACT_GOLD,
    GOLD,
    Caller,
    Lake,
    SetupRefused,
    World,
    callers,
    register,
)
from lakegate.local.ready import Ready
from lakegate.local.stack import Plan
from lakegate.local.up import until_signal

DATA = Path(".lakegate")
FLIGHTS = 336_776
_CONFLICT = 409
_WIDTH_OF_A_FILE = 160
_INTERRUPTED = 130


async def run(settings: Settings, *, data: Path = DATA) -> int:
    """Start the stack in ``data`` and run the demonstration.

    The stack stops at its end; the data remain for `lakegate up`. Return the exit status: 0 if every line was as
    expected, 1 if not, 130 after a signal.

    Raises:
        StackError: no table was printed, because a program is missing, a part did not start, or a step of the set-up
            was refused.
    """
    console = _console()
    tools = toolchain.locate(settings)
    home = data.resolve()
    spark = SparkTools(
        java_home=jdk.find(java_home(), search_path()),
        jars=spark_jars.locate(toolchain.cache(settings).jars()),
        work_dir=home / "spark",
    )
    status: list[int] = []
    embedded = settings.embedded
    plan = Plan(data=home, tools=tools, fast=embedded.fast, free_ports=embedded.free_ports)

    async def work() -> None:
        started = time.monotonic()
        console.print("Starting PostgreSQL, OpenFGA, OPA, the object store, the identity provider and the gateway …")
        async with stack.running(plan) as running:
            ready = await running.ready(*await bootstrap.run(running))
            console.print(f"The stack is up after {time.monotonic() - started:.0f} s; its logs are in {home / 'logs'}")
            scene = Scene(ready, running.children, spark, home / "logs")
            status.append(await demonstrate(scene, console))

    finished = await until_signal(work())
    return status[0] if finished else _INTERRUPTED


def _console() -> Console:
    """Return a console with the width of the terminal. If the output is a file or a pipe, the width fits the table."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH_OF_A_FILE)


@dataclass(frozen=True, slots=True)
class Scene:
    """A running, bootstrapped stack, the object that starts its processes, Spark's tools, and the directory of logs."""

    ready: Ready
    children: Children
    spark: SparkTools
    logs: Path


async def demonstrate(scene: Scene, console: Console, *, pipeline: bool = True) -> int:
    """Run the pipeline, the grants and the trials on a running stack. Return 0 if every result was expected, otherwise
    1.

    ``pipeline``: False skips the two runs; their tables must exist already.
    """
    board = Board(console)
    started = time.monotonic()
    scene.spark.work_dir.mkdir(mode=0o700, exist_ok=True)
    async with httpx2.AsyncClient(timeout=CALL_SECONDS, trust_env=False) as http:
        people = callers(scene.ready, http)
        lake = await _prepare(people, scene.ready)
        if pipeline:
            await _pipeline(board, scene)
        await _grants(people, lake)
        board.notify("Starting one Spark engine for the trials ...")
        async with worker(scene.logs, scene.spark, scene.ready) as engine:
            await _trials(board, _world(scene, people, lake, engine), http)
    console.print(board.table())
    return _summary(board, console, scene, time.monotonic() - started)


def _world(scene: Scene, people: dict[str, Caller], lake: Lake, engine: Worker) -> World:
    return World(scene.ready, people, lake, engine)


async def _prepare(people: dict[str, Caller], ready: Ready) -> Lake:
    """Register every user with a first call, and grant `etl` create and modify on the warehouse.

    Return the paths of the warehouse.
    """
    if ready.warehouse is None:
        raise SetupRefused("the stack has no warehouse, because it was started with --empty")
    for name in ready.users:
        await register(people[name], ready.warehouse)
    reply = await register(people["admin"], ready.warehouse)
    if reply.status != httpx2.codes.OK:
        raise SetupRefused(f"admin cannot use the warehouse {ready.warehouse}: {reply} {reply.message}")
    settings = {**reply.body.get("defaults", {}), **reply.body.get("overrides", {})}
    lake = Lake(ready.warehouse, str(settings["prefix"]))
    for relation in ("create", "modify"):
        await _give(lake, people["admin"], "warehouse", lake.prefix, relation, people["etl"])
    return lake


async def _grants(people: dict[str, Caller], lake: Lake) -> None:
    """Grant two readers one gold table each, and `steward` the management of grants on silver, as `admin`."""
    admin = people["admin"]
    for ident, reader in ((GOLD, "analyst"), (CONTRACT_GOLD, "contractor")):
        await _give(lake, admin, "table", await lake.table_id(admin, ident), "select", people[reader])
    silver = await lake.namespace_id(admin, "silver")
    for relation in ("describe", "manage_grants"):
        await _give(lake, admin, "namespace", silver, relation, people["steward"])


async def _give(lake: Lake, giver: Caller, kind: str, identity: str, relation: str, taker: Caller) -> None:
    reply = await lake.assign(giver, kind, identity, relation, taker)
    if reply.status not in (httpx2.codes.NO_CONTENT, _CONFLICT):  # 409: an earlier demonstration made the grant
        raise SetupRefused(
            f"{giver.name} could not grant {taker.name} {relation} on the {kind}: {reply} {reply.message}"
        )


async def _pipeline(board: Board, scene: Scene) -> None:
    """Run the pipeline twice as `etl`. The second run must leave every table unchanged."""
    board.notify("The pipeline runs as etl: 336,776 flights through bronze, silver and gold ...")
    first = await _run_as_etl("pipeline-1", board, scene)
    board.notify("The pipeline runs again, on the same delivery ...")
    second = await _run_as_etl("pipeline-2", board, scene)

    async def worked() -> Observation:
        return _judge_first(first)

    async def idle() -> Observation:
        moved = sorted(name for name, state in second.states().items() if first.states().get(name) != state)
        text = f"changed: {', '.join(moved)}" if moved else f"{len(second.tables)} tables, not one metadata file is new"
        return Observation(not moved and not second.changed, text)

    await board.make(Trial("etl", "run the medallion", f"{FLIGHTS} flights checked, none refused", worked))
    await board.make(Trial("etl", "run it again", "nothing changes", idle))


async def _run_as_etl(name: str, board: Board, scene: Scene) -> Account:
    return await run_pipeline(
        name,
        "etl",
        children=scene.children,
        logs=scene.logs,
        tools=scene.spark,
        ready=scene.ready,
        notify=board.notify,
    )


def _judge_first(account: Account) -> Observation:
    """Return the observation of the first run. It is expected if all flights were checked and no expectation of
    severity `fail` was violated.

    Its text also has the duration and the number of warnings.
    """
    failed = [finding for finding in account.quality if finding.outcome == "failed"]
    warned = [finding for finding in account.quality if finding.outcome == "warned"]
    flights = max(
        (finding.rows_checked for finding in account.quality if finding.dataset == "silver.flights"), default=0
    )
    gaps = sum(1 for finding in account.quality if finding.outcome == "passed" and finding.violations)
    text = (
        f"{flights} flights, {len(account.tables)} tables, {len(account.quality)} expectations: {len(failed)} failed, "
        f"{len(warned)} warned, {gaps} with known gaps; {sum(account.seconds.values()):.0f} s"
    )
    return Observation(flights == FLIGHTS and not failed, text)


async def _trials(board: Board, world: World, http: httpx2.AsyncClient) -> None:
    board.notify("The door is tried ...")
    for paragraph in (story.strangers, story.one_gold_table, story.no_writing, story.foreign_places):
        await _make(board, paragraph(world))
    planted, trials = await story.vended_key(world)
    try:
        await _make(board, trials)
    finally:
        await asyncio.to_thread(keys.uproot, world.ready.s3, planted)
    await _make(board, await story.steward(world))
    hours = story.Hours(world.ready.opa, http, world.people["contractor"].id)
    await hours.remember()
    try:
        await _make(board, story.contractor(world, hours))
    finally:
        await hours.restore()


async def _make(board: Board, trials: list[Trial]) -> None:
    for trial in trials:
        await board.make(trial)


def _summary(board: Board, console: Console, scene: Scene, seconds: float) -> int:
    failed = board.failed
    if failed:
        console.print(f"[bold red]{len(failed)} of {len(board.lines)} lines were not as expected[/], {seconds:.0f} s.")
        for line in failed:
            console.print(f"  {line.caller}: {line.tried}: expected {line.expected}, saw {line.observed}", markup=False)
        console.print(f"The logs of every part, gateway.log and spark.log first, are in {scene.logs}", markup=False)
        return 1
    console.print(f"[bold green]All {len(board.lines)} lines were as expected[/], {seconds:.0f} s.")
    return 0
