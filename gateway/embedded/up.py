# SPDX-License-Identifier: Apache-2.0
"""``lakegate up``: run the stack until a signal, and print how to use it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from gateway.embedded import bootstrap, engines, guide, ports, ready, stack, toolchain
from gateway.embedded.children import Child
from gateway.embedded.errors import StackError
from gateway.embedded.policy_repository import composed
from gateway.embedded.stack import Plan, Stack
from gateway.opa.policy_files import PolicySource
from gateway.settings import Settings


async def run(
    settings: Settings,
    *,
    data: Path,
    ready_file: Path | None,
    empty: bool,
    policies: Path | None = None,
    redirect_uris: tuple[str, ...] = (),
) -> None:
    """Run the stack until SIGINT, SIGTERM or SIGHUP.

    ``data``: directory of all data. ``ready_file``: written when the stack is ready, removed at the end. ``empty``:
    leave the server un-bootstrapped. ``policies``: a policy repository, whose policies are added to the package's.
    ``redirect_uris``: further pages in which users may sign in.

    Raises:
        StackError: the stack could not be started, or a signal arrived before it was ready.
    """
    allowed = {
        "STORAGE_LOCAL_DIRECTORIES": ",".join(settings.storage_local_directories),
        "STORAGE_HDFS_ROOTS": ",".join(settings.storage_hdfs_roots),
    }
    plan = Plan(
        data=data,
        tools=toolchain.locate(settings),
        fast=settings.embedded.fast,
        free_ports=settings.embedded.free_ports,
        keep_dropped_days=settings.embedded.keep_dropped_days,
        gateway_settings={name: listed for name, listed in allowed.items() if listed} | settings.storage.variables(),
        redirect_uris=redirect_uris,
    )
    up = asyncio.Event()
    try:
        with ExitStack() as opened:
            if policies is not None:
                source = PolicySource(policies, plan.tools.opa, settings.policy_complete)
                together = opened.enter_context(composed(source))
                served = {**plan.gateway_settings, "POLICY_DIRECTORY": str(policies)}
                served |= {"POLICY_COMPLETE": str(source.complete).lower(), "EMBEDDED__OPA_BIN": str(source.opa)}
                plan = replace(plan, tools=replace(plan.tools, policies=together), gateway_settings=served)
            if not await until_signal(_stay(plan, ready_file, empty, up)) and not up.is_set():
                raise StackError("stopped before the stack was ready")
    finally:
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)


async def until_signal(work: Coroutine[None, None, None]) -> bool:
    """Run ``work``. On SIGINT, SIGTERM or SIGHUP cancel it and wait for its cleanup. Return True if no signal ended it.

    A second signal does not interrupt the cleanup, which stops every child.
    """
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    signalled: list[int] = []

    def on_signal(number: int) -> None:
        if not signalled:
            task.cancel()
        signalled.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
    try:
        await task
    except asyncio.CancelledError:
        if not signalled:
            raise
        return False
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
    return True


async def _stay(plan: Plan, ready_file: Path | None, empty: bool, up: asyncio.Event) -> None:
    console = Console(stderr=True)
    if ready_file is not None:
        ready_file.unlink(missing_ok=True)  # it may be left from an earlier run
    status = console.status("Starting the stack …")
    status.start()
    try:
        async with stack.running(plan) as running:
            described = await running.ready(*((None, None) if empty else await bootstrap.run(running)))
            files = engines.write(described, plan.data / "engines", plan.tools)
            if ready_file is not None:
                ready.write(ready_file, described)
            status.stop()
            up.set()
            guide.show(Console(), described, plan.data, files)
            if not plan.free_ports:
                guide.show_replaced_ports(Console(), ports.replaced(running.ports))
            await _watch(running, console)
    finally:
        status.stop()


async def _watch(running: Stack, console: Console) -> None:
    """Print a line for each part that ends. The other parts keep running, so that users can observe an outage.

    Raises:
        StackError: every part has ended.
    """

    async def report(child: Child) -> None:
        code = await asyncio.shield(child.exited)
        console.print(
            f"[red]{escape(child.name)} ended unexpectedly with exit code {code}[/red]; its log is "
            f"{escape(str(child.log))}"
        )

    await asyncio.gather(*map(report, running.running.values()))
    raise StackError("all processes of the stack have ended")
