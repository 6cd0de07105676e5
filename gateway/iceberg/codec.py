# SPDX-License-Identifier: Apache-2.0
"""JSON in and out: bounded integers, and decoding whose errors name the place in the sender's own spelling."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from gateway.iceberg.errors import BadRequestException

Int = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""`integer` of the specification: 32 bits, so that every reader can hold it."""

LARGEST_LONG: Final = 2**63 - 1

Long = Annotated[int, Meta(ge=-(2**63), le=LARGEST_LONG)]
"""`integer`, `format: int64` of the specification."""

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A size, time or sequence number: 64 bits, not negative."""

ABSENT: Final = msgspec.Raw(b"null")
"""Members kept as raw JSON that the sender left out, or sent as null."""


def absent() -> msgspec.Raw:
    """ABSENT as a default factory: a plain default of this type cannot be told in a JSON schema."""
    return ABSENT


T = TypeVar("T")

MAX_NESTING: Final = 200
"""Deepest nesting of JSON that is read; schemas in practice stay below 20."""

# An escape only when the backslash is not itself escaped.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_AT = re.compile(r" - at `\$?(?P<path>[^`]*)`")
_TAG_PATH = re.compile(r"\.(?P<list>updates|requirements)\[\d+\]\.(?:action|type)$")


def decode(data: bytes | msgspec.Raw, kind: type[T], *, at: str = "$") -> T:
    """Decode a request body, or a part of one found at the JSON path `at`.

    Raises `BadRequestException` naming the JSON path of what is wrong, in the kebab-case spelling of the wire, and for
    an unknown update or requirement the list of known ones (specification: unknown kinds are refused with 400).
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
    """Compact JSON."""
    return msgspec.json.encode(value)


def canonical(data: bytes | msgspec.Raw, *, at: str = "$") -> Any:
    """The plain Python values of a JSON text, duplicate keys resolved (the last wins, as with every common reader).

    Text that is stored goes through this once, so that no two readers can see different documents in it. Raises
    `BadRequestException` for text that is no JSON or nested deeper than `MAX_NESTING`.
    """
    refuse_nul(data, at=at)
    value = decode(data, object, at=at)
    _refuse_deep_nesting(value, at)
    return value


def canonical_object(data: bytes | msgspec.Raw, *, at: str = "$") -> dict[str, Any]:
    """As `canonical`, for a text that must be a JSON object; raises `BadRequestException` when it is not."""
    value = canonical(data, at=at)
    if not isinstance(value, dict):
        raise BadRequestException(f"Malformed request: expected an object at `{at}`")
    return value


def refuse_nul(data: bytes | msgspec.Raw, *, at: str = "$") -> None:
    """Refuse the character U+0000 anywhere in a JSON text: databases cannot hold it, and no name or value needs it.

    Unescaped it is no JSON at all, so only its escape is looked for. Raises `BadRequestException`.
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
    """The library's message with its path, relative to `at`, and with the known kinds where the tag is unknown."""
    text = str(error)
    path = "".join(reversed([match["path"] for match in _AT.finditer(text)]))
    reason = _AT.sub("", text)
    where = f"{at}{path}"
    if (tag := _TAG_PATH.search(where)) and reason.startswith("Invalid value"):
        known = getattr(kind, "UPDATE_KINDS" if tag["list"] == "updates" else "REQUIREMENT_KINDS", ())
        noun = tag["list"].removesuffix("s")
        return f"unknown {noun} {reason.removeprefix('Invalid value ')} at `{where}`; known are: {', '.join(known)}"
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
