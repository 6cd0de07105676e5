# SPDX-License-Identifier: Apache-2.0
"""The effect of data policies on one caller and one table. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.obligations.binding import PolicyProblem
from gateway.obligations.data_policies import PolicyInputs
from gateway.obligations.kinds import TableRestrictions
from gateway.obligations.projections import Columns


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
        """Return True if the caller may not read the table as it is."""
        return self.restrictions is not None or self.inexpressible

    @property
    def enforceable(self) -> bool:
        """Return True if an engine acts for the caller that is trusted to apply all restrictions."""
        return self.trusted and not self.inexpressible


@dataclass(frozen=True, slots=True)
class PolicyStanding:
    """The data policies among some that restrict a caller, and those that it manages, by their ids."""

    restricting: frozenset[str]
    managed: frozenset[str]
