# SPDX-License-Identifier: Apache-2.0
"""Run tests on mutants in processes that start with all modules and tests loaded: a plugin of pytest.

`tests/mutants.py` starts it. It imports nothing of the project, so it also tests an older version. A child process for
each mutant replaces the code of one function, and runs the tests that reached the changed statement until one fails.
"""

from __future__ import annotations

import ast
import builtins
import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

#: The name of the function that instrumented statements call.
REACHED = "__mutant_reached__"

_REACH_SECONDS = 3 * 3600.0
#: The exit code of a child process whose function raised an error.
_RAISED = 70
_GRACE_SECONDS = 30.0
#: A mutant may be slower than the original code by this factor.
_SLOWER = 4.0


def instrumented(source: str, sites: Iterable[tuple[int, int, int]]) -> ast.Module:
    """Return the module with a call of `REACHED` before each statement that contains a site.

    A site is (number of the mutant, line, column). The lines of the code stay the same.
    """
    tree = ast.parse(source)
    places: dict[int, list[int]] = defaultdict(list)
    for number, line, column in sites:
        places[id(_statement(tree, line, column))].append(number)
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, [each for one in block for each in (*_calls(one, places.get(id(one), ())), one)])
    return tree


def _statement(tree: ast.Module, line: int, column: int) -> ast.stmt:
    """Return the smallest statement that contains a position."""
    found: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            begin, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
            if begin <= (line, column) < end:
                found = node  # the walk is from the outside to the inside
    assert found is not None, (line, column)
    return found


def _calls(at: ast.stmt, numbers: Iterable[int]) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for number in numbers:
        call = ast.Expr(ast.Call(ast.Name(REACHED, ast.Load()), [ast.Constant(number)], []))
        made.append(ast.fix_missing_locations(ast.copy_location(call, at)))
        for node in ast.walk(call):
            if isinstance(node, ast.expr | ast.stmt):
                node.lineno = node.end_lineno = at.lineno
    return made


Functions = Mapping[tuple[str, str, int], Sequence[FunctionType]]


def functions(directory: str) -> Functions:
    """Return the functions of a directory's modules by (file, qualified name, first line)."""
    found: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(directory):
            code = each.__code__
            found[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)
    return found


def install(module: CodeType, known: Functions) -> int:
    """Give the functions of a module their new code; return how many were changed."""
    changed = 0
    for code in _codes(module):
        for function in known.get((code.co_filename, code.co_qualname, code.co_firstlineno), ()):
            if function.__code__ != code and function.__code__.co_freevars == code.co_freevars:
                function.__code__ = code
                changed += 1
    return changed


