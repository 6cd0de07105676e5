# SPDX-License-Identifier: Apache-2.0
"""The stages of the suite: each test is in exactly one, and tests of security or races never run again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.expression import Expression

from tests.stages import FLAKY, STAGES, files_of, may_run_again, may_select, to_run_again

_ROOT = Path(__file__).parents[2]


def _project(tmp_path: Path, text: str) -> Path:
    """Make a checkout with one test file in the directory of each path of the stage `unit`."""
    for path in STAGES["unit"].paths:
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "tests/unit/test_drawn.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    long: minutes\n")
    return tmp_path


def _run(project: Path) -> tuple[int, dict[str, Any], str]:
    """Run the stage `unit` in a project; return the exit code, the record and the output."""
    (project / "run.py").write_text(
        f"import sys\nsys.path.insert(0, {str(_ROOT)!r})\nfrom pathlib import Path\nimport tests.stages as stages\n"
        "stages._ROOT = Path.cwd()\n"
        "sys.exit(stages.run('unit', [], processes=0, directory=Path('record')))\n"
    )
    done = subprocess.run(
        [sys.executable, "run.py"],
        cwd=project,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    record = json.loads((project / "record/unit.json").read_text())
    assert (project / "record/unit.xml").exists()
    return done.returncode, record, done.stdout + done.stderr


_ONCE = """
from pathlib import Path

def test_fails_once():
    seen = Path("seen")
    first = not seen.exists()
    seen.touch()
    assert not first, "the first time"
"""


def test_a_failure_that_does_not_repeat_is_reported_as_flaky(tmp_path: Path) -> None:
    code, record, output = _run(_project(tmp_path, _ONCE))
    assert code == 0
    assert list(record["flaky"]) == ["tests/unit/test_drawn.py::test_fails_once"]
    assert record["failed"] == []
    assert list(record["files"]) == ["tests/unit/test_drawn.py"]
    assert 0 < record["busy"] <= 100
    assert "FLAKY tests/unit/test_drawn.py::test_fails_once: passed when run again" in output
    assert "the first time" in output


def test_a_repeated_failure_fails_the_stage(tmp_path: Path) -> None:
    code, record, output = _run(_project(tmp_path, "def test_fails(): assert 1 == 2\n"))
    assert code == 1
    assert record["failed"] == ["tests/unit/test_drawn.py::test_fails"]
    assert "FAILED tests/unit/test_drawn.py::test_fails: assert 1 == 2" in output


def test_a_file_that_cannot_be_collected_fails_the_stage(tmp_path: Path) -> None:
    code, record, _ = _run(_project(tmp_path, "import no_such_module_anywhere\n"))
    assert code != 0
    assert record["failed"]


def test_more_failures_than_the_limit_run_no_test_again() -> None:
    failed = [f"tests/contract/test_views.py::test_{number}" for number in range(FLAKY + 1)]
    assert to_run_again(failed) == []
    assert to_run_again(failed[:FLAKY]) == failed[:FLAKY]


@pytest.mark.parametrize(
    "nodeid",
    [
        "tests/security/test_isolation.py::test_x",
        "tests/access/test_lock_5_latch.py::test_x",
        "tests/integration/test_drift_races.py::test_x",
        "tests/integration/test_racing_writers.py::test_x",
        "tests/contract/test_commits.py::test_two_commits_race",
    ],
)
def test_tests_of_attacks_authorization_and_races_never_run_again(nodeid: str) -> None:
    assert not may_run_again(nodeid)
    assert to_run_again(["tests/contract/test_views.py::test_x", nodeid]) == []


def test_other_tests_may_run_again() -> None:
    assert may_run_again("tests/contract/test_traces.py::test_x")
    assert may_run_again("tests/integration/test_backup.py::test_braces_are_kept")


@pytest.mark.parametrize(
    "marks",
    [set(), {"chaos"}, {"servers"}, {"generated"}, {"attack"}, {"chaos", "servers", "generated", "attack"}],
    ids=["unmarked", "chaos", "servers", "generated", "attack", "all"],
)
def test_each_test_belongs_to_exactly_one_stage_for_any_marks(marks: set[str]) -> None:
    for file in sorted((_ROOT / "tests").rglob("test_*.py")):
        name = file.relative_to(_ROOT).as_posix()
        selecting = [
            stage
            for stage, each in STAGES.items()
            if any(name.startswith(f"{path}/") for path in each.paths)
            and Expression.compile(each.marks).evaluate(lambda mark, /, **_: mark in marks)
        ]
        assert len(selecting) == 1, (name, selecting)


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("def test_a(): ...", {"services"}),
        ("pytestmark = pytest.mark.servers", {"servers"}),
        ("pytestmark = [pytest.mark.slow, pytest.mark.generated]", {"generated"}),
        ("pytestmark = [\n    pytest.mark.generated,\n]", {"services", "generated"}),
        ("@pytest.mark.servers\ndef test_a(): ...", {"services", "servers"}),
        ("pytestmark = pytest.mark.generated\n@pytest.mark.servers", {"generated", "servers"}),
        ("pytestmark = pytest.mark.chaos\n@pytest.mark.servers", {"chaos"}),
        ("pytestmark = [pytest.mark.timeout(600), pytest.mark.long]", set()),
    ],
)
def test_a_stage_imports_the_files_that_may_have_a_test_of_it(text: str, stages: set[str]) -> None:
    on_a_stack = {name: stage for name, stage in STAGES.items() if "tests/contract" in stage.paths}
    assert {name for name, stage in on_a_stack.items() if may_select(stage.marks, text)} == stages


def test_attacks_run_with_the_generated_requests_or_with_their_own_marks() -> None:
    attacks = {file.relative_to(_ROOT).as_posix() for file in (_ROOT / "tests/security").glob("test_*.py")}
    of_stages = {name: attacks.intersection(files_of(stage)) for name, stage in STAGES.items()}
    assert of_stages["services"] == set()
    assert attacks == of_stages["generated"] | of_stages["servers"] | of_stages["chaos"]
    assert "add_marker(pytest.mark.attack)" in (_ROOT / "tests/security/conftest.py").read_text()


def test_marks_that_a_stage_needs_are_written_in_the_files_of_the_tests() -> None:
    needed = re.compile(r"\bmark\.(servers|generated|chaos)\b")
    elsewhere = (file for file in (_ROOT / "tests").rglob("*.py") if not file.name.startswith("test_"))
    assert [str(file) for file in elsewhere if needed.search(file.read_text())] == []


def test_ci_refuses_an_unknown_stage_and_runs_nothing() -> None:
    done = subprocess.run(
        ["bash", str(_ROOT / ".ci/run"), "A", "F"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "There is no stage F; the stages are A B C D E" in done.stderr


def test_ci_and_makefile_name_the_same_stages() -> None:
    script, makefile = (_ROOT / ".ci/run").read_text(), (_ROOT / "Makefile").read_text()
    for name in STAGES:
        assert f"make test-{name}" in script, name
        assert f"tests.stages {name}" in makefile, name


def test_ci_runs_the_command_of_make_demo_once() -> None:
    """The test of the demonstration runs the same command, which takes minutes, and checks what it leaves."""
    assert re.search(r"^demo: setup .*\n\t@\$\(BIN\)/lakegate demo\n\n", (_ROOT / "Makefile").read_text(), re.M)
    assert "make demo" not in (_ROOT / ".ci/run").read_text()
    assert '_lakegate("demo", ' in (_ROOT / "tests/e2e/test_demo_real_data.py").read_text()
    assert STAGES["engines"].paths == ("tests/e2e",)
