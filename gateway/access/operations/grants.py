# SPDX-License-Identifier: Apache-2.0
"""Operations on the assignments of an object: reading and changing them.

Each entry of a change needs the granting right of its own privilege on the object. If one entry is refused, none is
applied. The grants API (`grant_lists.py`) demands the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from gateway.access.change_event import ChangeEvent, EventDeclaration
from gateway.access.demand import Demand, Facts
from gateway.access.families import (
    DATA_POLICY,
    DEFAULT_PROJECT,
    KEPT_TABULARS,
    NAMESPACE,
    PROJECT,
    ROLE,
    SERVER,
    TAG_PERMISSIONS,
    WAREHOUSE,
    declare_for_each,
)
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.privileges import Privilege, granting
from gateway.access.refs import Ref
from gateway.access.relations import Can
from gateway.access.tuples import Principal
from gateway.protocol.delegation import ActsFor, limits_text


@dataclass(frozen=True, slots=True)
class Assignment:
    """A privilege of a principal on the object of the operation, with reason, expiry and limits of the grant.

    Only `delegate` has limits; None stands for the default.
    """

    privilege: Privilege
    principal: Principal
    reason: str | None = None
    expires_at: datetime | None = None
    acts_for: ActsFor | None = None

    @property
    def key(self) -> tuple[Privilege, Principal]:
        """The identity of the grant."""
        return self.privilege, self.principal


def _to_grant(ref: Ref, entries: Iterable[Assignment]) -> tuple[Demand, ...]:
    """Return demands for the granting right of each privilege, or for the right to read if the change is empty."""
    rights = dict.fromkeys(granting(entry.privilege) for entry in entries)
    return tuple(Demand(right, ref) for right in rights) or (Demand(Can.READ_ASSIGNMENTS, ref),)


def _assignment_facts(entries: Iterable[Assignment]) -> tuple[str, ...]:
    return tuple(f"{e.privilege}:{e.principal.type}:{e.principal.id}" for e in entries)


@dataclass(frozen=True)
class ReadingGrants:
    """Mixin of operations that read the assignments of an object."""

    on: Ref

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class WritingGrants:
    """Mixin of operations that grant and revoke privileges on an object.

    Policies receive the expiry (RFC 3339, or an empty text) of each of `writes` in order, and whether all of them have
    a reason. If a grant of `delegate` has limits, they also receive those of each (JSON, or an empty text).
    """

    returns: ClassVar[int] = 204
    on: Ref
    writes: tuple[Assignment, ...]
    deletes: tuple[Assignment, ...]

    @property
    def takes_away(self) -> bool:
        """True if the change can end a right, at once or by an expiry."""
        return bool(self.deletes) or any(each.expires_at is not None for each in self.writes)

    def demands(self) -> tuple[Demand, ...]:
        return _to_grant(self.on, (*self.writes, *self.deletes))

    def facts(self) -> Facts:
        limits = tuple(limits_text(e.acts_for) or "" for e in self.writes)
        return {
            "writes": _assignment_facts(self.writes),
            "deletes": _assignment_facts(self.deletes),
            "write_ends": tuple("" if e.expires_at is None else e.expires_at.isoformat() for e in self.writes),
            "all_reasoned": all(e.reason is not None for e in self.writes),
            **({"write_limits": limits} if any(limits) else {}),
        }


@dataclass(frozen=True)
class ReadAssignments(ReadingGrants, ReadOperation, abstract=True):
    """Return the assignments on an object; `privileges` selects some, empty selects all."""

    privileges: tuple[Privilege, ...] = ()


@dataclass(frozen=True)
class WriteAssignments(WritingGrants, ChangeOperation, abstract=True):
    """Grant and revoke privileges on an object, in the form of the assignments API."""

    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="changeGrants")


_ALL = (
    SERVER,
    DEFAULT_PROJECT,
    PROJECT,
    WAREHOUSE,
    NAMESPACE,
    *KEPT_TABULARS,
    ROLE,
    TAG_PERMISSIONS,
    DATA_POLICY,
)
READ_ASSIGNMENTS: tuple[type[ReadAssignments], ...] = declare_for_each(
    ReadAssignments,
    _ALL,
    name="Read{noun}Assignments",
    endpoint="GET /management/v1/permissions/{path}/assignments",
    doc="Return the assignments on {words}.",
)
WRITE_ASSIGNMENTS: tuple[type[WriteAssignments], ...] = declare_for_each(
    WriteAssignments,
    _ALL,
    name="Write{noun}Assignments",
    endpoint="POST /management/v1/permissions/{path}/assignments",
    doc="Grant and revoke privileges on {words}.",
)
