# SPDX-License-Identifier: Apache-2.0
"""Render the message of every error that the gateway's source raises, sorted by the error's type.

Modules and functions are not named, so that code can move. `{}` stands for a value.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import typing
from collections.abc import Iterator
from functools import cache
from itertools import product
from types import ModuleType

from gateway.access.nouns.cards import CARDS
from gateway.iceberg.errors import CatalogError
from tests.support.goldens.golden_errors import Placeholder
from tests.support.goldens.golden_source import VALUE, Scope, modules, scopes
from tests.support.runs.golden_files import table

_HEAD = """\
# Messages of errors

Every message that the source gives to an error, by the error's type. A golden file: see "Golden files" in
ARCHITECTURE.md. `{}` stands for a value. After a type in brackets comes a part of a message, which a function
completes; `(several)` are types that a function takes as a parameter.

"""

#: Parameters of error types that are sent to clients; an error type with none of them builds its own message.
_SHOWN = ("message", "description")

#: A placeholder for an error type whose class is a parameter.
_SEVERAL = "(several)"


def render() -> str:
    """Return the table."""
    making = filter(_knows_errors, modules())
    found = {line for module in making for scope in scopes(module) for line in _messages(scope) if line[1] != VALUE}
    found |= {(error.type, error.message) for card in CARDS.values() if card.refs for error in (card.absent(VALUE),)}
    return _HEAD + table(("type", "message"), sorted(found))


def _knows_errors(module: ModuleType) -> bool:
    """Return True if a module imports an error type, or a module with one. Other modules raise no errors."""
    named = [value for value in vars(module).values() if inspect.isclass(value) or inspect.ismodule(value)]
    return any(
        _is_error(each) or (inspect.ismodule(each) and any(map(_is_error, vars(each).values()))) for each in named
    )


def _messages(scope: Scope) -> Iterator[tuple[str, str]]:
    """Yield (type, message) of each error that the code makes."""
    for call in scope.calls:
        made_by = scope.value(call.func)
        if _is_error(made_by):
            yield from ((made_by.type, text) for text in _shown(scope, call, made_by))
        elif inspect.ismethod(made_by) and _is_error(made_by.__self__):
            named = {each.arg: Placeholder(VALUE) for each in call.keywords if each.arg is not None}
            for given in product(*(scope.templates(each) for each in call.args)):
                yield made_by.__self__.type, made_by(*map(Placeholder, given), **named).message
        elif inspect.isfunction(made_by) and (kind := _returned(made_by)) is not None and _parameter(kind) is not None:
            yield from ((f"({kind.type})", text) for text in _texts_among(scope, call))
    for call in scope.raised:
        if isinstance(call.func, ast.Name) and scope.value(call.func) is None and not hasattr(builtins, call.func.id):
            yield from ((_SEVERAL, text) for text in _texts_among(scope, call))


def _is_error(kind: object) -> typing.TypeGuard[type[CatalogError]]:
    return inspect.isclass(kind) and issubclass(kind, CatalogError)


def _shown(scope: Scope, call: ast.Call, kind: type[CatalogError]) -> list[str]:
    """Return the messages that a call of an error type sends to clients."""
    shown = _parameter(kind)
    if shown is None:
        return []
    name, index = shown
    given = [each.value for each in call.keywords if each.arg == name] or call.args[index : index + 1]
    return scope.templates(given[0]) if given else []


def _parameter(kind: type[CatalogError]) -> tuple[str, int] | None:
    """Return (name, index) of the parameter of an error type that is its message."""
    found = ((name, index) for index, name in enumerate(inspect.signature(kind).parameters) if name in _SHOWN)
    return next(found, None)


@cache
def _returned(function: object) -> type[CatalogError] | None:
    """Return the error type that a function is declared to return."""
    try:
        kind = typing.get_type_hints(function).get("return")
    except (NameError, TypeError):
        return None
    return kind if _is_error(kind) else None


def _texts_among(scope: Scope, call: ast.Call) -> list[str]:
    """Return the arguments that are texts with a blank: messages, not names of operations or fields."""
    return [text for each in call.args for text in scope.templates(each) if " " in text.strip()]
