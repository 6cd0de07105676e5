# SPDX-License-Identifier: Apache-2.0
"""Test the run on mutants (`tests/mutants.py`): replaced code, the tests of a mutant, counts."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import RESULT, in_common, interval, summary
from tests.support.mutants.mutant_session import REACHED, chosen, functions, install, instrumented

SOURCE = '''"""A module."""
import asyncio


def allowed(rights: set[str]) -> bool:
    """Return whether a right is held."""
    if not rights:
        return False
    return "read" in rights


class Door:
    @property
    def open(self) -> bool:
        return False

    async def admit(self, rights: set[str]) -> bool:
        check = lambda: allowed(rights)
        if check():
            return True
        elif self.open:
            return True
        return False
'''


def _module(path: Path) -> dict[str, Any]:
    path.write_text(SOURCE)
    names: dict[str, Any] = {"__name__": "toy"}
    exec(compile(SOURCE, str(path), "exec"), names)  # noqa: S102 - the module of this test
    return names


def test_mutant_replaces_the_code_of_functions_that_exist(tmp_path: Path) -> None:
    path = tmp_path / "toy.py"
    names = _module(path)
    door = names["Door"]()
    mutated = SOURCE.replace('"read" in', '"read" not in').replace(
        "        return False\n\n    async", "        return True\n\n    async"
    )
    known = functions(str(tmp_path))
    assert {name for _, name, _ in known} == {"allowed", "Door.open", "Door.admit"}
    assert install(compile(mutated, str(path), "exec"), known) == 2
    assert (names["allowed"]({"read"}), door.open) == (False, True)
    assert install(compile(mutated, str(path), "exec"), functions(str(tmp_path))) == 0


@pytest.mark.parametrize(
    ("rights", "reached"),
    [
        pytest.param({"read"}, {1, 2, 3}, id="allowed"),
        pytest.param(set(), {0, 2, 4}, id="refused before the last line"),
    ],
)
async def test_reach_is_known_by_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rights: set[str], reached: set[int]
) -> None:
    path = tmp_path / "toy.py"
    names = _module(path)
    lines = SOURCE.splitlines()
    at = [
        lines.index("        return False") + 1,
        lines.index('    return "read" in rights') + 1,
        lines.index("        check = lambda: allowed(rights)") + 1,
        lines.index("            return True") + 1,
        lines.index("        elif self.open:") + 1,
    ]
    sites = [(number, line, 12) for number, line in enumerate(at)]
    found: set[int] = set()
    monkeypatch.setattr(builtins, REACHED, found.add, raising=False)
    install(compile(instrumented(SOURCE, sites), str(path), "exec"), functions(str(tmp_path)))
    assert await names["Door"]().admit(rights) is bool(rights)
    assert found == reached


def _test(seconds: float, *reached: int, passed: bool = True) -> dict[str, Any]:
    return {"seconds": seconds, "passed": passed, "reached": list(reached)}


def test_tests_of_a_mutant_reached_it_and_passed_and_fast_files_come_first() -> None:
    reach = {
        "a.py::slow": _test(3.0, 7),
        "a.py::fast": _test(0.1, 7, 8),
        "b.py::two": _test(0.4, 7),
        "b.py::one": _test(0.5, 7),
        "b.py::failed": _test(0.1, 7, passed=False),
        "b.py::elsewhere": _test(0.1, 8),
        "c.py::last": _test(9.0, 7, 9),
    }
    assert chosen(list(reach), reach, 7, 4.0) == ["b.py::two", "b.py::one", "a.py::slow", "a.py::fast"]
    assert chosen(list(reach), reach, 9, 4.0) == ["c.py::last"], "one test runs, even if it is slower than the budget"
    assert chosen(list(reach), reach, 1, 4.0) == []


def _mutant(line: int) -> dict[str, Any]:
    return {"file": "gateway/a.py", "line": line, "operator": "AddNot", "becomes": "if not a:", "rank": f"{line:064}"}


def test_summary_counts_timeouts_as_killed_and_unchanged_code_as_survived() -> None:
    outcomes = ["killed", "timeout", "not reached", "survived", "unchanged"]
    made = summary([_mutant(line) for line in range(5)], [{"outcome": each} for each in outcomes])
    assert (made["sampled"], made["reached"], made["killed"], made["killed_of_reached"]) == (5, 4, 2, 0.5)
    assert [each["at"] for each in made["survivors"]] == ["gateway/a.py:3", "gateway/a.py:4"]


def test_interval_of_a_share_is_that_of_wilson() -> None:
    assert [round(each, 3) for each in interval(8, 10)] == [0.49, 0.943]
    assert interval(0, 0) == (0.0, 1.0)


def test_versions_are_compared_by_the_mutants_in_common() -> None:
    one = {"a": "killed", "b": "survived", "c": "killed"}
    other = {"a": "survived", "b": "timeout", "d": "killed"}
    assert in_common(one, other) == {"mutants": 2, "killed": [1, 1]}


def test_recorded_counts_agree_with_the_recorded_outcomes() -> None:
    for record in json.loads(RESULT.read_text())["versions"].values():
        outcomes = list(record["outcomes"].values())
        killed = outcomes.count("killed") + outcomes.count("timeout")
        reached = len(outcomes) - outcomes.count("not reached")
        assert (record["sampled"], record["reached"], record["killed"]) == (len(outcomes), reached, killed)
        assert len(record["survivors"]) == outcomes.count("survived") == reached - killed


def test_recorded_tests_kill_mutants_as_often_as_before_the_house_was_moved() -> None:
    versions = json.loads(RESULT.read_text())["versions"]
    before, now = versions["before"], versions["now"]
    assert (before["sampled"], now["sampled"]) == (300, 300)
    assert now["killed_of_reached"] >= before["killed_of_reached"]
    killed_before, killed_now = in_common(before["outcomes"], now["outcomes"])["killed"]
    assert killed_now >= killed_before
