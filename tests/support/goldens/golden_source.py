# SPDX-License-Identifier: Apache-2.0
"""Read the product's source: its modules, and templates of the texts in it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import gateway
import lakegate.conformance
import lakegate.local

#: Alembic alone can import its environment.
_LEFT_OUT = "gateway.db.migrations."

#: The placeholder for a value in a template.
VALUE = "{}"


@dataclass
class Scope:
    """The code of a function, or of a module outside of its functions: one scope of names.

    `name` is the function's, and empty for a module.
    """

    module: ModuleType
    name: str
    attributes: list[ast.Attribute] = field(default_factory=list)
    calls: list[ast.Call] = field(default_factory=list)
    raised: list[ast.Call] = field(default_factory=list)
    returned: list[ast.expr] = field(default_factory=list)
    assigned: dict[str, list[ast.expr]] = field(default_factory=dict)

    def add(self, node: ast.AST) -> None:
        """Add a node to the lists of its kind."""
        match node:
            case ast.Attribute():
                self.attributes.append(node)
            case ast.Call():
                self.calls.append(node)
            case ast.Raise(exc=ast.Call() as exception):
                self.raised.append(exception)
            case ast.Return(value=ast.expr() as value):
                self.returned.append(value)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        self.assigned.setdefault(target.id, []).append(value)

    def value(self, node: ast.expr) -> Any:
        """Return the value that a name, or a dotted name, has in the module; None for any other expression."""
        match node:
            case ast.Name(id=name):
                return vars(self.module).get(name)
            case ast.Attribute(value=of, attr=name):
                return getattr(self.value(of), name, None)
            case _:
                return None

    def templates(self, node: ast.expr) -> list[str]:
        """Return the texts that an expression can be, with `{}` for each value that varies."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return ["".join(self._part(part) for part in parts)]
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return [one + other for one in self.templates(left) for other in self.templates(right)]
            case ast.IfExp(body=one, orelse=other):
                return [*self.templates(one), *self.templates(other)]
            case ast.Call(func=ast.Attribute(value=of, attr="format")):
                return self.templates(of)
            case ast.Name(id=name) if self.name and name in self.assigned:
                return [text for each in self.assigned[name] for text in self.templates(each)]
            case _:
                value = self.value(node)
                return [value] if isinstance(value, str) else [VALUE]

    def _part(self, part: ast.expr) -> str:
        return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else VALUE


@cache
def modules() -> Sequence[ModuleType]:
    """Return every module of the product but those for engines, which raise no error to clients."""
    names = [
        each.name
        for package in (gateway, lakegate.conformance, lakegate.local)
        for each in walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return [import_module(name) for name in names if not f"{name}.".startswith(_LEFT_OUT) and "__main__" not in name]


@cache
def scopes(module: ModuleType) -> Sequence[Scope]:
    """Return the scopes of a module, its own first."""
    found: list[Scope] = []
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    waiting: list[tuple[ast.AST, Scope]] = []

    def enter(code: ast.AST) -> None:
        found.append(Scope(module, getattr(code, "name", "")))
        waiting.extend((node, found[-1]) for node in ast.iter_child_nodes(code))

    enter(tree)
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            enter(node)
        else:
            scope.add(node)
            waiting.extend((child, scope) for child in ast.iter_child_nodes(node))
    return found
