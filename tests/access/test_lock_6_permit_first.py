# SPDX-License-Identifier: Apache-2.0
"""Lock 6c: every public function of the features takes a permit first."""

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
from gateway.access.operation import Operation
from tests.support.door.use_cases import BACKGROUND, EXEMPT, offered


def _permit_first(function: Callable[..., Any], *, method: bool) -> bool:
    """Return True if the first parameter (after `self`) is annotated with a `Permit[...]` of operations, or a union of
    them.
    """
    if not inspect.isfunction(function):
        return False
    names = list(inspect.signature(function).parameters)[1 if method else 0 :]
    annotation = typing.get_type_hints(function).get(names[0]) if names else None
    members = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
    return bool(members) and all(typing.get_origin(member) is Permit and _named(member) for member in members)


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def _named(permit: Any) -> bool:
    """Return True if the annotation names operations: `Permit[Operation]` would accept any permit."""
    [argument] = typing.get_args(permit)
    members = typing.get_args(argument) if _is_union(argument) else (argument,)
    return all(issubclass(member, Operation) and member is not Operation for member in members)


def test_every_use_case_takes_a_permit_first() -> None:
    without = {name for name, function, method in offered() if not _permit_first(function, method=method)}
    assert without - set(EXEMPT) == set(), "these methods take no permit first and are not in EXEMPT"
    assert set(EXEMPT) - without == set(), "these entries of EXEMPT are unnecessary"


_WAYS = frozenset({"use", "use_case"})
"""Attributes of the context and of the services that return an instance of any class."""


def _named_ways(source: str) -> tuple[set[str], int]:
    """Return (the classes that a module of routes names in `serve`, `replay_by` and `ctx.use`, number of other ways).

    A way counts as other if the class is not named by an import from the features.
    """
    tree = ast.parse(source)
    homes = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gateway.features")
        for alias in node.names
    }
    found, named = set(), 0
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="use"), args=[ast.Name(id=name)], keywords=[]) if name in homes:
                found.add(homes[name])
                named += 1
            case ast.Call(func=ast.Name(id="serve" | "replay_by"), args=[_, ast.Attribute(value=ast.Name(id=name))]):
                found.add(homes[name])
                named += 1
    ways = (
        isinstance(node, ast.Attribute)
        and node.attr in _WAYS
        or isinstance(node, ast.Constant)
        and node.value in _WAYS
        or isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("serve", "replay_by")
        for node in ast.walk(tree)
    )
    return {each.removeprefix("gateway.") for each in found}, sum(ways) - named


def _routes() -> Iterator[Path]:
    yield from sorted(Path(gateway.features.__path__[0]).rglob("*routes.py"))


def _reachable() -> set[str]:
    """Return the classes that routes name in `serve`, `replay_by` and `ctx.use`."""
    return set().union(*(_named_ways(path.read_text())[0] for path in _routes()))


def test_each_module_of_background_work_exists() -> None:
    """A name without a module would exempt one that is added later."""
    features = Path(gateway.features.__path__[0])
    assert [name for name in BACKGROUND if not (features / f"{name.replace('.', '/')}.py").is_file()] == []


def test_handlers_reach_a_use_case_only_by_naming_its_class() -> None:
    """Otherwise the classes that routes can reach would not be known here."""
    others = {str(path): other for path in _routes() if (other := _named_ways(path.read_text())[1])}
    assert others == {}


def test_only_the_context_asks_the_services_for_a_use_case() -> None:
    api = sorted(Path(gateway.api.__path__[0]).rglob("*.py"))
    asked = [
        (path.name, *line.split()) for path in api for line in path.read_text().splitlines() if "use_case(" in line
    ]
    assert asked == [("context.py", "instance:", "UseCase", "=", "self.services.use_case(kind)")]


@pytest.mark.parametrize(
    "statement",
    [
        "ctx.use(files.MetadataFiles)",
        "ctx.use(chosen)",
        "ctx.services.use_case(Tags)",
        "reader = ctx.use",
        "getattr(ctx, 'use')(Tags)",
        "serve(operation, chosen)",
    ],
)
def test_the_walk_recognizes_a_way_without_the_name_of_a_class(statement: str) -> None:
    source = (
        "from gateway.features.metadata import metadata_files as files\nfrom gateway.features.tags.tags import Tags\n"
    )
    assert _named_ways(source + "ctx.use(Tags)\n") == ({"features.tags.tags.Tags"}, 0)
    assert _named_ways(source + statement)[1] == 1


def test_the_walk_covers_every_use_case_that_handlers_can_reach() -> None:
    seen = {name.rsplit(".", 1)[0] for name, _, method in offered() if method}
    reachable = _reachable()
    assert len(reachable) > 40
    assert reachable <= seen


def test_handlers_cannot_reach_an_exempted_use_case_method() -> None:
    """Exempted methods belong to classes that no route names, or are listed here."""
    reachable = _reachable()
    on_parts = {name for name in EXEMPT if name.rsplit(".", 1)[0] in reachable}
    assert on_parts == {
        "features.credentials.credentials.Credentials.without_credentials",
    }


class _Samples:
    async def with_permit(self, permit: Permit[Any]) -> None:
        """Invalid: any permit is accepted."""

    async def with_any(self, permit: Permit[Operation]) -> None:
        """Invalid, as above."""

    async def second(self, name: str, permit: Permit[Operation]) -> None:
        """Invalid: the permit is not the first parameter."""

    async def optional(self, permit: Permit[Operation] | None) -> None:
        """Invalid: None would be accepted."""

    @property
    def prop(self) -> int:
        """Invalid: no permit."""
        return 1


def test_the_walk_recognizes_invalid_permit_parameters() -> None:
    for name in ("with_any", "second", "optional", "prop"):
        assert not _permit_first(vars(_Samples)[name], method=True), name
