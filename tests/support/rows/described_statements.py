# SPDX-License-Identifier: Apache-2.0
"""Describe every statement with a type of rows by PostgreSQL, without executing it.

Each function of `gateway.db` that reads typed rows is called with arguments made from its annotations, on a connection
that only prepares statements. PostgreSQL returns the columns of a prepared statement. The connection returns one row
of made values for it, so that the function continues.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import pkgutil
import sys
import types
import typing
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import asyncpg
import msgspec
from sqlalchemy import Executable, IteratorResult
from sqlalchemy.dialects.postgresql import asyncpg as driver_dialect
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.ext.asyncio import AsyncConnection

import gateway.db
from gateway.db.engine.database import Database
from gateway.db.pools import rows
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import count_and_some, fields_of
from gateway.db.warehouses import drift
from gateway.iceberg.identifiers import Namespace

_DIALECT: Any = driver_dialect.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy annotates no dialects
_READS: Final = {"fetch_all", "fetch_one", "fetch_optional", "count_and_some"}
_ID: Final = "00000000-0000-0000-0000-000000000001"
#: Statements of a call that return a row, and then those that return none. A loop ends by one or the other.
_ROWS_OF_A_CALL: Final = 12
_BY_TYPE: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("text", "varchar", "name"), _ID),
    **dict.fromkeys(("int2", "int4", "int8", "oid"), 1),
    **dict.fromkeys(("float4", "float8", "numeric"), 1.0),
    "uuid": UUID(_ID),
    "bool": False,
    "bytea": b"{}",
    "timestamptz": datetime(2030, 1, 1, tzinfo=UTC),
    **dict.fromkeys(("json", "jsonb"), {}),
}


@dataclass(frozen=True, order=True)
class Site:
    """A call that reads rows of a type: module, function, and the lines of the call."""

    module: str
    function: str
    first: int
    last: int


class _Described(IteratorResult[Any]):
    def __init__(self, made: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> None:
        super().__init__(SimpleResultMetaData(columns), iter(made))
        self.rowcount = len(made)


@dataclass
class Described:
    """The connection: prepares each statement, and notes where its columns differ from the fields of its rows."""

    driver: asyncpg.Connection
    reached: set[tuple[str, int]] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    left: int = _ROWS_OF_A_CALL

    async def execute(self, statement: Executable, values: Any = None) -> _Described:
        frame = sys._getframe(1)
        given = values if isinstance(values, Mapping) else values[0] if values else {}
        columns = await self.columns(statement, given)
        if frame.f_code.co_filename == rows.__file__ and frame.f_code.co_name != count_and_some.__name__:
            kind = frame.f_locals["kind"]
            while frame.f_code.co_filename == rows.__file__ and frame.f_back is not None:
                frame = frame.f_back
            self.note(kind, columns, f"{frame.f_globals['__name__']}:{frame.f_lineno}")
            self.reached.add((frame.f_globals["__name__"], frame.f_lineno))
        self.left -= 1
        if self.left < -_ROWS_OF_A_CALL:
            raise TimeoutError("the function repeats its statements until another transaction ends")
        made = [] if self.left < 0 else [tuple(_of_type(type) for type in columns.values())]
        return _Described(made, list(columns))

    async def columns(self, statement: Any, values: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the types of a statement's columns by their names, from PostgreSQL."""
        if values and not getattr(statement, "is_dml", False):
            statement = statement.params(**values)
        compiled = statement.compile(
            dialect=_DIALECT, column_keys=sorted(values) or None, compile_kwargs={"render_postcompile": True}
        )
        prepared = await self.driver.prepare(compiled.string)
        return {each.name: each.type.name for each in prepared.get_attributes()}

    def note(self, kind: type[Any], columns: Mapping[str, str], where: str) -> None:
        """Note a difference between the fields of a type and the columns of its statement."""
        if tuple(columns) != fields_of(kind):
            self.wrong.add(f"{where}: {kind.__name__} has {fields_of(kind)}, its statement {tuple(columns)}")

    async def commit(self) -> None:
        """Commit nothing."""

    @asynccontextmanager
    async def begin_nested(self) -> AsyncIterator[None]:
        """Begin nothing."""
        yield


class _Opened:
    """Stands for the database of a class whose methods read rows."""

    def __init__(self, connection: Described) -> None:
        self.connection = connection

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Described]:
        yield self.connection

    transaction = autocommit = read


def _of_type(name: str) -> Any:
    return [_of_type(name[:-2])] if name.endswith("[]") else _BY_TYPE.get(name)


@cache
def modules() -> Sequence[types.ModuleType]:
    """Import and return all modules of `gateway.db` except migrations."""
    found = pkgutil.walk_packages(gateway.db.__path__, "gateway.db.")
    names = [each.name for each in found if ".migrations" not in each.name]
    return [importlib.import_module(name) for name in names if name != rows.__name__]


