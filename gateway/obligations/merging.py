# SPDX-License-Identifier: Apache-2.0
"""Merge the obligations (restrictions) of one decision to the strictest of each kind.

A digest identifies the merged obligations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

import msgspec

from gateway.obligations.kinds import KINDS, Obligation

Found = TypeVar("Found", bound=Obligation)

_encoder = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class Obligations:
    """At most one obligation of each kind for each object, in the order of KINDS. Create it with `of` or `merged`
    only.
    """

    each: tuple[Obligation, ...] = ()

    @classmethod
    def of(cls, *obligations: Obligation) -> Self:
        """Return these obligations, merged."""
        found: dict[tuple[int, str], Any] = {}
        for one in obligations:
            key = KINDS.index(type(one)), one.about
            found[key] = one if key not in found else found[key].strictest(one)
        return cls(tuple(one for _, one in sorted(found.items(), key=lambda item: item[0])))

    def merged(self, *others: Obligations) -> Obligations:
        """Return the merge of these obligations and all `others`. It is associative, commutative and idempotent."""
        return Obligations.of(*self, *(one for other in others for one in other))

    def __iter__(self) -> Iterator[Obligation]:
        return iter(self.each)

    def find(self, kind: type[Found], about: str = "") -> Found | None:
        """Return the obligation of this kind for an object, or None. An empty `about` is the object of the decision."""
        return next((one for one in self.each if isinstance(one, kind) and one.about == about), None)

    @property
    def fingerprint(self) -> bytes:
        """Return 16 bytes that differ for different obligations, or no bytes without obligations.

        ETags and the keys of cached credentials contain them.
        """
        if not self.each:
            return b""
        parts = [(type(one).__name__, one.about, one.identity()) for one in self.each]
        return hashlib.sha256(_encoder.encode(parts)).digest()[:16]

    def audited(self) -> Mapping[str, int | bool]:
        """Return the fields for the audit record. Numbers are summed over all objects, and False is left out."""
        found: dict[str, int | bool] = {}
        for one in self.each:
            for name, value in one.audited().items():
                found[name] = value if isinstance(value, bool) else found.get(name, 0) + value
        return {name: value for name, value in found.items() if value is not False}


NO_OBLIGATIONS: Final = Obligations()
