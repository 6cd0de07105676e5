# SPDX-License-Identifier: Apache-2.0
"""JSON codec: bounded integers, and decoding errors that name the JSON path in the spelling of the request."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from gateway.iceberg.errors import BadRequestException
from lakegate.restrictions.types import ABSENT
from lakegate.value_messages import in_words

LARGEST_LONG: Final = 2**63 - 1

Long = Annotated[int, Meta(ge=-(2**63), le=LARGEST_LONG)]
"""`integer`, `format: int64` of the specification."""

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A size, time or sequence number: 64 bits, not negative."""


def absent() -> msgspec.Raw:
    """Return ABSENT. A default factory, because a JSON schema cannot express a plain default of this type."""
    return ABSENT


T = TypeVar("T")

MAX_NESTING: Final = 200
"""Maximum nesting depth of JSON that is accepted. Schemas in practice stay below 20."""

# The backslash begins an escape only if it is not itself escaped.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_AT = re.compile(r" - at `\$?(?P<path>[^`]*)`")
_UNKNOWN_TAG = re.compile(r"Invalid value (?P<value>.*?) - at ", re.DOTALL)
_TAG_PATH = re.compile(r"\.(?P<list>updates|requirements)\[\d+\]\.(?:action|type)$")


def decode(data: bytes | msgspec.Raw, kind: type[T], *, at: str = "$") -> T:
    """Decode a request body, or the part of one at the JSON path `at`.

    Raises `BadRequestException`. The message names the JSON path in the kebab-case spelling of the request. For an
    unknown update or requirement it lists the known ones; the REST specification demands 400 for unknown kinds.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise BadRequestException(f"Malformed request: {_placed(error, kind, at)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequestException(f"Malformed request: the body is not valid JSON: {error}") from None
    except RecursionError:
        raise BadRequestException("Malformed request: the body is nested too deeply") from None


def encode(value: object) -> bytes:
    """Encode a value as compact JSON."""
    return msgspec.json.encode(value)


def canonical(data: bytes | msgspec.Raw, *, at: str = "$") -> Any:
    """Decode a JSON text to plain Python values. The last of duplicate keys wins, as in common JSON readers.

    Text of clients passes through this function before it is stored. All readers then see the same document. Raises
    `BadRequestException` for text that is not JSON, contains U+0000, or is nested deeper than `MAX_NESTING`.
    """
    refuse_nul(data, at=at)
    value = decode(data, object, at=at)
    _refuse_deep_nesting(value, at)
    return value


def canonical_object(data: bytes | msgspec.Raw, *, at: str = "$") -> dict[str, Any]:
    """Decode like `canonical`. Raise `BadRequestException` also for a text that is not a JSON object."""
    value = canonical(data, at=at)
    if not isinstance(value, dict):
        raise BadRequestException(f"Malformed request: expected an object at `{at}`")
    return value


def refuse_nul(data: bytes | msgspec.Raw, *, at: str = "$") -> None:
    """Raise `BadRequestException` if a JSON text contains the character U+0000. PostgreSQL cannot store it.

    Only the escaped form is searched: JSON does not allow the raw character.
    """
    if b"\\u0000" in (text := bytes(data)) and _NUL.search(text):
        raise BadRequestException(f"Malformed request: the character U+0000 is not allowed in `{at}`")


def _refuse_deep_nesting(value: object, at: str) -> None:
    level: list[object] = [value]
    for _ in range(MAX_NESTING):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(v for v in item.values() if isinstance(v, dict | list))
            elif isinstance(item, list):
                below.extend(v for v in item if isinstance(v, dict | list))
        if not below:
            return
        level = below
    raise BadRequestException(f"Malformed request: nested deeper than {MAX_NESTING} levels at `{at}`")


def _placed(error: msgspec.ValidationError, kind: type[object], at: str) -> str:
    """Return the decoder's message with its JSON path, which begins with `at`.

    If the tag of an update or requirement is unknown, the message lists the known ones.
    """
    text = in_words(error, kind)
    path = "".join(reversed([match["path"] for match in _AT.finditer(text)]))
    reason = _AT.sub("", text)
    where = f"{at}{path}"
    if (tag := _TAG_PATH.search(where)) and (unknown := _UNKNOWN_TAG.match(str(error))):
        known = getattr(kind, "UPDATE_KINDS" if tag["list"] == "updates" else "REQUIREMENT_KINDS", ())
        noun = tag["list"].removesuffix("s")
        return f"unknown {noun} {unknown['value']} at `{where}`; known are: {', '.join(known)}"
    return f"{reason[:1].lower()}{reason[1:]} at `{where}`"


def plain_descriptions(schema: Any) -> Any:
    """Return a JSON Schema with the indentation of the source removed from its descriptions.

    msgspec copies descriptions from docstrings. Python 3.13 and later remove the indentation of docstrings, and earlier
    versions keep it.
    """
    if isinstance(schema, list | tuple):
        return [plain_descriptions(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        # A property can have the name "description" too: its value is a schema.
        key: inspect.cleandoc(value) if key == "description" and isinstance(value, str) else plain_descriptions(value)
        for key, value in schema.items()
    }
