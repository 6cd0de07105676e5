# SPDX-License-Identifier: Apache-2.0
"""Read the fields of an operation from a request, by the markers of its class (`gateway.access.request`).

Each class is compiled to functions once, when its endpoint is registered. The same markers describe the endpoint in the
OpenAPI document, so the document contains exactly the inputs that are read. The request headers
`X-Iceberg-Access-Delegation`, `X-Lakegate-Adopt` and `User-Agent` are parsed here too.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from gateway.access.nouns.refs import (
    GenericTable,
    GenericTableRef,
    Table,
    TableRef,
    TabularRef,
    View,
    ViewRef,
    WarehouseRef,
)
from gateway.access.operation import HttpOperation
from gateway.access.request import (
    Body,
    Form,
    Header,
    PageSizeOf,
    Path,
    PrincipalParameters,
    Query,
    RequestProject,
    Source,
)
from gateway.api.path_refs import REFS, uuid_of
from gateway.iceberg.errors import BadRequestException

if TYPE_CHECKING:
    from gateway.api.context import Ctx


_VENDED, _SIGNED = "vended-credentials", "remote-signing"


def client_manages_storage(header: str | None) -> bool:
    """Return True if the header has values, but none by which this server gives access. Then the client needs no
    credentials.

    Unknown values are ignored, because the header only tells what a client supports. A header that has only unknown
    values is not treated as absent, so it never gives more than a known value (LG-DEC-08).
    """
    asked = _delegations(header)
    return bool(asked) and asked.isdisjoint((_VENDED, _SIGNED))


def prefers_signing(header: str | None) -> bool:
    """Return True if the client requests that its requests are signed, and does not request credentials.

    Without the header, and if it has both values, warehouses that can vend credentials do so, as in Lakekeeper.
    """
    asked = _delegations(header)
    return _SIGNED in asked and _VENDED not in asked


def _delegations(header: str | None) -> set[str]:
    return {part.strip().lower() for part in (header or "").split(",") if part.strip()}


def parse_adopt_header(header: str | None) -> bool:
    """Return True for the value `true`, and False for `false` or if the header is absent. Raises 400 for any other
    value.
    """
    match (header or "").strip().lower():
        case "true":
            return True
        case "" | "false":
            return False
        case other:
            raise BadRequestException(f"The header X-Lakegate-Adopt must be true or false, not {other[:40]!r}")


def printable(text: str | None) -> str | None:
    """Return the printable characters of a header that a client may have set to anything, at most 256."""
    if text is None:
        return None
    return "".join(character for character in text if character.isprintable())[:256]


Reader = Callable[["Ctx", Any], Any]
"""A function from (context, decoded body) to the value of a field."""

_BINDINGS: dict[type[HttpOperation], Binding] = {}
"""Bindings by operation, filled while endpoints are registered and constant afterwards."""

#: References that bodies give by name; the warehouse is in the path.
_NAMED: Mapping[Any, type[Any]] = {TableRef: Table, ViewRef: View, GenericTableRef: GenericTable}

#: A parameter in the template of a path.
_PARAMETER = re.compile(r"\{(\w+)\}")

#: The maximum number of digits of a number in a query parameter.
_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a handler that are not in the path. `query` maps parameter names to JSON types of the OpenAPI
    document.
    """

    body: Any = None
    form: Any = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: tuple[str, ...] = ()

    def __or__(self, other: Inputs) -> Inputs:
        return Inputs(
            self.body or other.body,
            self.form or other.form,
            {**self.query, **other.query},
            tuple(dict.fromkeys((*self.headers, *other.headers))),
        )


@dataclass(frozen=True, slots=True)
class Binding:
    """The inputs of an operation, and (field name, function that reads it from a request) for each field with a
    marker.
    """

    inputs: Inputs
    readers: tuple[tuple[str, Reader], ...]


def inputs_of(operations: Iterable[type[HttpOperation]], sources: Iterable[Source] = ()) -> Inputs:
    """Return the inputs of all operations of one endpoint, together with `sources`, which the handler reads itself."""
    found = Inputs()
    for operation in operations:
        found |= bind(operation).inputs
    for source in sources:
        found |= _input(source, str)
    return found


def bind(operation: type[HttpOperation]) -> Binding:
    """Return the binding of an operation. Raises TypeError if a marker cannot read its field."""
    known = _BINDINGS.get(operation)
    return known if known is not None else _BINDINGS.setdefault(operation, _examine(operation))


def require_named(operation: type[HttpOperation]) -> None:
    """Raise TypeError if a path of the operation lacks a parameter that one of its fields reads."""
    hints = typing.get_type_hints(operation, include_extras=True)
    for path in operation.paths():
        named = {name: str(UUID(int=0)) for name in _PARAMETER.findall(path)}
        for each in getattr(operation, "__dataclass_fields__", {}):
            for source in getattr(hints[each], "__metadata__", ()):
                if isinstance(source, Path):
                    read = REFS.get(hints[each].__origin__, itemgetter(source.name or each))
                    try:
                        read(named)
                    except KeyError as missing:
                        raise TypeError(f"{operation.__name__}.{each}: {path} has no parameter {missing}") from None


