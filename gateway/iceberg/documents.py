# SPDX-License-Identifier: Apache-2.0
"""Parts of a metadata document that are read with types but written back as the text they came in.

A commit touches a few parts of a document that may hold thousands of snapshots and schemas. A `Part` is a typed view of
one JSON object that keeps the text, so members this version does not know survive; `Parts` is a JSON array of them that
is only parsed when somebody looks, and appending splices text. Text read from elsewhere must have gone through
`codec.canonical` before it gets here.
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
    """A JSON object of a metadata document: the members we interpret, and `text` with all of them."""

    text: Raw = Raw(b"{}")

    @classmethod
    def read(cls, text: Raw | bytes, *, at: str = "$") -> Self:
        """From JSON text; raises `BadRequestException` naming the place below `at`."""
        part = codec.decode(text, cls, at=at)
        msgspec.structs.force_setattr(part, "text", text if isinstance(text, Raw) else Raw(text))
        return part

    @classmethod
    def of(cls, members: Mapping[str, object], *, at: str = "$") -> Self:
        """From plain JSON values, keys in wire spelling."""
        return cls.read(codec.encode(members), at=at)

    def members(self) -> dict[str, Any]:
        """All members as plain JSON values, keys in wire spelling; the caller owns the result."""
        members: dict[str, Any] = msgspec.json.decode(self.text)
        return members


P = TypeVar("P", bound=Part)

_EMPTY = re.compile(rb"\s*\[\s*\]\s*")


@cache
def _shortest(kind: type[Part]) -> int:
    """Bytes that a part of this kind has at least: a name, quotes, colon and value for each required member."""
    return 2 + sum(len(field.encode_name) + 4 for field in msgspec.structs.fields(kind) if field.required)


class Parts(Sequence[P], Generic[P]):
    """An immutable JSON array of parts: text (parsed when first needed) and what was appended since."""

    __slots__ = ("_head", "_kind", "_parsed", "_tail")

    def __init__(self, kind: type[P], head: Raw | bytes = b"[]", tail: tuple[P, ...] = ()) -> None:
        self._kind = kind
        self._head = head
        self._tail = tail
        self._parsed: tuple[P, ...] | None = None

    @classmethod
    def of(cls, kind: type[P], items: Iterable[P] = ()) -> Parts[P]:
        """From parts already read."""
        return cls(kind, b"[]", tuple(items))

    @property
    def appended_here(self) -> tuple[P, ...]:
        """What `append` added since the array was read: in a commit, the new parts."""
        return self._tail

    def append(self, item: P) -> Parts[P]:
        """A new array with one more part; the text of the others is not looked at."""
        new = Parts(self._kind, self._head, (*self._tail, item))
        if self._parsed is not None:
            new._parsed = (*self._parsed, item)
        return new

    def only(self, keep: Callable[[P], bool]) -> Parts[P]:
        """A new array with the parts `keep` accepts; self when it accepts all."""
        kept = tuple(item for item in self.items if keep(item))
        return self if len(kept) == len(self.items) else Parts.of(self._kind, kept)

    @property
    def size(self) -> int:
        """About the bytes of the array as JSON, without making it."""
        return memoryview(self._head).nbytes + sum(memoryview(item.text).nbytes + 1 for item in self._tail)

    def longer_than(self, limit: int) -> bool:
        """Whether there are more parts than this; a text too short to hold them is not looked at."""
        return self.size > limit * _shortest(self._kind) and self.length > limit

    @property
    def length(self) -> int:
        """How many parts there are, without parsing them."""
        if self._parsed is not None:
            return len(self._parsed)
        return len(codec.decode(self._head, list[Raw])) + len(self._tail)

    def may_mention(self, number: int) -> bool:
        """False only if no part of the array can hold this integer: a search for its digits, without parsing.

        Makes "is this snapshot id new" cheap on tables with thousands of snapshots.
        """
        digits = str(number).encode()
        return digits in bytes(self._head) or any(digits in bytes(item.text) for item in self._tail)

    @property
    def items(self) -> tuple[P, ...]:
        """All parts in order."""
        if self._parsed is None:
            texts = codec.decode(self._head, list[Raw])
            self._parsed = (*(self._kind.read(text) for text in texts), *self._tail)
        return self._parsed

    @property
    def json(self) -> Raw:
        """The array as JSON text."""
        if not self._tail:
            return self._head if isinstance(self._head, Raw) else Raw(self._head)
        tail = b",".join(bytes(item.text) for item in self._tail)
        head = bytes(self._head)
        if _EMPTY.fullmatch(head):
            return Raw(b"[" + tail + b"]")
        # One join: the head may be a megabyte, each slice of it as bytes would be another copy.
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

    __hash__ = None  # type: ignore[assignment]  # parts hold unhashable text; declared so that __eq__ does not inherit one

    def __repr__(self) -> str:
        return f"Parts({list(self.items)!r})"
