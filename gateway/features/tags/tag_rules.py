# SPDX-License-Identifier: Apache-2.0
"""Rules of tag definitions and values. Pure; a violation raises the error of the response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

from gateway.access.management_errors import InvalidTagDefinition, InvalidTagValue, TagScopeNarrowed, TagScopeNotAllowed
from gateway.access.operations.tags import TagTarget
from gateway.iceberg.identifiers import fold

#: Maximum number of allowed values of a tag.
MAX_ALLOWED_VALUES: Final = 1_000

#: First segments of names that are reserved for the server.
RESERVED: Final = frozenset({"system", "lakekeeper", "lakegate"})

_ORDER: Final = get_args(TagTarget)


def require_name(name: str) -> None:
    """Raise InvalidTagDefinition for an empty segment, and for a name that is reserved."""
    segments = name.split(".")
    if any(not segment.strip() for segment in segments):
        raise InvalidTagDefinition(
            f"The name {name!r} has an empty segment. Dots separate the segments of a name, as in pii.email."
        )
    if fold(segments[0]) in RESERVED:
        raise InvalidTagDefinition(f"Names that begin with {segments[0]!r} are reserved. Choose another name.")


def require_values(kind: str, values: Sequence[str] | None) -> tuple[str, ...]:
    """Return the allowed values of a new tag, sorted. Raise InvalidTagDefinition if they do not fit the kind."""
    if kind == "enumerated" and not values:
        raise InvalidTagDefinition("An enumerated tag needs at least one value in allowed-values.")
    return _added(kind, (), values, "allowed-values")


def with_values(kind: str, present: Sequence[str], added: Sequence[str] | None) -> tuple[str, ...]:
    """Return the allowed values after an addition, sorted. Raise InvalidTagDefinition if they do not fit the kind."""
    return _added(kind, present, added, "add-allowed-values")


def _added(kind: str, present: Sequence[str], added: Sequence[str] | None, member: str) -> tuple[str, ...]:
    if added and kind != "enumerated":
        raise InvalidTagDefinition(f"Only an enumerated tag has allowed values, and this tag is {kind}. Omit {member}.")
    if added is not None and len(set(added)) != len(added):
        raise InvalidTagDefinition(f"{member} contains a value twice. Give each value once.")
    found = tuple(sorted({*present, *(added or ())}))
    if len(found) > MAX_ALLOWED_VALUES:
        raise InvalidTagDefinition(
            f"The tag would have {len(found)} allowed values; at most {MAX_ALLOWED_VALUES} are possible. Use a tag "
            "with free text."
        )
    return found


def widened(present: Sequence[str], scope: Sequence[str]) -> tuple[str, ...]:
    """Return the new scope in a fixed order. Raise TagScopeNarrowed if it lacks a type of the present scope."""
    missing = [each for each in present if each not in scope]
    if missing:
        raise TagScopeNarrowed(
            f"The scope of a tag can only be widened, and the new scope lacks {', '.join(missing)}. Send the present "
            "scope with the additional types."
        )
    return tuple(each for each in _ORDER if each in scope)


def require_in_scope(name: str, scope: Sequence[str], target: str) -> None:
    """Raise TagScopeNotAllowed if objects of the type `target` may not carry the tag."""
    if target not in scope:
        raise TagScopeNotAllowed(
            f"The tag {name} cannot be attached to a {target}: its scope is {', '.join(scope)}. The owner of the tag "
            "can widen the scope."
        )


def require_value(name: str, kind: str, allowed: Sequence[str], value: str | None) -> None:
    """Raise InvalidTagValue if the tag must not have this value. None stands for no value."""
    if kind == "marker" and value is not None:
        raise InvalidTagValue(f"The tag {name} is a marker and has no value. Leave `value` out.")
    if kind != "marker" and value is None:
        raise InvalidTagValue(f"The tag {name} needs a `value`.")
    if kind == "enumerated" and value not in allowed:
        shown = ", ".join(allowed[:20]) + (", …" if len(allowed) > 20 else "")
        raise InvalidTagValue(f"The tag {name} does not allow this value; letter case matters. Allowed: {shown}.")
