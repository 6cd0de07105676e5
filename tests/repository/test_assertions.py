# SPDX-License-Identifier: Apache-2.0
"""Find tests that compare nothing, and test files that import other test files.

A test that compares nothing fails only if the code raises an unexpected error.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Calls of pytest that fail a test.
_EXPECTING = frozenset({"raises", "warns", "fail"})


def without_assertion(sources: Iterable[tuple[str, str]]) -> list[str]:
    """Return `file::test` of each test that neither asserts nor calls a function of the tests that does.

    `sources` are (file, text). Functions are compared by their last name, so the result may miss a test, but names none
    wrongly.
    """
    functions = [
        (file, node) for file, text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, _Function)
    ]
    bodies: dict[str, list[tuple[bool, set[str]]]] = defaultdict(list)
    for _, node in functions:
        bodies[node.name].append(_found(node))
    asserting = set(_EXPECTING)
    while added := {
        name
        for name, parts in bodies.items()
        if name not in asserting and any(asserts or calls & asserting for asserts, calls in parts)
    }:
        asserting |= added
    tests = ((file, node.name, _found(node)) for file, node in functions if node.name.startswith("test_"))
    return sorted(f"{file}::{name}" for file, name, (asserts, calls) in tests if not asserts and not calls & asserting)


def _found(node: ast.AST) -> tuple[bool, set[str]]:
    """Return (the function asserts or raises, the last names of what it calls)."""
    inside = list(ast.walk(node))
    called = (each.func for each in inside if isinstance(each, ast.Call))
    names = {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in called}
    return any(isinstance(each, ast.Assert | ast.Raise) for each in inside), names


def test_every_test_asserts_something() -> None:
    sources = [(str(file.relative_to(TESTS)), file.read_text()) for file in sorted(TESTS.rglob("*.py"))]
    assert without_assertion(sources) == []


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("accept(1)", True),
        ("assert accept(1)", False),
        ("with pytest.raises(ValueError): accept(1)", False),
        ("with pytest.warns(UserWarning): accept(1)", False),
        ("if accept(1): pytest.fail()", False),
        ("check(1)", False),
        ("outer.check(1)", False),
        ("calls_nothing(1)", True),
        ("if accept(1): raise ValueError", False),
    ],
)
@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_a_test_without_assertion_is_named(keyword: str, body: str, named: bool) -> None:
    helpers = "def inner(x):\n    assert x\n\ndef check(x):\n    inner(x)\n\ndef calls_nothing(x):\n    print(x)\n"
    sources = [("helpers.py", helpers), ("test_a.py", f"{keyword} test_it():\n    {body}\n")]
    assert without_assertion(sources) == (["test_a.py::test_it"] if named else [])


def imported_tests(text: str) -> list[str]:
    """Return the test files that a file imports, as modules."""
    modules: list[str] = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import():
                modules += [each.name for each in node.names]
            case ast.ImportFrom(module=str(module)):
                modules += [module, *(f"{module}.{each.name}" for each in node.names)]
    return [each for each in modules if ".test_" in each and (TESTS.parent / f"{each.replace('.', '/')}.py").exists()]


def test_no_file_imports_a_test_file() -> None:
    files = [file for file in sorted(TESTS.rglob("*.py")) if imported_tests(file.read_text())]
    assert files == [], "move what they share to a module of tests/support"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from tests.repository.test_assertions import TESTS", True),
        ("from tests.repository import test_assertions", True),
        ("import tests.repository.test_assertions", True),
        ("from tests.support import clock", False),
        ("from tests.support.stack.golden_matrix import test_privileges_of_a_row_allow_exactly_its_actions", False),
    ],
)
def test_an_import_of_a_test_file_is_found(line: str, found: bool) -> None:
    assert imported_tests(f"def late():\n    {line}\n") == (["tests.repository.test_assertions"] if found else [])
