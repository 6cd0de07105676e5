# SPDX-License-Identifier: Apache-2.0
"""Patterns for the full names of tables: the levels of the namespace and the name, each with wildcards."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from gateway.iceberg.errors import CatalogError
from gateway.iceberg.identifiers import SEPARATOR, Namespace, TableIdentifier, fold

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
            raise ValueError(f"a name has at most {MAX_PATTERN_LEVELS} levels; this one has {len(levels)}")
        for level in levels:
            if len(level) > MAX_PATTERN_LENGTH:
                raise ValueError(f"a level of a name has at most {MAX_PATTERN_LENGTH} characters")
            try:
                TableIdentifier(Namespace((level,)), level)
            except CatalogError as error:
                raise ValueError(str(error)) from None
        if sum(part.wild and part.text == "*" for level in levels for part in _parts(level)) > MAX_STARS:
            raise ValueError(f"a name has at most {MAX_STARS} times `*`. Bind the policy to the namespace instead")

    @property
    def like(self) -> str:
        """Return the pattern for SQL's LIKE and for the folded levels, joined by U+001F.

        A wildcard of LIKE could match U+001F. So the number of levels must be equal too: then each separator in the
        pattern matches one of the name, and none is left for a wildcard.
        """
        return SEPARATOR.join("".join(part.like for part in _parts(fold(level))) for level in self.levels)

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the patterns of the namespace's levels and of the name."""
        return (*self.namespace, self.name)

    @property
    def fixed_namespaces(self) -> tuple[Namespace, ...]:
        """Return the namespaces that contain every name of the pattern, from the deepest to the top level."""
        fixed: list[str] = []
        for level in self.namespace:
            parts = _parts(level)
            if any(part.wild for part in parts):
                break
            fixed.append("".join(part.text for part in parts))
        return tuple(Namespace(tuple(fixed[:depth])) for depth in range(len(fixed), 0, -1))


class _Part(Struct, frozen=True):
    """A character of a level, or a wildcard."""

    text: str
    wild: bool = False

    @property
    def like(self) -> str:
        """Return the part for SQL's LIKE."""
        if self.wild:
            return {"*": "%", "?": "_"}[self.text]
        return f"\\{self.text}" if self.text in "\\%_" else self.text


def _parts(level: str) -> list[_Part]:
    """Return the characters and wildcards of a level. Raises ValueError for a backslash before another character."""
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
