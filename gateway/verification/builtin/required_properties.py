# SPDX-License-Identifier: Apache-2.0
"""Require properties of tables, views, generic tables and namespaces: the built-in verifier `properties`.

A commit may leave a property unchanged although it breaks the requirement. Otherwise a new requirement would stop all
writers of existing tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gateway.verification.builtin.documents import DocumentMissing, properties_after, properties_before
from gateway.verification.builtin.rule import DATA_UPDATES, STRUCTURE_UPDATES, Concern
from gateway.verification.port import ChangeKind, ProposedChange

CONCERN: Final = Concern(
    kinds=frozenset({ChangeKind.CREATE, ChangeKind.COMMIT, ChangeKind.NAMESPACE_PROPERTIES}),
    object_types=frozenset({"table", "view", "generic_table", "namespace"}),
    unaffected=DATA_UPDATES | STRUCTURE_UPDATES,
)

LONGEST_VALUE: Final = 1024
"""Characters of a value that is compared with a pattern. A longer value breaks the requirement."""


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """A property that must be set. `pattern` is a regular expression that must match the whole value."""

    key: str
    pattern: str | None = None

    def fault(self, properties: Mapping[str, str]) -> str | None:
        """Return the reason why the properties break the requirement; None if they do not."""
        value = properties.get(self.key)
        if not value:
            return f"the property {self.key} must be set"
        if self.pattern is None:
            return None
        if len(value) <= LONGEST_VALUE and re.fullmatch(self.pattern, value):
            return None
        return f"the property {self.key} must match {self.pattern}"


def parse_requirements(entries: Iterable[str]) -> tuple[Requirement, ...]:
    """Parse entries `key` and `key=pattern` into requirements. Raises ValueError for an invalid entry."""
    requirements: dict[str, Requirement] = {}
    for entry in entries:
        key, equals, pattern = entry.partition("=")
        key = key.strip()
        if not key or (equals and not pattern):
            raise ValueError(f"{entry!r} must have the form key or key=pattern")
        if key in requirements:
            raise ValueError(f"the property {key} is required twice")
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"the pattern of the property {key} is no regular expression: {error}") from None
        requirements[key] = Requirement(key=key, pattern=pattern or None)
    if not requirements:
        raise ValueError("at least one property must be required")
    return tuple(requirements.values())


def missing_properties(change: ProposedChange, requirements: tuple[Requirement, ...]) -> tuple[str, ...]:
    """Return a reason for each requirement that the change breaks.

    Raises DocumentMissing and `BadRequestException`.
    """
    before, after = _properties(change)
    return tuple(
        fault
        for requirement in requirements
        if (fault := requirement.fault(after))
        and (before is None or before.get(requirement.key) != after.get(requirement.key))
    )


def _properties(change: ProposedChange) -> tuple[Mapping[str, str] | None, Mapping[str, str]]:
    """Return (properties before the change, properties after it). The first is None for a new object and for a
    namespace.
    """
    if change.object_type == "namespace":
        return None, change.properties
    after, before = properties_after(change), properties_before(change)
    if before is None and change.object_id is not None:
        raise DocumentMissing("the change has no document of the current state")
    return before, after