def sites(module: types.ModuleType) -> Iterator[Site]:
    """Yield the calls in a module that read rows of a type."""
    if module.__file__ is None:
        return
    stack: list[tuple[ast.AST, str]] = [(ast.parse(Path(module.__file__).read_text()), "")]
    while stack:
        node, within = stack.pop()
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in _READS:
            yield Site(module.__name__, within, node.lineno, node.end_lineno or node.lineno)
        if isinstance(node, (ast.ClassDef, ast.AsyncFunctionDef, ast.FunctionDef)):
            within = f"{within}.{node.name}".lstrip(".")
        stack += [(child, within) for child in ast.iter_child_nodes(node)]


def reads() -> list[DirectRead[Any]]:
    """Return the reads of one statement that modules declare."""
    modules()
    return [each for each in gc.get_objects() if type(each) is DirectRead]


#: Values of parameters whose annotation does not state them, by the names of the parameters.
_GIVEN: Final[Mapping[str, list[Any]]] = {
    "where": ["true"],
    "values": [{}],
    "conditions": [{}],
    "document": [{"name": _ID}],
    "source": list(drift.SOURCES),
}


async def call(connection: Described, module: types.ModuleType, function: str) -> None:
    """Call a function with made arguments, then again with another value of each parameter that has several."""
    first, *more = function.split(".")
    called: Any = getattr(module, first)
    if more:
        called = getattr(_instance(called, connection), more[0])
    hints = typing.get_type_hints(called)
    names = [name for name in inspect.signature(called).parameters if name in hints]
    choices = {name: _GIVEN.get(name) or _choices(hints[name], connection) for name in names}
    usual = {name: values[0] for name, values in choices.items()}
    others = [{**usual, name: value} for name, values in choices.items() for value in values[1:]]
    for arguments in [usual, *others, {name: values[-1] for name, values in choices.items()}]:
        await _call(connection, called, arguments)


async def _call(connection: Described, called: Any, arguments: dict[str, Any]) -> None:
    parameters = inspect.signature(called).parameters
    by_name = {name for name, each in parameters.items() if each.kind is inspect.Parameter.KEYWORD_ONLY}
    positional = [value for name, value in arguments.items() if name not in by_name]
    for connection.left in (_ROWS_OF_A_CALL, 0):
        try:
            await called(*positional, **{name: arguments[name] for name in by_name})
        except asyncpg.PostgresError as error:
            connection.wrong.add(f"{called.__module__}.{called.__qualname__}: {error}")
        except Exception:  # noqa: S112 - made values may satisfy no rule of the function; its statements are described
            continue


def _instance(cls: Any, connection: Described) -> Any:
    hints = typing.get_type_hints(cls.__init__)
    given = {name: hint for name, hint in hints.items() if name != "return"}
    return cls(**{name: _choices(hint, connection)[0] for name, hint in given.items()})


def _choices(hint: Any, connection: Described) -> list[Any]:
    """Return values of an annotation; the first is not None."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is AsyncConnection:
        return [connection]
    if hint is Database:
        return [_Opened(connection)]
    if origin in (typing.Union, types.UnionType):
        kinds = [each for each in arguments if each is not types.NoneType]
        return [value for each in kinds for value in _choices(each, connection)] + (
            [None] if types.NoneType in arguments else []
        )
    if origin is typing.Literal:
        return list(arguments)
    if origin is typing.Annotated:
        return _choices(arguments[0], connection)
    if origin is tuple:
        return [tuple(_choices(each, connection)[0] for each in arguments if each is not ...)]
    if origin is not None and issubclass(origin, Mapping):
        return [{_choices(arguments[0], connection)[0]: _choices(arguments[1], connection)[0]}]
    if origin in (set, frozenset):
        return [origin([_choices(arguments[0], connection)[0]])]
    if origin is not None and arguments and issubclass(origin, typing.Iterable):
        return [[value] for value in _choices(arguments[0], connection)]
    return _plain(hint, connection)


def _plain(hint: Any, connection: Described) -> list[Any]:
    if hint is Namespace:
        return [Namespace((_ID,))]
    simple: dict[Any, list[Any]] = {
        UUID: [UUID(_ID)],
        str: [_ID],
        int: [1],
        float: [1.0],
        bool: [False, True],
        bytes: [b"{}"],
        datetime: [_BY_TYPE["timestamptz"]],
        timedelta: [timedelta(seconds=1)],
    }
    if hint in simple:
        return simple[hint]
    if inspect.isclass(hint) and issubclass(hint, Enum):
        return list(hint)
    if inspect.isclass(hint) and (hasattr(hint, "__dataclass_fields__") or issubclass(hint, (tuple, msgspec.Struct))):
        hints = typing.get_type_hints(hint)
        values = {name: _choices(hints[name], connection) for name in fields_of(hint)}
        usual = {name: each[0] for name, each in values.items()}
        others = [{**usual, name: value} for name, each in values.items() for value in each[1:]]
        return [hint(**each) for each in (usual, *others)]
    return [None]
