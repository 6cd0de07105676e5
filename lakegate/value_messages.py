# SPDX-License-Identifier: Apache-2.0
"""Write messages about values that a decoder rejects: with the possible values, or the required form in words.

The decoder's own message has a regular expression, or states only that the value is not in an enumeration. All code
that prints such errors passes them through this module.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msgspec import inspect

#: For each pattern of a type, the required form in words. A test finds patterns without an entry.
FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        r"^[^\x00]*(?![\s\S])$": "text without the character U+0000",
        r"^[^\x00]+(?![\s\S])$": "text without the character U+0000",
        r"^[^\x00-\x1f\x7f]+(?![\s\S])$": "text without control characters",
        r"^[^/\x00-\x1f\x7f]+(?![\s\S])$": "text without slashes and control characters",
        r"^[A-Za-z0-9_-]+(?![\s\S])$": "letters, digits, `_` and `-` only",
        r"^[a-z0-9-]+(?![\s\S])$": "lower-case letters, digits and `-` only",
        r"^[a-z0-9-]+$": "lower-case letters, digits and `-` only",
        r"^[^=]+=[a-z_]+$": "a name, `=` and the name of an action",
        r"^[^=]+=(user|role)$": "a name, `=` and `user` or `role`",
        r"^[A-Za-z0-9-]+$": "letters, digits and `-` only",
        r"^[a-z0-9][a-z0-9_-]*$": "lower-case letters, digits, `_` and `-`, with a letter or digit first",
        r"^[A-Za-z_][A-Za-z0-9_]*$": "letters, digits and `_`, with no digit first",
        r"^[A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)*$": "names of letters, digits, `_`, `.` and `-`, separated by `/`",
        r"^[a-z0-9-]+~[^\x00-\x1f\x7f]{1,127}(?![\s\S])$": (
            "a user id `<provider>~<subject>`: a provider of lower-case letters, digits and `-`, and a subject of at "
            "most 127 characters without control characters"
        ),
        r"^[a-z0-9-]+~.+$": "a user id `<provider>~<subject>`, with lower-case letters, digits and `-` in the provider",
        r"^[a-z0-9-]+~.": "a user id `<provider>~<subject>`, with lower-case letters, digits and `-` in the provider",
        r"^[0-9a-fA-F:.]+/[0-9]{1,3}(?![\s\S])$": "a network in CIDR form, such as 10.0.0.0/8",
        r"^[^=\s]+=[A-Za-z0-9_-]{1,128}$": "`<audience>=<project id>`, with letters, digits, `_` and `-` in the id",
        r"^https?://": "a URL that begins with http:// or https://",
        r"^(\*|https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?)$": (
            "an origin such as https://console.example.com, in lower case and without a path, or `*`"
        ),
        r"^https?://[^\s@]+$": "a URL that begins with http:// or https://, without spaces and user names",
    }
)

_REST = r"(?P<rest>(?: - at `key` in `[^`]*`| - at `[^`]*`)*)$"
_PATTERN = re.compile(r"^Expected `str` matching regex (?P<literal>'.*'|\".*\")" + _REST, re.DOTALL)
_VALUE = re.compile(r"^Invalid (?:enum )?value (?P<value>.*?)" + _REST, re.DOTALL)
_PLACE = re.compile(r"`\$(?P<path>[^`]*)`")
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]")
_KEY: Final = " - at `key` in "

Node: TypeAlias = inspect.Type


def in_words(error: Exception, kind: Any) -> str:
    """Return the message of a decoder's error about `kind`, with the possible values or the required form in words.

    The part with the path of the value is kept, and so is every other message.
    """
    text = str(error)
    if (found := _PATTERN.match(text)) is not None:
        # A type that an extension defines has a pattern that `FORMS` does not contain.
        form = FORMS.get(literal_eval(found["literal"]), "text of the form that the documentation states")
        return f"Expected {form}{found['rest']}"
    if (found := _VALUE.match(text)) is not None and (allowed := _allowed(kind, found["rest"])):
        return f"Invalid value {found['value']}, which must be one of: {', '.join(allowed)}{found['rest']}"
    return text


@lru_cache(maxsize=256)
def _allowed(kind: Any, rest: str) -> tuple[str, ...]:
    """Return the possible values of the field whose path ends the message; empty if they are unknown."""
    nodes = list(_alternatives(inspect.type_info(kind)))
    # The message has the path of each nested value that was decoded by itself, and the outermost path at the end.
    path = "".join(reversed(_PLACE.findall(rest)))
    values: list[Any] = []
    for step in _STEP.finditer(path):
        values = [node.tag for node in nodes if isinstance(node, inspect.StructType) and node.tag_field == step["name"]]
        nodes = [below for node in nodes for below in _below(node, step["name"], step["index"])]
    if rest.startswith(_KEY):
        keys = [node.key_type for node in nodes if isinstance(node, inspect.DictType)]
        nodes = [each for key in keys for each in _alternatives(key)]
    for node in nodes:
        if isinstance(node, inspect.EnumType):
            values += [member.value for member in node.cls]
        elif isinstance(node, inspect.LiteralType):
            values += node.values
    return tuple(dict.fromkeys(str(value) for value in values if value is not None))


def _alternatives(node: Node) -> Iterator[Node]:
    """Yield the types of a union, or the type itself."""
    match node:
        case inspect.UnionType():
            for each in node.types:
                yield from _alternatives(each)
        case inspect.Metadata():
            yield from _alternatives(node.type)
        case _:
            yield node


def _below(node: Node, name: str | None, index: str | None) -> Iterator[Node]:
    """Yield the types of the member `name` or the element `index` of a type."""
    match node:
        case inspect.StructType() | inspect.TypedDictType() | inspect.DataclassType() if name is not None:
            for field in node.fields:
                if field.encode_name == name:
                    yield from _alternatives(field.type)
        case inspect.TupleType() if index is not None and index != "..." and int(index) < len(node.item_types):
            yield from _alternatives(node.item_types[int(index)])
        case inspect.CollectionType() if index is not None:
            yield from _alternatives(node.item_type)
        case inspect.DictType():
            yield from _alternatives(node.value_type)
        case _:
            return
