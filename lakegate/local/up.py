# SPDX-License-Identifier: Apache-2.0
"""Run the stack for ``lakegate up`` until a signal, and print how to use it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from gateway import settings as configuration
from gateway.opa.policy_files import PolicySource
from gateway.settings import Settings
from lakegate.local import bootstrap, engines, guide, ports, ready, stack, toolchain
from lakegate.local.children import Child
from lakegate.local.errors import StackError
from lakegate.local.gateway import passed_on, write_environment
from lakegate.local.policy_repository import composed
from lakegate.local.programs import Parts
from lakegate.local.stack import Plan, Stack

_BOOTSTRAP = "bootstrap"


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
    parts = Parts(Console(stderr=True), stack.PARTS if empty else {**stack.PARTS, _BOOTSTRAP: "warehouse and users"})
    plan = Plan(
        data=data,
        tools=toolchain.locate(settings),
        fast=settings.embedded.fast,
        free_ports=settings.embedded.free_ports,
        keep_dropped_days=settings.embedded.keep_dropped_days,
        redirect_uris=redirect_uris,
        gateway_settings=_user_settings(parts.console),
        ready=parts.ready,
    )
    up = asyncio.Event()
    if ready_file is not None:
        ready_file.unlink(missing_ok=True)  # an earlier run may have left the file
    try:
        with ExitStack() as opened:
            if policies is not None:
                source = PolicySource(policies, plan.tools.opa, settings.policy_complete)
                together = opened.enter_context(composed(source))
                served = {**plan.gateway_settings, "POLICY_DIRECTORY": str(policies)}
                served |= {"POLICY_COMPLETE": str(source.complete).lower(), "EMBEDDED__OPA_BIN": str(source.opa)}
                plan = replace(plan, tools=replace(plan.tools, policies=together), gateway_settings=served)
            if not await until_signal(_stay(plan, ready_file, empty, up, parts)) and not up.is_set():
                raise StackError("stopped before the stack was ready")
    finally:
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)


def _user_settings(console: Console) -> dict[str, str]:
    """Return the user's settings for the gateway, without the prefix. Print the settings that the stack does not
    use.
    """
    used, unused = passed_on(configuration.given())
    if unused:
        text = f"Not used, because the stack has its own values of them: {', '.join(unused)}"
        console.print(escape(text), soft_wrap=True)
    return used


async def until_signal(work: Coroutine[None, None, None]) -> bool:
    """Run ``work``. On SIGINT, SIGTERM or SIGHUP cancel it and wait for its cleanup. Return True if it ended without a
    signal.

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


async def _stay(plan: Plan, ready_file: Path | None, empty: bool, up: asyncio.Event, parts: Parts) -> None:
    """Start the stack, write the configuration files of clients, print the guide, and wait for failures."""
    with parts:
        async with stack.running(plan) as running:
            # This process holds the lock of the data directory, so no other process writes these files.
            with ExitStack() as written:
                described = await running.ready(*((None, None) if empty else await bootstrap.run(running)))
                if not empty:
                    parts.ready(_BOOTSTRAP)
                engines.write(described, plan.data / "engines", plan.tools)
                write_environment(plan.data, running.gateway.variables)
                for file in (plan.data / ready.FILE, ready_file):
                    if file is not None:
                        written.callback(file.unlink, missing_ok=True)
                        ready.write(file, described)
                parts.stop()
                up.set()
                guide.show(Console(), described, plan.data)
                if not plan.free_ports:
                    guide.show_replaced_ports(Console(), ports.replaced(running.ports))
                await _watch(running, parts.console)


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
