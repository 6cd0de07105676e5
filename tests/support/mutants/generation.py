# SPDX-License-Identifier: Apache-2.0
"""Sample mutants of `gateway/` with the operators of Cosmic Ray: `python generation.py ROOT SEED COUNT` prints JSON.

It runs in an environment of its own (`tests/locks/mutants.lock`), so it imports nothing of the project. Only the
bodies of functions are changed. Annotations, defaults, decorators, docstrings, texts and `__repr__` stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import parso.python.tree  # before Cosmic Ray, whose own modules cannot import it alone
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider

#: One replacement for each comparison and operator. Others are equal in most code: `is None` and `== None`.
COMPARISONS = ("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Is_IsNot", "IsNot_Is")
ARITHMETIC = ("Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Div_Mul", "BitOr_BitAnd", "BitAnd_BitOr")
OTHERS = (
    "AddNot",
    "ExceptionReplacer",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ReplaceFalseWithTrue",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceUnaryOperator_Delete_Not",
    "ZeroIterationForLoop",
)
_TEXTS = ("__repr__", "__str__")
#: Calls without an effect on the decision: logs, and a case that types exclude.
_HARMLESS = ("log", "_log", "logger", "_logger", "assert_never")


class RemoveCall(Operator):  # type: ignore[misc]  # the library has no types
    """Remove a call whose result is not used: many checks are such calls."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "simple_stmt" and node.children[0].type == "atom_expr":
            called = node.children[0].children
            first = called[1] if called[0].type == "keyword" else called[0]
            if called[-1].get_code().startswith("(") and first.get_code().strip() not in _HARMLESS:
                yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        nothing = parso.parse("None").get_first_leaf()
        nothing.prefix = node.get_first_leaf().prefix
        node.children[0] = nothing
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class NegateMembership(Operator):  # type: ignore[misc]  # the library has no types
    """Replace `in` by `not in`, and the other way round."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "comparison":
            for each in node.children[1::2]:
                if each.get_code().split()[-1] == "in":
                    yield each.start_pos, each.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        places = [at for at, each in enumerate(node.children) if at % 2 and each.get_code().split()[-1] == "in"]
        negated = node.children[places[index]].get_code().split()[0] == "not"
        node.children[places[index]] = parso.parse(" in" if negated else " not in")
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class Site(NamedTuple):
    """A possible mutant: its position, and its rank in the sample of a seed."""

    rank: str
    file: str
    line: int
    column: int
    operator: str
    occurrence: int
    function: str


def operators() -> dict[str, Any]:
    provided = OperatorProvider()
    names = (
        *(f"ReplaceComparisonOperator_{each}" for each in COMPARISONS),
        *(f"ReplaceBinaryOperator_{each}" for each in ARITHMETIC),
        *OTHERS,
    )
    ours = {"NegateMembership": NegateMembership(), "RemoveCall": RemoveCall()}
    return {**{name: provided[name]() for name in names}, **ours}


def function_of(node: Any) -> str | None:
    """Return the qualified name of the function whose body contains the node, or None."""
    names: list[str] = []
    inside = False
    while (parent := node.parent) is not None:
        if parent.type == "decorator" or (parent.type == "annassign" and node is parent.children[1]):
            return None
        if parent.type == "funcdef":
            if node is not parent.children[-1]:
                return None
            inside = True
        if parent.type in ("funcdef", "classdef"):
            names.append(parent.name.value)
        node = parent
    return ".".join(reversed(names)) if inside and not set(names) & set(_TEXTS) else None


def sites(root: Path, seed: int) -> Iterator[Site]:
    """Yield all mutants. The rank does not depend on the module, so moved code has the same sample."""
    known: Counter[str] = Counter()
    chosen = operators()
    for path in sorted((root / "gateway").rglob("*.py")):
        text = path.read_text()
        lines = text.splitlines()
        count: Counter[str] = Counter()
        for node in ast_nodes(get_ast(text)):
            for name, operator in chosen.items():
                for (line, column), _ in operator.mutation_positions(node):
                    count[name] += 1
                    function = function_of(node)
                    if function is None:
                        continue
                    key = f"{seed} {name} {function} {lines[line - 1].strip()}"
                    known[key] += 1
                    rank = hashlib.sha256(f"{key} {known[key]}".encode()).hexdigest()
                    yield Site(rank, str(path.relative_to(root)), line, column, name, count[name] - 1, function)


def sample(root: Path, seed: int, wanted: int) -> dict[str, Any]:
    """Return the number of all mutants, and the wanted ones that compile, with their source."""
    every = sorted(sites(root, seed))
    chosen = operators()
    mutants: list[dict[str, Any]] = []
    for site in every:
        text = (root / site.file).read_text()
        try:
            source = mutate_code(text, chosen[site.operator], site.occurrence)
            compile(source, site.file, "exec")
        except (AttributeError, SyntaxError):  # a dotted name of an exception; `not` before an assignment expression
            continue
        mutants.append(
            {
                **site._asdict(),
                "source": source,
                "was": text.splitlines()[site.line - 1].strip(),
                "becomes": source.splitlines()[site.line - 1].strip(),
            }
        )
        if len(mutants) == wanted:
            break
    return {"possible": len(every), "mutants": mutants}


if __name__ == "__main__":
    print(json.dumps(sample(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
