# SPDX-License-Identifier: Apache-2.0
"""Render every event that the product's source logs, with its levels and the names of its fields."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, MutableMapping
from types import ModuleType
from typing import Any, cast

import structlog

from gateway.telemetry.logs import add_to_context, processors, request_context
from tests.support.goldens.golden_source import Scope, modules, scopes
from tests.support.runs.golden_files import table

_HEAD = """\
# Log events

Every event that the product logs. A golden file: see "Golden files" in ARCHITECTURE.md. An event with several lines is
logged in several places. `?`: the field is not always there.

"""

_COMMON = """
## Fields of every line

A line that is logged during a request, with the fields that only such a line has.

"""

_LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
_LOGGER = type(structlog.get_logger())


def render() -> str:
    """Return the tables. Raise LookupError for a use of a logger whose event or fields the source does not show."""
    rows = {row for module in modules() if _logs(module) for scope in scopes(module) for row in _events(scope)}
    alone, in_request = _line(), _request_line()
    common = [(name, "every line" if name in alone else "during a request") for name in sorted(in_request)]
    return _HEAD + table(("event", "level", "fields"), sorted(rows)) + _COMMON + table(("field", "on"), common)


def _logs(module: ModuleType) -> bool:
    return module.__name__ == "gateway.telemetry.logs" or any(
        isinstance(each, _LOGGER) for each in vars(module).values()
    )


def _events(scope: Scope) -> Iterator[tuple[str, str, str]]:
    """Yield (event, levels, fields) of each call of a logger."""
    uses = {
        id(each) for each in scope.attributes if each.attr in _LEVELS and isinstance(scope.value(each.value), _LOGGER)
    }
    for call in scope.calls:
        given = {each.arg: each.value for each in call.keywords if each.arg is not None}
        match given.pop("event", None), call.args:
            case ast.Constant(value=str(event)), [ast.Constant(value=str(level))]:
                # The handler of library lines logs events without a logger.
                yield event, level, _joined(given)
                continue
        methods = [each for each in _methods(scope, call.func) if id(each) in uses]
        uses -= {id(each) for each in methods}
        if methods:
            yield _event(scope, call, methods)
    if uses:
        raise LookupError(f"{scope.module.__name__}.{scope.name} uses a logger without calling it.")


def _methods(scope: Scope, function: ast.expr) -> list[ast.Attribute]:
    """Return the methods that a called expression can be."""
    match function:
        case ast.Attribute():
            return [function]
        case ast.IfExp(body=one, orelse=other):
            return [*_methods(scope, one), *_methods(scope, other)]
        case ast.Name(id=name):
            return [method for each in scope.assigned.get(name, ()) for method in _methods(scope, each)]
        case _:
            return []


def _event(scope: Scope, call: ast.Call, methods: list[ast.Attribute]) -> tuple[str, str, str]:
    match call.args:
        case [ast.Constant(value=str(event))]:
            pass
        case _:
            raise LookupError(f"{scope.module.__name__}.{scope.name} logs an event whose name is not a literal.")
    bound = structlog.get_context(scope.value(methods[0].value).bind())
    fields = [*bound, *(name for each in call.keywords for name in _names(scope, each))]
    levels = sorted({each.attr for each in methods})
    if "exception" in levels:
        fields.append("exc_info")
    return event, ", ".join("error" if level == "exception" else level for level in levels), _joined(fields)


def _joined(fields: Iterable[str]) -> str:
    """Return the names as they are in a line: the traceback is in `exception` there."""
    return ", ".join(sorted(name.replace("exc_info", "exception") for name in fields))


def _names(scope: Scope, keyword: ast.keyword) -> list[str]:
    """Return the names of the fields that a keyword, or `**` with a dictionary, passes to an event."""
    if keyword.arg is not None:
        return [keyword.arg]
    match keyword.value:
        case ast.Name(id=name) if name in scope.assigned:
            return [key for each in scope.assigned[name] for key in _keys(scope, each)]
        case ast.Call(func=ast.Name(id=name)):
            made = [each for other in scopes(scope.module) if other.name == name for each in other.returned]
            return [f"{key}?" for key in dict.fromkeys(key for each in made for key in _keys(scope, each))]
        case _:
            raise LookupError(f"{scope.module.__name__}.{scope.name} logs fields whose names are not in the source.")


def _keys(scope: Scope, node: ast.expr) -> list[str]:
    match node:
        case ast.Dict(keys=keys) if all(isinstance(key, ast.Constant) for key in keys):
            return [str(cast(ast.Constant, key).value) for key in keys]
        case ast.IfExp(body=one, orelse=other):
            return [*_keys(scope, one), *_keys(scope, other)]
        case _:
            raise LookupError(f"{scope.module.__name__}.{scope.name} logs a dictionary that is not a literal.")


def _line() -> set[str]:
    """Return the names of the fields of a line, made by the processors that the product configures."""
    line: Any = {"event": "thing.happened"}
    for processor in processors():
        line = processor(None, "info", cast(MutableMapping[str, Any], line))
    return set(json.loads(line))


def _request_line() -> set[str]:
    with request_context(request_id="request-1", client_request_id="1"):
        add_to_context(operation="load_table", actor="oidc~alice")
        return _line()
