# SPDX-License-Identifier: Apache-2.0
"""Kill one worker or the whole gateway of a stack, and start the gateway again with its original command."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path

import httpx
import psutil
import pytest

from lakegate.local.ready import Ready
from tests.support import processes
from tests.support.lakegate_command import Started, run_lakegate, start_serving
from tests.support.stack.world import World

SOON = 120.0
"""Seconds within which interrupted work must be completed."""

_START_SECONDS = 180.0
_GROWN_SECONDS = 6.0


class Killable:
    """The gateway of a separate stack. Close it before the stack: the stack does not end a gateway started here."""

    def __init__(self, ready: Ready, log: Path) -> None:
        self.ready = ready
        self.base = ready.catalog_uri.removesuffix("/catalog")
        main = psutil.Process(ready.pids["gateway"][0])
        self._command, self._environment = main.cmdline(), main.environ()
        self._main = main
        self._log = log
        self._own: Started | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of the gateway without the settings of `start`."""
        return dict(self._environment)

    def changed(self, command: Sequence[str], variables: Mapping[str, str]) -> Killable:
        """Return a gateway of the same stack with another command, and `variables` of the environment changed."""
        other = copy(self)
        other._command, other._environment = list(command), {**self._environment, **variables}
        return other

    def kill_worker(self, chance: random.Random) -> None:
        """Send SIGKILL to one worker that has run for a while; the gateway replaces it.

        Granian treats a worker that dies soon after its start as unable to run, and exits.
        """
        while not (grown := [each for each in self._main.children(recursive=True) if _age(each) > _GROWN_SECONDS]):
            time.sleep(0.1)
        _kill(chance.choice(grown))

    def kill(self) -> None:
        """Send SIGKILL to all its processes, the main process first, so that no worker is replaced or drained."""
        family = processes.family(self._main)
        for process in family:
            _kill(process)
        if self._own is not None:
            self._own.wait(30)
        psutil.wait_procs(family, timeout=30)

    def kill_main(self) -> None:
        """Send SIGKILL to the main process alone, and fail the test if a worker remains."""
        workers = self._main.children(recursive=True)
        _kill(self._main)
        if self._own is not None:
            self._own.wait(30)
        _, remaining = psutil.wait_procs(workers, timeout=30)
        assert not remaining, f"workers without a main process: {remaining}"

    def start(self, **settings: str) -> None:
        """Start the gateway again, with `settings` (without their prefix) changed, and wait until it serves."""
        self.begin(**settings)
        self.serves()

    @contextmanager
    def serving(self, **settings: str) -> Iterator[World]:
        """Run the gateway with `settings` during the block, and yield its users with their original rights."""
        self.kill()
        self.start(**settings)
        world = World(self.ready)
        try:
            world.people_as_at_first()
            yield world
        finally:
            world.close()
            self.kill()

    def begin(self, **settings: str) -> None:
        """Start the gateway as `start` does, and do not wait."""
        changed = {f"LAKEGATE__{name}": value for name, value in settings.items()}
        self._own = start_serving(self._command, self._environment, changed, self._log)
        self._main = psutil.Process(self._own.pid)

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a `lakegate` command with the gateway's own settings, and `variables` of the environment changed."""
        return run_lakegate(*command, environment=self._environment | variables)

    def serves(self) -> None:
        """Wait until the health check succeeds; fail the test at the deadline."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                if httpx.get(f"{self.base}/health", timeout=5, trust_env=False).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            if time.monotonic() > deadline:
                pytest.fail(f"the gateway did not start:\n{self._log.read_text()[-3000:]}", pytrace=False)
            time.sleep(0.1)

    def close(self) -> None:
        """End the gateway that was started here, and its remaining child processes."""
        if self._own is not None and self._own.poll() is None:
            family = self._main.children(recursive=True)
            self._own.terminate()
            try:
                self._own.wait(20)
            except subprocess.TimeoutExpired:
                self._own.kill()
                self._own.wait(30)
            for process in family:
                _kill(process)


def no_principal_is_left(world: World) -> None:
    """Expire the leases of idempotency keys and the heartbeats of tasks; make waiting purges and retries due."""
    world.sql("update idempotency set expires_at = now() where status is null")
    world.sql("update tasks set heartbeat_at = now() - interval '1 hour' where status in ('running', 'stopping')")
    world.sql("update tasks set scheduled_for = now() where status = 'scheduled' and queue = 'tabular_purge'")
    world.sql("update tasks set scheduled_for = now() where status = 'scheduled' and attempt > 0")


def soon(true: Callable[[], bool], description: str) -> None:
    """Wait until `true` returns True; fail with the message `description` after `SOON` seconds."""
    deadline = time.monotonic() + SOON
    while not true():
        assert time.monotonic() < deadline, description
        time.sleep(0.3)


def _age(process: psutil.Process) -> float:
    try:
        return time.time() - process.create_time()
    except psutil.NoSuchProcess:
        return 0.0


def _kill(process: psutil.Process) -> None:
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
