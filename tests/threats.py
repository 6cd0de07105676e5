# SPDX-License-Identifier: Apache-2.0
"""Read the register of threats (`docs/threats.md`) and the markers that name its cases.

`python -m tests.threats` writes the tests of each case into the register.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parent.parent
REGISTER = _ROOT / "docs" / "threats.md"

#: The beginning of the last column of a case that does not apply; the reason follows.
NOT_APPLICABLE = "Not applicable: "
#: The last column of a case that no test names yet.
OPEN = "Open: no test yet"

_CASE = re.compile(r"^\| (LG-[A-Z]{3}-\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]*) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A row of the register."""

    id: str
    attack: str
    must_hold: str
    tests: str

    @property
    def applies(self) -> bool:
        """Return False if this version lacks the target of the attack."""
        return not self.tests.startswith(NOT_APPLICABLE)


def cases(text: str) -> list[Case]:
    """Return the rows of the register in their order."""
    return [Case(*map(str.strip, found)) for found in _CASE.findall(text)]


def marked(root: Path = _ROOT / "tests") -> dict[str, list[str]]:
    """Return the tests that name each id, as `file::function`, without importing anything."""
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        name = path.relative_to(root.parent).as_posix()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for id in _ids(node):
                    found.setdefault(id, []).append(f"{name}::{node.name}")
    return found


def _ids(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.threat":
            for argument in decorator.args:
                yield str(ast.literal_eval(argument))


def with_tests(text: str, tests: dict[str, list[str]]) -> str:
    """Return the register with the tests of each case that applies in its last column."""

    def row(found: re.Match[str]) -> str:
        case = Case(*map(str.strip, found.groups()))
        named = ", ".join(f"`{test.removeprefix('tests/')}`" for test in tests.get(case.id, ()))
        last = (named or OPEN) if case.applies else case.tests
        return f"| {case.id} | {case.attack} | {case.must_hold} | {last} |"

    return _CASE.sub(row, text)


def main() -> None:
    """Write the tests into the register."""
    REGISTER.write_text(with_tests(REGISTER.read_text(), marked()))


if __name__ == "__main__":
    main()
