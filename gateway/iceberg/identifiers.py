# SPDX-License-Identifier: Apache-2.0
"""Names of namespaces, tables and views: parsing, the case-blind key, and what a new name may contain."""

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
"""Joins the levels of a namespace in paths, queries and keys (specification: `namespace-separator`, default %1F)."""

MAX_NAME_BYTES: Final = 255
"""Longest name of one level, table or view, in UTF-8 bytes."""

MAX_ASKED_LEVELS: Final = 100
MAX_ASKED_CHARACTERS: Final = 1024
"""What may be asked about at all. Longer names can exist nowhere, and every record of a request repeats its names."""

_PERCENT_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
# Cc control, Cs unpaired surrogate (cannot be stored), Zl/Zp line and paragraph separators.
_UNSTORABLE = frozenset({"Cc", "Cs"})
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Bidirectional overrides and the byte order mark make one name look like another.
_DECEPTIVE = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def fold(name: str) -> str:
    """The case-blind key of a name: case folding and NFC, idempotent.

    Decomposed first (Unicode 3.13, D145): a combining iota folds to a letter of its own, and would stand at another
    place in a composed spelling than in a decomposed one.
    """
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


class Namespace(Struct, frozen=True):
    """One or more levels. Cannot be built from levels that are empty or cannot be stored, so a key is unambiguous."""

    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.levels:
            raise NamespaceEmpty("A namespace needs at least one level")
        if len(self.levels) > MAX_ASKED_LEVELS:
            raise NamespaceDepthExceeded(f"A namespace has at most {MAX_ASKED_LEVELS} levels, not {len(self.levels)}")
        for level in self.levels:
            _refuse_length(level, InvalidNamespace, "Namespace level")
            if not level:
                raise NamespacePartEmpty(f"Namespace level is empty in {_shown('.'.join(self.levels))}")
            _refuse_categories(level, _UNSTORABLE, InvalidNamespace, "Namespace level")

    @classmethod
    def parse(cls, raw: str, separator: str = SEPARATOR) -> Namespace:
        """From the percent-decoded path segment or query value.

        The unit separator is understood whatever `separator` the catalog advertises; when `raw` holds it, the
        advertised one is part of a name. Raises `NamespaceEmpty`, `NamespacePartEmpty` or `InvalidNamespace`.
        """
        if not raw:
            raise NamespaceEmpty("A namespace needs at least one level")
        return cls(tuple(raw.split(SEPARATOR if SEPARATOR in raw else separator)))

    @property
    def dotted(self) -> str:
        """As error texts show it: `level1.level2`."""
        return ".".join(self.levels)

    @property
    def parent(self) -> Namespace | None:
        """All levels but the last; None for a first-level namespace."""
        return Namespace(self.levels[:-1]) if len(self.levels) > 1 else None

    @property
    def name(self) -> str:
        """The last level."""
        return self.levels[-1]

    @property
    def key(self) -> str:
        """Folded levels joined by U+001F: equal for names that differ in case only."""
        return SEPARATOR.join(fold(level) for level in self.levels)


class TableIdentifier(Struct, frozen=True):
    """A table's or view's namespace and name."""

    namespace: Namespace
    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise IdentifierNameEmpty(f"The name of a table or view in {_shown(self.namespace.dotted)} is empty")
        _refuse_length(self.name, InvalidTableName, "Name")
        _refuse_categories(self.name, _UNSTORABLE, InvalidTableName, "Name")

    @property
    def dotted(self) -> str:
        """As error texts show it: `level1.level2.name`."""
        return f"{self.namespace.dotted}.{self.name}"

    @property
    def key(self) -> str:
        """The namespace's key and the folded name joined by U+001F."""
        return f"{self.namespace.key}{SEPARATOR}{fold(self.name)}"


def validate_new_namespace(namespace: Namespace, *, reserved: frozenset[str], max_depth: int = 5) -> None:
    """Whether a namespace may be created under this name.

    `reserved` are first-level names kept for engines, compared case-blind. Raises `NamespaceDepthExceeded`,
    `ReservedNamespace`, `NamespacePartContainsDot` or `InvalidNamespace`.
    """
    if len(namespace.levels) > max_depth:
        raise NamespaceDepthExceeded(
            f"Namespace {_shown(namespace.dotted)} has {len(namespace.levels)} levels, at most {max_depth} are allowed"
        )
    if fold(namespace.levels[0]) in {fold(name) for name in reserved}:
        raise ReservedNamespace(f"Namespace is reserved for internal use: {_shown(namespace.levels[0])}")
    for level in namespace.levels:
        if "." in level:
            raise NamespacePartContainsDot(f"Namespace levels must not contain a dot: {_shown(level)}")
        _check_new(level, InvalidNamespace, "Namespace level")


def validate_new_name(name: str, *, noun: str = "table") -> None:
    """Whether a table or view (`noun`, for the message) may be created under this name.

    Dots are allowed inside a name, but not as the whole of it. Raises `IdentifierNameEmpty` or `InvalidTableName`.
    """
    subject = f"{noun.capitalize()} name"
    if not name:
        raise IdentifierNameEmpty(f"{subject} is empty")
    if name in (".", ".."):
        raise InvalidTableName(f"{subject} must not be {name!r}")
    _check_new(name, InvalidTableName, subject)


def _check_new(name: str, error: type[CatalogError], subject: str) -> None:
    """Rules shared by levels and names.

    `+` is refused because form-style and plain decoding of a path read it differently, `/` and `\\` because servers
    split paths on them, `%41` forms because a second decoding anywhere would give another name.
    """
    _refuse_categories(name, _UNPRINTABLE, error, subject)
    for character in "+/\\":
        if character in name:
            raise error(f"{subject} must not contain {character!r}: {_shown(name)}")
    if _PERCENT_ENCODED.search(name):
        raise error(f"{subject} must not contain percent-encoded characters: {_shown(name)}")
    if name != name.strip():
        raise error(f"{subject} must not begin or end with white space: {_shown(name)}")
    if not _DECEPTIVE.isdisjoint(name):
        raise error(f"{subject} must not contain text direction controls: {_shown(name)}")
    if (size := len(name.encode())) > MAX_NAME_BYTES:
        raise error(f"{subject} takes {size} bytes, at most {MAX_NAME_BYTES} are allowed: {_shown(name)}")


def _refuse_length(text: str, error: type[CatalogError], subject: str) -> None:
    if len(text) > MAX_ASKED_CHARACTERS:
        raise error(f"{subject} has {len(text)} characters, at most {MAX_ASKED_CHARACTERS} can be asked about")


def _refuse_categories(text: str, categories: frozenset[str], error: type[CatalogError], subject: str) -> None:
    if text.isprintable():
        return
    for character in text:
        if unicodedata.category(character) in categories:
            raise error(f"{subject} must not contain the character U+{ord(character):04X}: {_shown(text)}")


def _shown(text: str) -> str:
    """Printable and short, whatever the caller sent: error texts end up in logs and terminals."""
    cut = text if len(text) <= 80 else f"{text[:80]}…"
    return "'" + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in cut) + "'"
