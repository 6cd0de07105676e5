# SPDX-License-Identifier: Apache-2.0
"""The embedded stack for integration tests: one for the whole session, started as a user would start it.

`stack` is bootstrapped: project, warehouse `demo`, users, the first grants. Tests share it, so each creates its own
namespaces and grants. A test that stops a part or needs an empty server starts its own with `start_stack`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.worker_processes import die_with_parent
from lakegate.local import ready
from lakegate.local.ready import Ready
from tests.support.load.kills import Killable
from tests.support.runs.kept_logs import FAILURES, keep

if TYPE_CHECKING:
    from tests.support.rows.parts import Parts, Servers
    from tests.support.stack.world import World

_START_SECONDS = 200.0
_STOP_SECONDS = 90.0

StartStack = Callable[..., Ready]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.integration)


@contextmanager
def _up(*, data: Path | None = None, empty: bool = False, **settings: str) -> Iterator[Ready]:
    """Run `lakegate up` as a child with further settings; end it with SIGTERM and require the exit code 0."""
    with tempfile.TemporaryDirectory(prefix="lakegate-test-", ignore_cleanup_errors=True) as scratch:
        directory = Path(scratch) / "data" if data is None else data
        ready_file = Path(scratch) / "ready.json"
        log = Path(scratch) / "up.log"
        arguments = ["up", "--ready-file", str(ready_file), "--data", str(directory), *(["--empty"] if empty else [])]
        usual = {"EMBEDDED__FAST": "true", "EMBEDDED__FREE_PORTS": "true", "EMBEDDED__KEEP_DROPPED_DAYS": "0"}
        given = {**usual, **settings}
        environment = os.environ | {f"LAKEGATE__{name}": value for name, value in given.items()}
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "gateway.cli", *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(signal.SIGTERM),  # a killed test run leaves no stack running
            )
        failed = FAILURES.count
        try:
            _wait(process, ready_file, log, directory)
            yield ready.read(ready_file)
        except BaseException:
            failed = -1
            raise
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(_STOP_SECONDS)
            if code or failed != FAILURES.count:
                keep(log, *directory.glob("logs/*.log"))
            if data is None:
                _remove(directory)
        assert code == 0, log.read_text()


def _wait(process: subprocess.Popen[bytes], ready_file: Path, log: Path, data: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not ready_file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            logs = "\n".join(f"== {path.name}\n{path.read_text()[-1500:]}" for path in sorted(data.glob("logs/*.log")))
            pytest.fail(f"the stack did not start:\n{log.read_text()[-3000:]}\n{logs}", pytrace=False)
        time.sleep(0.05)


def _remove(data: Path) -> None:
    from lakegate.local import account

    account.remove_data(data / "postgres")


@pytest.fixture(scope="session")
def stack() -> Iterator[Ready]:
    """Start a bootstrapped stack that the whole session shares."""
    with _up() as running:
        yield running


@pytest.fixture(scope="module")
def world(stack: Ready) -> Iterator[World]:
    """Yield the users of the shared stack and access to its parts."""
    from tests.support.stack.world import World

    world = World(stack)
    yield world
    world.close()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Start PostgreSQL and OpenFGA without a gateway."""
    from tests.support.rows.parts import running_servers  # costs other directories, which import this file, 1 s

    with running_servers() as running:
        yield running


@pytest.fixture(scope="module")
def parts(servers: Servers) -> Iterator[Parts]:
    """Create a database in `servers` for one module. Each store of OpenFGA belongs to the test that made it."""
    with servers.parts() as parts:
        yield parts


@pytest.fixture(scope="module")
def url(parts: Parts) -> str:
    """Return the address of the database of `parts`."""
    return parts.database_url


@pytest.fixture(scope="module")
def empty_stack() -> Iterator[Ready]:
    """Start a stack that is not bootstrapped."""
    with _up(empty=True) as running:
        yield running


@pytest.fixture
def start_stack() -> Iterator[StartStack]:
    """Return a function that starts a separate stack, which is stopped after the test.

    Call it as `start_stack(empty=True)` or `start_stack(data=path)`.
    """
    with ExitStack() as started:

        def start(*, data: Path | None = None, empty: bool = False) -> Ready:
            return started.enter_context(_up(data=data, empty=empty))

        yield start


@contextmanager
def _killable() -> Iterator[Killable]:
    """Run a stack, and yield its gateway."""
    with _up() as running, tempfile.TemporaryDirectory(prefix="lakegate-gateway-") as scratch:
        gateway = Killable(running, Path(scratch) / "gateway.log")
        yield gateway
        gateway.close()


@pytest.fixture(scope="session")
def stopped_gateway() -> Iterator[Killable]:
    """Return a gateway that tests start with settings of their own, one after the other: see `Killable.serving`.

    They share its stack, whose start costs three times as much as that of a gateway.
    """
    with _killable() as gateway:
        gateway.kill()
        yield gateway


@pytest.fixture(scope="session")
def _mortal_gateway() -> Iterator[Killable]:
    with _killable() as gateway:
        yield gateway


@pytest.fixture(scope="module")
def restarted_gateway(_mortal_gateway: Killable) -> Killable:
    """Return a gateway, started with its original settings, that the tests of several modules kill again and again."""
    _mortal_gateway.kill()
    _mortal_gateway.start()
    return _mortal_gateway


@pytest.fixture
def killed_stack() -> Iterator[Ready]:
    """Start a separate stack for a test that kills its gateway."""
    with _up() as running:
        yield running


@pytest.fixture
def gateway(killed_stack: Ready, tmp_path: Path) -> Iterator[Killable]:
    """Return the gateway of `killed_stack`."""
    gateway = Killable(killed_stack, tmp_path / "gateway.log")
    yield gateway
    gateway.close()
