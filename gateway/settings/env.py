# SPDX-License-Identifier: Apache-2.0
"""Read a struct from environment variables. Each value is checked, and all problems are reported together.

`gateway/settings/__init__.py` declares the settings. This module defines how the names of their variables are formed:

- A field ``name`` of the struct is the variable ``LAKEGATE__NAME``.
- A field of a nested struct is ``LAKEGATE__NAME__FIELD``.
- A field in a mapping of structs is ``LAKEGATE__NAME__<ID>__FIELD``. The id is converted to lower case, and ``_`` in it
  becomes ``-``. Shells allow no ``-`` in names of variables, and ids contain no ``_``.

A variable with the prefix that belongs to no field is refused, because a misspelt security setting must not be ignored.
The settings table, which lists all variables, is computed from the same declarations.
"""

from __future__ import annotations

import ast
import difflib
import hmac
import inspect
import re
import textwrap
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec
from msgspec import Meta

PREFIX: Final = "LAKEGATE__"
LAKEKEEPER: Final = "LAKEKEEPER__"

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|d)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}
_MASK = "********"
_ID = re.compile(r"[a-z0-9-]+", re.ASCII)
_ANY_ID = "<id>"

SECONDS: Final = {"kind": "duration"}
"""`extra` of a field's `Meta`: the value is a number of seconds, written as a duration."""

Seconds = Annotated[float, Meta(extra=SECONDS)]
PositiveSeconds = Annotated[float, Meta(gt=0, extra=SECONDS)]
SecondsOrZero = Annotated[float, Meta(ge=0, extra=SECONDS)]
"""Types of durations in seconds."""

StructT = typing.TypeVar("StructT", bound=msgspec.Struct)


class SettingsError(ValueError):
    """Error for invalid settings. The message has one line for each problem and contains no value of a secret."""


