# SPDX-License-Identifier: Apache-2.0
"""Lock 9: use cases execute exactly what the door decided. All request values are in the admitted operation.

Two walks prove it. The first reads the signatures of all use cases: beside permits they take no request values. The
type checker then keeps handlers from passing any. The second reads the source of the handlers: each value read from a
request ends in an operation, or the handler is listed with its reason.

Limits: the second walk follows names within one module and functions that read for other functions. It does not follow
a value through attributes, containers or other modules, and a value of an operation may have further uses.
"""

from __future__ import annotations

import ast
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gateway.api
import gateway.features
from gateway.access.door.permit import Permit
from gateway.access.idempotency import RecordedSuccess
from gateway.features.tasks.tasks import Tasks
from tests.support.door.use_cases import EXEMPT, offered

#: Parameters of use cases beside permits, with values outside of the request. An unnecessary line fails.
NOT_OF_THE_REQUEST = {
    **dict.fromkeys(
        (
            f"features.approvals.change_approval.ChangeApproval.{name}"
            for name in (
                "require",
                "of_creation",
                "of_drop",
                "of_rename",
                "of_new_namespace",
                "of_namespace",
                "of_move",
                "of_registration",
                "of_restoration",
                "of_warehouse",
            )
        ),
        "for use cases: rows of the permit, and what they are about to make of them",
    ),
    "features.credentials.credentials.Credentials.for_creation": "the location that its use case has just chosen",
    "features.tables.tabular_creation.creation_transaction": (
        "for use cases: rows of the permit, and what they have just made"
    ),
    "features.tables.tabular_creation.refuse_taken_name": "for use cases: rows of the permit, and the requested name",
    **dict.fromkeys(
        (
            f"features.access_requests.deciders.Deciders.{name}"
            for name in ("readable", "grantable", "find", "find_all", "answer", "answers")
        ),
        "for use cases: the request that their operation names, or rows that they have read",
    ),
    "features.access_requests.decided.DecidedLists.page": "for use cases: how they read and filter rows",
    **dict.fromkeys(
        (f"features.answers.asker.Asker.{name}" for name in ("having", "sight", "visible", "unreadable")),
        "for use cases: objects and facts that they have read",
    ),
    "features.answers.limits.restricted_contents": "for use cases: the objects of their rows",
    "features.answers.moments.moment_of": "for use cases: the object and the moment of their operation",
    "features.break_glass.break_glass.BreakGlass.own": "for a repeated request: the id in its recorded success",
    "features.grants.grants.Grants.change_by_break_glass": "for use cases: the grants of an activation, and its mark",
    "features.grants.grants.Grants.change_for_request": "for use cases: how their transaction marks the request",
    "features.contents.lists.Lists.answer": "for use cases: the type of object that their operation lists",
    "features.contents.lists.Lists.namespaces": "for use cases: rows of the permit",
    "features.contents.lists.Lists.tabulars": "for use cases: rows of the permit, and the type of object",
    "features.views.views.Views.insert": "for use cases: rows of the permit, and what they have just made",
    "features.principals.scim_resources.finish_deletion": "for use cases: their collaborators",
    "features.principals.scim_resources.found": "for use cases: their collaborators, and how they read",
}

#: Handlers that read a request value which is in no operation. An unnecessary line fails.
NOT_OF_THE_OPERATION = {
    "server.documentation_routes.get_api_asset": "files that are public, by a name of a list",
    "server.documentation_routes.get_api_document": "as above",
    "engines.oauth_routes.exchange_token": "it only refuses: an exchange with a header that it does not follow",
    "server.routes.get_policy_bundle": "the tag of a copy that the client has narrows what was admitted",
    "principals.scim_routes._describe": "it only refuses: a filter where there is nothing to filter",
    "principals.scim_routes.get_resource_type": "constants, the same for every caller",
    "principals.scim_routes.get_schema": "as above",
    "principals.scim_routes._one": "attributes narrow what the use case has answered",
    "principals.scim_routes._patched": "whether the group is answered, which is admitted as an operation of its own",
    "principals.scim_routes.list_users": "attributes narrow what the use case has answered",
    "tables.routes.commit_table": "whether it makes a table, which both operations say as well",
    "tasks.routes.schedule_task": "it only refuses: no task is made by hand",
    "server.sign_in_routes.get_ui_asset": "files that are public, by a name of a list",
}

_READS = frozenset(
    {
        "authorizations",
        "body",
        "flag",
        "form",
        "header",
        "page_size",
        "path",
        "principal",
        "project",
        "queries",
        "query",
        "read",
        "ref",
        "scim",
    }
)
_API = Path(next(iter(gateway.api.__path__)))
_FEATURES = Path(next(iter(gateway.features.__path__)))