def _examine(operation: type[HttpOperation]) -> Binding:
    hints = typing.get_type_hints(operation, include_extras=True)
    found, readers = Inputs(), list[tuple[str, Reader]]()
    # An operation without fields need not be a dataclass.
    declared: Mapping[str, dataclasses.Field[Any]] = getattr(operation, "__dataclass_fields__", {})
    for each in declared.values():
        hint = hints[each.name]
        sources = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Source)]
        if not sources:
            continue
        (source,), kind = sources, hint.__origin__
        found |= _input(source, kind)
        default = None if each.default is dataclasses.MISSING else each.default
        readers.append((each.name, _reader(operation, each.name, source, kind, default)))
    return Binding(found, tuple(readers))


def _input(source: Source, kind: Any) -> Inputs:
    """Return the inputs that a marker on a field of type `kind` reads. Inputs in the path are left out."""
    match source:
        case Path():
            return Inputs()
        case Query(name=name):
            return Inputs(query={name: "boolean" if _required(kind) is bool else "string"})
        case Header(name=name):
            return Inputs(headers=(name,))
        case Body(of=of):
            return Inputs(body=kind if of is None else of)
        case Form(of=of):
            return Inputs(form=of)
        case RequestProject():
            return Inputs(query={"projectId": "string", "project-id": "string"}, headers=("x-project-id",))
        case PageSizeOf(name=name):
            return Inputs(query={name: "integer"})
        case PrincipalParameters():
            return Inputs(query={"principalUser": "string", "principalRole": "string"})


def _reader(operation: type[HttpOperation], field_name: str, source: Source, kind: Any, default: Any) -> Reader:
    match source:
        case Path(name=name, dropped=dropped):
            read = _path_reader(operation, field_name, name or field_name, kind)
            return (lambda ctx, body: dataclasses.replace(read(ctx, body), dropped=True)) if dropped else read
        case Query():
            return _query_reader(source, kind, default)
        case Header(name=name):
            return lambda ctx, body: ctx.header(name)
        case Body(member=member):
            return _body_reader(member, kind)
        case RequestProject(in_body=True):
            return lambda ctx, body: ctx.project(body.project_id)
        case RequestProject():
            return lambda ctx, body: ctx.project()
        case PageSizeOf(name=name, after=after):
            return lambda ctx, body: ctx.page_size(name, after)
        case PrincipalParameters(own=own):
            return lambda ctx, body: ctx.principal(own=own)
        case Form():
            raise TypeError(
                f"{operation.__name__}.{field_name}: a binding cannot read a form; the handler must read it"
            )


def _path_reader(operation: type[HttpOperation], field_name: str, name: str, kind: Any) -> Reader:
    if kind in REFS:
        read = REFS[kind]
        return lambda ctx, body: read(ctx.path)
    if kind is UUID:
        return lambda ctx, body: uuid_of(ctx.path, name)
    if kind is str:
        return lambda ctx, body: ctx.path[name]
    raise TypeError(f"{operation.__name__}.{field_name}: a path parameter cannot have the type {kind}")


def _body_reader(member: str, kind: Any) -> Reader:
    if not member:
        return lambda ctx, body: body
    value_of = attrgetter(member)
    if kind in _NAMED:
        tabular = _NAMED[kind]
        return lambda ctx, body: TabularRef(tabular, ctx.ref(WarehouseRef).warehouse_id, value_of(body))
    return lambda ctx, body: value_of(body)


def _query_reader(source: Query, kind: Any, default: Any) -> Reader:
    name, expected = source.name, _required(kind)
    if source.parse is not None:
        parse = source.parse
        return lambda ctx, body: parse(ctx.queries(name))
    if typing.get_origin(kind) is tuple:
        one = typing.get_args(kind)[0]
        return lambda ctx, body: _all_of(name, one, ctx.queries(name))
    if expected is bool:
        return lambda ctx, body: ctx.flag(name, default)
    if expected is int:
        return lambda ctx, body: _number(name, ctx.query(name), default, source.max_value)
    return lambda ctx, body: _one_of(name, expected, ctx.query(name))


def _required(kind: Any) -> Any:
    """Return the type without its member None."""
    if typing.get_origin(kind) not in (types.UnionType, typing.Union):
        return kind
    (required,) = (each for each in typing.get_args(kind) if each is not types.NoneType)
    return required


def _all_of(name: str, kind: Any, given: list[str]) -> tuple[Any, ...]:
    try:
        return tuple(kind(each) for each in given)
    except ValueError:
        raise BadRequestException(f"Each value of {name} must be {_form(kind)}.") from None


def _form(kind: Any) -> str:
    """Return a text that describes the values which a query parameter accepts."""
    return " or ".join(each.value for each in kind) if issubclass(kind, Enum) else f"a {kind.__name__}"


def _one_of(name: str, kind: Any, text: str | None) -> Any:
    if text is None or kind is str:
        return text
    try:
        return kind(text)
    except ValueError:
        pass
    raise BadRequestException(f"{name} must be {_form(kind)}, not {text[:20]!r}.")


def _number(name: str, text: str | None, default: int | None, max_value: int | None) -> int | None:
    """Parse a query parameter; a value above `max_value` is reduced to it. Raises 400 unless it is a whole number."""
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        raise BadRequestException(f"{name} must be a whole number of at most {_DIGITS} digits, not {text[:20]!r}.")
    return int(text) if max_value is None else min(int(text), max_value)
