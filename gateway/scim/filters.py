# SPDX-License-Identifier: Apache-2.0
"""Parse the SCIM filters that providers send: equality conditions, joined by `and` (RFC 7644, section 3.4.2.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from gateway.scim.errors import InvalidFilter

MAX_CHARACTERS: Final = 2_048
MAX_CONDITIONS: Final = 5
#: Attributes, in lower case, that the filters for users and for groups may name.
USERS: Final = frozenset({"id", "username", "externalid", "displayname", "active"})
GROUPS: Final = frozenset({"id", "displayname", "externalid", "members"})
_ALIASES: Final[Mapping[str, str]] = {"members.value": "members"}

_STRING = r'"(?:[^"\\]|\\.)*"'
_CONDITION: Final = re.compile(
    rf"\s*(?:(?P<list>members)\[\s*value\s+eq\s+(?P<item>{_STRING})\s*\]"
    rf"|(?P<attribute>[A-Za-z][A-Za-z0-9_.:$-]*)\s+(?P<operator>[A-Za-z]+)\s+(?P<value>{_STRING}|true|false))",
    re.IGNORECASE | re.DOTALL,
)
_CORE: Final = re.compile(r"^urn:ietf:params:scim:schemas:core:2\.0:(?:user|group):", re.IGNORECASE)
_AND: Final = re.compile(r"\s+and(?=\s)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a filter: the attribute (in lower case) equals the value."""

    attribute: str
    value: str | bool


def parse(text: str | None, known: frozenset[str]) -> tuple[Condition, ...]:
    """Return the conditions of a filter, all of which must hold; an empty tuple if `text` is None.

    `known` are the attributes that the filter may use. Raises InvalidFilter.
    """
    if text is None:
        return ()
    if len(text) > MAX_CHARACTERS:
        raise InvalidFilter(f"The filter must have at most {MAX_CHARACTERS} characters.")
    found: list[Condition] = []
    at = 0
    while True:
        matched = _CONDITION.match(text, at)
        if matched is None:
            raise InvalidFilter(
                'A filter must have the form `attribute eq "value"`. Several conditions are joined by `and`.'
            )
        found.append(_condition(matched, known))
        if len(found) > MAX_CONDITIONS:
            raise InvalidFilter(f"A filter must have at most {MAX_CONDITIONS} conditions.")
        at = matched.end()
        if not text[at:].strip():
            return tuple(found)
        joined = _AND.match(text, at)
        if joined is None:
            raise InvalidFilter("The conditions of a filter can be joined only by `and`.")
        at = joined.end()


def _condition(matched: re.Match[str], known: frozenset[str]) -> Condition:
    if matched["list"]:
        attribute, value = "members", _text(matched["item"])
        if attribute not in known:
            raise InvalidFilter("A filter of users cannot contain `members`; users have no members.")
        return Condition(attribute, value)
    attribute = bare(matched["attribute"]).lower()
    attribute = _ALIASES.get(attribute, attribute)
    if matched["operator"].lower() != "eq":
        raise InvalidFilter("The only supported operator of a filter is `eq`.")
    if attribute not in known:
        raise InvalidFilter(
            f"A filter by this attribute is not supported. Possible attributes: {', '.join(sorted(known))}."
        )
    given = matched["value"]
    if (attribute == "active") == given.startswith('"'):
        raise InvalidFilter(
            f"The filter compares {attribute} with a value of the wrong type: use true or false for `active`, and a "
            "string for other attributes."
        )
    return Condition(attribute, given.lower() == "true" if attribute == "active" else _text(given))


def bare(path: str) -> str:
    """Return an attribute path without the URN of a core schema at its start."""
    return _CORE.sub("", path)


def is_core(path: str) -> bool:
    """Return True if the path consists only of the URN of a core schema. Such a path addresses all attributes of the
    schema.
    """
    return _CORE.fullmatch(f"{path.strip().removesuffix(':')}:") is not None


def _text(literal: str) -> str:
    """Decode a JSON string. Raises InvalidFilter, even for U+0000, which PostgreSQL cannot store."""
    try:
        text = msgspec.json.decode(literal, type=str)
    except (msgspec.DecodeError, UnicodeError):
        raise InvalidFilter("A value of the filter is not a valid JSON string.") from None
    if "\x00" in text:
        raise InvalidFilter("A value of the filter contains the character U+0000, which is not allowed.")
    return text