def _codes(code: CodeType) -> Iterable[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


class _Outcomes:
    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.add(report.nodeid)


def run(items: Sequence[pytest.Item], outcomes: _Outcomes, each: Callable[[pytest.Item, float, float], bool]) -> None:
    """Run tests until the callback, which gets the seconds of CPU and of the clock of each, returns True."""
    for at, item in enumerate(items):
        following = items[at + 1] if at + 1 < len(items) else None
        cpu, began = time.process_time(), time.perf_counter()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if each(item, time.process_time() - cpu, time.perf_counter() - began):
            item.session._setupstate.teardown_exact(None)
            return


def chosen(items: Sequence[str], reach: Mapping[str, Any], number: int, budget: float) -> list[str]:
    """Return the tests of a mutant: the fastest that reached it and passed, within a budget of seconds.

    The tests of a file stay together, and fast files come first.
    """
    reached = [(reach[each]["seconds"], each) for each in items if each in reach and number in reach[each]["reached"]]
    total = 0.0
    names: set[str] = set()
    for seconds, name in sorted(each for each in reached if reach[each[1]]["passed"]):
        total += seconds
        if names and total > budget:
            break
        names.add(name)
    files: dict[str, float] = defaultdict(float)
    for name in names:
        files[name.partition("::")[0]] += reach[name]["seconds"]
    order = {name: at for at, name in enumerate(items)}
    return sorted(names, key=lambda name: (files[name.partition("::")[0]], name.partition("::")[0], order[name]))


class Session:
    """The plugin: finds what each test reaches, then tests each mutant in a process of its own."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.mutants: list[dict[str, Any]] = json.loads((work / "mutants.json").read_text())["mutants"]
        self.budget = float(os.environ["MUTANT_BUDGET"])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        root = Path.cwd()
        _import_all("gateway", root)
        gc.unfreeze()
        self.known = functions(f"{root}/gateway/")
        self.outcomes = _Outcomes()
        session.config.pluginmanager.register(self.outcomes)
        gc.freeze()
        gc.enable()
        reach = self._reach(session)
        names = [item.nodeid for item in session.items]
        items = {item.nodeid: item for item in session.items}
        with (self.work / "outcomes.jsonl").open("a") as out:
            done = sum(1 for _ in (self.work / "outcomes.jsonl").open())
            for number, mutant in list(enumerate(self.mutants))[done:]:
                tests = chosen(names, reach, number, self.budget)
                began = time.monotonic()
                usual = sum(reach[each]["clock"] for each in tests)
                outcome = self._outcome(mutant, [items[each] for each in tests], usual)
                record = {
                    "outcome": outcome[0],
                    "by": outcome[1],
                    "tests": len(tests),
                    "seconds": time.monotonic() - began,
                }
                out.write(json.dumps(record) + "\n")
                out.flush()
        return True

    def _reach(self, session: pytest.Session) -> Mapping[str, Any]:
        """Run all tests on instrumented code in a child process; return what each reached. Continues an earlier run."""
        known = self._read_reach()
        left = [item for item in session.items if item.nodeid not in known]
        if left:
            _in_child(lambda: self._find_reach(left), _REACH_SECONDS, self.work / "error.txt")
        return self._read_reach()

    def _read_reach(self) -> dict[str, Any]:
        file = self.work / "reach.jsonl"
        lines = file.read_text().splitlines() if file.is_file() else []
        return {one["test"]: one for one in map(json.loads, lines)}

    def _find_reach(self, items: Sequence[pytest.Item]) -> None:
        sites = defaultdict(list)
        for number, mutant in enumerate(self.mutants):
            sites[mutant["file"]].append((number, mutant["line"], mutant["column"]))
        for file, places in sites.items():
            path = str(Path.cwd() / file)
            install(compile(instrumented(Path(path).read_text(), places), path, "exec", dont_inherit=True), self.known)
        reached: set[int] = set()
        setattr(builtins, REACHED, reached.add)
        with (self.work / "reach.jsonl").open("a", buffering=1) as out:

            def note(item: pytest.Item, cpu: float, clock: float) -> bool:
                passed = item.nodeid in self.outcomes.passed and item.nodeid not in self.outcomes.failed
                found = {
                    "seconds": round(cpu, 4),
                    "clock": round(clock, 4),
                    "passed": passed,
                    "reached": sorted(reached),
                }
                out.write(json.dumps({"test": item.nodeid, **found}) + "\n")
                reached.clear()
                return False

            run(items, self.outcomes, note)

    def _outcome(self, mutant: Mapping[str, Any], tests: Sequence[pytest.Item], seconds: float) -> tuple[str, str]:
        """Return (outcome, failed test or reason) of one mutant. `seconds` is the usual time of the tests."""
        if not tests:
            return "not reached", ""
        result = self.work / "result.json"
        result.write_text(json.dumps(("killed", "the process ended")))
        path = str(Path.cwd() / mutant["file"])

        def attempt() -> None:
            if install(compile(mutant["source"], path, "exec", dont_inherit=True), self.known) == 0:
                result.write_text(json.dumps(("unchanged", "")))
                return
            _shrink_at_most_a_second()

            def note(item: pytest.Item, cpu: float, clock: float) -> bool:
                if item.nodeid in self.outcomes.failed:
                    result.write_text(json.dumps(("killed", item.nodeid)))
                return item.nodeid in self.outcomes.failed

            run(tests, self.outcomes, note)
            if self.outcomes.failed.isdisjoint(item.nodeid for item in tests):
                result.write_text(json.dumps(("survived", "")))

        if not _in_child(attempt, _GRACE_SECONDS + _SLOWER * seconds, self.work / "error.txt"):
            return "timeout", ""
        outcome, by = json.loads(result.read_text())
        return outcome, by


def _shrink_at_most_a_second() -> None:
    """Keep Hypothesis from looking for the smallest example: one that fails is enough."""
    engine = sys.modules.get("hypothesis.internal.conjecture.engine")
    if engine is not None:
        setattr(engine, "MAX_SHRINKING_SECONDS", 1)  # noqa: B010 - the module has no type for it


def _import_all(package: str, root: Path) -> None:
    """Import all modules before the functions are collected: tests import some of them late."""
    for each in pkgutil.walk_packages([str(root / package)], f"{package}."):
        if ".migrations." not in each.name and not each.name.endswith("__main__"):
            importlib.import_module(each.name)


def _in_child(work: Callable[[], None], seconds: float, errors: Path) -> bool:
    """Run a function in a child process with a process group of its own; return False after a timeout.

    Raises RuntimeError if the function raised an error, which is then in the file `errors`.
    """
    child = os.fork()
    if child == 0:
        os.setsid()
        try:
            work()
        except BaseException:
            errors.write_text(traceback.format_exc())
            os._exit(_RAISED)
        os._exit(0)
    deadline = time.monotonic() + seconds
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.01)
    if os.waitstatus_to_exitcode(ended[1]) == _RAISED:
        raise RuntimeError(f"a child process failed: {errors.read_text()}")
    return True


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Session(Path(os.environ["MUTANT_WORK"])), "mutants")
