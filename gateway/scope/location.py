# SPDX-License-Identifier: Apache-2.0
"""Locations in a store, and layouts of default locations. Every `Location` can be the scope of a credential.

A `Location` has at least one path segment, so it is never a whole store. The root of a store is a `BaseLocation`, which
no policy builder accepts. Locations are compared by segments and not as text, so `t1` does not contain `t10`.

Rules of a single provider, such as the form of an authority, are in the `Scheme` of that provider.

Two rules are stricter than those of the stores. They refuse characters that clients and stores interpret differently.
If a check and the store interpret a key differently, a credential can reach files outside of its scope.

- `?` and `#`: Iceberg's Java client cuts a key at them.
- whitespace, control and format characters of all of Unicode.

Every layout puts the UUID of the table or view into the path. With a name alone, a new table would get the folder of an
older one of that name. Credentials of one table would then reach the files of the other.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final
from urllib.parse import quote, unquote_to_bytes
from uuid import UUID

import msgspec

from gateway.scope.errors import InvalidLocation, InvalidStorageProfile

__all__ = [
    "BaseLocation",
    "DefaultLayout",
    "FullHierarchyLayout",
    "InvalidLocation",
    "Location",
    "Scheme",
    "StorageLayout",
    "TabularOnlyLayout",
    "alternatives",
    "check_segment",
    "default_location",
    "fold",
    "refuse_pattern_characters",
    "shown",
]


# Characters with a meaning in policy patterns or policy variables. Stores that match by shell globs read `[` and `]` as
# ranges.
PATTERN_CHARACTERS: Final = frozenset("*?${}[]")
_NEVER: Final = {
    "\\": "a backslash",
    "?": "a '?' (read as a query by clients)",
    "#": "a '#' (read as a fragment by clients)",
}
_REFUSED_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})
_INVISIBLE_LETTERS: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800")  # letters and symbols displayed as blanks
_NEVER_ENCODED: Final = b"/\\.\x7f" + bytes(range(0x20))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """Rules of one provider for its locations (the scheme of a URI: RFC 3986, section 3.1).

    `names`: accepted names of the scheme, the canonical one first. `check_authority` raises InvalidLocation for an
    invalid authority. `max_path_bytes`: limit on the length of a path. `path_noun` and `root_noun`: words for a path
    and for the root of a store in messages. `path_alone`: True if `name:/path` is also a location (RFC 8089,
    appendix B). `check_segment` raises InvalidLocation for a segment that this provider alone does not allow.
    """

    names: tuple[str, ...]
    check_authority: Callable[[str], None]
    max_path_bytes: int
    path_noun: str
    root_noun: str
    path_alone: bool = False
    check_segment: Callable[[str], None] | None = None

    @property
    def name(self) -> str:
        """Return the canonical name."""
        return self.names[0]

    def writes(self, text: str) -> bool:
        """Return True if `text` starts with one of the scheme's names, in any letter case."""
        return self._after_name(text) is not None

    def parse(self, text: str, *, escapes_known: bool = False) -> "Location":
        """Parse `scheme://authority/path`. One trailing slash is allowed and dropped.

        `escapes_known`: True if the policies of the store can escape pattern characters; otherwise they are refused.
        Raises `InvalidLocation`.
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
        """Return the authority and path exactly as written; None if `text` has another scheme."""
        name, _, rest = text.partition(":")
        if not name.isascii() or name.lower() not in self.names:
            return None
        if rest.startswith("//"):
            return rest[2:]
        return rest if self.path_alone and rest.startswith("/") else None


@dataclass(frozen=True, slots=True)
class BaseLocation:
    """A location `scheme://authority[/segment…]` whose path may be empty. A warehouse keeps all its files below one.

    `StorageProfile.base_location()` returns it. The constructor raises `InvalidLocation` for values that break the
    rules of this module or of the scheme.
    """

    scheme: Scheme
    authority: str
    segments: tuple[str, ...]

    def __post_init__(self) -> None:
        self.scheme.check_authority(self.authority)
        for segment in self.segments:
            check_segment(segment)
            if self.scheme.check_segment is not None:
                self.scheme.check_segment(segment)
        most = self.scheme.max_path_bytes
        if len("/".join(self.segments).encode()) >= most:
            raise InvalidLocation(f"Location is too long: {self.scheme.path_noun} must have fewer than {most} bytes")

    @property
    def text(self) -> str:
        """Return the canonical text without a trailing slash and with the canonical scheme: `scheme://authority/a/b`."""
        return f"{self.scheme.name}://{'/'.join((self.authority, *self.segments))}"

    @property
    def prefix_text(self) -> str:
        """Return the canonical text with a trailing slash. Clients compare it as a plain string prefix."""
        return self.text + "/"

    @property
    def key_prefix(self) -> str:
        """Return the common prefix of all keys below this location: `a/b/`; empty for the root of a store."""
        return "".join(segment + "/" for segment in self.segments)

    @property
    def overlap_key(self) -> str:
        """Return `authority/path/` after `fold`. Two locations overlap if and only if one of their keys starts with the
        other.

        In SQL, compare keys with `starts_with` or a key range. LIKE is wrong, because a key may contain `_` and `%`.
        """
        return fold(f"{self.authority}/{self.key_prefix}")

    def contains(self, other: "BaseLocation", *, strict: bool = False) -> bool:
        """Return True if `other` is this location or is below it; with `strict`, only if it is below it.

        The comparison is by whole segments and exact bytes.
        """
        if (self.scheme, self.authority) != (other.scheme, other.authority):
            return False
        if strict and len(other.segments) == len(self.segments):
            return False
        return other.segments[: len(self.segments)] == self.segments

    def overlaps(self, other: "BaseLocation") -> bool:
        """Return True if one location equals or contains the other.

        Differences that `fold` removes are ignored, such as letter case and Unicode composition.
        """
        mine, theirs = self.overlap_key, other.overlap_key
        return mine.startswith(theirs) or theirs.startswith(mine)

    def child(self, first: str, *rest: str, escapes_known: bool = False) -> "Location":
        """Return the location `first/rest…` below this one.

        `escapes_known` is as in `Scheme.parse`. Raises `InvalidLocation` for a segment that breaks the rules.
        """
        added = (first, *rest)
        if not escapes_known:
            for segment in added:
                refuse_pattern_characters(segment)
        return Location(self.scheme, self.authority, self.segments + added)

    def ancestors(self) -> "tuple[BaseLocation, ...]":
        """Return every location that strictly contains this one, the root of the store first."""
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
    """A location with at least one path segment. Tables and views have one, and credentials are scoped to one."""

    def __post_init__(self) -> None:
        BaseLocation.__post_init__(self)
        if not self.segments:
            raise InvalidLocation(f"Location {self.text!r} is {self.scheme.root_noun}. It must have a path below that")


def fold(text: str) -> str:
    """Remove every difference that a known store, file system or database ignores when it compares keys.

    The steps are compatibility decomposition, removal of combining marks, and case folding. `str.casefold` alone is not
    enough, because stores use other tables: Go lowers U+0130 to a plain `i`, Python does not.

    Keys that a store distinguishes may fold to the same text. Keys that a store treats as equal always do. The result
    decides which locations may exist beside each other, and never the reach of a credential.
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold().upper().casefold())
    bare = "".join(c for c in decomposed if not unicodedata.combining(c))
    return unicodedata.normalize("NFKD", bare.casefold()).replace("ı", "i")


