# SPDX-License-Identifier: Apache-2.0
"""Names of namespaces, tables and views: parsing, the case-insensitive key, the rules for new names, and name patterns.

A pattern is for the full name of a table: the levels of the namespace and the name, each with wildcards.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from msgspec import Struct

from gateway.iceberg.errors import (
    CatalogError,
    IdentifierNameEmpty,
    InvalidNamespace,
    InvalidTableName,
    NamespaceDepthExceeded,
    NamespaceEmpty,
    NamespacePartContainsDot,
    NamespacePartEmpty,
    ReservedNamespace,
)

SEPARATOR: Final = "\x1f"
"""Separator of namespace levels in paths, queries and keys (specification: `namespace-separator`, default %1F)."""

MAX_NAME_BYTES: Final = 255
"""Maximum length in UTF-8 bytes of the name of a new level, table or view."""

MAX_LEVELS: Final = 5
"""Maximum number of levels of a namespace. A request with more is refused before anything is read."""

MAX_REQUESTED_CHARACTERS: Final = 1024
"""Maximum number of characters of a level or name, in any request.

Longer names cannot exist, and every record of a request would repeat them.
"""

_PERCENT_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
# Unicode categories: Cc control, Cs unpaired surrogate (cannot be stored), Zl and Zp line and paragraph separators.
_UNSTORABLE = frozenset({"Cc", "Cs"})
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Text direction controls and the byte order mark can make two different names look equal.
_DECEPTIVE = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def fold(name: str) -> str:
    """Return the case-insensitive key of a name: case-folded and in normalization form NFC. The function is idempotent.

    The name is decomposed first (Unicode standard 3.13, definition D145). A combining iota folds to a separate letter,
    and its position would otherwise differ between a composed and a decomposed spelling.
    """
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


class Namespace(Struct, frozen=True):
    """A namespace of one or more levels.

    The constructor rejects levels that are empty or cannot be stored, so keys are unambiguous.
    """

    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.levels:
            raise NamespaceEmpty("A namespace needs at least one level")
        if len(self.levels) > MAX_LEVELS:
            raise NamespaceDepthExceeded(
                f"Namespace exceeds maximum depth of {MAX_LEVELS}: it has {len(self.levels)} levels"
            )
        for level in self.levels:
            _refuse_length(level, InvalidNamespace, "Namespace level")
            if not level:
                raise NamespacePartEmpty(f"Namespace parts cannot be empty: {_shown('.'.join(self.levels))}")
            _refuse_categories(level, _UNSTORABLE, InvalidNamespace, "Namespace level")

    def child(self, name: str) -> Namespace:
        """Return the namespace with this name directly below this one."""
        return Namespace((*self.levels, name))

    @classmethod
    def parse(cls, raw: str, separator: str = SEPARATOR) -> Namespace:
        """Parse a percent-decoded path segment or query value.

        U+001F separates levels even if the catalog advertises another `separator`. If `raw` contains U+001F, the
        advertised separator is an ordinary character. Raises `NamespaceEmpty`, `NamespacePartEmpty`,
        `NamespaceDepthExceeded` or `InvalidNamespace`.
        """
        if not raw:
            raise NamespaceEmpty("A namespace needs at least one level")
        return cls(tuple(raw.split(SEPARATOR if SEPARATOR in raw else separator)))

    @property
    def dotted(self) -> str:
        """Return the namespace as error messages show it: `level1.level2`."""
        return ".".join(self.levels)

    @property
    def parent(self) -> Namespace | None:
        """Return the namespace without its last level, or None for a first-level namespace."""
        return Namespace(self.levels[:-1]) if len(self.levels) > 1 else None

    @property
    def name(self) -> str:
        """Return the last level."""
        return self.levels[-1]

    @property
    def key(self) -> str:
        """Return the folded levels joined by U+001F. Names that differ only in case have equal keys."""
        return SEPARATOR.join(fold(level) for level in self.levels)


class TableIdentifier(Struct, frozen=True):
    """The namespace and name of a table or view."""

    namespace: Namespace
    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise IdentifierNameEmpty(
                f"The name of a table or view in namespace {_shown(self.namespace.dotted)} must not be empty"
            )
        _refuse_length(self.name, InvalidTableName, "Name")
        _refuse_categories(self.name, _UNSTORABLE, InvalidTableName, "Name")

    @property
    def dotted(self) -> str:
        """Return the identifier as error messages show it: `level1.level2.name`."""
        return f"{self.namespace.dotted}.{self.name}"

    @property
    def key(self) -> str:
        """Return the key of the namespace and the folded name, joined by U+001F."""
        return f"{self.namespace.key}{SEPARATOR}{fold(self.name)}"


def validate_new_namespace(namespace: Namespace, *, reserved: frozenset[str]) -> None:
    """Raise an error if a namespace must not be created with this name.

    `reserved` are first-level names for engines, compared without case. Raises `ReservedNamespace`,
    `NamespacePartContainsDot` or `InvalidNamespace`.
    """
    if fold(namespace.levels[0]) in {fold(name) for name in reserved}:
        raise ReservedNamespace(
            f"Namespace is reserved for internal use: {_shown(namespace.levels[0])}. Choose another name"
        )
    for level in namespace.levels:
        if "." in level:
            raise NamespacePartContainsDot(f"Namespace parts cannot contain '.': {_shown(level)}")
        _check_new(level, InvalidNamespace, "Namespace level")


def validate_new_name(name: str, *, noun: str = "table") -> None:
    """Raise an error if a table or view must not be created with this name.

    `noun` is the kind of object for the message. Dots are allowed, except for the names `.` and `..`. Raises
    `IdentifierNameEmpty` or `InvalidTableName`.
    """
    subject = f"{noun.capitalize()} name"
    if not name:
        raise IdentifierNameEmpty(f"{subject} must not be empty")
    if name in (".", ".."):
        raise InvalidTableName(f"{subject} must not be {name!r}")
    _check_new(name, InvalidTableName, subject)


def _check_new(name: str, error: type[CatalogError], subject: str) -> None:
    """Raise `error` if a level or name breaks a rule that applies to both.

    `+` is rejected because form decoding and plain decoding of a path interpret it differently, `/` and `\\` because
    servers split paths at them. Sequences like `%41` are rejected because a second decoding would change the name.
    """
    _refuse_categories(name, _UNPRINTABLE, error, subject)
    for character in "+/\\":
        if character in name:
            raise error(f"{subject} must not contain {character!r}: {_shown(name)}")
    if _PERCENT_ENCODED.search(name):
        raise error(f"{subject} must not contain percent-encoded characters such as %41: {_shown(name)}")
    if name != name.strip():
        raise error(f"{subject} must not begin or end with white space: {_shown(name)}")
    if not _DECEPTIVE.isdisjoint(name):
        raise error(f"{subject} must not contain characters that control the text direction: {_shown(name)}")
    if (size := len(name.encode())) > MAX_NAME_BYTES:
        raise error(f"{subject} has {size} bytes; at most {MAX_NAME_BYTES} are allowed: {_shown(name)}")


def _refuse_length(text: str, error: type[CatalogError], subject: str) -> None:
    if len(text) > MAX_REQUESTED_CHARACTERS:
        raise error(f"{subject} has {len(text)} characters; at most {MAX_REQUESTED_CHARACTERS} are allowed")


def _refuse_categories(text: str, categories: frozenset[str], error: type[CatalogError], subject: str) -> None:
    if text.isprintable():
        return
    for character in text:
        if unicodedata.category(character) in categories:
            raise error(f"{subject} must not contain the character U+{ord(character):04X}: {_shown(text)}")


def _shown(text: str) -> str:
    """Return the text quoted, printable and with at most 80 characters, because error messages appear in logs and
    terminals.
    """
    cut = text if len(text) <= 80 else f"{text[:80]}…"
    return "'" + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in cut) + "'"


MAX_PATTERN_LEVELS: Final = 10
MAX_PATTERN_LENGTH: Final = 255
MAX_STARS: Final = 8
"""Maximum number of levels of a pattern with its name, of characters of each, and of `*` in all of them.

