# SPDX-License-Identifier: Apache-2.0
"""Locations in a store, as values that cannot name anything a credential could not be confined to.

A `Location` holds at least one path segment, so a whole store is not one: the root is a `BaseLocation`, which no policy
builder accepts. Comparison is by segments, never by text, so `t1` does not contain `t10`.

What holds for one provider alone, such as the form of its authorities, is in that provider's `Scheme`.

Two rules go beyond what the stores themselves refuse, because clients and stores disagree on the meaning of such keys
and a check that reads a key in one way while the store reads it in another is the class of bug behind most escapes: `?`
and `#` (Iceberg's Java client cuts a key at them), and whitespace, control and format characters of all of Unicode.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

from gateway.scope.errors import InvalidLocation

__all__ = [
    "BaseLocation",
    "InvalidLocation",
    "Location",
    "Scheme",
    "alternatives",
    "check_segment",
    "fold",
    "refuse_pattern_characters",
    "shown",
]

# Characters with a meaning in policy patterns or policy variables. `[` and `]` are ranges in stores that match by
# shell globs.
PATTERN_CHARACTERS: Final = frozenset("*?${}[]")
_NEVER: Final = {
    "\\": "a backslash",
    "?": "a '?' (read as a query by clients)",
    "#": "a '#' (read as a fragment by clients)",
}
_REFUSED_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})
_INVISIBLE_LETTERS: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800")  # letters and symbols that are drawn as a blank
_NEVER_ENCODED: Final = b"/\\.\x7f" + bytes(range(0x20))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """The rules of one provider's locations (RFC 3986, section 3.1).

    `names` are the ways to write the scheme, the canonical one first. `check_authority` raises InvalidLocation for what
    is no authority of this provider. A path has at most `max_path_bytes`. `path_noun` and `root_noun` are what messages
    call a path and the place above all paths. `path_alone`: `name:/path` is a location too (RFC 8089, appendix B).
    """

    names: tuple[str, ...]
    check_authority: Callable[[str], None]
    max_path_bytes: int
    path_noun: str
    root_noun: str
    path_alone: bool = False

    @property
    def name(self) -> str:
        """The canonical name."""
        return self.names[0]

    def writes(self, text: str) -> bool:
        """Return True if `text` is written in this scheme, with one of its names in any letter case."""
        return self._after_name(text) is not None

    def parse(self, text: str, *, escapes_known: bool = False) -> "Location":
        """Read `scheme://authority/path`; one trailing slash is allowed and dropped.

        `escapes_known` says whether the store knows a way to take pattern characters literally; without it they are
        refused. Raises `InvalidLocation`.
        """
        rest = self._after_name(text)
        if rest is None:
            raise InvalidLocation(f"Location {shown(text)} must start with {alternatives(self.names)}")
        authority, _, path = rest.partition("/")
        path = path.removesuffix("/")
        segments = tuple(path.split("/")) if path else ()
        if not escapes_known:
            for segment in segments:
                refuse_pattern_characters(segment)
        return Location(self, authority, segments)

    def _after_name(self, text: str) -> str | None:
        """Return authority and path as they are written; None for another scheme."""
        name, _, rest = text.partition(":")
        if not name.isascii() or name.lower() not in self.names:
            return None
        if rest.startswith("//"):
            return rest[2:]
        return rest if self.path_alone and rest.startswith("/") else None


@dataclass(frozen=True, slots=True)
class BaseLocation:
    """`scheme://authority[/segment…]`, the place below which a warehouse keeps everything; the path may be empty.

    Built by `StorageProfile.base_location()`. Raises `InvalidLocation` for every value that breaks the rules of this
    module or of its scheme, also when constructed directly.
    """

    scheme: Scheme
    authority: str
    segments: tuple[str, ...]

    def __post_init__(self) -> None:
        self.scheme.check_authority(self.authority)
        for segment in self.segments:
            check_segment(segment)
        most = self.scheme.max_path_bytes
        if len("/".join(self.segments).encode()) >= most:
            raise InvalidLocation(f"Location is too long: {self.scheme.path_noun} has at most {most} bytes")

    @property
    def text(self) -> str:
        """Canonical text without a trailing slash, aliases of the scheme resolved: `scheme://authority/a/b`."""
        return f"{self.scheme.name}://{'/'.join((self.authority, *self.segments))}"

    @property
    def prefix_text(self) -> str:
        """Canonical text with a trailing slash. Clients match it as a plain string prefix."""
        return self.text + "/"

    @property
    def key_prefix(self) -> str:
        """The keys below this place all start with it: `a/b/`; empty for the root of a store."""
        return "".join(segment + "/" for segment in self.segments)

    @property
    def overlap_key(self) -> str:
        """`authority/path/` folded by `fold`: two places overlap exactly when one key starts with the other.

        For the database: compare with `starts_with` or a key range, not with LIKE, as `_` and `%` may occur in it.
        """
        return fold(f"{self.authority}/{self.key_prefix}")

    def contains(self, other: "BaseLocation", *, strict: bool = False) -> bool:
        """Whether `other` is this place or lies below it (`strict`: lies below it), byte by byte, by whole segments."""
        if (self.scheme, self.authority) != (other.scheme, other.authority):
            return False
        if strict and len(other.segments) == len(self.segments):
            return False
        return other.segments[: len(self.segments)] == self.segments

    def overlaps(self, other: "BaseLocation") -> bool:
        """Whether one of both is, contains or lies in the other, twins by letter case or composition included."""
        mine, theirs = self.overlap_key, other.overlap_key
        return mine.startswith(theirs) or theirs.startswith(mine)

    def child(self, first: str, *rest: str, escapes_known: bool = False) -> "Location":
        """The place `first/rest…` below this one; raises `InvalidLocation` for a segment that breaks the rules."""
        added = (first, *rest)
        if not escapes_known:
            for segment in added:
                refuse_pattern_characters(segment)
        return Location(self.scheme, self.authority, self.segments + added)

    def ancestors(self) -> "tuple[BaseLocation, ...]":
        """Every place that strictly contains this one, outermost (the store's root) first."""
        return tuple(
            Location(self.scheme, self.authority, self.segments[:depth])
            if depth
            else BaseLocation(self.scheme, self.authority, ())
            for depth in range(len(self.segments))
        )

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Location(BaseLocation):
    """A place with at least one path segment: what a table may have and what a credential may be scoped to."""

    def __post_init__(self) -> None:
        BaseLocation.__post_init__(self)
        if not self.segments:
            raise InvalidLocation(f"Location {self.text!r} is {self.scheme.root_noun}: a path below it is needed")


def fold(text: str) -> str:
    """Fold away every difference some store, file system or database is known to ignore when it compares keys.

    Wider than `str.casefold`, because stores fold by other tables (Go lowers U+0130 to a plain `i`, Python does not):
    compatibility decomposition, combining marks dropped, then case folded. It may call two different keys twins,
    never the reverse; it only decides what may stand side by side, never what a credential reaches.
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold().upper().casefold())
    bare = "".join(c for c in decomposed if not unicodedata.combining(c))
    return unicodedata.normalize("NFKD", bare.casefold()).replace("ı", "i")


def refuse_pattern_characters(segment: str) -> None:
    """Refuse what has a meaning in policy patterns, for stores on which it cannot be escaped: `InvalidLocation`."""
    found = sorted(PATTERN_CHARACTERS.intersection(segment))
    if found:
        raise InvalidLocation(
            f"Path segment {shown(segment)} holds {' '.join(found)}: the store gives these a meaning in policies and "
            "has no way to take them literally"
        )


def check_segment(segment: str) -> None:
    """Refuse what is no segment of a path in any store. Raises InvalidLocation, which says the rule that was broken."""
    if not segment:
        raise InvalidLocation("Location has an empty path segment ('//' or a leading slash)")
    if "/" in segment:
        raise InvalidLocation(f"Path segment {shown(segment)} must not hold a slash")
    if segment in {".", ".."}:
        raise InvalidLocation("Location must not hold the path segments '.' or '..'")
    for character in segment:
        if character in _NEVER:
            raise InvalidLocation(f"Path segment {shown(segment)} must not hold {_NEVER[character]}")
        if unicodedata.category(character) in _REFUSED_CATEGORIES or character in _INVISIBLE_LETTERS:
            raise InvalidLocation(
                f"Path segment {shown(segment)} holds the character U+{ord(character):04X}: "
                "whitespace, control, format and unassigned characters are not allowed"
            )
    _check_encoded(segment)


def _check_encoded(segment: str) -> None:
    """Refuse percent encodings that any number of decodings turns into a separator, a dot or a control character.

    Others stay: `%20` or `%2A` come from percent-encoded names and change nothing for whoever does not decode them.
    """
    current = segment.encode()
    while b"%" in current:
        decoded = unquote_to_bytes(current)
        if decoded == current:
            return
        if any(decoded.count(byte) > current.count(byte) for byte in _NEVER_ENCODED):
            raise InvalidLocation(
                f"Path segment {shown(segment)} holds a percent encoded slash, backslash, dot or control character"
            )
        current = decoded


def alternatives(names: tuple[str, ...]) -> str:
    """Return the beginnings of locations for a message: `a://, b:// or c://` of their schemes' names."""
    *first, last = (f"{name}://" for name in names)
    return f"{', '.join(first)} or {last}" if first else last


def shown(text: str) -> str:
    """Shortened and with everything unprintable escaped, as it goes into messages and from there into logs."""
    return ascii(text if len(text) <= 120 else text[:117] + "...")
