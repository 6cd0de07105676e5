# SPDX-License-Identifier: Apache-2.0
"""Operations that read and change the assignments of privileges on an object.

Each entry of a change needs the right to grant its privilege on the object. If one entry is refused, none is applied.
The grants API (`grant_lists.py`) demands the same rights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, StrictRequest, UserId
from gateway.access.delegate_grants import ActsFor, limits_text
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.card import ResolvedInProject
from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.families import (
    DEFAULT_PROJECT,
    IN_PROJECTS_BY_TYPE,
    KEPT_TABULARS,
    NAMESPACE,
    PROJECT,
    SERVER,
    WAREHOUSE,
    declare_for_each,
)
from gateway.access.nouns.privileges import Privilege, granting
from gateway.access.nouns.refs import ObjectType, Ref
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.operations.actions import Identity
from gateway.access.tuples import Principal


@dataclass(frozen=True, slots=True)
class Assignment:
    """A privilege of a principal on the operation's object, with the reason, expiry and limits of the grant.

    Only `delegate` has limits. None stands for the default limits.
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
    """Return a demand for the right to grant each privilege.

    If the change is empty, demand the right to read the assignments.
    """
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
    a reason. If a grant of `delegate` has limits, they also receive the limits of each grant (JSON, or an empty text).
    """

    returns: ClassVar[int] = 204
    on: Ref
    writes: tuple[Assignment, ...]
    deletes: tuple[Assignment, ...]

    @property
    def takes_away(self) -> bool:
        """True if the change can end a right, immediately or by an expiry."""
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
    *IN_PROJECTS_BY_TYPE,
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


#: The maximum number of entries in the writes and deletes of one request together, and so in each of them.
MAX_ENTRIES = 100


class AssignmentEntry(StrictRequest, frozen=True, omit_defaults=True):
    """An assignment, such as `{"type": "select", "user": "oidc~alice"}`. Exactly one of `user` and `role` is given.
    `acts-for` limits `delegate`.
    """

    type: str
    user: UserId | None = None
    role: UUID | None = None
    acts_for: ActsFor | None = None


class AssignmentsAnswer(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/assignments`. `project-id` is present for assignments on a project, `column` and `field-id`
    for those on a column.
    """

    assignments: list[AssignmentEntry]
    project_id: str | None = None
    column: str | None = None
    field_id: int | None = None


Entries = Annotated[tuple[AssignmentEntry, ...], msgspec.Meta(max_length=MAX_ENTRIES)]


class WriteAssignmentsRequest(StrictRequest, frozen=True):
    """Request of `POST …/assignments`."""

    writes: Entries = ()
    deletes: Entries = ()


class GrantWrite(StrictRequest, frozen=True):
    """A privilege to grant. `expires-at` needs a time zone. `reason` is a text for reviewers of the grant. `acts-for`
    limits `delegate`.
    """

    privilege: str
    principal: Identity
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)] | None = None
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    acts_for: ActsFor | None = None


class GrantDelete(StrictRequest, frozen=True):
    """A privilege to revoke."""

    privilege: str
    principal: Identity


class WriteGrantsRequest(StrictRequest, frozen=True):
    """Request of `POST …/grants`."""

    writes: Annotated[tuple[GrantWrite, ...], msgspec.Meta(max_length=MAX_ENTRIES)] = ()
    deletes: Annotated[tuple[GrantDelete, ...], msgspec.Meta(max_length=MAX_ENTRIES)] = ()


class GrantedTo(Answer, frozen=True, omit_defaults=True):
    """The user or role that has the grant."""

    user: str | None = None
    role: UUID | None = None


def _with_ids(base: type[Answer]) -> type[msgspec.Struct]:
    """Return `base` with an optional member for the id of each object type that is directly in a project."""
    in_projects = [CARDS[type] for type in ObjectType if issubclass(CARDS[type].row, ResolvedInProject)]
    members = [(name, str | None, None) for card in in_projects for name in card.id_members]
    described = {"__doc__": base.__doc__}
    return msgspec.defstruct(
        base.__name__, members, bases=(base,), namespace=described, module=base.__module__, kw_only=True
    )


@_with_ids
class GrantedOn(Answer, frozen=True, omit_defaults=True):
    """The object of the grant: its type, and its ids as used in paths. A column is identified by its table and its
    `field-id`. `column` is its name. If it is `dropped`, this is its last name, and the grant has no effect. `tag-id`
    repeats `tag-definition-id` for older clients.
    """

    type: str
    server_id: str | None = None
    project_id: str | None = None
    warehouse_id: str | None = None
    namespace_id: str | None = None
    table_id: str | None = None
    view_id: str | None = None
    generic_table_id: str | None = None
    column: str | None = None
    field_id: int | None = None
    dropped: bool = False


class Grant(Answer, frozen=True, omit_defaults=True):
    """A grant. `granted-by`, `reason`, `expires-at` and `acts-for` are extensions of this server. `acts-for` are the
    limits of `delegate`.
    """

    privilege: str
    principal: GrantedTo
    resource: GrantedOn
    created_at: datetime
    granted_by: str
    recognized: bool
    """True if this server knows the privilege."""
    reason: str | None = None
    expires_at: datetime | None = None
    acts_for: ActsFor | None = None


class GrantList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/grants`: the oldest grants first."""

    grants: list[Grant]
    next_page_token: str | None = None


class EndedGrant(Answer, frozen=True, omit_defaults=True):
    """A grant that has ended. `ended-because` is `revoked`, `expired`, `replaced` (by a grant of the same grantor with
    another expiry, reason or limits), `object deleted` or `principal deleted`. An expired grant has no `ended-by`.
    """

    privilege: str
    principal: GrantedTo
    resource: GrantedOn
    created_at: datetime
    granted_by: str
    ended_at: datetime
    ended_because: str
    ended_by: str | None = None
    reason: str | None = None
    expires_at: datetime | None = None
    acts_for: ActsFor | None = None


class GrantHistory(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/grants/history`: the grants that ended last first."""

    grants: list[EndedGrant]
    next_page_token: str | None = None


class PrivilegeInfo(Answer, frozen=True, omit_defaults=True):
    """A privilege with its texts for users."""

    name: str
    display_name: str
    category: str
    resource_type: str
    description: str | None = None

    @classmethod
    def of(cls, privilege: Privilege, type: ObjectType) -> PrivilegeInfo:
        """Return the texts of the privilege on objects of this type."""
        return cls(
            name=privilege.value,
            display_name=privilege.display_name,
            description=privilege.description,
            category=privilege.category,
            resource_type=CARDS[type].in_bodies,
        )


class GrantablePrivilege(Answer, frozen=True):
    """A privilege. `allowed` is true if the caller, or the principal in question, may grant and revoke it on the
    object.
    """

    allowed: bool
    privilege: PrivilegeInfo


class GrantablePrivileges(Answer, frozen=True):
    """Response of `GET …/grants/grantable-privileges` on an object: all privileges of its type."""

    privileges: list[GrantablePrivilege]


class AllPrivileges(Answer, frozen=True):
    """Response of `GET /grants/grantable-privileges`: the privileges by the type of the object."""

    privileges: dict[str, list[PrivilegeInfo]]