They bound the work for one comparison, which every decision on a table in the warehouse makes.
"""


class NamePattern(Struct, frozen=True):
    """A pattern for the full name of a table.

    `*` stands for any characters of one level, `?` for one character, and a backslash makes the next `*`, `?` or
    backslash an ordinary character. Levels do not match across their ends. Names that differ in letter case or in the
    Unicode form are equal, as everywhere in the catalog. The constructor raises ValueError for another form.
    """

    namespace: tuple[str, ...]
    name: str

    def __post_init__(self) -> None:
        levels = (*self.namespace, self.name)
        if not self.namespace:
            raise ValueError("a name needs the levels of its `namespace`, and its `name`")
        if len(levels) > MAX_PATTERN_LEVELS:
            raise ValueError(f"a name must have at most {MAX_PATTERN_LEVELS} levels; this one has {len(levels)}")
        for level in levels:
            if len(level) > MAX_PATTERN_LENGTH:
                raise ValueError(f"a level of a name must have at most {MAX_PATTERN_LENGTH} characters")
            try:
                TableIdentifier(Namespace((level,)), level)
            except CatalogError as error:
                raise ValueError(str(error)) from None
        if sum(part.wild and part.text == "*" for level in levels for part in _parts(level)) > MAX_STARS:
            raise ValueError(
                f"a name must contain `*` at most {MAX_STARS} times. Bind the policy to the namespace instead"
            )

    @property
    def like(self) -> str:
        """Return the pattern for SQL's LIKE, to be compared with the folded levels joined by U+001F.

        A wildcard of LIKE could match U+001F. So compare the number of levels too: then each separator in the pattern
        matches one in the name, and none is left for a wildcard.
        """
        return SEPARATOR.join("".join(part.like for part in _parts(fold(level))) for level in self.levels)

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the patterns of the namespace's levels, followed by that of the name."""
        return (*self.namespace, self.name)

    @property
    def fixed_namespaces(self) -> tuple[Namespace, ...]:
        """Return the namespaces that contain every name which the pattern matches, from the deepest to the top
        level.
        """
        fixed: list[str] = []
        for level in self.namespace:
            parts = _parts(level)
            if any(part.wild for part in parts):
                break
            fixed.append("".join(part.text for part in parts))
        return tuple(Namespace(tuple(fixed[:depth])) for depth in range(len(fixed), 0, -1))


class _Part(Struct, frozen=True):
    """A character in a level of a pattern, or a wildcard."""

    text: str
    wild: bool = False

    @property
    def like(self) -> str:
        """Return the part for SQL's LIKE."""
        if self.wild:
            return {"*": "%", "?": "_"}[self.text]
        return f"\\{self.text}" if self.text in "\\%_" else self.text


def _parts(level: str) -> list[_Part]:
    """Return the characters and wildcards of a level. Raises ValueError if a backslash precedes any other character."""
    parts: list[_Part] = []
    characters = iter(level)
    for character in characters:
        escaped = next(characters, "") if character == "\\" else None
        if escaped is None:
            parts.append(_Part(character, wild=character in "*?"))
        elif escaped and escaped in "*?\\":
            parts.append(_Part(escaped))
        else:
            raise ValueError(r"a backslash stands only before `*`, `?` or another backslash: write `\\` for one")
    return parts
