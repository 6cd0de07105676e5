# SPDX-License-Identifier: Apache-2.0
"""A struct of values read from variables of the environment, each checked, all problems told at once; and its table.

`settings.py` says which settings there are; this says how one is spelled. A field ``name`` of the struct is the
variable ``LAKEGATE__NAME``; a struct inside nests with another double underscore. Variables with our prefix that no
field has are refused: a misspelt security setting must not be ignored.
"""

from __future__ import annotations

import difflib
import hmac
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec
from msgspec import Meta

PREFIX: Final = "LAKEGATE__"

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|d)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}
_MASK = "********"

SECONDS: Final = {"kind": "duration"}
"""As `extra` of a field's `Meta`: a number of seconds, written as a duration."""

StructT = typing.TypeVar("StructT", bound=msgspec.Struct)


class SettingsError(ValueError):
    """Settings that cannot be used; the message has one line for each problem and never shows a secret's value."""


class Secret:
    """A value that ``str``, ``repr``, logging and error messages show as asterisks; :meth:`reveal` gives it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself, for the one call that needs it."""
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
        raise ValueError("write a duration as 500ms, 30s, 5m or 1h")
    return float(found["number"]) * _UNITS[found["unit"]]


class SettingRow(msgspec.Struct, frozen=True):
    """One line of the settings table: variable, description, and its default as one would write it."""

    variable: str
    description: str
    default: str


class _Field(typing.NamedTuple):
    path: tuple[str, ...]
    hint: Any
    default: Any

    @property
    def variable(self) -> str:
        return PREFIX + "__".join(part.upper() for part in self.path)

    @property
    def metas(self) -> list[Meta]:
        return [meta for meta in get_args(self.hint)[1:] if isinstance(meta, Meta)]


def _fields(struct: type[msgspec.Struct], path: tuple[str, ...] = ()) -> Iterator[_Field]:
    hints = typing.get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        hint = hints[field.name]
        here = (*path, field.name)
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from _fields(hint, here)
        else:
            yield _Field(here, hint, field.default)


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _secret_from_text(kind: type[Any], value: Any) -> Any:
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise NotImplementedError(f"no setting has the type {kind}")


def _parse(field: _Field, text: str) -> Any:
    """One value from its text; raises ValueError with what would be right."""
    value: Any = text
    if any((meta.extra or {}).get("kind") == "duration" for meta in field.metas):
        value = _parse_duration(text)
    elif get_origin(_bare(field.hint)) is tuple:
        value = [part for item in text.split(",") if (part := item.strip())]
    return msgspec.convert(value, field.hint, strict=False, dec_hook=_secret_from_text)


def _unknown(variable: str, known: list[str]) -> str:
    near = difflib.get_close_matches(variable, known, n=1)
    return f"{variable} is no setting" + (f"; did you mean {near[0]}?" if near else "")


def read(struct: type[StructT], source: Mapping[str, str]) -> StructT:
    """The struct's fields from the variables in `source`, defaults for those that are not there.

    Raises:
        SettingsError: unknown variables, with the nearest known name, and values that do not fit; all at once.
    """
    fields = {field.variable: field for field in _fields(struct)}
    problems: list[str] = []
    tree: dict[str, Any] = {}
    for variable in sorted(name for name in source if name.startswith(PREFIX)):
        field = fields.get(variable)
        if field is None:
            problems.append(_unknown(variable, list(fields)))
            continue
        try:
            value = _parse(field, source[variable])
        except (ValueError, msgspec.ValidationError) as error:
            problems.append(f"{variable}: {error}")
            continue
        branch = tree
        for part in field.path[:-1]:
            branch = branch.setdefault(part, {})
        branch[field.path[-1]] = value
    if problems:
        raise SettingsError("\n".join(problems))
    return _build(struct, tree)


def _build(struct: type[StructT], tree: Mapping[str, Any]) -> StructT:
    hints = typing.get_type_hints(struct)
    values = {name: _build(hints[name], value) if isinstance(value, dict) else value for name, value in tree.items()}
    return struct(**values)


def rows_of(struct: type[msgspec.Struct]) -> list[SettingRow]:
    """One row for each variable, in the order of the struct's fields."""

    def shown(value: Any) -> str:
        match value:
            case None | ():
                return ""
            case bool():
                return str(value).lower()
            case tuple():
                return ",".join(value)
            case _:
                return str(value)

    def row(field: _Field) -> SettingRow:
        description = next((meta.description for meta in field.metas if meta.description), "")
        return SettingRow(field.variable, description, shown(field.default))

    return [row(field) for field in _fields(struct)]
