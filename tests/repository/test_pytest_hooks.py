# SPDX-License-Identifier: Apache-2.0
"""The hooks of `tests/conftest.py`: unique ids, seeds, counted retries, kept logs."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.conftest import pytest_xdist_node_collection_finished
from tests.support.runs import kept_logs, retries
from tests.support.runs.retries import BUDGET, Retries
from tests.support.runs.seeds import seed_of
from tests.support.stack.world import send_with_retries

_ROOT = Path(__file__).parents[2]


def test_two_tests_with_one_id_fail_the_collection(request: pytest.FixtureRequest) -> None:
    ids = [item.nodeid for item in request.session.items]
    pytest_xdist_node_collection_finished(ids)
    with pytest.raises(pytest.UsageError, match="1 ids belong to several tests each: .*one_id_fail"):
        pytest_xdist_node_collection_finished([*ids, request.node.nodeid])


_TWICE = """
def pytest_collection_modifyitems(items):
    items.append(items[0])
"""


@pytest.mark.parametrize("processes", [0, 2])
def test_a_run_with_a_shared_id_ends_before_any_test(tmp_path: Path, processes: int) -> None:
    (tmp_path / "conftest.py").write_text(_TWICE)
    (tmp_path / "test_some.py").write_text("def test_a():\n    pass\n")
    options = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "-c", str(_ROOT / "pyproject.toml"))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *options,
        "-p",
        "tests.conftest",
        "-n",
        str(processes),
        str(tmp_path),
    ]
    found = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=120)
    assert found.returncode not in (0, 1, 5)
    assert "1 ids belong to several tests each" in found.stdout + found.stderr
    assert "passed" not in found.stdout


def test_random_numbers_are_the_same_in_every_run(request: pytest.FixtureRequest) -> None:
    seed = request.config.option.seed
    assert random.random() == random.Random(seed_of(request.node.nodeid, seed)).random()
    assert len({seed_of("a", None), seed_of("b", None), seed_of("a", 1), seed_of("a", 2)}) == 4


_WITHOUT = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:xdist")

_DRAWN = """
from hypothesis import given, settings, strategies as st
@settings(max_examples=3)
@given(st.integers(0, 10**9))
def test_drawn(number):
    print("drawn", number)
"""


def test_a_seed_selects_other_examples_reproducibly(tmp_path: Path) -> None:
    drawn = tmp_path / "test_drawn.py"
    drawn.write_text(_DRAWN)

    def run(*options: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-s", *_WITHOUT, "-c", str(_ROOT / "pyproject.toml")]
        found = subprocess.run(
            [*command, "-p", "tests.conftest", *options, str(drawn)],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert found.returncode == 0, found.stdout + found.stderr
        return [line for line in found.stdout.splitlines() if "drawn " in line]

    one = run("--seed", "1")
    assert run() == run() != one
    assert run("--seed", "1") == one


def _report(nodeid: str) -> pytest.TestReport:
    return pytest.TestReport(nodeid, (nodeid, 0, ""), {}, "passed", None, "call")


def test_retried_requests_are_counted_by_test_and_outage_tests_are_exempt() -> None:
    worker, controller = Retries(), Retries()
    for nodeid, count in (("tests/a/test_x.py::a", BUDGET), ("tests/a/test_openfga_outages.py::b", 99)):
        for _ in range(count):
            worker.note()
        report = _report(nodeid)
        worker.attach(report)
        controller.read(report)
    assert controller.beyond_outages() == BUDGET
    assert controller.summary()[0] == f"{BUDGET + 99} requests sent again after 429 or 503"
    assert worker.summary() == []
    again = _report("tests/a/test_x.py::c")
    worker.attach(again)
    assert again.user_properties == []


def test_a_retried_request_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Retries()
    monkeypatch.setattr("tests.support.stack.world.RETRIES", counted)
    answers = iter([429, 503, 200])
    assert send_with_retries(lambda: httpx.Response(next(answers)), seconds=5, pause=0).status_code == 200
    assert send_with_retries(lambda: httpx.Response(503), unless=503, seconds=5).status_code == 503
    report = _report("tests/a/test_x.py::d")
    counted.attach(report)
    counted.read(report)
    assert counted.beyond_outages() == 1


def test_only_the_most_recent_logs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_logs, "_KEPT", 2)
    log, directory = tmp_path / "gateway.log", tmp_path / "kept"
    assert kept_logs.keep(log, directory=directory) is None
    log.write_text("a line")
    made = [kept_logs.keep(log, tmp_path / "missing.log", directory=directory) for _ in range(3)]
    assert kept_logs.summary(0, directory) == [str(each) for each in made[1:]]
    assert made[2] is not None
    assert (made[2] / "gateway.log").read_text() == "a line"


def test_only_outage_test_files_are_exempt_from_the_retry_limit() -> None:
    assert not retries._is_outage("tests/contract/test_tables.py::test_outage")
    assert retries._is_outage("tests/integration/test_killed_gateways.py::test_x")


def test_the_garbage_collector_runs_in_tests() -> None:
    assert gc.isenabled()
