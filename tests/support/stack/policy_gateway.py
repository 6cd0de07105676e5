# SPDX-License-Identifier: Apache-2.0
"""A gateway whose guardrails a test replaces."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from tests.support.rows.parts import free_port
from tests.support.servers.toxic import second_gateway
from tests.support.stack.world import POLICIES_APPLY_S, Person, World

_POLICIES = Path(__file__).parents[3] / "policies"
_HEAD = "package gateway.guardrails.mine\n\n"


@contextmanager
def _serving(world: World, port: int, policies: Path) -> Iterator[None]:
    """Run the stack's OPA program on `port` with these policies and the stack's tokens."""
    own = psutil.Process(world.ready.pids["opa"][0])
    argv = [each if not each.startswith("--addr=") else f"--addr=127.0.0.1:{port}" for each in own.cmdline()]
    environment = own.environ() | {"LAKEGATE_OPA_REVISION": str(uuid4())}
    process = subprocess.Popen(argv, cwd=policies, env=environment, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while True:
            assert process.poll() is None, "the OPA process ended"
            assert time.monotonic() < deadline, "OPA did not listen before the deadline"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


class PolicyGateway:
    """A gateway whose OPA a test starts with a guardrail under test."""

    def __init__(self, world: World, port: int, admin: Person, policies: Path) -> None:
        self.admin, self.policies = admin, policies
        self._world, self._port = world, port

    @contextmanager
    def guarded(self, text: str) -> Iterator[None]:
        file = self.policies / "gateway" / "guardrails" / "mine.rego"
        file.write_text(_HEAD + text)
        try:
            with _serving(self._world, self._port, self.policies):
                time.sleep(POLICIES_APPLY_S)
                yield
        finally:
            file.unlink()


@contextmanager
def policy_gateway(world: World, folder: Path, **settings: str) -> Iterator[PolicyGateway]:
    """Run the gateway with policies of its own in `folder`; `settings` are further settings."""
    policies = Path(shutil.copytree(_POLICIES, folder / "policies"))
    port = free_port()
    with ExitStack() as held:
        with _serving(world, port, policies):
            started = second_gateway(
                world.ready, folder / "gateway.log", OPA__URL=f"http://127.0.0.1:{port}", **settings
            )
            base, _ = held.enter_context(started)
        admin = Person("admin", world.admin.id, world.admin.token, base)
        held.callback(admin.http.close)
        yield PolicyGateway(world, port, admin, policies)


@pytest.fixture(scope="module")
def guarded_gateway(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolicyGateway]:
    """Yield a gateway whose guardrails the tests of one module replace."""
    with policy_gateway(world, tmp_path_factory.mktemp("guardrails")) as running:
        yield running
