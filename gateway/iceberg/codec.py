# SPDX-License-Identifier: Apache-2.0
"""Decode and encode JSON: bounded integers, errors with a JSON path, and parts of a document that keep their original
text.

A commit changes a few parts of a document that may hold thousands of snapshots and schemas. A `Part` is a typed view of
one JSON object. It keeps the text, so unknown members survive. `Parts` is a JSON array of such objects. It is parsed on
first access, and an append only concatenates text. Text from clients and foreign files must pass through `canonical`
first.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, Generic, Self, TypeVar, overload

import msgspec
from msgspec import Meta, Raw, Struct

from gateway.iceberg.errors import BadRequestException
from lakegate.restrictions.literals import ABSENT
from lakegate.value_messages import in_words

LARGEST_LONG: Final = 2**63 - 1

Long = Annotated[int, Meta(ge=-(2**63), le=LARGEST_LONG)]
"""`integer`, `format: int64` of the specification."""

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A size, time or sequence number: 64 bits, not negative."""


def absent() -> msgspec.Raw:
    """Return ABSENT. It serves as a default factory, because a JSON schema cannot express a plain default of this
    type.
    """
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
    """Decode a request body, or its part at the JSON path `at`.

    Raises `BadRequestException`. The message contains the JSON path in the kebab-case spelling of the request. For an
    unknown update or requirement it lists the known kinds; the REST specification requires 400 for unknown ones.
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
    """Decode a JSON text to plain Python values. If a key occurs twice, its last value is used, as by common JSON
    readers.

    Text of clients passes through this function before it is stored. All readers then see the same document. Raises
    `BadRequestException` for text that is not JSON, contains U+0000, or is nested deeper than `MAX_NESTING`.
    """
    refuse_nul(data, at=at)
    value = decode(data, object, at=at)
    _refuse_deep_nesting(value, at)
    return value


def canonical_object(data: bytes | msgspec.Raw, *, at: str = "$") -> dict[str, Any]:
    """Decode like `canonical`. Raises `BadRequestException` also for a text that is not a JSON object."""
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
    """Return the decoder's error message with the JSON path, which begins with `at`.

    If the kind of an update or requirement is unknown, the message lists the known ones.
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
        # A property of the schema can have the name "description", too: its value is a schema and no text.
        key: inspect.cleandoc(value) if key == "description" and isinstance(value, str) else plain_descriptions(value)
        for key, value in schema.items()
    }


class Part(Struct, frozen=True, rename="kebab", kw_only=True):
    """A JSON object inside of a metadata document: the known members as fields, and `text` with all members."""

    text: Raw = Raw(b"{}")

    @classmethod
    def read(cls, text: Raw | bytes, *, at: str = "$") -> Self:
        """Parse JSON text. Raises `BadRequestException` with the JSON path, which begins with `at`."""
        part = decode(text, cls, at=at)
        msgspec.structs.force_setattr(part, "text", text if isinstance(text, Raw) else Raw(text))
        return part

    @classmethod
    def of(cls, members: Mapping[str, object], *, at: str = "$") -> Self:
        """Build a part from plain JSON values with keys in kebab case. Raises `BadRequestException`."""
        return cls.read(encode(members), at=at)

    def members(self) -> dict[str, Any]:
        """Return a new dict of all members as plain JSON values, with keys in kebab case."""
        members: dict[str, Any] = msgspec.json.decode(self.text)
        return members


P = TypeVar("P", bound=Part)

_EMPTY = re.compile(rb"\s*\[\s*\]\s*")


@cache
def _shortest(kind: type[Part]) -> int:
    """Return the minimum size of a part in bytes: a name, quotes, colon and value for each required member."""
    return 2 + sum(len(field.encode_name) + 4 for field in msgspec.structs.fields(kind) if field.required)