def _of_no_request(hint: Any) -> bool:
    """Return True for permits, also none, and for an earlier success that the gateway recorded itself."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return all(_of_no_request(each) for each in typing.get_args(hint))
    return hint in (type(None), RecordedSuccess) or typing.get_origin(hint) is Permit


def _more_than_permits(function: Callable[..., Any], *, method: bool) -> list[str]:
    """Return the names of parameters that could carry a request value."""
    parameters = list(inspect.signature(function).parameters)[1 if method else 0 :]
    hints = typing.get_type_hints(function)
    return [name for name in parameters if not _of_no_request(hints.get(name))]


def _use_cases() -> Iterator[tuple[str, Callable[..., Any], bool]]:
    for name, function, method in offered():
        if name not in EXEMPT and inspect.isfunction(function):
            yield name, function, method


def test_use_cases_take_no_request_values_besides_permits() -> None:
    taking = {name: more for name, each, method in _use_cases() if (more := _more_than_permits(each, method=method))}
    assert set(taking) == set(NOT_OF_THE_REQUEST), taking


def test_the_walk_recognizes_a_value_of_the_request() -> None:
    async def given(self: object, permit: Permit[Any], if_match: str | None) -> None:
        """Invalid: a request value as a parameter."""

    assert _more_than_permits(given, method=True) == ["if_match"]
    assert _more_than_permits(Tasks.get, method=True) == []


# ---- handlers -------------------------------------------------------------------------------------------------------


class _Module:
    """The functions of one module of handlers, and the request values that each reads."""

    def __init__(self, source: str, listed: frozenset[str] = frozenset()) -> None:
        self.listed = listed
        tree = ast.parse(source)
        self.functions = {
            node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        self.above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.readers: set[str] = set()
        while found := {name for name in set(self.functions) - self.readers if self._returns_a_read(name)}:
            self.readers |= found

    def _reads(self, function: ast.AST) -> list[ast.Call | ast.Attribute]:
        """Yield the places where the function reads the request, directly or through a reading function."""
        found: list[ast.Call | ast.Attribute] = []
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ctx":
                if node.attr in _READS or node.attr == "_request":
                    found.append(node)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.readers:
                found.append(node)
        return [node for node in found if self._function_of(node) is function]

    def _function_of(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node = self.above[node]
        return node

    def _ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.above:
            node = self.above[node]
            yield node

    def _is_decided(self, node: ast.AST, function: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
        """Return True if the value is passed to the door, or assigned to a name that is."""
        for above in self._ancestors(node):
            if above is function:
                return False
            if isinstance(above, ast.Call) and self._is_door(above, node, seen):
                return True
            if isinstance(above, ast.Assign | ast.AnnAssign):
                targets = above.targets if isinstance(above, ast.Assign) else [above.target]
                names = {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
                return any(self._name_is_decided(name, function, seen) for name in names - seen)
        return False

    def _is_door(self, call: ast.Call, node: ast.AST, seen: frozenset[str]) -> bool:
        """Return True for the door, and for a function of this module that passes this argument to the door."""
        if isinstance(call.func, ast.Attribute):
            return call.func.attr in ("admit", "admit_with")
        if not isinstance(call.func, ast.Name) or call.func.id not in self.functions or call.func.id in seen:
            return False
        function = self.functions[call.func.id]
        inside = {node, *self._ancestors(node)}
        given = zip(function.args.args, call.args, strict=False)
        names = [parameter.arg for parameter, argument in given if argument in inside]
        return any(self._name_is_decided(name, function, seen | {call.func.id}) for name in names)

    def _name_is_decided(self, name: str, function: ast.AST, seen: frozenset[str]) -> bool:
        uses = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]
        return any(self._is_decided(use, function, seen | {name}) for use in uses)

    def _returns_a_read(self, name: str) -> bool:
        """Return True for a function that reads for handlers, which must then pass the value to the door."""
        function = self.functions[name]
        served = any("serves" in ast.unparse(each) for each in function.decorator_list)
        if served or name.startswith("replay") or name in self.listed:
            return False
        admits = any(
            isinstance(node, ast.Attribute) and node.attr in ("admit", "admit_with") for node in ast.walk(function)
        )
        return not admits and bool(self._reads(function))

    def undecided(self) -> set[str]:
        """Return the functions that read a value and neither pass it to the door nor return it."""
        return {
            name
            for name, function in self.functions.items()
            if name not in self.readers and not all(self._is_decided(read, function) for read in self._reads(function))
        }


def _handlers() -> Iterator[tuple[str, _Module]]:
    # Values that these two read end in fields of operations.
    own = set(_API.rglob("*.py")) - {_API / "binding.py", _API / "context.py"}
    for path in sorted(own | set(_FEATURES.rglob("*routes.py"))):
        name = path.stem if path in own else f"{path.parent.name}.{path.stem}"
        listed = {each.rpartition(".")[2] for each in NOT_OF_THE_OPERATION if each.rpartition(".")[0] == name}
        yield name, _Module(path.read_text(), frozenset(listed))


def test_every_request_value_a_handler_reads_is_in_the_operation() -> None:
    found = {f"{stem}.{name}" for stem, module in _handlers() for name in module.undecided()}
    assert found == set(NOT_OF_THE_OPERATION)


@pytest.mark.parametrize(
    ("body", "undecided"),
    [
        ("await ctx.services.x.get(await ctx.admit(Get(ctx.query('a'))))", False),
        ("asked = Get(ctx.query('a'))\n    await ctx.services.x.get(await ctx.admit(asked))", False),
        ("a, b = read(ctx)\n    await ctx.services.x.get(await ctx.admit(Get(a)))", False),
        ("await load(ctx, Get(ctx.query('a')), True)", False),
        ("await load(ctx, Get(), ctx.query('a'))", True),
        ("await ctx.services.x.get(await ctx.admit(Get()), ctx.header('if-match'))", True),
        ("permit = await ctx.admit(Get())\n    given = read(ctx)\n    await ctx.services.x.get(permit, given)", True),
        ("permit = await ctx.admit(Get())\n    if ctx.flag('force', False):\n        await other()", True),
        ("permit = await ctx.admit(Get())\n    other(ctx._request.headers)", True),
    ],
)
def test_the_walk_distinguishes_decided_values_from_undecided_ones(body: str, undecided: bool) -> None:
    reader = "def read(ctx):\n    return ctx.query('a'), ctx.query('b')\n\n"
    loader = "async def load(ctx, asked, more):\n    await ctx.services.x.get(await ctx.admit(asked), more)\n\n"
    module = _Module(f"{reader}{loader}@serves(Get)\nasync def handler(ctx):\n    {body}\n")
    assert module.undecided() == ({"handler"} if undecided else set())
