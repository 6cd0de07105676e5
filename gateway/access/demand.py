# SPDX-License-Identifier: Apache-2.0
"""What must be true for an operation, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.access.refs import Ref
from gateway.access.relations import Can

#: A fact about an operation that policies may look at.
Fact = str | int | bool | None | tuple[str, ...]
Facts = Mapping[str, Fact]


@dataclass(frozen=True, slots=True)
class Demand:
    """The caller must have `relation` on what `on` points at.

    With `required=False` it is only asked: the answer decides *how* the operation is done (read or write credentials,
    all rows or filtered ones) and is read from `Permit.holds`, never whether it is done.

    `alternative` is a second relation that serves as well: whoever hands out the rights on an object need not see it
    otherwise (`manage_grants`, `lakekeeper.md` appendix B).

    `restricted` is a relation that says of a table that some of it may be had. It serves where an engine acts for the
    caller that is trusted to hold back the rest (`gateway.access.restricted`), and what is held back is then read from
    `Permit.restriction`; without such an engine the refusal says what to do.

    `changes` marks what is only asked and would let the caller change something behind the gateway's back (keys that
    write): in read-only maintenance it is not asked, and so not held.
    """

    relation: Can
    on: Ref
    required: bool = True
    alternative: Can | None = None
    changes: bool = False
    restricted: Can | None = None

    @property
    def relations(self) -> tuple[Can, ...]:
        """The relations of which one is enough."""
        return (self.relation,) if self.alternative is None else (self.relation, self.alternative)
