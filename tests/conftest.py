# SPDX-License-Identifier: Apache-2.0
"""Hooks for every test: seeds, goldens, unique ids, retries, kept logs, scheduling (`tests/support/runs/`).

No Lakegate setting of the developer's environment reaches a test.
"""

from __future__ import annotations

import gc
import os
import random
import ssl
from collections import Counter
from collections.abc import Generator, Iterable
from functools import cache
from typing import Any

import httpx
import httpx._transports.default as httpx_transport
import pytest

from tests.support.runs import golden_files, kept_logs, seeds
from tests.support.runs.golden_files import Golden
from tests.support.runs.kept_logs import FAILURES
from tests.support.runs.retries import BUDGET, RETRIES

# Imported modules and tests live as long as the process. Without the garbage collector, pytest finds the tests in a
# third of the time. `pytest_runtestloop` enables it, also in the process that only distributes the tests.
gc.disable()

seeds.register_profiles()

#: Failed assertions of helpers show their values, as those of test files do.
pytest.register_assert_rewrite(
    *(f"tests.support.{each}" for each in ("door", "engines", "load", "rows", "servers", "stack"))
)

_made_context = httpx.create_ssl_context


@cache
def _default_context() -> ssl.SSLContext:
    return _made_context(trust_env=False)


def _ssl_context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
    """Return one context for all clients with the default trust store: reading it costs each of them 20 ms of CPU.

    Clients that read the environment, which may name another trust store, get a context of their own.
    """
    if verify is True and cert is None and not trust_env:
        return _default_context()
    return _made_context(verify, cert, trust_env)


httpx_transport.create_ssl_context = _ssl_context  # type: ignore[attr-defined]  # a name that it imports


def pytest_addoption(parser: pytest.Parser) -> None:
    seeds.add_option(parser)
    golden_files.add_option(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    seeds.load_profile(config)


def pytest_report_header(config: pytest.Config) -> str:
    return seeds.header(config)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Return the object that compares golden files, or writes them with `--update-goldens`."""
    return Golden(update=request.config.getoption("--update-goldens"))


@pytest.fixture(autouse=True)
def _random_as_in_every_run(request: pytest.FixtureRequest) -> None:
    random.seed(seeds.seed_of(request.node.nodeid, request.config.option.seed))


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("LAKEGATE__") and "EMBEDDED" not in name]:
        monkeypatch.delenv(name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Distribute groups of files, whatever `--dist` says."""
    from tests.support.runs.xdist_scheduling import GroupScheduling

    return GroupScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse ids that several tests share. With several processes, put long groups first."""
    if hasattr(config, "workerinput"):
        from tests.support.runs.xdist_scheduling import position_of

        items.sort(key=lambda item: position_of(item.nodeid))
    else:
        _refuse_shared_ids(item.nodeid for item in items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Enable the garbage collector, which from now on skips the modules and tests that exist."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(ids: list[str]) -> None:
    _refuse_shared_ids(ids)


def _refuse_shared_ids(ids: Iterable[str]) -> None:
    """Raise UsageError if tests share an id. pytest-xdist distributes ids, so only one of such tests would run."""
    shared = [nodeid for nodeid, count in Counter(ids).items() if count > 1]
    if shared:
        raise pytest.UsageError(f"{len(shared)} ids belong to several tests each: {', '.join(shared[:5])}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write into the report how many requests of its phase were retried."""
    report = yield
    RETRIES.attach(report)
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    RETRIES.read(report)
    FAILURES.read(report)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that passed, but retried too many requests."""
    if not hasattr(session.config, "workerinput") and exitstatus == 0 and RETRIES.beyond_outages() > BUDGET:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for title, lines in (
        ("requests sent again", RETRIES.summary()),
        ("logs of stacks that failed tests used", kept_logs.summary(FAILURES.began)),
    ):
        if lines:
            terminalreporter.section(title)
            terminalreporter.write("\n".join([*lines, ""]))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Serialize a report for another process. Logs and errors of a test may contain lone surrogates, which cannot be
    encoded.
    """
    return _sendable((yield))


def _sendable(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {_sendable(key): _sendable(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(map(_sendable, value))
        case _:
            return value
