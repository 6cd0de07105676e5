# SPDX-License-Identifier: Apache-2.0
"""A struct of values read from variables of the environment, each checked, all problems told at once; and its table.

`settings.py` says which settings there are; this says how one is spelled. A field ``name`` of the struct is the
variable ``LAKEGATE__NAME``; a struct inside nests with another double underscore, and a mapping of structs with two:
``LAKEGATE__NAME__<ID>__FIELD``, where the id is read in lower case and with ``-`` for ``_``, which shells take in names
of variables and ids of ours do not. Variables with our prefix that no field has are refused: a misspelt security
setting must not be ignored.
"""

from __future__ import annotations

import difflib
import hmac
import re
import typing
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec
from msgspec import Meta

PREFIX: Final = "LAKEGATE__"

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|d)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}
_MASK = "********"
_ID = re.compile(r"[a-z0-9-]+", re.ASCII)
_ANY_ID = "<id>"

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
    """One variable, or with `_ANY_ID` in its path one for each id."""

    path: tuple[str, ...]
    hint: Any
    default: Any

    @property
    def variable(self) -> str:
        return PREFIX + "__".join(part.upper() for part in self.path)

    @property
    def metas(self) -> list[Meta]:
        return [meta for meta in get_args(self.hint)[1:] if isinstance(meta, Meta)]

    def at(self, variable: str) -> _Field | None:
        """This field with the ids that the variable names; None when it is the variable of another one."""
        parts = variable.removeprefix(PREFIX).split("__")
        if len(parts) != len(self.path):
            return None
        path: list[str] = []
        for part, wanted in zip(parts, self.path, strict=True):
            id = part.lower().replace("_", "-")
            if wanted == _ANY_ID and _ID.fullmatch(id):
                path.append(id)
            elif wanted.upper() == part:
                path.append(wanted)
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
            yield _Field(here, hint, field.default)


def _struct_of_each(hint: Any) -> type[msgspec.Struct] | None:
    """The struct that a mapping has for each id; None for what is no such mapping."""
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


def _remedy(variable: str, removed: Mapping[str, str]) -> str | None:
    """Return what replaces a removed variable; None if `variable` is not one of `removed`."""
    parts = variable.split("__")
    for path, remedy in removed.items():
        wanted = path.split("__")
        if len(parts) == len(wanted) and all(
            each in (part, _ANY_ID.upper()) for part, each in zip(parts, wanted, strict=True)
        ):
            return remedy
    return None


def read(
    struct: type[StructT], source: Mapping[str, str], removed: Mapping[str, str] = MappingProxyType({})
) -> StructT:
    """The struct's fields from the variables in `source`, defaults for those that are not there.

    `removed` maps variables of former versions, with `<ID>` for any id, to the text that says what replaces them.

    Raises:
        SettingsError: removed variables, unknown variables with the nearest known name, and values that do not fit;
            all at once.
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
            problems.append(f"{variable}: another variable spells the same id in another way; use one spelling")
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
    problems += _missing(struct, tree, PREFIX)
    if problems:
        raise SettingsError("\n".join(problems))
    return _build(struct, tree)


def _id_spelled_otherwise(field: _Field, variable: str, spelled: dict[tuple[str, ...], str]) -> bool:
    """Whether the ids of the path were written in other letters before: two people may have meant two things."""
    parts = variable.removeprefix(PREFIX).split("__")
    above = ["__".join(parts[: depth + 1]) for depth in range(len(parts) - 1)]
    return any(spelled.setdefault(field.path[: depth + 1], written) != written for depth, written in enumerate(above))


def _missing(struct: type[msgspec.Struct], tree: Mapping[str, Any], prefix: str) -> list[str]:
    """A line for each variable that has no default and is not there, of the structs that something was said about."""
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


def rows_of(struct: type[msgspec.Struct]) -> list[SettingRow]:
    """One row for each variable, in the order of the struct's fields."""

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
        description = next((meta.description for meta in field.metas if meta.description), "")
        return SettingRow(field.variable, description, shown(field.default))

    return [row(field) for field in _fields(struct)]
