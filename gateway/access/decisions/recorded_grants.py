# SPDX-License-Identifier: Apache-2.0
"""All recorded grants with the positions of their objects, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal


class Grant(NamedTuple):
    """A relation that a principal holds directly on an object, derived relations included."""

    principal: Principal
    relation: str
    object: ObjectKey
    expires: bool


class Place(NamedTuple):
    """The position of an object: its container (None for the server), its name, and its flag of managed access."""

    above: ObjectKey | None
    name: str
    flagged: bool = False


@dataclass(frozen=True)
class World:
    """Every grant, and the position of every object that has a grant or a flag, with all of its containers."""

    grants: Sequence[Grant]
    places: Mapping[ObjectKey, Place]

    def nested_namespaces(self) -> int:
        """Return the largest number of nested namespaces on the path of an object."""
        depths: dict[ObjectKey, int] = {}

        def depth(key: ObjectKey) -> int:
            if key.type is not ObjectType.NAMESPACE:
                return 0
            if key not in depths:
                above = self.places[key].above
                depths[key] = 1 + (depth(above) if above is not None else 0)
            return depths[key]

        return max((depth(key) for key in self.places), default=0)