class Parts(Sequence[P], Generic[P]):
    """An immutable JSON array of parts: its text, which is parsed on first access, and the parts appended since."""

    __slots__ = ("_head", "_kind", "_parsed", "_tail")

    def __init__(self, kind: type[P], head: Raw | bytes = b"[]", tail: tuple[P, ...] = ()) -> None:
        self._kind = kind
        self._head = head
        self._tail = tail
        self._parsed: tuple[P, ...] | None = None

    @classmethod
    def of(cls, kind: type[P], items: Iterable[P] = ()) -> Parts[P]:
        """Build an array from parsed parts."""
        return cls(kind, b"[]", tuple(items))

    @property
    def kind(self) -> type[P]:
        """Return the type of the parts."""
        return self._kind

    @property
    def last(self) -> P | None:
        """Return the last part, or None if there is none. Only that part is parsed."""
        if self._tail:
            return self._tail[-1]
        texts = decode(self._head, list[Raw])
        return self._kind.read(texts[-1]) if texts else None

    @property
    def appended_here(self) -> tuple[P, ...]:
        """Return the parts that `append` added after the array was read: the new parts of a commit."""
        return self._tail

    def append(self, item: P) -> Parts[P]:
        """Return a new array with one more part. The text of the other parts is not parsed."""
        new = Parts(self._kind, self._head, (*self._tail, item))
        if self._parsed is not None:
            new._parsed = (*self._parsed, item)
        return new

    def only(self, keep: Callable[[P], bool]) -> Parts[P]:
        """Return a new array with the parts for which `keep` is true, or the same array if that is all."""
        kept = tuple(item for item in self.items if keep(item))
        return self if len(kept) == len(self.items) else Parts.of(self._kind, kept)

    @property
    def size(self) -> int:
        """Estimate the size of the array's JSON in bytes, without encoding it."""
        return memoryview(self._head).nbytes + sum(memoryview(item.text).nbytes + 1 for item in self._tail)

    def longer_than(self, limit: int) -> bool:
        """Return True if there are more than `limit` parts. A text that is too short for so many is not parsed."""
        return self.size > limit * _shortest(self._kind) and self.length > limit

    @property
    def length(self) -> int:
        """Return the number of parts without parsing them."""
        if self._parsed is not None:
            return len(self._parsed)
        return len(decode(self._head, list[Raw])) + len(self._tail)

    def may_mention(self, number: int) -> bool:
        """Return False if certainly no part contains this integer. Its digits are searched in the text, without
        parsing.

        A commit can thus show quickly that a snapshot id is new, even on tables with thousands of snapshots.
        """
        digits = str(number).encode()
        return digits in bytes(self._head) or any(digits in bytes(item.text) for item in self._tail)

    @property
    def items(self) -> tuple[P, ...]:
        """Return all parts in order. Raises `BadRequestException` for a malformed part."""
        if self._parsed is None:
            texts = decode(self._head, list[Raw])
            self._parsed = (*(self._kind.read(text) for text in texts), *self._tail)
        return self._parsed

    @property
    def json(self) -> Raw:
        """Return the array as JSON text."""
        if not self._tail:
            return self._head if isinstance(self._head, Raw) else Raw(self._head)
        tail = b",".join(bytes(item.text) for item in self._tail)
        head = bytes(self._head)
        if _EMPTY.fullmatch(head):
            return Raw(b"[" + tail + b"]")
        # A memoryview and one join avoid copies of the head, which may have megabytes.
        return Raw(b"".join((memoryview(head)[: head.rindex(b"]")], b",", tail, b"]")))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[P]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> P: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[P, ...]: ...
    def __getitem__(self, index: int | slice) -> P | tuple[P, ...]:
        return self.items[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parts):
            return NotImplemented
        return bytes(self.json) == bytes(other.json)

    __hash__ = None  # type: ignore[assignment]  # Parts are unhashable; mypy expects the inherited method type.

    def __repr__(self) -> str:
        return f"Parts({list(self.items)!r})"