class Secret:
    """A value that ``str``, ``repr``, logging and error messages show as asterisks. :meth:`reveal` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value. Call it only where the value is used."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({_MASK})"

    def __str__(self) -> str:
        return _MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __bool__(self) -> bool:
        return bool(self._value)


def _parse_duration(text: str) -> float:
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError("a duration must have a form such as 500ms, 30s, 5m or 1h")
    return float(found["number"]) * _UNITS[found["unit"]]


class SettingRow(msgspec.Struct, frozen=True):
    """One row of the settings table: variable, description, and default in the notation of variables."""

    variable: str
    description: str
    default: str


class _Field(typing.NamedTuple):
    """A field of a setting, with the path of its variable. If the path contains `_ANY_ID`, there is one variable for
    each id.
    """

    path: tuple[str, ...]
    hint: Any
    default: Any
    struct: type[msgspec.Struct]

    @property
    def variable(self) -> str:
        return PREFIX + "__".join(part.upper() for part in self.path)

    @property
    def metas(self) -> list[Meta]:
        return [meta for meta in get_args(self.hint)[1:] if isinstance(meta, Meta)]

    def at(self, variable: str) -> _Field | None:
        """Return this field with the ids from the name of the variable. Return None if the variable belongs to another
        field.
        """
        parts = variable.removeprefix(PREFIX).split("__")
        if len(parts) != len(self.path):
            return None
        path: list[str] = []
        for part, expected in zip(parts, self.path, strict=True):
            id = part.lower().replace("_", "-")
            if expected == _ANY_ID and _ID.fullmatch(id):
                path.append(id)
            elif expected.upper() == part:
                path.append(expected)
            else:
                return None
        return self._replace(path=tuple(path))


def _fields(struct: type[msgspec.Struct], path: tuple[str, ...] = ()) -> Iterator[_Field]:
    hints = typing.get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        hint = hints[field.name]
        here = (*path, field.name)
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from _fields(hint, here)
        elif (of_each := _struct_of_each(hint)) is not None:
            yield from _fields(of_each, (*here, _ANY_ID))
        else:
            yield _Field(here, hint, field.default, struct)


def _struct_of_each(hint: Any) -> type[msgspec.Struct] | None:
    """Return the struct type of the values of a mapping by id. Return None if the type is not such a mapping."""
    of_each = get_args(hint)[1:]
    is_mapping = get_origin(hint) is Mapping and isinstance(of_each[0], type)
    return of_each[0] if is_mapping and issubclass(of_each[0], msgspec.Struct) else None


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _secret_from_text(kind: type[Any], value: Any) -> Any:
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise NotImplementedError(f"no setting has the type {kind}")


def _parse(field: _Field, text: str) -> Any:
    """Parse the value of a variable. Raises ValueError or msgspec.ValidationError; its message has the correct form."""
    value: Any = text
    if any((meta.extra or {}).get("kind") == "duration" for meta in field.metas):
        value = _parse_duration(text)
    elif get_origin(_bare(field.hint)) is tuple:
        if text.lstrip().startswith('["'):
            raise ValueError("expected values that are separated by commas, such as `a,b`, and found a JSON array")
        value = [part for item in text.split(",") if (part := item.strip())]
    return msgspec.convert(value, field.hint, strict=False, dec_hook=_secret_from_text)


def _unknown(variable: str, known: list[str]) -> str:
    near = difflib.get_close_matches(variable, known, n=1)
    return f"{variable} is not a setting" + (f"; did you mean {near[0]}?" if near else "")


def _remedy(variable: str, removed: Mapping[str, str]) -> str | None:
    """Return the text about the replacement of a removed variable. Return None if `variable` is not in `removed`."""
    parts = variable.split("__")
    for path, remedy in removed.items():
        expected = path.split("__")
        if len(parts) == len(expected) and all(
            each in (part, _ANY_ID.upper()) for part, each in zip(parts, expected, strict=True)
        ):
            return remedy
    return None


def read(
    struct: type[StructT], source: Mapping[str, str], removed: Mapping[str, str] = MappingProxyType({})
) -> StructT:
    """Read the fields of the struct from the variables in `source`. Missing variables get their defaults.

    `removed` maps variables of earlier versions, with `<ID>` for any id, to a text about their replacement.

    Raises:
        SettingsError: lists all removed variables, unknown variables with the nearest known name, required variables
            that are missing, and invalid values.
    """
    fields = {field.variable: field for field in _fields(struct)}
    problems: list[str] = []
    tree: dict[str, Any] = {}
    spelled: dict[tuple[str, ...], str] = {}
    for variable in sorted(name for name in source if name.startswith(PREFIX)):
        field = fields.get(variable) or next((at for each in fields.values() if (at := each.at(variable))), None)
        if field is None:
            remedy = _remedy(variable, removed)
            problems.append(_unknown(variable, list(fields)) if remedy is None else f"{variable} was removed: {remedy}")
            continue
        if _id_spelled_otherwise(field, variable, spelled):
            problems.append(f"{variable}: another variable contains the same id in another spelling; use one spelling")
            continue
        try:
            value = _parse(field, source[variable])
        except (ValueError, msgspec.ValidationError) as error:
            # Imported here, because most processes reject no value and save the memory of this module.
            from lakegate.value_messages import in_words

            problems.append(f"{variable}: {in_words(error, field.hint)}")
            continue
        branch = tree
        for part in field.path[:-1]:
            branch = branch.setdefault(part, {})
        branch[field.path[-1]] = value
    problems += _missing(struct, tree, PREFIX)
    problems += _of_lakekeeper(source, fields)
    if problems:
        raise SettingsError("\n".join(problems))
    return _build(struct, tree)


def _of_lakekeeper(source: Mapping[str, str], fields: Mapping[str, _Field]) -> Iterator[str]:
    """Yield a line for each variable of Lakekeeper whose counterpart here is not set, because it has no effect."""
    for variable in sorted(name for name in source if name.startswith(LAKEKEEPER)):
        name = PREFIX + variable.removeprefix(LAKEKEEPER)
        if name in source:
            continue
        known = name in fields or any(each.at(name) for each in fields.values())
        remedy = f"its name is {name} here; rename it" if known else "no setting here has its name; remove it"
        yield f"{variable} is a variable of Lakekeeper and has no effect: {remedy}"


def _id_spelled_otherwise(field: _Field, variable: str, spelled: dict[tuple[str, ...], str]) -> bool:
    """Return True if an earlier variable spells an id of the path in another way, because the two may mean different
    ids.
    """
    parts = variable.removeprefix(PREFIX).split("__")
    above = ["__".join(parts[: depth + 1]) for depth in range(len(parts) - 1)]
    return any(spelled.setdefault(field.path[: depth + 1], written) != written for depth, written in enumerate(above))


def _missing(struct: type[msgspec.Struct], tree: Mapping[str, Any], prefix: str) -> list[str]:
    """Return a line for each required variable that is missing. Optional nested structs without any variable are
    skipped.
    """
    hints = typing.get_type_hints(struct)
    lines = [
        f"{prefix}{field.name.upper()} must be set"
        for field in msgspec.structs.fields(struct)
        if field.required and field.name not in tree
    ]
    for name, value in tree.items():
        if not isinstance(value, dict):
            continue
        of_each = _struct_of_each(hints[name])
        inside = {name: value} if of_each is None else {f"{name}__{id}": each for id, each in value.items()}
        for path, each in inside.items():
            lines += _missing(of_each or hints[name], each, f"{prefix}{path.upper()}__")
    return lines


def _build(struct: type[StructT], tree: Mapping[str, Any]) -> StructT:
    hints = typing.get_type_hints(struct)

    def built(name: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        of_each = _struct_of_each(hints[name])
        if of_each is None:
            return _build(hints[name], value)
        return {id: _build(of_each, each) for id, each in value.items()}

    return struct(**{name: built(name, value) for name, value in tree.items()})


@cache
def _descriptions(struct: type[msgspec.Struct]) -> Mapping[str, str]:
    """Return {field: description}. The description is the string below the field in the source of the struct or a
    base.
    """
    if struct is msgspec.Struct:
        return {}
    (written,) = ast.parse(textwrap.dedent(inspect.getsource(struct))).body
    texts = {name: text for base in struct.__bases__ for name, text in _descriptions(base).items()}
    for field, below in pairwise(typing.cast(ast.ClassDef, written).body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = " ".join(text.split())
    return texts


def rows_of(struct: type[msgspec.Struct]) -> list[SettingRow]:
    """Return one row for each variable, in the order of the struct's fields."""

    def shown(value: Any) -> str:
        match value:
            case None | () | msgspec.NODEFAULT:
                return ""
            case bool():
                return str(value).lower()
            case tuple():
                return ",".join(value)
            case _:
                return str(value)

    def row(field: _Field) -> SettingRow:
        # A setting for one provider and the same setting for each of several providers share the description of their
        # type.
        of_type = next((meta.description for meta in field.metas if meta.description), "")
        description = _descriptions(field.struct).get(field.path[-1], of_type)
        return SettingRow(field.variable, description, shown(field.default))

    return [row(field) for field in _fields(struct)]
