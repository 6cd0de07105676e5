# SPDX-License-Identifier: Apache-2.0
"""Test that groups name existing files, and all files that share the stack of a directory."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import execnet
import pytest

from tests.support.runs.xdist_scheduling import GroupScheduling, group_of, position_of

TESTS = Path(__file__).parents[1]
INTEGRATION = sorted(TESTS.glob("integration/test_*.py"))
ENGINES = sorted(TESTS.glob("e2e/**/test_*.py"))


def _nodeid(file: Path) -> str:
    return f"{file.relative_to(TESTS.parent).as_posix()}::test_something"


def _shares(file: Path, *fixtures: str) -> bool:
    """Return True if the file uses one of the fixtures and neither makes nor imports it: it gets the directory's."""
    tree = ast.walk(ast.parse(file.read_text()))
    requested, made = set(), set()
    for node in tree:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            made.add(node.name)
            # A helper gets its parameters from the test that calls it.
            if node.name.startswith("test_") or node.decorator_list:
                requested |= {argument.arg for argument in node.args.args}
        elif isinstance(node, ast.ImportFrom):
            made |= {each.asname or each.name for each in node.names}
        elif isinstance(node, ast.Assign):
            made |= {name.id for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)}
    return not requested.isdisjoint({*fixtures} - made)


@pytest.mark.parametrize("file", INTEGRATION, ids=lambda file: file.stem)
def test_the_groups_of_integration_tests_equal_the_files_that_share_a_stack(file: Path) -> None:
    for group, fixtures in (
        ("integration", ("stack", "world")),
        ("settings", ("stopped_gateway",)),
        ("killed", ("restarted_gateway",)),
    ):
        shares = _shares(file, *fixtures)
        assert group_of(_nodeid(file)).startswith(group) == shares, (
            f"xdist_scheduling.py must list the file in {group} exactly if it shares {fixtures}: {shares}"
        )


@pytest.mark.parametrize("file", ENGINES, ids=lambda file: file.stem)
def test_the_group_of_spark_equals_the_files_that_share_its_process(file: Path) -> None:
    shares = _shares(file, "spark", "admin")
    assert (group_of(_nodeid(file)) == "spark") == shares, (
        f"xdist_scheduling.py must list the file in spark exactly if it shares the Spark process: {shares}"
    )


def test_each_file_in_a_group_exists() -> None:
    from tests.support.runs import xdist_scheduling

    files = [_nodeid(file) for file in TESTS.rglob("test_*.py")]
    shared = [each for begins in xdist_scheduling._SHARED.values() for each in begins]
    for begins in (*shared, *xdist_scheduling._LONG, *xdist_scheduling._QUIET):
        assert any(file.startswith(begins) for file in files), begins


def test_a_group_is_assigned_as_a_whole() -> None:
    files = [_nodeid(file) for file in TESTS.rglob("test_*.py")]
    groups: dict[str, set[int]] = {}
    for file in files:
        groups.setdefault(group_of(file), set()).add(position_of(file)[0])
    assert all(len(each) == 1 for each in groups.values())
    assert position_of("tests/integration/test_reconcile.py::test_x") < position_of(
        "tests/integration/test_bounded_cost.py::test_x"
    )
    assert position_of("tests/integration/test_drift.py::test_x") < position_of("tests/contract/test_views.py::test_x")
    assert position_of("tests/access/test_lock_6_matrix.py::test_x") < position_of(
        "tests/repository/test_stages.py::test_x"
    )
    assert position_of("tests/contract/test_views.py::test_x") < position_of(
        "tests/security/test_revocation.py::test_x"
    )


class Process:
    """A process of the run that receives tests and executes none."""

    def __init__(self) -> None:
        self.given: list[int] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id="gw")

    def send_runtest_some(self, numbers: list[int]) -> None:
        assert not self.shutting_down
        self.given += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


def test_the_quiet_group_runs_after_every_other_process_has_ended() -> None:
    quiet = "tests/security/test_revocation.py"
    files = ["tests/contract/test_views.py", "tests/unit/test_one.py", "tests/unit/test_two.py", quiet]
    tests = [f"{file}::test_{number}" for file in files for number in range(4)]
    option = SimpleNamespace(loadscopereorder=True)
    config = SimpleNamespace(option=option, getvalue=lambda _: ["popen", "popen"])
    scheduling = GroupScheduling(config)  # type: ignore[arg-type]  # a substitute with the methods that the scheduler uses
    processes = [Process(), Process()]
    for process in processes:
        scheduling.add_node(process)
        scheduling.add_node_collection(process, tests)
    scheduling.schedule()
    done: list[str] = []
    while any(process.given for process in processes):
        # The second one is much faster.
        for process in (*[processes[1]] * 4, processes[0]):
            if not process.given:
                continue
            number = process.given.pop(0)
            if tests[number].startswith(quiet):
                [other] = [each for each in processes if each is not process]
                assert other.shutting_down and not other.given
            done.append(tests[number])
            scheduling.mark_test_complete(process, number)
    assert sorted(done) == sorted(tests)
    assert all(process.shutting_down for process in processes)


def test_test_output_with_any_characters_is_sent_between_processes(
    pytestconfig: pytest.Config,
) -> None:
    evil = "x\ud800y"
    report = pytest.TestReport(
        "a", ("a", 1, "a"), {"k": 1}, "failed", evil, "call", [("Captured log call", evil)], 1.0, 0.0, 1.0
    )
    data = pytestconfig.hook.pytest_report_to_serializable(config=pytestconfig, report=report)
    sent = execnet.loads(execnet.dumps(data))
    assert (sent["longrepr"], sent["sections"]) == ("x\\ud800y", [("Captured log call", "x\\ud800y")])
    assert sent["nodeid"] == "a"
