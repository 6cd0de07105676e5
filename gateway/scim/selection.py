# SPDX-License-Identifier: Apache-2.0
"""Which attributes an answer is to have: `attributes` and `excludedAttributes` (RFC 7644 section 3.9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import fields, replace

from gateway.scim.filters import bare

Told = TypeVar("Told", bound=Struct)

_ALWAYS = frozenset({"schemas", "id"})


@dataclass(frozen=True, slots=True)
class Selection:
    """Names of attributes (`members`) and of their parts (`members.value`), in lower case. Without `only` all that are
    not in `but`. `above_…` are the attributes of the parts in each, since there may be many names and many resources.
    """

    only: frozenset[str]
    but: frozenset[str]
    above_only: frozenset[str]
    above_but: frozenset[str]

    @classmethod
    def of(cls, only: Iterable[str], but: Iterable[str]) -> Selection:
        """As they were sent: in any letter case, also with the name of the core schema in front."""
        some, others = (frozenset(bare(each).lower() for each in names) for names in (only, but))
        return cls(some, others, _above(some), _above(others))

    def takes(self, name: str) -> bool:
        """Whether an attribute is wanted, or a part of one that is."""
        name = name.lower()
        if name in self.but:
            return False
        return not self.only or name in self.above_only or not self.only.isdisjoint((name, name.partition(".")[0]))

    def narrowed(self, resource: Told) -> Told:
        """The resource with what is wanted of it; `schemas` and `id` are always there."""
        return self._narrowed(resource, "") if self.only or self.but else resource

    def _narrowed(self, value: Told, above: str) -> Told:
        changed: dict[str, Any] = {}
        for field in fields(value):
            name, inner = above + field.encode_name.lower(), getattr(value, field.name)
            if name in _ALWAYS or inner is UNSET:
                continue
            if not self.takes(name):
                changed[field.name] = UNSET
            elif name in self.above_only or name in self.above_but:
                if isinstance(inner, Struct):
                    changed[field.name] = self._narrowed(inner, f"{name}.")
                elif isinstance(inner, tuple):
                    changed[field.name] = tuple(self._narrowed(each, f"{name}.") for each in inner)
        return replace(value, **changed) if changed else value


def _above(names: frozenset[str]) -> frozenset[str]:
    return frozenset(each.partition(".")[0] for each in names if "." in each)
