# SPDX-License-Identifier: Apache-2.0
"""Parts of a metadata document that are read with types and written back as their original text.

A commit changes a few parts of a document that may hold thousands of snapshots and schemas. A `Part` is a typed view of
one JSON object. It keeps the text, so unknown members survive. `Parts` is a JSON array of such objects. It is parsed on
first access, and an append only concatenates text. Text from clients and foreign files must pass through
`codec.canonical` first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Generic, Self, TypeVar, overload

import msgspec
from msgspec import Raw, Struct

from gateway.iceberg import codec


class Part(Struct, frozen=True, rename="kebab", kw_only=True):
    """A JSON object of a metadata document: the known members as fields, and `text` with all members."""

    text: Raw = Raw(b"{}")

    @classmethod
    def read(cls, text: Raw | bytes, *, at: str = "$") -> Self:
        """Parse JSON text. Raises `BadRequestException` with the JSON path, which begins with `at`."""
        part = codec.decode(text, cls, at=at)
        msgspec.structs.force_setattr(part, "text", text if isinstance(text, Raw) else Raw(text))
        return part

    @classmethod
    def of(cls, members: Mapping[str, object], *, at: str = "$") -> Self:
        """Build a part from plain JSON values. Keys are in kebab case. Raises `BadRequestException`."""
        return cls.read(codec.encode(members), at=at)

    def members(self) -> dict[str, Any]:
        """Return a new dict of all members as plain JSON values. Keys are in kebab case."""
        members: dict[str, Any] = msgspec.json.decode(self.text)
        return members


P = TypeVar("P", bound=Part)

_EMPTY = re.compile(rb"\s*\[\s*\]\s*")


@cache
def _shortest(kind: type[Part]) -> int:
    """Return the minimum size in bytes of a part: a name, quotes, colon and value for each required member."""
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
        texts = codec.decode(self._head, list[Raw])
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
        """Return a new array with the parts that `keep` accepts, or self if it accepts all."""
        kept = tuple(item for item in self.items if keep(item))
        return self if len(kept) == len(self.items) else Parts.of(self._kind, kept)

    @property
    def size(self) -> int:
        """Estimate the size of the array as JSON in bytes without encoding it."""
        return memoryview(self._head).nbytes + sum(memoryview(item.text).nbytes + 1 for item in self._tail)

    def longer_than(self, limit: int) -> bool:
        """Return True if there are more than `limit` parts. A text too short for that many is not parsed."""
        return self.size > limit * _shortest(self._kind) and self.length > limit

    @property
    def length(self) -> int:
        """Return the number of parts without parsing them."""
        if self._parsed is not None:
            return len(self._parsed)
        return len(codec.decode(self._head, list[Raw])) + len(self._tail)

    def may_mention(self, number: int) -> bool:
        """Return False only if no part can contain this integer. Searches the text for its digits, without parsing.

        With it a commit can prove cheaply that a snapshot id is new, even on tables with thousands of snapshots.
        """
        digits = str(number).encode()
        return digits in bytes(self._head) or any(digits in bytes(item.text) for item in self._tail)

    @property
    def items(self) -> tuple[P, ...]:
        """Return all parts in order. Raises `BadRequestException` for a malformed part."""
        if self._parsed is None:
            texts = codec.decode(self._head, list[Raw])
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
