# SPDX-License-Identifier: Apache-2.0
"""Declare demands: the relations that a caller must have on objects for an operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can

#: A fact about an operation that policies receive.
Fact = str | int | bool | None | tuple[str, ...]
Facts = Mapping[str, Fact]


@dataclass(frozen=True, slots=True)
class Demand:
    """A demand: the caller must have `relation` on the object `on`.

    With `required=False` the result determines *how* the operation is done (credentials for reads or for writes, all
    rows or filtered ones), never whether. `Permit.holds` returns it.

    `alternative` is a second relation that is also enough. It is `manage_grants` for principals that manage the grants
    on an object without any other right on it.

    `restricted` is the column-level relation of a table. It is enough if an enforcer acts for the caller
    (`gateway.access.restrictions.column_restrictions`); `Permit.restriction` then returns the restriction. Without an
    enforcer the refusal names the remedy.

    `changes` marks an optional relation that lets the caller change something outside of the gateway (credentials for
    writes). Read-only maintenance does not check it, and treats it as not held.
    """

    relation: Can
    on: Ref
    required: bool = True
    alternative: Can | None = None
    changes: bool = False
    restricted: Can | None = None

    @property
    def relations(self) -> tuple[Can, ...]:
        """The accepted relations. One of them is enough."""
        return (self.relation,) if self.alternative is None else (self.relation, self.alternative)