def refuse_pattern_characters(segment: str) -> None:
    """Raise `InvalidLocation` for a pattern character. For stores whose policies cannot escape pattern characters."""
    found = sorted(PATTERN_CHARACTERS.intersection(segment))
    if found:
        raise InvalidLocation(
            f"Path segment {shown(segment)} contains {' '.join(found)}. These characters are not allowed, because "
            "the store interprets them as wildcards in policies"
        )


def check_segment(segment: str) -> None:
    """Raise InvalidLocation if the segment breaks a rule that applies to every store. The message names the rule."""
    if not segment:
        raise InvalidLocation("Location has an empty path segment ('//' or a leading slash)")
    if "/" in segment:
        raise InvalidLocation(f"Path segment {shown(segment)} must not contain a slash")
    if segment in {".", ".."}:
        raise InvalidLocation("Location must not contain the path segments '.' or '..'")
    for character in segment:
        if character in _NEVER:
            raise InvalidLocation(f"Path segment {shown(segment)} must not contain {_NEVER[character]}")
        if unicodedata.category(character) in _REFUSED_CATEGORIES or character in _INVISIBLE_LETTERS:
            raise InvalidLocation(
                f"Path segment {shown(segment)} contains the character U+{ord(character):04X}: white space, control, "
                "format and unassigned characters are not allowed"
            )
    _check_encoded(segment)


