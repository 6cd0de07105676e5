# SPDX-License-Identifier: Apache-2.0
"""Selection of the attributes of a response: `attributes` and `excludedAttributes` (RFC 7644, section 3.9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import fields, replace

from gateway.scim.filters import bare

StructT = TypeVar("StructT", bound=Struct)

_ALWAYS = frozenset({"schemas", "id"})


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected attributes of a response.

    `only` and `except_attributes` contain attributes (`members`) and sub-attributes (`members.value`), in lower case.
    If `only` is empty, all attributes but those in `except_attributes` are selected. `above_only` and `above_but`
    contain the attributes of the sub-attributes in each. They are computed once, because a request may have many
    names and resources.
    """

    only: frozenset[str]
    except_attributes: frozenset[str]
    above_only: frozenset[str]
    above_but: frozenset[str]

    @classmethod
    def of(cls, only: Iterable[str], except_attributes: Iterable[str]) -> Selection:
        """Create a selection from names as sent: in any letter case, with or without the URN of the core schema."""
        some, others = (frozenset(bare(each).lower() for each in names) for names in (only, except_attributes))
        return cls(some, others, _above(some), _above(others))

    def takes(self, name: str) -> bool:
        """Return True if the attribute or sub-attribute is selected, or contains a selected sub-attribute."""
        name = name.lower()
        if name in self.except_attributes:
            return False
        return not self.only or name in self.above_only or not self.only.isdisjoint((name, name.partition(".")[0]))

    def narrowed(self, resource: StructT) -> StructT:
        """Return the resource with its selected attributes. `schemas` and `id` are always included."""
        return self._narrowed(resource, "") if self.only or self.except_attributes else resource

    def _narrowed(self, value: StructT, above: str) -> StructT:
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
