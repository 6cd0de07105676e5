# SPDX-License-Identifier: Apache-2.0
"""Bind data policies (row filters and masks) to a table: compute their effect on one caller, and cache the results.

Trino sends several questions about a table for one statement. The cache key contains all inputs of the computation, so
an entry never becomes invalid.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
from cachetools import LRUCache

from gateway.access.nouns.resolved import Excerpt
from gateway.obligations.binding import BindingResult, PolicyProblem, restrictions_of
from gateway.obligations.data_policies import BoundPolicy, PolicyInputs, PrincipalAttributes
from gateway.obligations.kinds import TableRestrictions
from gateway.obligations.projections import Columns, RestrictionNotExpressible, columns_of


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """The effect of data policies on one caller and one object.

    - `object_id`: the id of the table, or of the namespace of a new table.
    - `restrictions`: the merged restrictions, None if no policy restricts anything.
    - `inexpressible`: True if a policy applies that no engine could enforce, so that reading must be refused.
    - `reason`: the reason to refuse what is inexpressible, as text for the caller.
    - `trusted`: True if an enforcer acts for the caller.
    - `exempt`: the ids of the policies that would apply if the caller were not exempt.
    - `problems`: the policies that could not be applied as written.
    - `columns`: the columns of the document that the restrictions were computed from.
    - `inputs`: the policies and former columns that they were computed from.
    - `applying`: the ids of the policies that restrict the caller, None if the policies could not be read.
    """

    object_id: str
    restrictions: TableRestrictions | None = None
    inexpressible: bool = False
    reason: str = "a data policy applies to it that no engine can enforce"
    trusted: bool = False
    exempt: frozenset[str] = frozenset()
    problems: tuple[PolicyProblem, ...] = ()
    columns: Columns | None = field(default=None, compare=False)
    inputs: PolicyInputs | None = field(default=None, compare=False)
    applying: frozenset[str] | None = field(default=None, compare=False)

    @property
    def restricts(self) -> bool:
        """Return True if a data policy restricts what the caller may read of the table."""
        return self.restrictions is not None or self.inexpressible

    @property
    def enforceable(self) -> bool:
        """Return True if all restrictions can be enforced, and the engine that acts for the caller is trusted to do
        so.
        """
        return self.trusted and not self.inexpressible


@dataclass(frozen=True, slots=True)
class PolicyStanding:
    """The relation of a caller to some data policies: the ids of those that restrict it, and of those that it
    manages.
    """

    restricting: frozenset[str]
    managed: frozenset[str]


#: Excerpts of more than this number of bytes are parsed in a thread, so that they do not block other requests.
_LARGE: Final = 262_144
#: The maximum sum of the lengths of the cached inputs, in bytes. Results take about ten times as much memory: a
#: principal can have thousands of values in a row filter, even for a table with few columns.
_CACHED: Final = 2_097_152

_Entry = tuple[Columns, BindingResult, int]


class BoundRestrictions:
    """Computes the effects of data policies, and caches those that an engine can enforce."""

    def __init__(self) -> None:
        self._cache: LRUCache[bytes, _Entry] = LRUCache(_CACHED, getsizeof=_size)

    async def bind(
        self,
        verdict: PolicyVerdict,
        applying: Sequence[BoundPolicy],
        inputs: PolicyInputs,
        attributes: PrincipalAttributes,
        excerpt: Excerpt,
    ) -> PolicyVerdict:
        """Return the verdict with the computed restrictions.

        If no engine could enforce them, it stays inexpressible.
        """
        location = excerpt.metadata_location
        # The key is made of JSON, because 1, 1.0 and True are equal in Python but differ in a row filter.
        written = msgspec.json.encode((verdict.object_id, location, tuple(applying), attributes))
        key = hashlib.blake2b(written + msgspec.json.encode(inputs) + excerpt.text, digest_size=32).digest()
        entry = self._cache.get(key)
        if entry is None:

            def computed() -> _Entry:
                columns = columns_of(excerpt.text)
                result = restrictions_of(verdict.object_id, applying, inputs, attributes, columns, location)
                return columns, result, len(written) + len(excerpt.text)

            try:
                entry = await asyncio.to_thread(computed) if len(excerpt.text) > _LARGE else computed()
            except RestrictionNotExpressible as impossible:
                problem = f"{impossible}: nobody may read the table until the policy or the table is changed"
                ids = sorted({each.policy.id for each in applying})
                return replace(verdict, problems=tuple(PolicyProblem(id, verdict.object_id, problem) for id in ids))
            if entry[2] <= _CACHED:
                self._cache[key] = entry
        columns, result, _ = entry
        return replace(
            verdict,
            inexpressible=False,
            restrictions=result.restrictions,
            problems=result.problems,
            columns=columns,
            inputs=inputs,
        )


def _size(entry: _Entry) -> int:
    return entry[2]