def _check_encoded(segment: str) -> None:
    """Raise InvalidLocation for a percent encoding that any number of decodings turns into a separator, dot or control
    character.

    Other encodings are allowed. Percent-encoded names contain `%20` or `%2A`, and clients that do not decode them are
    not affected.
    """
    current = segment.encode()
    while b"%" in current:
        decoded = unquote_to_bytes(current)
        if decoded == current:
            return
        if any(decoded.count(byte) > current.count(byte) for byte in _NEVER_ENCODED):
            raise InvalidLocation(
                f"Path segment {shown(segment)} must not contain a percent-encoded slash, backslash, dot or control "
                "character"
            )
        current = decoded


def alternatives(names: tuple[str, ...]) -> str:
    """Return text for a message about these scheme names: `a://, b:// or c://`."""
    *first, last = (f"{name}://" for name in names)
    return f"{', '.join(first)} or {last}" if first else last


def shown(text: str) -> str:
    """Return the text in a form for messages and logs: quoted, cut to 120 characters, all but printable ASCII
    escaped.
    """
    return ascii(text if len(text) <= 120 else text[:117] + "...")


class _Layout(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True, tag_field="type"):
    """Base class of the three layouts."""


class DefaultLayout(_Layout, frozen=True, tag="default"):
    """Flat layout: `<base>/<uuid>`."""

    tabular: ClassVar[str] = "{uuid}"


class TabularOnlyLayout(_Layout, frozen=True, tag="tabular-only"):
    """Flat layout `<base>/<tabular>`. The template contains `{uuid}` and may contain `{name}`."""

    tabular: str

    def __post_init__(self) -> None:
        _check_template("tabular", self.tabular)


class FullHierarchyLayout(_Layout, frozen=True, tag="full-hierarchy"):
    """Nested layout `<base>/<namespace>/…/<tabular>`, with one segment for each level of the namespace.

    Both templates contain `{uuid}` and may contain `{name}`.
    """

    namespace: str
    tabular: str

    def __post_init__(self) -> None:
        _check_template("namespace", self.namespace)
        _check_template("tabular", self.tabular)


StorageLayout = DefaultLayout | TabularOnlyLayout | FullHierarchyLayout


def default_location(
    base: BaseLocation, layout: StorageLayout, namespace: tuple[tuple[str, UUID], ...], name: str, uuid: UUID
) -> Location:
    """Return the default location of a new table or view.

    `namespace` is the path of its namespace as pairs (name, id), outermost level first. Raises `InvalidLocation` if the
    rendered path is too long.
    """
    segments = [_render(layout.tabular, name, uuid)]
    if isinstance(layout, FullHierarchyLayout):
        segments = [_render(layout.namespace, *level) for level in namespace] + segments
    return base.child(*segments)


def _render(template: str, name: str, uuid: UUID) -> str:
    # All but the unreserved characters (RFC 3986, section 2.3) are percent-encoded, so no pattern character remains.
    # Separators and the percent sign become underscores: a client that decodes twice must not restore them.
    encoded = quote(name, safe="").replace("%2F", "_").replace("%25", "_").replace("%5C", "_")
    return template.replace("{uuid}", str(uuid)).replace("{name}", encoded)


def _check_template(field: str, template: str) -> None:
    rest = template.replace("{uuid}", "").replace("{name}", "")
    if "{uuid}" not in template:
        raise InvalidStorageProfile(f"Storage layout field {field!r} must contain {{uuid}}")
    if len(template) > 128 or not all(c.isascii() and (c.isalnum() or c in "-_=") for c in rest):
        raise InvalidStorageProfile(
            f"Storage layout field {field!r} must consist of {{name}}, {{uuid}}, ASCII letters, digits and -_= only, "
            "with at most 128 characters"
        )
